"""`engines._simd` for children in any order: ties go by the arm ids in column 3, not by the lane.

The children of a node in a nested tournament are winners of different families, so their arm ids do not ascend.
Each function has a scalar twin in `engines.laminar_tree` that it must equal bit for bit.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from semibandit.engines._simd import (
    _DOUBLE,
    _INT,
    _VECTOR,
    ABSENT,
    EARLY,
    LANES,
    MARGIN,
    _blocks,
    _call,
    _constant,
    _load,
    _row,
    _splat,
)

_ID = 3


@intrinsic
def best_lane_by_id(typingctx, blocks, block, lam):  # type: ignore[no-untyped-def]
    """The lane of a block with the largest alpha + lam * beta, of equal ones that with the smallest id."""
    if not _blocks(blocks):
        return None

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array, b, x = args
        alpha, beta, ids = (
            _load(builder, _row(context, builder, signature.args[0], array, b, column))
            for column in (0, 1, _ID)
        )
        weight = builder.fadd(alpha, builder.fmul(_splat(builder, x), beta))
        # nnan: neither weights nor ids are ever NaN; it only lets the reductions use the plain instructions.
        top = _call(builder, "llvm.vector.reduce.fmax.v16f64", _DOUBLE, [weight], ("nnan",))
        tied = builder.fcmp_ordered("==", weight, _splat(builder, top))
        tied_ids = builder.select(tied, ids, _constant(float("inf")))
        low = _call(builder, "llvm.vector.reduce.fmin.v16f64", _DOUBLE, [tied_ids], ("nnan",))
        bits = builder.bitcast(builder.fcmp_ordered("==", tied_ids, _splat(builder, low)), ir.IntType(LANES))
        lane = _call(builder, "llvm.cttz.i16", ir.IntType(16), [bits, ir.Constant(ir.IntType(1), 0)])
        return builder.zext(lane, _INT)

    return types.int64(blocks, types.int64, types.float64), codegen


@intrinsic
def certify_lanes_by_id(typingctx, blocks, block, best, lam):  # type: ignore[no-untyped-def]
    """A lam' >= lam up to which lane `best`, which wins at lam and is finite, beats every other lane.

    Lane by lane what `tournament.shorten` says, without branches.
    """
    if not _blocks(blocks):
        return None

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array, b, best, x = args
        alphas, betas, ids = (
            _row(context, builder, signature.args[0], array, b, column) for column in (0, 1, _ID)
        )
        alpha, beta, own = (
            _splat(builder, builder.load(builder.gep(row, [best]))) for row in (alphas, betas, ids)
        )
        other, other_beta, other_id = (_load(builder, row) for row in (alphas, betas, ids))
        lam = _splat(builder, x)
        margin, zero, infinite = _constant(MARGIN), _constant(0.0), _constant(float("inf"))

        def magnitude(v: Any) -> Any:
            return _call(builder, "llvm.fabs.v16f64", _VECTOR, [v])

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
        # Ties go to the winner over itself and larger ids; an absent lane never wins.
        wins_ties = builder.fcmp_ordered(">=", other_id, own)
        level = builder.fcmp_ordered("==", slope, zero)
        ahead = builder.fcmp_ordered(">=", gap, zero)
        safe = builder.and_(builder.and_(wins_ties, level), ahead)
        safe = builder.or_(safe, builder.fcmp_ordered("==", other, _constant(ABSENT)))
        end = builder.select(safe, infinite, end)
        return _call(builder, "llvm.vector.reduce.fmin.v16f64", _DOUBLE, [end], ("nnan",))

    return types.float64(blocks, types.int64, types.int64, types.float64), codegen
