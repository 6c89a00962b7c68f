"""States as kernels see them when they come by handle: an address, from which a field is read where it is used.

A tuple of arrays would be handed from kernel to kernel field by field, some hundred values a call, and LLVM would spend
most of its time on taking tuples apart; this is one value. What a handle says does not change while a kernel runs, and
LLVM is told so: it may read a field once, early or not at all.

Imports numba: to be imported when something is compiled, not before.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.datamodel import models
from numba.core.imputils import lower_getattr_generic
from numba.core.typing.templates import AttributeTemplate, infer_getattr
from numba.extending import register_model

from semibandit.compiled.handle import ROW, ArrayOf, layout, rows_of

_WORD = ir.IntType(64)


class Opened(types.Type):  # type: ignore[misc]
    """numba's type of a state of class `instance_class` that came by handle."""

    def __init__(self, instance_class: Any) -> None:
        self.instance_class = instance_class
        super().__init__(f"Opened({instance_class.__module__}.{instance_class.__qualname__})")

    @property
    def key(self) -> Any:
        return self.instance_class


@register_model(Opened)
class _OpenedModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _WORD.as_pointer())


def _type_of(kind: Any) -> Any:
    if not isinstance(kind, ArrayOf):
        return Opened(kind)
    dtype = types.boolean if kind.dtype == "bool" else getattr(types, kind.dtype)
    return types.Array(dtype, kind.ndim, "C") if kind.ndim else dtype


@infer_getattr
class _Fields(AttributeTemplate):  # type: ignore[misc]
    key = Opened

    def generic_resolve(self, opened: Any, name: str) -> Any:
        kind = dict(layout(opened.instance_class)).get(name)
        return None if kind is None else _type_of(kind)


@lower_getattr_generic(Opened)  # type: ignore[untyped-decorator]
def _read_field(context: Any, builder: Any, opened: Any, first: Any, name: str) -> Any:
    row = 0
    for field, kind in layout(opened.instance_class):
        if field == name:
            break
        row += rows_of(kind)

    def entry(i: int) -> Any:
        value = builder.load(cgutils.gep_inbounds(builder, first, ROW * row + i))
        value.set_metadata("invariant.load", builder.module.add_metadata([]))
        return value

    found = _type_of(kind)
    if isinstance(found, Opened):
        return cgutils.gep_inbounds(builder, first, ROW * row)
    if isinstance(found, types.Array):
        return array_at(context, builder, found, entry(0), [entry(1 + d) for d in range(found.ndim)])
    return builder.bitcast(entry(0), context.get_value_type(found))


def array_at(context: Any, builder: Any, kind: Any, address: Any, shape: list[Any]) -> Any:
    """The C-contiguous array of type `kind` at an address, of dimensions `shape`: numba's structure, in few words."""
    made = context.get_value_type(kind)
    size = ir.Constant(_WORD, context.get_abi_sizeof(context.get_data_type(kind.dtype)))
    strides = [size]
    for length in reversed(shape[1:]):
        strides.insert(0, builder.mul(strides[0], length))
    count = shape[0]
    for length in shape[1:]:
        count = builder.mul(count, length)
    place = context.data_model_manager[kind].get_field_position
    value = ir.Constant(made, [ir.Constant(part, ir.Undefined) for part in made.elements])
    for name in ("meminfo", "parent"):
        value.constant[place(name)] = ir.Constant(made.elements[place(name)], None)
    value.constant[place("itemsize")] = size
    pointer = builder.inttoptr(address, made.elements[place("data")])
    whole: Any = builder.insert_value(value, pointer, place("data"))
    whole = builder.insert_value(whole, count, place("nitems"))
    for d, (length, stride) in enumerate(zip(shape, strides, strict=True)):
        whole = builder.insert_value(whole, length, [place("shape"), d])
        whole = builder.insert_value(whole, stride, [place("strides"), d])
    return whole
