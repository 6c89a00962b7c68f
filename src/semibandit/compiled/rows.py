"""Inner products of four rows of a matrix at a time, in vector instructions and yet each summed from the left.

A sum whose order is fixed cannot be split over the lanes of a vector; four sums can, one in each lane. Rows lie one
after the other, so that a square of four by four numbers is turned over in registers first. With that, products of a
matrix with a few vectors take the time in which the matrix comes from memory. Each function has a scalar twin in the
tests that it must equal bit for bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from semibandit.compiled.jit import cgutils, intrinsic, ir, types

ROWS = 4


def _vector() -> Any:
    return ir.VectorType(ir.DoubleType(), ROWS)


def _whole(value: int, bits: int = 64) -> Any:
    return ir.Constant(ir.IntType(bits), value)


def _zero() -> Any:
    return ir.Constant(_vector(), [ir.Constant(ir.DoubleType(), 0.0)] * ROWS)


def _mix(builder: Any, one: Any, two: Any, lanes: Sequence[int]) -> Any:
    picked = ir.Constant(ir.VectorType(ir.IntType(32), ROWS), [_whole(lane, 32) for lane in lanes])
    return builder.shuffle_vector(one, two, picked)


def _turned(builder: Any, rows: Sequence[Any]) -> list[Any]:
    """The four columns of four rows."""
    even = [_mix(builder, rows[i], rows[i + 1], (0, 4, 2, 6)) for i in (0, 2)]
    odd = [_mix(builder, rows[i], rows[i + 1], (1, 5, 3, 7)) for i in (0, 2)]
    halves = (0, 1, 4, 5), (2, 3, 6, 7)
    return [_mix(builder, one, two, lanes) for lanes in halves for one, two in (even, odd)]


def _filled(builder: Any, scalars: Sequence[Any]) -> Any:
    made = ir.Constant(_vector(), ir.Undefined)
    for lane, scalar in enumerate(scalars):
        made = builder.insert_element(made, scalar, _whole(lane, 32))
    return made


def _as_vector(builder: Any, pointer: Any) -> Any:
    return builder.bitcast(pointer, _vector().as_pointer())


class _Sums:
    """Sums of four rows, inside a function that emits code: with each of `others`, and perhaps with themselves."""

    def __init__(self, builder: Any, others: Sequence[Any], squares: bool) -> None:
        self.builder, self.others = builder, others
        count = len(others) + squares
        self.squares = squares
        self.totals = [cgutils.alloca_once_value(builder, _zero()) for _ in range(count)]

    def _add(self, total: Any, product: Any) -> None:
        self.builder.store(self.builder.fadd(self.builder.load(total), product), total)

    def add_column(self, column: Any, j: Any) -> None:
        """What column j of the rows adds to all sums."""
        builder = self.builder
        for total, other in zip(self.totals, self.others, strict=False):
            x = builder.load(builder.gep(other, [j]))
            self._add(total, builder.fmul(column, _filled(builder, [x] * ROWS)))
        if self.squares:
            self._add(self.totals[-1], builder.fmul(column, column))

    def add_all(self, rows: Sequence[Any], size: Any) -> None:
        """What all columns add, `rows` being pointers to rows of `size` numbers."""
        builder = self.builder
        whole = builder.and_(size, _whole(-ROWS))
        with cgutils.for_range_slice(builder, _whole(0), whole, _whole(ROWS), ir.IntType(64)) as (j, _):
            loaded = [builder.load(_as_vector(builder, builder.gep(row, [j])), align=8) for row in rows]
            for step, column in enumerate(_turned(builder, loaded)):
                self.add_column(column, builder.add(j, _whole(step)))
        with cgutils.for_range_slice(builder, whole, size, _whole(1), ir.IntType(64)) as (j, _):
            self.add_column(_filled(builder, [builder.load(builder.gep(row, [j])) for row in rows]), j)


def _are_floats(array: Any, ndim: int) -> bool:
    kind: Any = types.Array
    return (
        isinstance(array, kind)
        and array.ndim == ndim
        and array.dtype == types.float64
        and array.layout == "C"
    )


def _emit(n_others: int, squares: bool) -> Any:
    """Code for (matrix, k, others ..., outs ...)."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        matrix = context.make_array(signature.args[0])(context, builder, args[0])
        size = cgutils.unpack_tuple(builder, matrix.shape)[1]
        data = [
            context.make_array(kind)(context, builder, array).data
            for kind, array in zip(signature.args[2:], args[2:], strict=True)
        ]
        first = builder.mul(args[1], size)
        rows = [
            builder.gep(matrix.data, [builder.add(first, builder.mul(size, _whole(i)))]) for i in range(ROWS)
        ]
        sums = _Sums(builder, data[:n_others], squares)
        sums.add_all(rows, size)
        for total, out in zip(sums.totals, data[n_others:], strict=True):
            place = _as_vector(builder, builder.gep(out, [args[1]]))
            builder.store(builder.load(total), place, align=8)
        return context.get_dummy_value()

    return codegen


@intrinsic
def four_products(typingctx, matrix, k, x, out):
    """``out[i] = matrix[i]' x`` for the rows k .. k + 3, each sum from the left. O(d)."""
    if not (_are_floats(matrix, 2) and _are_floats(x, 1) and _are_floats(out, 1)):
        return None
    return types.void(matrix, types.int64, x, out), _emit(1, False)


@intrinsic
def four_products_and_squares(typingctx, matrix, k, x, y, with_x, with_y, squares):
    """The same with `x` and `y`, and the squared norms of the rows, in one pass. O(d)."""
    if not (_are_floats(matrix, 2) and all(_are_floats(a, 1) for a in (x, y, with_x, with_y, squares))):
        return None
    return types.void(matrix, types.int64, x, y, with_x, with_y, squares), _emit(2, True)
