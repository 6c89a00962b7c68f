"""What numba has no words for: the inner loops of tournaments as vector instructions, and asking for memory ahead.

LLVM does not vectorise these loops by itself (a first-index search; a minimum over guarded divisions), and they are
where a round's time goes: written with 16-lane vector types they take about a sixth. The types are LLVM's own, so the
same code serves any processor. Each function has a scalar twin in the tests that it must equal bit for bit.

Tournaments keep C-contiguous float64 arrays ``blocks[b, column, lane]`` with 16 lanes, column 0 = alpha, column 1 =
beta. Where families share a block, functions look at the lanes ``lo .. hi - 1`` only; between winners of different
families ties go by the arm ids in column 3, not by the lane.
"""

from __future__ import annotations

from typing import Any

from semibandit.compiled.jit import cgutils, intrinsic, ir, types
from semibandit.compiled.memory import ask_for_line

LANES, LANE_BITS = 16, 4

# alpha of a lane without an arm: finite, so that no NaN arises from differences, and below every real weight.
ABSENT = -1e300

# Each weight is off by at most 2^-53 (|alpha| + 2 lam beta); the certificate's own arithmetic adds a few more
# units. 2^-49 leaves room for both and is far below any difference that matters.
MARGIN = 2.0**-49
EARLY = 1.0 - 2.0**-45

_ID = 3
_INFINITE = float("inf")


# -- words of LLVM -----------------------------------------------------------------------------------------------


def _double() -> Any:
    return ir.DoubleType()


def _int(bits: int = 64) -> Any:
    return ir.IntType(bits)


def _vector(of: Any = None) -> Any:
    return ir.VectorType(_double() if of is None else of, LANES)


def _constant(value: float) -> Any:
    return ir.Constant(_vector(), [ir.Constant(_double(), value)] * LANES)


def _splat(builder: Any, scalar: Any) -> Any:
    """A vector with `scalar` in all lanes."""
    undefined = ir.Constant(_vector(scalar.type), ir.Undefined)
    one = builder.insert_element(undefined, scalar, ir.Constant(_int(32), 0))
    zeros = ir.Constant(_vector(_int(32)), [ir.Constant(_int(32), 0)] * LANES)
    return builder.shuffle_vector(one, undefined, zeros)


def _call(builder: Any, name: str, result: Any, arguments: list[Any], fastmath: tuple[str, ...] = ()) -> Any:
    function_type = ir.FunctionType(result, [a.type for a in arguments])
    function = cgutils.get_or_insert_function(builder.module, function_type, name)
    return builder.call(function, arguments, fastmath=fastmath)


def _reduce(builder: Any, which: str, vector: Any) -> Any:
    # nnan: there never is a NaN; it only lets the reduction use the plain instruction.
    return _call(builder, f"llvm.vector.reduce.{which}.v16f64", _double(), [vector], ("nnan",))


def _first(builder: Any, mask: Any) -> Any:
    """The number of the first lane in which `mask` is true."""
    bits = builder.bitcast(mask, _int(LANES))
    first = _call(builder, "llvm.cttz.i16", _int(16), [bits, ir.Constant(_int(1), 0)])
    return builder.zext(first, _int())


def _lane_is(builder: Any, compare: str, lane: Any) -> Any:
    """For every lane whether its number is `compare` (">=" or "==") `lane`."""
    lanes = ir.Constant(_vector(_int()), [ir.Constant(_int(), i) for i in range(LANES)])
    return builder.icmp_signed(compare, lanes, _splat(builder, lane))


def _part(builder: Any, lo: Any, hi: Any) -> Any:
    """True in the lanes lo .. hi - 1."""
    one = ir.Constant(_int(), 1)
    bits = builder.sub(builder.shl(one, hi), builder.shl(one, lo))
    return builder.bitcast(builder.trunc(bits, _int(LANES)), _vector(_int(1)))


def _load(builder: Any, pointer: Any) -> Any:
    return builder.load(builder.bitcast(pointer, _vector().as_pointer()), align=8)


class _Block:
    """One block of an array of blocks, inside a function that emits code."""

    def __init__(self, context: Any, builder: Any, array_type: Any, array: Any, block: Any) -> None:
        proxy = context.make_array(array_type)(context, builder, array)
        stride = cgutils.unpack_tuple(builder, proxy.strides)[0]
        data = builder.ptrtoint(proxy.data, _int())
        self._builder = builder
        self.address = builder.add(data, builder.mul(block, stride))

    def row(self, column: int) -> Any:
        """Pointer to the first lane of a column."""
        address = self._builder.add(self.address, ir.Constant(_int(), 8 * LANES * column))
        return self._builder.inttoptr(address, _double().as_pointer())

    def column(self, column: int) -> Any:
        """All lanes of a column."""
        return _load(self._builder, self.row(column))

    def at(self, column: int, lane: Any) -> Any:
        """One lane of a column."""
        return self._builder.load(self._builder.gep(self.row(column), [lane]))


