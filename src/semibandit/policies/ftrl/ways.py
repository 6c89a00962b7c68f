"""How a round is played by kernels: by families where the matroid has them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from semibandit.arms import FloatArray, IntArray
from semibandit.compiled.handle import by_handle, make_handle
from semibandit.engines.base import bytes_of
from semibandit.errors import FileError
from semibandit.matroids import Matroid
from semibandit.policies.ftrl.estimates import Estimates
from semibandit.policies.ftrl.families import Families, new_families, tighten
from semibandit.policies.ftrl.rounds import FamilyRounds, draw_from_families
from semibandit.policies.state import array_of

Mask = npt.NDArray[np.bool_]


class FamilyWay:
    """Uniform, partition and laminar matroids: exact projection, systematic sampling."""

    name = "families"
    why = "one root to find for each family that binds"

    def __init__(self, matroid: Matroid, est: Estimates) -> None:
        self.est, self.families = est, new_families(matroid)
        self.own = FamilyRounds(est, self.families)
        self._rank = matroid.rank
        self._handles = make_handle(self.own), make_handle(self.families)

    def settle(self) -> None:
        """``est.present`` was changed. O(K + F)."""
        by_handle(tighten, Families)(self._handles[1], self.est.present)

    restrict = settle
    release = settle

    def draw(self) -> IntArray:
        """Play a round that has begun among the arms that are present. O(K)."""
        out = np.empty(self._rank, dtype=np.int64)
        n = by_handle(draw_from_families, FamilyRounds).entry(self._handles[0], out)
        return out[:n].copy()

    def prices(self, ids: IntArray) -> FloatArray:
        """The price of a place at each of these arms in the last round, in units of costs. O(n)."""
        return self.families.price[self.families.leaf[ids]]

    def shares(self, ids: IntArray) -> FloatArray:
        """The chance of each of these arms if it were like all others in the tightest family around it. O(n depth)."""
        families = self.families
        share = np.ones(len(ids))
        around = families.leaf[ids]
        while (around >= 0).any():
            f = np.maximum(around, 0)
            share = np.minimum(share, families.bound[f] / np.maximum(families.held[f], 1))
            around = np.where(around >= 0, families.parent[f], -1)
        return share

    def state(self) -> dict[str, Any]:
        """What changed since the start."""
        return {"level": self.families.level, "price": self.families.price}

    def set_state(self, state: Any) -> None:
        """Go on as told. O(F)."""
        for name, mine in self.state().items():
            known = array_of(state, name, np.float64, len(mine))
            if not np.isfinite(known).all():
                raise FileError(f"state {name!r} must be finite")
            mine[:] = known

    def grown(self, old: FamilyWay) -> dict[str, Any]:
        """A state for these families in which the arms of `old` pay what they did. O(K + F)."""
        before, now = old.families, self.families
        n = len(before.leaf)
        made = {}
        for name, values in old.state().items():
            known = np.full(len(now.parent), values.mean())
            known[now.leaf[:n]] = values[before.leaf]
            made[name] = known
        return made

    def about(self) -> dict[str, Any]:
        """For `describe`."""
        return {"families": len(self.families.parent)}

    def memory(self) -> int:
        """Bytes held."""
        return bytes_of(self.families)
