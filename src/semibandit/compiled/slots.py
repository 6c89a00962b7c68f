"""Kernels that take 64-bit slots: one way in for C and for other kernels, whatever their arguments are.

A number fills one slot, an array its address and its dimensions, a tuple what its parts fill; the answer is left in the
first slots. Signatures are written as strings, the same in `native.c`: "a" dtype ndim for an array ("A" if it is only
read), "s" dtype for a number, "(...)" for a tuple; after a colon the answer, "n" if there is none.

A kernel in slots has an address (`Kernel.address`), and a kernel that is handed the address calls it with `caller`
without having been compiled for it. Numba and LLVM are imported when something is compiled, not before.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Iterator
from typing import Any

import numpy as np

from semibandit.compiled import jit
from semibandit.compiled.jit import Kernel, cgutils, intrinsic, ir, types

_LETTERS = {
    "float64": "d",
    "int64": "q",
    "int32": "i",
    "uint8": "B",
    "boolean": "?",
    "bool": "?",
    "uint64": "Q",
}
_NAMES = {"d": "float64", "q": "int64", "i": "int32", "B": "uint8", "?": "boolean", "Q": "uint64"}


class NotAhead(Exception):
    """A kernel, or a type, that cannot be compiled ahead."""


# -- signatures ------------------------------------------------------------------------------------------------------


def spec_of(kind: Any) -> str:
    """A type of numba as signatures write it."""
    try:
        if isinstance(kind, types.Array):
            if kind.layout != "C":
                raise NotAhead(f"{kind} is not contiguous")
            return ("a" if kind.mutable else "A") + _LETTERS[str(kind.dtype)] + str(kind.ndim)
        if isinstance(kind, types.BaseTuple):
            return "(" + "".join(spec_of(part) for part in kind.types) + ")"
        if isinstance(kind, types.NoneType):
            return "n"
        return "s" + _LETTERS[str(types.unliteral(kind))]
    except KeyError:
        raise NotAhead(f"{kind} has no place in a signature") from None


def kinds_of(spec: str) -> tuple[tuple[Any, ...], Any]:
    """The types of the arguments and of the answer in a signature without tuples."""
    arguments, _, answer = spec.partition(":")
    kinds: list[Any] = []
    at = 0
    while at < len(arguments):
        dtype = getattr(types, _NAMES[arguments[at + 1]])
        if arguments[at] == "s":
            kinds.append(dtype)
            at += 2
        else:
            kinds.append(types.Array(dtype, int(arguments[at + 2]), "C", readonly=arguments[at] == "A"))
            at += 3
    return tuple(kinds), types.none if answer == "n" else getattr(types, _NAMES[answer[1]])


def _n_slots(kind: Any) -> int:
    if isinstance(kind, types.BaseTuple):
        return sum(_n_slots(part) for part in kind.types)
    return 1 + kind.ndim if isinstance(kind, types.Array) else 1


# -- between slots and values, in LLVM's language ---------------------------------------------------------------------


def _load(context: Any, builder: Any, slots: Any, kind: Any, first: int) -> Any:
    """The value of type `kind` whose slots begin at `first`."""
    from semibandit.compiled.opened import array_at

    position = first

    def slot() -> Any:
        nonlocal position
        value = builder.load(cgutils.gep_inbounds(builder, slots, position))
        position += 1
        return value

    def make(kind: Any) -> Any:
        if isinstance(kind, types.BaseTuple):
            return context.make_tuple(builder, kind, [make(part) for part in kind.types])
        if isinstance(kind, types.Array):
            address = slot()
            return array_at(context, builder, kind, address, [slot() for _ in range(kind.ndim)])
        if kind == types.float64:
            return builder.bitcast(slot(), ir.DoubleType())
        if kind == types.boolean:
            return builder.trunc(slot(), ir.IntType(1))
        return slot()

    return make(kind)


def _store(context: Any, builder: Any, slots: Any, kind: Any, value: Any, first: int) -> int:
    """Leave a value in the slots from `first` on; the slot after them."""
    word = ir.IntType(64)
    at = first

    def put(item: Any) -> None:
        nonlocal at
        if isinstance(item.type, ir.DoubleType):
            item = builder.bitcast(item, word)
        elif isinstance(item.type, ir.PointerType):
            item = builder.ptrtoint(item, word)
        elif item.type != word:
            item = (builder.zext if item.type.width == 1 else builder.sext)(item, word)
        builder.store(item, cgutils.gep_inbounds(builder, slots, at))
        at += 1

    def walk(kind: Any, value: Any) -> None:
        if isinstance(kind, types.BaseTuple):
            for i, part in enumerate(kind.types):
                walk(part, builder.extract_value(value, i))
        elif isinstance(kind, types.Array):
            array = context.make_array(kind)(context, builder, value)
            put(array.data)
            for length in cgutils.unpack_tuple(builder, array.shape, kind.ndim):
                put(length)
        elif not isinstance(kind, types.NoneType):
            put(value)

    walk(kind, value)
    return at


def _pointer(builder: Any, address: Any) -> Any:
    return builder.inttoptr(address, ir.IntType(64).as_pointer())


# -- a kernel that takes slots -----------------------------------------------------------------------------------------


def _reader(kind: Any, first: int) -> Any:
    def read(typingctx: Any, slots: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return _load(context, builder, _pointer(builder, args[0]), kind, first)

        return kind(slots), codegen

    return intrinsic(read)


def _write(typingctx: Any, slots: Any, value: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        _store(context, builder, _pointer(builder, args[0]), signature.args[1], args[1], 0)
        return context.get_dummy_value()

    return types.void(slots, value), codegen


_writer = intrinsic(_write)


@functools.cache
def in_slots(kernel: Kernel, kinds: tuple[Any, ...]) -> Kernel:
    """``run(slots)``, which calls `kernel` with arguments of these types; `slots` is the address of the first."""
    scope: dict[str, Any] = {"kernel": kernel, "write": _writer}
    at, reads = 0, []
    for j, kind in enumerate(kinds):
        scope[f"read{j}"] = _reader(kind, at)
        at += _n_slots(kind)
        reads.append(f"read{j}(slots)")
    # A name of its own, or all of them would share one file of what is kept on disk.
    name = f"{kernel.py_func.__name__}_in_slots"
    exec(f"def {name}(slots):\n    write(slots, kernel({', '.join(reads)}))", scope)
    made = scope[name]
    made.__module__ = kernel.py_func.__module__
    return Kernel(made, {"_nrt": False}, f"{kernel.name} in slots {kinds}", kernel.depends)


@functools.cache
def compiled_address(kernel: Kernel, spec: str) -> int:
    """The address of `kernel` in slots as numba compiles it here (or finds it on disk)."""
    kinds, answer = kinds_of(spec)
    found = kernel.dispatcher.compile_inner(kinds).signature.return_type
    if spec_of(found) != spec_of(answer):
        raise TypeError(f"{kernel.name} must answer {answer}, not {found}")
    return _address(kernel, kinds)


@functools.cache
def _address(kernel: Kernel, kinds: tuple[Any, ...]) -> int:
    dispatcher = in_slots(kernel, kinds).dispatcher
    if jit.apart:
        inner = dispatcher.compile_inner((types.int64,))
        return int(inner.library.address_apart(inner.fndesc.llvm_func_name))
    dispatcher.compile((types.int64,))
    result = dispatcher.overloads[types.int64,]
    return int(result.library.get_pointer_to_function(result.fndesc.llvm_func_name))


def call_in_slots(kernel: Kernel, kinds: tuple[Any, ...], args: tuple[Any, ...]) -> Any:
    """What `kernel` answers to `args` of these types; slow to call, but it needs no way in from Python."""
    filled: list[int] = []
    for kind, value in zip(kinds, args, strict=True):
        _fill(kind, value, filled)
    slots = np.array([*filled, 0], dtype=np.int64)
    nothing = ctypes.c_void_p()
    function = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
    status = function(_address(kernel, kinds))(
        ctypes.byref(nothing), ctypes.byref(nothing), slots.ctypes.data
    )
    if status not in (0, -2):
        raise RuntimeError(f"the kernel {kernel.name} failed with status {status}")
    return _taken(kernel.dispatcher.compile_inner(kinds).signature.return_type, iter(slots))


def _fill(kind: Any, value: Any, slots: list[int]) -> None:
    if isinstance(kind, types.BaseTuple):
        for part, item in zip(kind.types, value, strict=True):
            _fill(part, item, slots)
    elif isinstance(kind, types.Array):
        slots += [value.ctypes.data, *value.shape]
    else:
        dtype = {types.float64: np.float64, types.uint64: np.uint64}.get(kind, np.int64)
        slots.append(int(np.asarray(value, dtype=dtype).view(np.int64)))


def _taken(kind: Any, slots: Iterator[Any]) -> Any:
    if isinstance(kind, types.NoneType):
        return None
    if isinstance(kind, types.BaseTuple):
        return tuple(_taken(part, slots) for part in kind.types)
    value = next(slots)
    if kind == types.float64:
        return float(value.view(np.float64))
    return bool(value & 1) if kind == types.boolean else int(value)


# -- calling one from a kernel -----------------------------------------------------------------------------------------


@functools.cache
def caller(spec: str) -> Any:
    """A function for kernels, ``call(address, *arguments)``: the kernel in slots at `address`, of this signature."""

    def type_and_code(address: Any, *arguments: Any) -> Any:
        kinds, answer = kinds_of(spec)
        for wanted, kind in zip(kinds, arguments, strict=True):
            if isinstance(wanted, types.Array) and (kind.dtype, kind.ndim, kind.layout) != (
                wanted.dtype,
                wanted.ndim,
                "C",
            ):
                raise TypeError(f"{kind} was handed over where {wanted} is wanted")

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            handed = zip(kinds, signature.args[1:], args[1:], strict=True)
            size = max(1, sum(_n_slots(kind) for kind in kinds))
            slots = cgutils.alloca_once(builder, ir.IntType(64), size=size)
            at = 0
            for wanted, kind, value in handed:
                if not isinstance(wanted, types.Array):
                    kind, value = wanted, context.cast(builder, value, kind, wanted)
                at = _store(context, builder, slots, kind, value, at)
            convention = context.call_conv
            function = convention.get_function_type(types.none, (types.int64,))
            callee = builder.inttoptr(args[0], function.as_pointer())
            pointer = builder.ptrtoint(slots, ir.IntType(64))
            status, _ = convention.call_function(builder, callee, types.none, (types.int64,), [pointer])
            with cgutils.if_unlikely(builder, status.is_error):
                convention.return_status_propagate(builder, status)
            if isinstance(answer, types.NoneType):
                return context.get_dummy_value()
            return _load(context, builder, slots, answer, 0)

        return answer(address, *arguments), codegen

    # numba asks for a function with the very arguments of the call.
    names = ", ".join(f"a{i}" for i in range(_n_arguments(spec)))
    scope = {"type_and_code": type_and_code}
    exec(f"def call(typingctx, address, {names}): return type_and_code(address, {names})", scope)
    return intrinsic(scope["call"])


def _n_arguments(spec: str) -> int:
    arguments = spec.partition(":")[0]
    return arguments.count("a") + arguments.count("A") + arguments.count("s")