def _are_blocks(array: Any) -> bool:
    kind: Any = types.Array
    return (
        isinstance(array, kind) and array.ndim == 3 and array.dtype == types.float64 and array.layout == "C"
    )


def _weights(builder: Any, alpha: Any, beta: Any, lam: Any) -> Any:
    return builder.fadd(alpha, builder.fmul(_splat(builder, lam), beta))


def _heaviest(builder: Any, weight: Any, ids: Any = None) -> Any:
    """The first lane of the largest weight; with `ids`, of equal ones the one with the smallest id."""
    tied = builder.fcmp_ordered("==", weight, _splat(builder, _reduce(builder, "fmax", weight)))
    if ids is not None:
        ids = builder.select(tied, ids, _constant(_INFINITE))
        tied = builder.fcmp_ordered("==", ids, _splat(builder, _reduce(builder, "fmin", ids)))
    return _first(builder, tied)


def _certificate(builder: Any, key: tuple[Any, Any], others: tuple[Any, Any], x: Any, later: Any) -> Any:
    """For every lane a lam' >= x up to which `key` beats it: `tournament.shorten`, without branches.

    `later` says which lanes lose ties against `key`.
    """
    alpha, beta = _splat(builder, key[0]), _splat(builder, key[1])
    other, other_beta = others
    lam = _splat(builder, x)
    margin, zero, infinite = _constant(MARGIN), _constant(0.0), _constant(_INFINITE)

    def magnitude(v: Any) -> Any:
        return _call(builder, "llvm.fabs.v16f64", _vector(), [v])

    gap = builder.fsub(alpha, other)
    slope = builder.fsub(other_beta, beta)
    size_alpha = builder.fmul(margin, builder.fadd(magnitude(alpha), magnitude(other)))
    size_beta = builder.fmul(margin, builder.fadd(beta, other_beta))
    run = builder.fadd(slope, size_beta)
    end = builder.fmul(builder.fdiv(builder.fsub(gap, size_alpha), run), _constant(EARLY))
    end = builder.select(builder.fcmp_ordered(">", end, lam), end, lam)
    end = builder.select(builder.fcmp_ordered(">", run, zero), end, infinite)
    close = builder.fcmp_ordered(
        "<=",
        builder.fsub(gap, builder.fmul(lam, slope)),
        builder.fadd(size_alpha, builder.fmul(lam, size_beta)),
    )
    end = builder.select(close, lam, end)
    # Ties go to the winner over itself and whatever comes later; an absent lane never wins.
    level = builder.fcmp_ordered("==", slope, zero)
    ahead = builder.fcmp_ordered(">=", gap, zero)
    safe = builder.and_(builder.and_(later, level), ahead)
    safe = builder.or_(safe, builder.fcmp_ordered("==", other, _constant(ABSENT)))
    return builder.select(safe, infinite, end)


# -- whole blocks ------------------------------------------------------------------------------------------------


@intrinsic
def best_lane(typingctx, blocks, block, lam):
    """The lane of a block with the largest alpha + lam * beta, of equal ones the first."""
    if not _are_blocks(blocks):
        return None

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array, b, x = args
        here = _Block(context, builder, signature.args[0], array, b)
        return _heaviest(builder, _weights(builder, here.column(0), here.column(1), x))

    return types.int64(blocks, types.int64, types.float64), codegen


@intrinsic
def best_lane_with(typingctx, blocks, block, lam, lane, alpha, beta):
    """(best, its alpha, its beta) of a block if (alpha, beta) stood in `lane`; what does stand there is not read.

    For a path of nodes of which each changes one lane of the next: a vector load right after a store to one of its
    lanes would have to wait until that store has reached the cache.
    """
    if not _are_blocks(blocks):
        return None
    answer = types.Tuple((types.int64, types.float64, types.float64))

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array, b, x, lane, new_alpha, new_beta = args
        here = _Block(context, builder, signature.args[0], array, b)
        changed = _lane_is(builder, "==", lane)
        alpha = builder.select(changed, _splat(builder, new_alpha), here.column(0))
        beta = builder.select(changed, _splat(builder, new_beta), here.column(1))
        best = _heaviest(builder, _weights(builder, alpha, beta, x))
        is_new = builder.icmp_signed("==", best, lane)
        key = (
            builder.select(is_new, new_alpha, here.at(0, best)),
            builder.select(is_new, new_beta, here.at(1, best)),
        )
        return context.make_tuple(builder, answer, [best, *key])

    return answer(blocks, types.int64, types.float64, types.int64, types.float64, types.float64), codegen


