"""CUCB for heavy tails and unknown scales: robust means, and widths by the scale of each arm."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from semibandit.arms import ALPHA, BETA, COUNT, FloatArray, IntArray
from semibandit.checks import (
    as_number,
    as_per_arm,
    as_range,
    as_whole,
    explain,
    finite_ends,
    one_of,
    require_all,
)
from semibandit.engines import choose_clock, make_engine
from semibandit.engines.base import bytes_of
from semibandit.engines.clock import new_clock
from semibandit.engines.kernels import check_feedback
from semibandit.errors import FileError, ParameterError, RewardError
from semibandit.matroids import Matroid
from semibandit.policies.catalogue import register
from semibandit.policies.decisions import Ends, room_for
from semibandit.policies.index.cucb import CLOCKS, EXPLORATIONS
from semibandit.policies.index.robust_rounds import (
    EMPIRICAL,
    MEANS,
    MEDIAN,
    SQUARES,
    TRUNCATED,
    RobustRounds,
    new_rounds,
    wait_in_rounds,
    with_room,
)
from semibandit.policies.records import ClockPolicy, EnginePolicy
from semibandit.policies.state import array_of

SCALES = ("estimate", "range")
BLOCKS = 15

# By mean: the exploration for which the width is that of the notes at L = 3 log t, or log T in its place.
THEOREM = (1.5, 12.0, 48.0)

# So few rewards say little of a scale: an arm must have more for an index that rests on an estimate.
_FEW = 3


@register(
    cost="that of cucb; a median of B blocks takes O(B^2) per arm updated",
    guarantee="regret O(sum of s^2 log T / gap) if the scale s is a bound, see the class; none if it is estimated",
    reference="Bubeck, Cesa-Bianchi and Lugosi 2013; Audibert, Munos and Szepesvari 2009",
)
class RobustCUCB(ClockPolicy):
    """CUCB whose width is scaled to each arm's own spread, and whose mean may be one that outliers hardly move.

    Round t plays the maximum-weight base under ``m + s sqrt(4 exploration log t / N)``, ties by smaller arm id, with a
    mean m and a scale s of each arm. With s = (b-a)/2 and the empirical mean that is CUCB.

    Parameters
    ----------
    matroid
        What may be played together.
    reward_range
        Bounds (a, b) of every reward; or of each arm's rewards, as two vectors; or None, or with infinite ends, where
        there are no bounds (rewards must still be finite, below 1e150 in size).
    mean
        ``"empirical"``. ``"truncated"``: a reward counts as `center` if it is further from it than s sqrt(i / L), for
        the i-th reward of the arm. ``"median-of-means"``: rewards go in turn into `blocks` blocks, of whose means the
        median is taken.
    scale
        ``"estimate"``: the standard deviation of the arm's rewards, at least `floor`; not for rewards that are often
        equal, whose estimate may be 0. ``"range"``: half the width of
        its range. Or a number, or one for each arm: a sub-Gaussian scale for the empirical mean, a bound on the
        standard deviation for the median of means, and for the truncated mean the root of a bound on the second moment
        about `center`.
    floor
        Of an estimated scale: one number, or one for each arm.
    least
        How many rewards an arm needs before it has an index; until then it comes first. 4 where the scale is estimated
        (from fewer, the estimate is often far too small), else 1.
    center
        Of truncation: one number, or one for each arm. The middle of the range; 0 where it is infinite. In terms of
        rewards: of costs that have no range (`minimize`) it is the negative.
    level
        L of the notes below: 3 log T for a horizon T, which the theorem for robust means needs. By default there is
        none, and rewards are truncated at the L for which the width of the notes is that of the index when they come,
        and at least 1.
    blocks
        Of the median of means: 15, or 8 `level` if there is one. Memory: 8 bytes each per arm.
    exploration
        A number; ``"practical"``: ``m + s sqrt(2 (log t + log(K / D)) / N)``, without a theorem; ``"theorem"``: 1.5
        for the empirical mean, and for the others the widths of the notes, with log t added to log T.
    clock, engine, step, outside
        As in `CUCB`. Clipping is per arm where ranges are.
    seed
        Ignored: nothing is drawn.

    Notes
    -----
    What is known. CUCB's bound rests on one thing: the mean is above its expectation, or below it, by more than the
    width with probability at most t^-3. For N rewards that are independent and of one distribution, with probability at
    least 1 - exp(-L) in each direction:

    - empirical mean, range or sub-Gaussian scale s: within s sqrt(2 L / N) (Hoeffding); ``exploration="theorem"`` has
      this at L = 3 log t, and regret is O(sum of s^2 log T / gap).
    - truncated mean, E (X - center)^2 <= s^2, constant L: within 4 s sqrt(L / N). The bias is at most the mean of
      s sqrt(L / i), below 2 s sqrt(L / N), and Bernstein's inequality gives the rest. Bubeck, Cesa-Bianchi and Lugosi
      (2013) brought both robust means to bandits: a second moment suffices for regret of the order of sub-Gaussian
      rewards. With `level` and ``exploration="theorem"`` the bound holds up to round T; for an L that grows all rewards
      would have to be kept and truncated anew, so without `level` nothing is claimed.
    - median of means, variance <= s^2, B blocks: within 2 s sqrt(2 B / N) for N >= B if B >= 8 L, because each block is
      off by more with probability at most 1/4 (Chebyshev). `level` makes it so. With fewer blocks the probability of a
      miss does not fall below P(Bin(B, 1/4) >= B / 2), 1.7 % for 15, and nothing is claimed.
    - estimated scale: no such bound is known to us for this index. For bounded rewards ``CUCB(index="ucb-v")`` has one,
      by a further term 3 (b-a) L / N. For normal rewards another index of mean and standard deviation is
      asymptotically optimal (Cowan, Honda and Katehakis 2018). For heavy tails it takes a bound on a moment, or an
      assumption such as symmetry: no sample bounds what rare outliers, not yet seen, add to the mean.

    Cost: that of CUCB with the same engine, and O(1) more per arm updated; O(B^2) for the median of B blocks. Memory
    per arm: 16 bytes for an estimated scale, 8 for a truncated mean, 8 B for B blocks.

    Example
    -------
    >>> import semibandit as sb
    >>> policy = sb.RobustCUCB(sb.Uniform(n_arms=2, rank=1), reward_range=None, mean="median-of-means", blocks=3)
    >>> policy.update([0] * 5 + [1] * 5, [1.0, 1.2, 0.8, 1.1, 900.0, 2.0, 2.2, 1.8, 2.1, 1.9])
    >>> policy.means.round(2).tolist(), policy.locations.round(2).tolist()
    ([180.82, 2.0], [1.05, 2.05])
    >>> policy.scales.round(2).tolist()
    [402.03, 0.16]
    """

    name = "robust-cucb"
    unbounded = True

    def __init__(
        self,
        matroid: Matroid,
        *,
        reward_range: Any = (0.0, 1.0),
        mean: str = "empirical",
        scale: Any = "estimate",
        floor: Any = 0.0,
        least: int | None = None,
        center: Any = None,
        level: float | None = None,
        blocks: int | None = None,
        exploration: float | str = "practical",
        clock: str = "exact",
        engine: str = "auto",
        step: float = 0.01,
        outside: str = "error",
        seed: int | None = 0,
    ) -> None:
        hull, self._ends = _ranges(reward_range, getattr(matroid, "n_arms", 0))
        super().__init__(matroid, reward_range=hull, outside=outside, seed=seed)
        self.mean = one_of(mean, "mean", MEANS)
        kind = MEANS.index(self.mean)
        self._estimated = isinstance(scale, str) and one_of(scale, "scale", SCALES) == "estimate"
        if self._estimated and kind == TRUNCATED:
            raise ParameterError(
                "mean = 'truncated' needs a scale: the root of a bound on the second moment about center, or 'range'"
            )
        least = (_FEW + 1 if self._estimated else 1) if least is None else least
        self.least = as_whole(least, "least", 2 if self._estimated else 1, "rewards that an index rests on")
        self.level = None if level is None else as_number(level, "level", 0.0, closed=False)
        if blocks is None:
            blocks = BLOCKS if self.level is None else math.ceil(8.0 * self.level)
        self.blocks = as_whole(blocks, "blocks", 1, "of the median of means")
        self._asked_scale, self._asked_center, self.floor = scale, center, floor
        self._asked_exploration = exploration
        self.exploration, ahead = self._choose_exploration(exploration, kind)
        self.step = as_number(step, "step", 0.0, 1.0, closed=False)
        self._asked = (one_of(clock, "clock", CLOCKS), engine)
        self.clock = choose_clock(matroid, engine) if clock == "auto" else clock
        self._clock = new_clock(
            4.0 * self.exploration, self.step if self.clock == "staircase" else 0.0, ahead
        )
        self._rounds = new_rounds(
            kind,
            self.n_arms,
            least=self.least,
            level=self.level or 0.0,
            clock=self._clock,
            scale=self._known_scale(scale, floor),
            center=self._known_center(center),
            estimated=self._estimated,
            blocks=self.blocks,
        )
        self._engine, self._why = make_engine(matroid, self.records, engine, self.clock)
        self._open()

    def _choose_exploration(self, exploration: float | str, kind: int) -> tuple[float, float]:
        """The factor under the root, and what is added to log t."""
        if isinstance(exploration, str) and exploration not in EXPLORATIONS:
            names = " or ".join(map(repr, EXPLORATIONS))
            raise ParameterError(f"exploration must be a number, {names}, got {exploration!r}")
        if exploration == "practical":
            return 0.5, math.log(self.n_arms / max(1, self.matroid.rank))
        if exploration == "theorem" and kind != EMPIRICAL:
            if self.level is None:
                raise ParameterError(
                    f"exploration = 'theorem' with mean = {self.mean!r} needs level: 3 log T for T rounds"
                )
            return THEOREM[kind], max(self.level, self.blocks / 8.0 if kind == MEDIAN else 0.0) / 3.0
        return as_number(THEOREM[kind] if exploration == "theorem" else exploration, "exploration", 0.0), 0.0

    def _known_scale(self, scale: Any, floor: Any) -> FloatArray:
        """The scale that is given, one number or one for each arm; the least one where it is estimated."""
        if self._estimated:
            known = _some(floor, "floor", self.n_arms)
            require_all(known, "floor", known >= 0.0, "at least 0")
        elif isinstance(scale, str):
            low, high = self._range_ends()
            known = 0.5 * (high - low)
            if not np.isfinite(known).all():
                raise ParameterError("scale = 'range' needs a reward_range with finite ends")
        else:
            known = _some(scale, "scale", self.n_arms)
            require_all(known, "scale", (known > 0.0) & (known < 1e150), "positive")
        return known

    def _known_center(self, center: Any) -> FloatArray:
        if center is not None:
            return _some(center, "center", self.n_arms)
        low, high = self._range_ends()
        return 0.5 * (low + high) if np.isfinite(high - low).all() else np.zeros(1)

    def _make_own(self) -> Any:
        return self._rounds

    # -- ranges ------------------------------------------------------------------------------------------

    def _range_ends(self) -> tuple[FloatArray, FloatArray]:
        return super()._range_ends() if self._ends is None else self._ends

    def _likely(self, arms: IntArray, scores: FloatArray) -> Ends:
        """About the mean that the index has; the whole range for an arm that has no index yet."""
        rows, lam = self._engine._recs[arms], self._engine._lam

        def ends(mean: FloatArray) -> tuple[FloatArray, FloatArray]:
            low, high = (end if len(end) == 1 else end[arms] for end in self._range_ends())
            middle, width, ready = rows[:, ALPHA], lam * rows[:, BETA], rows[:, COUNT] >= self.least
            return np.where(ready, middle - width, low), np.where(ready, middle + width, high)

        return ends

    def _require_inside(self, arms: IntArray, rewards: FloatArray) -> None:
        if self._ends is not None:
            low, high = (end[arms] for end in self._ends)
            bad = np.flatnonzero((rewards < low) | (rewards > high))
            if bad.size:
                i = int(bad[0])
                raise RewardError(
                    f"rewards[{i}] = {rewards[i]} is outside the reward_range of arm {arms[i]} = ({low[i]}, {high[i]})"
                )

    def _update(self, arms: IntArray, rewards: FloatArray) -> None:
        if self._ends is not None:
            low, high = self.reward_range
            code = int(check_feedback(self.n_arms, arms, rewards, low, high))
            if code:
                raise explain(code, arms, rewards, self.n_arms, (low, high))
            self._require_inside(arms, rewards)
        self._update_mirrored(arms, rewards)

    def _update_mirrored(self, arms: IntArray, rewards: FloatArray) -> None:
        low, high = finite_ends(self.reward_range)
        code = self._aside.learn(arms, rewards, low, high)
        if code:
            raise explain(code, arms, rewards, self.n_arms, (low, high))
        self._touch(arms)

    # -- what is known -----------------------------------------------------------------------------------

    @property
    def locations(self) -> FloatArray:
        """The mean of each arm that its index has; NaN for an arm without one. O(K) copy."""
        return np.where(self._recs[:, COUNT] >= self.least, self._recs[:, ALPHA], np.nan)

    @property
    def scales(self) -> FloatArray:
        """The scale of each arm that its index has; NaN for an arm without one. O(K) copy."""
        seen = self._recs[:, COUNT]
        scale = np.broadcast_to(self._rounds.scale, self.n_arms)
        if self._estimated:
            scale = np.maximum(scale, np.sqrt(self._rounds.spread[:, SQUARES] / np.maximum(1.0, seen - 1.0)))
        return np.where(seen >= self.least, scale, np.nan)

    def _wait(self, arms: IntArray, change: int) -> None:
        """In the width of the index: ``m + lam s / sqrt(N + plays that wait)``."""
        if len(self._rounds.waiting) < self.n_arms:
            self._rounds = self._rounds._replace(waiting=room_for(self._rounds.waiting, self.n_arms))
            self._open()
        wait_in_rounds(self._whole if self._whole is not None else self._aside, arms, change)
        if self._whole is None:
            self._hand_on()

    def _reset(self, ids: IntArray) -> None:
        for known in (self._rounds.spread, self._rounds.sums):
            if len(known):
                known[ids] = 0.0
        EnginePolicy._reset(self, ids)
        if len(self._rounds.waiting):
            self._wait(ids, 0)

    def grow(self, matroid: Matroid) -> None:
        """Go on with a larger ground set, as `CUCB.grow`. O(K).

        Where there is one number for each arm, new arms have the widest range, the largest scale and floor, and the
        average centre of the old ones.
        """
        records = self._grown_records(matroid)
        engine, why = self._grown_engine(matroid, records, self._asked[1], self.clock)
        n = matroid.n_arms
        if self._ends is not None:
            self._ends = _longer(self._ends[0], n, np.min), _longer(self._ends[1], n, np.max)
        self._asked_scale = _longer(self._asked_scale, n, np.max)
        self.floor = _longer(self.floor, n, np.max)
        self._asked_center = _longer(self._asked_center, n, np.mean)
        self.matroid, self.n_arms, self.records = matroid, n, records
        self._engine, self._why = engine, why
        self._rounds = with_room(
            self._rounds,
            n,
            scale=self._known_scale(self._asked_scale, self.floor),
            center=self._known_center(self._asked_center),
        )
        self._open()

    def _arguments(self) -> dict[str, Any]:
        ends: Any = tuple(end if math.isfinite(end) else None for end in self.reward_range)
        return {
            **super()._arguments(),
            "reward_range": ends if self._ends is None else self._ends,
            "mean": self.mean,
            "scale": self._asked_scale,
            "floor": self.floor,
            "least": self.least,
            "center": self._asked_center,
            "level": self.level,
            "blocks": self.blocks,
            "exploration": self._asked_exploration,
            "clock": self._asked[0],
            "engine": self._asked[1],
            "step": self.step,
        }

    def _state(self) -> dict[str, Any]:
        own = {"spread": self._rounds.spread.reshape(-1), "sums": self._rounds.sums.reshape(-1)}
        return {**super()._state(), **own}

    def _set_state(self, state: dict[str, Any]) -> None:
        known: RobustRounds = self._rounds
        spread = array_of(state, "spread", np.float64, known.spread.size)
        sums = array_of(state, "sums", np.float64, known.sums.size)
        if not np.isfinite(sums).all() or not np.isfinite(spread).all() or (spread[SQUARES::2] < 0.0).any():
            raise FileError("the statistics hold what no arm can have")
        known.spread[:] = spread.reshape(known.spread.shape)
        known.sums[:] = sums.reshape(known.sums.shape)
        super()._set_state(state)

    def describe(self) -> dict[str, Any]:
        total = self._engine.memory() + bytes_of(self._own)
        given = self._asked_scale if isinstance(self._asked_scale, str) else "given"
        return {
            **super().describe(),
            "clock": self.clock,
            "mean": f"{self.mean}, {self.blocks} blocks" if MEANS.index(self.mean) == MEDIAN else self.mean,
            "scale": given,
            "bytes": total,
            "bytes_per_arm": total / self.n_arms,
        }

    def __repr__(self) -> str:
        return f"RobustCUCB({self.matroid!r}, mean={self.mean!r}, engine={self.engine!r}, t={self._t})"


def _ranges(given: Any, n_arms: int) -> tuple[Any, tuple[FloatArray, FloatArray] | None]:
    """The range of all rewards, and the ends of each arm's own where they are given by arm. O(K)."""
    if not isinstance(given, (tuple, list)) or len(given) != 2 or all(np.ndim(end) == 0 for end in given):
        return given, None
    low, high = (as_per_arm(end, f"reward_range[{i}]", n_arms) for i, end in enumerate(given))
    bad = np.flatnonzero(~(low < high))
    if bad.size:
        k = int(bad[0])
        raise ParameterError(
            f"reward_range must have low < high for each arm, got ({low[k]}, {high[k]}) for arm {k}"
        )
    return as_range((low.min(), high.max())), (low, high)


def _some(given: Any, name: str, n_arms: int) -> FloatArray:
    """One finite number for all arms, or one for each."""
    return np.array([as_number(given, name)]) if np.ndim(given) == 0 else as_per_arm(given, name, n_arms)


def _longer(values: Any, n_arms: int, of_new: Any) -> Any:
    """One number for each arm of a larger ground set; what is not by arm stays."""
    if np.ndim(values) == 0:
        return values
    old: npt.NDArray[np.float64] = np.asarray(values, dtype=np.float64)
    return np.concatenate((old, np.full(n_arms - len(old), of_new(old))))
