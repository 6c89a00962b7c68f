"""`engine="hot-cold"`: exact bases of any matroid with few independence tests (DESIGN ideas A and B).

At an epoch all arms are sorted and the base is found by greedy. Until the next epoch lam stays, so that only touched
arms change weight: they are HOT. The others are cold, with frozen weights, and are needed only as far as their base:

- (A) B(hot + cold) = B(hot + B(cold)), because an arm of cold outside B(cold) is the lightest of a circuit in cold.
- (B) Let L1 = B(cold), L2 = B(cold - L1), and so on, `reserve` + 1 layers. When arms of cold become hot or leave, take
  the first layer m that is still whole. It is the base of all that lies below the layers before it, with or without
  what is missing there; so by (A) the base lies in hot + what is left of L1 .. L(m-1) + Lm.

Each round is greedy over that small set, whose size depends on the rank and the reserve, not on K. When no layer is
whole, too many arms are hot, or lam changes, a new epoch begins. Layers are made at the first round after an epoch,
from the arms that are still cold, so that a clock that moves at every round costs one greedy a round, as re-solving.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from semibandit._records import ALPHA, BETA, FloatArray, IntArray
from semibandit.engines._dispatch import add_rewards, check_feedback
from semibandit.engines.base import Engine
from semibandit.engines.kept_order import (
    N_KEPT,
    N_PENDING,
    check_kept_order,
    kept_sort,
    new_kept_order,
)
from semibandit.engines.remembered_oracle import RememberedOracle
from semibandit.errors import ParameterError
from semibandit.matroids import Matroid

# `layer` of an arm: its layer from 0, or one of these. COLD: below all layers. GONE: left out when the layers were
# made or touched while absent; hot when it comes back.
COLD, HOT, GONE = -1, -2, -3


class HotColdEngine(Engine):
    """Greedy over hot arms and layers of cold ones: the number of independence tests a round does not grow with K.

    Parameters
    ----------
    reserve
        How many layers are kept besides the first. More make epochs rarer and each epoch dearer.

    Attributes
    ----------
    oracle_calls : int
        Independence tests so far. Where the class knows an incremental greedy (all built-in ones) an arm that greedy
        looks at counts as one; where it has only an oracle, calls of the oracle count, and facts once learnt are
        not asked for again (`remembered_oracle`). Finding the matroid's rank and loops is not counted.
    last_round_calls : int
        Those of the last round, without the making of an epoch.
    epoch_calls, epochs : int
        Those spent on making epochs and layers, and how many epochs there were.

    Notes
    -----
    Cost of a round: greedy over O((reserve + 1) * rank + hot arms) arms; of an epoch: O(K) to sort, and greedy over
    up to K arms for each layer. A staircase clock is wanted.
    """

    name = "hot-cold"
    exact_clock = False

    def __init__(
        self,
        matroid: Matroid,
        records: npt.NDArray[np.void] | None = None,
        reserve: int = 3,
    ) -> None:
        super().__init__(matroid, records)
        if not isinstance(reserve, (int, np.integer)) or isinstance(reserve, bool) or reserve < 0:
            raise ParameterError(f"reserve must be a nonnegative integer, got {reserve!r}")
        self.reserve = int(reserve)
        self.oracle_calls = self.epoch_calls = self.last_round_calls = self.epochs = 0
        self._memory = RememberedOracle(matroid) if type(matroid)._greedy is Matroid._greedy else None
        self._kept = new_kept_order(self.n_arms)
        # Loops that were never pulled weigh +inf for ever: they would be looked at first in every greedy.
        self._is_loop = np.zeros(self.n_arms, dtype=np.bool_)
        self._is_loop[matroid.loops] = True
        self._most_hot = 4 * (self.reserve + 1) * matroid.rank + 64
        self._layer = np.full(self.n_arms, COLD, dtype=np.int64)
        self._hot: list[IntArray] = []
        self._n_hot = 0
        self._layers: list[IntArray] | None = None
        self._missing = np.zeros(self.reserve + 2, dtype=np.int64)
        self._n_below = 0
        self._known: dict[int, list[int]] = {}
        self._epoch_lam = np.nan
        self._base: IntArray | None = None

    # -- changes -----------------------------------------------------------------------------------------

    def touch(self, arms: IntArray) -> None:
        arms = np.unique(arms)
        here = self._kept.present[arms]
        self._resort(arms[here])
        layer = self._layer[arms]
        self._heat(arms[here & (layer != HOT) & ~self._is_loop[arms]])
        away = arms[~here & (layer != HOT)]
        self._layer[away] = GONE
        self._base = None

    def _heat(self, ids: IntArray) -> None:
        """Make present arms that are not hot hot."""
        layer = self._layer[ids]
        np.add.at(self._missing, layer[layer >= 0], 1)
        self._layer[ids] = HOT
        self._hot.append(ids)
        self._n_hot += len(ids)

    def _resort(self, ids: IntArray) -> None:
        """These arms must find a new place in the kept order at the next epoch."""
        meta, flag = self._kept.meta, self._kept.flag
        new = ids[flag[ids] == 0]
        flag[new] = 1
        self._kept.pending[meta[N_PENDING] : meta[N_PENDING] + len(new)] = new
        meta[N_PENDING] += len(new)

    def _remove(self, ids: IntArray) -> None:
        self._resort(ids)
        self._kept.present[ids] = False
        layer = self._layer[ids]
        np.add.at(self._missing, layer[layer >= 0], 1)
        self._base = None

    def _restore(self, ids: IntArray) -> None:
        self._resort(ids)
        self._kept.present[ids] = True
        layer = self._layer[ids]
        np.subtract.at(self._missing, layer[layer >= 0], 1)
        self._heat(ids[(layer == GONE) & ~self._is_loop[ids]])
        self._base = None

    def observe(self, arms: IntArray, rewards: FloatArray, low: float, high: float) -> int:
        code = int(check_feedback(self.n_arms, arms, rewards, low, high))
        if code == 0:
            add_rewards(self._recs, arms, rewards)
            self.touch(arms)
        return code

    # -- answers -----------------------------------------------------------------------------------------

    def _select(self, lam: float) -> IntArray:
        self.last_round_calls = 0
        if lam != self._epoch_lam:
            return self._begin_epoch(lam).copy()
        if self._base is None:
            needed = self._needed() if self._n_hot <= self._most_hot else None
            if needed is None:
                return self._begin_epoch(lam).copy()
            weight = self._recs[needed, ALPHA] + lam * self._recs[needed, BETA]
            before = self.oracle_calls
            self._base = np.sort(self._greedy(needed[np.lexsort((needed, -weight))]))
            self.last_round_calls = self.oracle_calls - before
        return self._base.copy()

    def _needed(self) -> IntArray | None:
        """The arms among which the base lies; None when the layers are used up. O(rank * reserve + hot)."""
        if self._layers is None:
            self._make_layers()
        assert self._layers is not None
        parts = list(self._hot)
        for i, members in enumerate(self._layers):
            if self._missing[i] == 0:
                return self._present(np.concatenate((*parts, members)))
            parts.append(members[self._layer[members] == i])
        if self._n_below > 0:
            return None
        return self._present(np.concatenate((*parts, np.empty(0, dtype=np.int64))))

    def _present(self, ids: IntArray) -> IntArray:
        return ids[self._kept.present[ids]]

    def _begin_epoch(self, lam: float) -> IntArray:
        """Sort all arms; the base of all. O(K) and greedy over all arms."""
        before = self.oracle_calls
        kept_sort(self._kept, self._recs, lam)
        order = self._kept.order[: self._kept.meta[N_KEPT]]
        base = np.sort(self._greedy(order[~self._is_loop[order]]))
        self._layer[:] = COLD
        self._layer[~self._kept.present] = GONE
        self._hot = []
        self._n_hot = 0
        self._layers = None
        self._missing[:] = 0
        self._epoch_lam = lam
        self._base = base
        self.epochs += 1
        self.epoch_calls += self.oracle_calls - before
        return base

    def _make_layers(self) -> None:
        """Peel `reserve` + 1 bases off the arms that are cold, which the kept order still has in order."""
        before = self.oracle_calls
        order = self._kept.order[: self._kept.meta[N_KEPT]]
        below = order[(self._layer[order] == COLD) & self._kept.present[order] & ~self._is_loop[order]]
        # An arm that is away now was not counted out of any layer; it must not come back as cold.
        self._layer[~self._kept.present & (self._layer == COLD)] = GONE
        self._layers = []
        for i in range(self.reserve + 1):
            if len(below) == 0:
                break
            members = self._greedy(below, shelf=i + 1)
            self._layer[members] = i
            self._layers.append(np.sort(members))
            below = below[self._layer[below] == COLD]
        self._n_below = len(below)
        self.epoch_calls += self.oracle_calls - before

    def _greedy(self, order: IntArray, shelf: int = 0) -> IntArray:
        """The matroid's greedy over `order`, counted. Shelf 0: the base of all; others: layers."""
        if self._memory is None:
            picked = self.matroid._greedy(order)
            if len(picked) == self.matroid.rank and len(picked):
                self.oracle_calls += int(np.flatnonzero(order == picked[-1])[0]) + 1
            else:
                self.oracle_calls += len(order)
            return picked
        before = self._memory.calls
        answer = self._memory.greedy(order.tolist(), self._known.get(shelf, ()), shelf)
        self._known[shelf] = answer
        self.oracle_calls += self._memory.calls - before
        return np.array(answer, dtype=np.int64)

    def memory(self) -> int:
        arrays = [
            self.records,
            self._layer,
            self._is_loop,
            *self._kept,
            *self._hot,
            *(self._layers or []),
        ]
        facts = 0 if self._memory is None else self._memory.memory()
        return int(sum(array.nbytes for array in arrays)) + facts

    def _check(self) -> None:
        check_kept_order(self._kept, self._recs)
        present, layer = self._kept.present, self._layer
        assert np.array_equal(~present, self._is_deleted(np.arange(self.n_arms)))
        hot = np.concatenate((*self._hot, np.empty(0, dtype=np.int64)))
        assert len(hot) == self._n_hot
        assert np.array_equal(np.sort(hot), np.flatnonzero(layer == HOT))
        if np.isnan(self._epoch_lam):
            return
        if self._base is not None:
            assert present[self._base].all() and self.matroid._is_independent(self._base.copy())
        weight = self._recs[:, ALPHA] + self._epoch_lam * self._recs[:, BETA]
        if self._layers is None:
            assert (self._missing == 0).all() or not present.all()
            return
        for i, members in enumerate(self._layers):
            assert np.isin(layer[members], (i, HOT, GONE)).all()
            missing = (layer[members] != i) | ~present[members]
            assert self._missing[i] == missing.sum()
            if self._missing[i] == 0:
                below = np.flatnonzero(present & ((layer >= i) | (layer == COLD)))
                order = below[np.lexsort((below, -weight[below]))]
                assert np.array_equal(np.sort(self.matroid._greedy(order)), members)