@intrinsic
def certify_lanes(typingctx, blocks, block, best, lam):
    """A lam' >= lam up to which lane `best`, which wins at lam and is finite, beats every other lane."""
    if not _are_blocks(blocks):
        return None

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array, b, best, x = args
        here = _Block(context, builder, signature.args[0], array, b)
        key, others = (here.at(0, best), here.at(1, best)), (here.column(0), here.column(1))
        later = _lane_is(builder, ">=", best)
        return _reduce(builder, "fmin", _certificate(builder, key, others, x, later))

    return types.float64(blocks, types.int64, types.int64, types.float64), codegen


@intrinsic
def smallest_lane(typingctx, blocks, block, column):
    """The smallest value of a column of a block; `column` is a literal constant."""
    if not _are_blocks(blocks) or not isinstance(column, types.IntegerLiteral):
        return None
    which = column.literal_value

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        here = _Block(context, builder, signature.args[0], args[0], args[1])
        return _reduce(builder, "fmin", here.column(which))

    return types.float64(blocks, types.int64, column), codegen


# -- some neighbouring lanes of a block --------------------------------------------------------------------------


def _best(by_id: bool) -> Any:
    def best(typingctx, blocks, block, lo, hi, lam):
        if not _are_blocks(blocks):
            return None

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            array, b, lo, hi, x = args
            here = _Block(context, builder, signature.args[0], array, b)
            weight = _weights(builder, here.column(0), here.column(1), x)
            weight = builder.select(_part(builder, lo, hi), weight, _constant(-_INFINITE))
            return _heaviest(builder, weight, here.column(_ID) if by_id else None)

        return types.int64(blocks, types.int64, types.int64, types.int64, types.float64), codegen

    return intrinsic(best)


def _certify(by_id: bool) -> Any:
    def certify(typingctx, blocks, block, lo, hi, best, lam):
        if not _are_blocks(blocks):
            return None

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            array, b, lo, hi, best, x = args
            here = _Block(context, builder, signature.args[0], array, b)
            key, others = (here.at(0, best), here.at(1, best)), (here.column(0), here.column(1))
            if by_id:
                own = _splat(builder, here.at(_ID, best))
                later = builder.fcmp_ordered(">=", here.column(_ID), own)
            else:
                later = _lane_is(builder, ">=", best)
            end = _certificate(builder, key, others, x, later)
            end = builder.select(_part(builder, lo, hi), end, _constant(_INFINITE))
            return _reduce(builder, "fmin", end)

        return types.float64(blocks, *[types.int64] * 4, types.float64), codegen

    return intrinsic(certify)


#: (blocks, block, lo, hi, lam): the heaviest of the lanes lo .. hi - 1, of equal ones the first.
best_slot = _best(by_id=False)
#: The same, but of equal ones that with the smallest id.
best_node = _best(by_id=True)
#: (blocks, block, lo, hi, best, lam): a lam' >= lam up to which `best`, which wins at lam, beats lanes lo .. hi - 1.
certify_slots = _certify(by_id=False)
#: The same with ties by id.
certify_nodes = _certify(by_id=True)


@intrinsic
def smallest_lane_of(typingctx, blocks, block, lo, hi, column):
    """The smallest value of a column (a literal constant) in the lanes lo .. hi - 1 of a block."""
    if not _are_blocks(blocks) or not isinstance(column, types.IntegerLiteral):
        return None
    which = column.literal_value

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array, b, lo, hi, _ = args
        row = _Block(context, builder, signature.args[0], array, b).column(which)
        return _reduce(builder, "fmin", builder.select(_part(builder, lo, hi), row, _constant(_INFINITE)))

    return types.float64(blocks, types.int64, types.int64, types.int64, column), codegen


# -- vectors of weights ------------------------------------------------------------------------------------------


@intrinsic
def first_max(typingctx, array, start, lane, value):
    """Index of the largest of array[start : start + 16], of equal ones the first.

    Entry ``start + lane`` counts as `value` whatever the array holds (no entry does with lane = -1): a value just
    stored would have to reach the cache before a vector that covers it can be loaded.
    """
    if not (isinstance(array, types.Array) and array.dtype == types.float64 and array.ndim == 1):
        return None

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        loaded = _load(builder, builder.gep(data, [args[1]]))
        changed = _lane_is(builder, "==", args[2])
        values = builder.select(changed, _splat(builder, args[3]), loaded)
        return builder.add(args[1], _heaviest(builder, values))

    return types.int64(array, types.int64, types.int64, types.float64), codegen


@intrinsic
def prefetch_block(typingctx, blocks, block, columns):
    """Ask for the first `columns` (a literal) columns of a block before they are needed. Changes nothing, may name any
    block."""
    if not _are_blocks(blocks) or not isinstance(columns, types.IntegerLiteral):
        return None
    lines = 8 * LANES * columns.literal_value // 64

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        start = _Block(context, builder, signature.args[0], args[0], args[1]).address
        for line in range(lines):
            ask_for_line(builder, builder.add(start, ir.Constant(_int(), 64 * line)))
        return context.get_dummy_value()

    return types.none(blocks, types.int64, columns), codegen
