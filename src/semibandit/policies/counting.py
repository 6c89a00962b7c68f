"""What policies without an engine of their own share: counts and sums in arm records, arms that come and go."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from semibandit.arms import COUNT, TOTAL, FloatArray, IntArray, flat, new_records
from semibandit.engines.base import as_arms
from semibandit.engines.kernels import add_rewards, check_feedback
from semibandit.errors import ArmError, FileError, ParameterError
from semibandit.matroids import Matroid
from semibandit.policies.base import Policy, explain
from semibandit.policies.state import array_of, whole_of


def check_seed(seed: Any) -> int:
    """A seed in 0 .. 2^64 - 1, or a `ParameterError`; None is 0. O(1)."""
    if seed is None:
        return 0
    try:
        number = operator.index(seed)
    except TypeError:
        number = -1
    if isinstance(seed, (bool, np.bool_)) or not 0 <= number < 2**64:
        raise ParameterError(f"seed must be an integer in 0 .. 2^64 - 1, got {seed!r}")
    return number


def check_number(value: Any, name: str, low: float, high: float, closed: bool = True) -> float:
    """`value` as a float in [low, high] (or strictly inside), or a `ParameterError`. O(1)."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = np.nan
    if not (low <= number <= high) or (not closed and number in (low, high)) or not np.isfinite(number):
        where = f"in [{low:g}, {high:g}]" if closed else f"strictly between {low:g} and {high:g}"
        raise ParameterError(f"{name} must be a number {where}, got {value!r}")
    return number


def set_generator(rng: np.random.Generator, state: Any) -> None:
    """Put a saved state into a generator; anything malformed is an error. O(1)."""
    if not isinstance(state, dict):
        raise FileError("the state of the random numbers is not a table")
    rng.bit_generator.state = state


class CountingPolicy(Policy):
    """A policy whose statistics are counts and sums in arm records. Deleted arms are marked in `_present`."""

    def __init__(self, matroid: Matroid, reward_range: Any = (0.0, 1.0)) -> None:
        super().__init__(matroid, reward_range)
        self.records = new_records(self.n_arms)
        self._recs: FloatArray = flat(self.records).reshape(-1, 4)
        self._present = np.ones(self.n_arms, dtype=np.bool_)

    def _checked(self, arms: IntArray, rewards: FloatArray) -> None:
        """Raise unless every id and reward is acceptable. O(n)."""
        low, high = self.reward_range
        code = int(check_feedback(self.n_arms, arms, rewards, low, high))
        if code:
            raise explain(code, arms, rewards, self.n_arms, low, high)

    def _update(self, arms: IntArray, rewards: FloatArray) -> None:
        self._checked(arms, rewards)
        add_rewards(self._recs, arms, rewards)

    @property
    def counts(self) -> IntArray:
        return self.records["count"].astype(np.int64)

    @property
    def means(self) -> FloatArray:
        count = self.records["count"]
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(count > 0, self.records["total"] / count, np.nan)

    def _state(self) -> dict[str, Any]:
        gone = np.flatnonzero(~self._present).astype(np.int64)
        return {"t": self._t, "records": flat(self.records), "deleted": gone}

    def _set_state(self, state: dict[str, Any]) -> None:
        known = array_of(state, "records", np.float64, 4 * self.n_arms)
        if np.isnan(known).any() or (known[COUNT::4] < 0.0).any() or not np.isfinite(known[TOTAL::4]).all():
            raise FileError("the records hold what no arm can have")
        flat(self.records)[:] = known
        self._t = whole_of(state, "t")
        self.delete(array_of(state, "deleted", np.int64))

    # -- arms that come and go ---------------------------------------------------------------------------

    def delete(self, arms: Any) -> None:
        """Take arms out of play; what is known of them is kept."""
        ids = self._distinct(arms)
        gone = ~self._present[ids]
        if gone.any():
            raise ArmError(f"arm {ids[np.argmax(gone)]} is deleted already")
        self._present[ids] = False
        self._leave(ids)

    def insert(self, arms: Any) -> None:
        """Bring deleted arms back with what is known of them."""
        ids = self._distinct(arms)
        here = self._present[ids]
        if here.any():
            raise ArmError(
                f"arm {ids[np.argmax(here)]} is present already: only deleted arms can be inserted"
            )
        self._present[ids] = True
        self._enter(ids)

    def _distinct(self, arms: Any) -> IntArray:
        ids = as_arms(arms, self.n_arms)
        values, times = np.unique(ids, return_counts=True)
        if (times > 1).any():
            raise ArmError(f"arm {values[np.argmax(times > 1)]} is named twice")
        return values

    def _excluded(self, exclude: Any) -> IntArray:
        """The arms of `exclude` that are present, ascending."""
        ids = np.unique(as_arms(exclude, self.n_arms, "exclude"))
        return ids[self._present[ids]]

    def _leave(self, ids: IntArray) -> None:
        """These distinct arms were marked as absent."""

    def _enter(self, ids: IntArray) -> None:
        """These distinct arms were marked as present."""
