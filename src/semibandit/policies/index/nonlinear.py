"""Indices that are not ``mean + lam / sqrt(N)``: computed arm by arm for one level of the clock.

A kinetic engine follows weights that are linear in lam. KL-UCB, UCB-V and clipped indices are not, so they are written
into the records as plain weights (beta = 0): all K of them when the level changes, and only those of played arms
in between. Under a staircase clock the level changes some 150 times in 10^6 rounds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from semibandit.arms import ALPHA, BETA, COUNT, TOTAL, FloatArray, IntArray
from semibandit.compiled.jit import inline_kernel, kernel
from semibandit.engines.base import Engine
from semibandit.engines.kernels import check_feedback
from semibandit.errors import ParameterError
from semibandit.policies.state import array_of, number_of, whole_of

UCB, CLIPPED, UCB_V, KL = 0, 1, 2, 3

_NEWTON = 60


@inline_kernel
def kl_upper(p, d):
    """The largest q in [p, 1] with kl(p, q) <= d, for Bernoulli distributions. About six Newton steps.

    kl(p, .) is convex and increases to the right of p, so Newton's method from a point beyond the root decreases to it.
    Two bounds give such a point: Pinsker's, and 1 - q >= exp(-(d + h(p)) / (1 - p)) with the entropy h.
    """
    if p >= 1.0:
        return 1.0
    if d <= 0.0:
        return max(p, 0.0)
    if p <= 0.0:
        return -math.expm1(-d)
    h = -p * math.log(p) - (1.0 - p) * math.log1p(-p)
    q = min(p + math.sqrt(0.5 * d), -math.expm1(-(d + h) / (1.0 - p)))
    for _ in range(_NEWTON):
        if q >= 1.0:
            return 1.0
        gap = -h - p * math.log(q) - (1.0 - p) * math.log1p(-q) - d
        step = gap * q * (1.0 - q) / (q - p) if q > p else 0.0
        if not step > 1e-16:
            break
        q -= step
    return max(q, p)


@inline_kernel
def level_index(kind, n, total, squares, level, low, high):
    """The index of an arm with `n` rewards of sum `total` and sum of squares `squares` (UCB-V only), at `level`.

    `level` is lam of CUCB's clock for CLIPPED and UCB_V, and the right-hand side of the condition on N kl for KL.
    """
    if n <= 0.0:
        return np.inf
    mean = total / n
    if kind == CLIPPED:
        return min(high, mean + level / math.sqrt(n))
    span = high - low
    if kind == UCB_V:
        variance = max(0.0, squares / n - mean * mean)
        lam = level / span
        return mean + lam * math.sqrt(2.0 * variance / n) + 3.0 * span * lam * lam / n
    p = min(1.0, max(0.0, (mean - low) / span))
    return low + span * kl_upper(p, level / n)


@kernel
def index_all(kind, recs, squares, level, low, high):
    """Write the index of every arm into the records. O(K)."""
    for arm in range(recs.shape[0]):
        s = squares[arm] if squares.shape[0] else 0.0
        recs[arm, ALPHA] = level_index(kind, recs[arm, COUNT], recs[arm, TOTAL], s, level, low, high)
        recs[arm, BETA] = 0.0


@kernel
def count_and_index(kind, recs, squares, arms, rewards, level, low, high):
    """Validate a batch of feedback, count it and write the index of its arms. Nothing changes on error.

    Sums of rewards and of their squares, so that order does not matter but for rounding.
    """
    code = check_feedback(recs.shape[0], arms, rewards, low, high)
    if code != 0:
        return code
    for i in range(arms.shape[0]):
        arm = arms[i]
        recs[arm, COUNT] += 1.0
        recs[arm, TOTAL] += rewards[i]
        if squares.shape[0]:
            squares[arm] += rewards[i] * rewards[i]
    for i in range(arms.shape[0]):
        arm = arms[i]
        s = squares[arm] if squares.shape[0] else 0.0
        recs[arm, ALPHA] = level_index(kind, recs[arm, COUNT], recs[arm, TOTAL], s, level, low, high)
        recs[arm, BETA] = 0.0
    return 0


class Levels:
    """Indices of one kind over the records of an engine, kept for one level of the clock."""

    def __init__(self, kind: int, n_arms: int, reward_range: tuple[float, float]) -> None:
        self.kind = kind
        self.range = reward_range
        self.squares: FloatArray = np.zeros(n_arms if kind == UCB_V else 0)
        self.level = 0.0
        self.moves = 0

    def move(self, engine: Engine, level: float) -> float:
        """Go to another level, up or down; the query to ask the engine at. O(K) if the level differs.

        Weights do not depend on the query, because beta = 0; that it counts up tells engines which keep something
        for a step of the clock that a new one has begun.
        """
        if level != self.level:
            index_all(self.kind, engine._recs, self.squares, level, *self.range)
            self.level = level
            self.moves += 1
            engine.touch(np.arange(engine.n_arms, dtype=np.int64))
        return float(self.moves)

    def observe(self, engine: Engine, arms: IntArray, rewards: FloatArray) -> int:
        """As `Engine.observe`."""
        low, high = self.range
        code = int(
            count_and_index(self.kind, engine._recs, self.squares, arms, rewards, self.level, low, high)
        )
        if code == 0:
            engine.touch(arms)
        return code

    def copy_from(self, other: Levels) -> None:
        """Take over what `other` knows of the arms it has."""
        self.squares[: len(other.squares)] = other.squares
        self.level = other.level
        self.moves = other.moves

    def state(self) -> dict[str, Any]:
        """What `set_state` needs."""
        return {"squares": self.squares, "level": self.level, "moves": self.moves}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Take over what `state` tells."""
        self.squares[:] = array_of(state, "squares", np.float64, self.squares.size)
        self.level = number_of(state, "level")
        self.moves = whole_of(state, "moves")

    def memory(self) -> int:
        """Bytes held besides the records."""
        return self.squares.nbytes


def level_kind(index: Any, clip: bool) -> int:
    """UCB, CLIPPED or UCB_V for CUCB's options, or a `ParameterError`."""
    if index not in ("ucb", "ucb-v"):
        raise ParameterError(f"index = {index!r} is not known: 'ucb' or 'ucb-v'")
    if index == "ucb-v":
        if clip:
            raise ParameterError("clip = True goes with index = 'ucb', not with 'ucb-v'")
        return UCB_V
    return CLIPPED if clip else UCB
