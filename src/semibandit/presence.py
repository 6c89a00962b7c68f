"""Which arms are there: the one account of arms that were deleted and inserted."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from semibandit.arms import IntArray
from semibandit.checks import as_arms, as_distinct_arms
from semibandit.errors import ArmError


class Presence:
    """Marks the arms of a ground set that are there; all are at the start. Nothing is stored before the first deletion.

    >>> arms = Presence(5)
    >>> arms.delete([1, 3]).tolist(), arms.deleted.tolist()
    ([1, 3], [1, 3])
    >>> arms.insert([3]).tolist(), arms.among([0, 1, 3]).tolist()
    ([3], [0, 3])
    """

    def __init__(self, n_arms: int) -> None:
        self.n_arms = n_arms
        self._gone: npt.NDArray[np.bool_] | None = None

    def delete(self, arms: Any) -> IntArray:
        """Mark arms as deleted and return their ids; an arm named twice or deleted already is an `ArmError`."""
        ids = as_distinct_arms(arms, self.n_arms)
        gone = self.is_deleted(ids)
        if gone.any():
            raise ArmError(f"arm {ids[np.argmax(gone)]} is deleted already")
        if self._gone is None:
            self._gone = np.zeros(self.n_arms, dtype=np.bool_)
        self._gone[ids] = True
        return ids

    def insert(self, arms: Any) -> IntArray:
        """Mark deleted arms as present and return their ids; an arm that is there already is an `ArmError`."""
        ids = as_distinct_arms(arms, self.n_arms)
        here = ~self.is_deleted(ids)
        if here.any():
            raise ArmError(
                f"arm {ids[np.argmax(here)]} is present already: only deleted arms can be inserted"
            )
        if self._gone is not None:
            self._gone[ids] = False
        return ids

    def is_deleted(self, ids: IntArray) -> npt.NDArray[np.bool_]:
        """Whether each of these valid ids is deleted. O(n)."""
        if self._gone is None:
            return np.zeros(ids.shape, dtype=np.bool_)
        return np.asarray(self._gone[ids])

    def among(self, arms: Any, name: str = "exclude") -> IntArray:
        """Those of `arms` that are present, ascending, each once. O(n log n)."""
        ids = np.unique(as_arms(arms, self.n_arms, name))
        return ids[~self.is_deleted(ids)]

    @property
    def mask(self) -> npt.NDArray[np.bool_]:
        """True for the arms that are there. O(K) copy."""
        return np.ones(self.n_arms, dtype=np.bool_) if self._gone is None else ~self._gone

    @property
    def deleted(self) -> IntArray:
        """The deleted arms, ascending. O(K)."""
        if self._gone is None:
            return np.empty(0, dtype=np.int64)
        return np.flatnonzero(self._gone).astype(np.int64)
