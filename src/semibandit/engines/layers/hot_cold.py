"""`engine="hot-cold"`: exact bases of any matroid with few independence tests (DESIGN ideas A and B).

At an epoch all arms are sorted and the base is found by greedy. Until the next epoch lam stays, so that only touched
arms change weight: they are HOT. The others are cold, with frozen weights, and are needed only as far as their base:

- (A) B(hot + cold) = B(hot + B(cold)), because an arm of cold outside B(cold) is the lightest of a circuit in cold.
- (B) Let L1 = B(cold), L2 = B(cold - L1), and so on, `reserve` + 1 layers. When arms of cold become hot or leave, take
  the first layer m that is still whole. It is the base of all that lies below the layers before it, with or without
  what is missing there; so by (A) the base lies in hot + what is left of L1 .. L(m-1) + Lm.

Each round is greedy over that small set, whose size depends on the rank and the reserve, not on K. When no layer is
whole, too many arms are hot, or lam changes, a new epoch begins. A layer is made only when those before it are no
longer whole, from the arms that are still cold; so a clock that moves at every round costs one greedy a round, as
re-solving does. The same is done for some rounds when the layers of an epoch turned out to cost more than they saved:
few arms, or most of the base changing at every round. Between two epochs at the same lam the arms stay in order
(`two_runs`), so that beginning one does not cost a pass over all of them.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from semibandit.arms import ALPHA, BETA, FloatArray, IntArray
from semibandit.compiled.handle import make_handle
from semibandit.compiled.jit import kernel
from semibandit.engines.base import Engine
from semibandit.engines.kernels import add_rewards, check_feedback
from semibandit.engines.layers.remembered_oracle import RememberedOracle
from semibandit.engines.order.two_runs import (
    LIMIT,
    N_TOUCHED,
    START,
    check_two_runs,
    list_by_handle,
    new_two_runs,
    update_by_handle,
)
from semibandit.engines.registry import STAIRS, register_engine
from semibandit.errors import ParameterError
from semibandit.matroids import Matroid

# `layer` of an arm: its layer from 0, or one of these. COLD: below all layers. GONE: left out when the layers were
# made or touched while absent; hot when it comes back.
COLD, HOT, GONE = -1, -2, -3


# Costs for the choice between layers and a full greedy at every round, in microseconds of the machine on which they
# were measured: of a round with layers, of making a layer, of a round without, of an arm that is sorted, of an arm
# that a compiled greedy looks at, and of a call of a user's oracle.
ROUND_COST, LAYER_COST, FULL_COST, ARM_COST, LOOK_COST, CALL_COST = 20.0, 20.0, 20.0, 0.006, 0.2, 10.0
MOST_SKIPPED = 64


@kernel
def heat(flag, touched, meta, present, is_loop, layer, missing, hot, n_hot, arms):
    """Note that the weights of `arms` changed: present ones must be sorted again and are hot, but loops are no use.

    Returns how many arms are hot. Changes all but `present`, `is_loop` and `arms`. O(number of arms).
    """
    for i in range(arms.shape[0]):
        arm = arms[i]
        if layer[arm] == HOT:
            continue
        if not present[arm]:
            layer[arm] = GONE
            continue
        if is_loop[arm]:
            continue
        if flag[arm] == 0:
            flag[arm] = 1
            touched[meta[N_TOUCHED]] = arm
            meta[N_TOUCHED] += 1
        if layer[arm] >= 0:
            missing[layer[arm]] += 1
        layer[arm] = HOT
        hot[n_hot] = arm
        n_hot += 1
    return n_hot


@register_engine(
    "hot-cold",
    clocks=STAIRS,
    cost="independence tests a round do not grow with K; O(K) at a step of the clock",
    why="only arms played lately and a few layers of the others are tested",
    fast_from=300,
)
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

    Examples
    --------
    >>> import numpy as np
    >>> from semibandit.matroids import Linear
    >>> engine = HotColdEngine(Linear([[1, 0], [2, 0], [1, 1], [0, 3]]))
    >>> engine.set_weights(np.arange(4), [0.9, 0.8, 0.3, 0.2])
    >>> engine.base()
    array([0, 2])
    >>> engine.set_weight(0, 0.1)
    >>> engine.base(), engine.last_round_calls
    (array([1, 2]), 2)
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
        self._present = np.ones(self.n_arms, dtype=np.bool_)
        # Loops that were never pulled weigh +inf for ever: they would be looked at first in every greedy.
        self._is_loop = np.zeros(self.n_arms, dtype=np.bool_)
        self._is_loop[matroid.loops] = True
        # All present arms but the loops, in order as the epoch began, and the first of them as listed by now.
        self._runs = new_two_runs(self.n_arms, matroid.rank)
        self._runs.present[self._is_loop] = False
        self._runs_handle = make_handle(self._runs)
        self._order = np.zeros(self.n_arms, dtype=np.int64)
        self._listed = np.zeros(3, dtype=np.int64)
        self._most_hot = 4 * (self.reserve + 1) * matroid.rank + 64
        self._layer = np.full(self.n_arms, COLD, dtype=np.int64)
        self._hot = np.zeros(self.n_arms, dtype=np.int64)
        self._n_hot = 0
        self._arms: IntArray | None = None
        self._layers: list[IntArray] = []
        self._missing = np.zeros(self.reserve + 2, dtype=np.int64)
        # Where in the order cold arms outside the layers may begin, and whether there may be any.
        self._below = 0
        self._more = False
        self._n_absent = 0
        self._any_left = False
        self._left: list[IntArray] = []
        self._known: dict[int, list[int]] = {}
        # What the layers of this epoch have cost, and for how many rounds to do without layers.
        self._served = self._spent_calls = self._full_calls = 0
        self._skip = self._next_skip = 0
        self._may_skip = True
        self._epoch_lam = np.nan
        self._base: IntArray | None = None

    # -- changes -----------------------------------------------------------------------------------------

    def touch(self, arms: IntArray) -> None:
        self._base = None
        self._heat(arms)

    def _heat(self, ids: IntArray) -> None:
        """Make arms hot, or GONE if they are not here. O(number of arms)."""
        runs = self._runs
        n_hot = heat(
            runs.flag,
            runs.touched,
            runs.meta,
            self._present,
            self._is_loop,
            self._layer,
            self._missing,
            self._hot,
            self._n_hot,
            ids,
        )
        if n_hot != self._n_hot:
            self._n_hot = n_hot
            self._arms = None

    def _resort(self, ids: IntArray) -> None:
        """These arms must find a new place in the order at the next epoch."""
        meta, flag = self._runs.meta, self._runs.flag
        new = ids[(flag[ids] == 0) & ~self._is_loop[ids]]
        flag[new] = 1
        self._runs.touched[meta[N_TOUCHED] : meta[N_TOUCHED] + len(new)] = new
        meta[N_TOUCHED] += len(new)

    def _remove(self, ids: IntArray) -> None:
        self._resort(ids)
        self._present[ids] = self._runs.present[ids] = False
        self._n_absent += len(ids)
        self._any_left = True
        self._left.append(ids)
        layer = self._layer[ids]
        np.add.at(self._missing, layer[layer >= 0], 1)
        self._base = self._arms = None

    def _restore(self, ids: IntArray) -> None:
        self._resort(ids)
        self._present[ids] = True
        self._runs.present[ids] = ~self._is_loop[ids]
        self._n_absent -= len(ids)
        layer = self._layer[ids]
        np.subtract.at(self._missing, layer[layer >= 0], 1)
        self._heat(ids[layer == GONE])
        self._base = self._arms = None

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
            self._begin_epoch(lam)
        elif self._base is None:
            if self._arms is None and self._skip == 0:
                self._arms = self._needed()
            if self._arms is None:
                self._begin_epoch(lam)
            else:
                self._served += 1
                record = self._recs[self._arms]
                weight = record[:, ALPHA] + lam * record[:, BETA]
                before = self.oracle_calls
                self._base = np.sort(self._greedy(self._arms[np.argsort(-weight, kind="stable")]))
                self.last_round_calls = self.oracle_calls - before
        assert self._base is not None
        return self._base.copy()

    def _needed(self) -> IntArray | None:
        """The arms among which the base lies, ascending; None when layers are used up or too many arms are hot.

        O(n log n) for n = hot arms + rank * reserve.
        """
        if self._n_hot > self._most_hot:
            return None
        parts = [self._hot[: self._n_hot]]
        i = 0
        while i < len(self._layers) or self._more:
            if i > self.reserve:
                return None
            if i == len(self._layers):
                self._make_layer()
            members = self._layers[i]
            if self._missing[i] == 0:
                parts.append(members)
                break
            parts.append(members[self._layer[members] == i])
            i += 1
        arms = np.sort(np.concatenate(parts))
        return arms[self._present[arms]] if self._n_absent else arms

    def _begin_epoch(self, lam: float) -> None:
        """Bring the order up to date; the base of all. Greedy over all arms, which stops when the base is full, and the
        cost of sorting: O(K) at a new lam, O(sqrt(D K)) amortised at the old one."""
        self._weigh_layers()
        before = self.oracle_calls
        update_by_handle(self._runs_handle, self._recs, lam)
        self._listed[0], self._listed[1], self._listed[2] = self._runs.meta[START], 0, 0
        if self._any_left:
            self._layer[:] = COLD
            self._layer[~self._present] = GONE
            self._any_left = self._n_absent > 0
        else:
            self._layer[self._hot[: self._n_hot]] = COLD
            for members in self._layers:
                self._layer[members] = COLD
        self._n_hot = 0
        self._layers, self._left = [], []
        self._arms = None
        self._missing[:] = 0
        self._below, self._more = 0, True
        self._epoch_lam = lam
        self._base = np.sort(self._peel(0)[0])
        self.epochs += 1
        self._full_calls = self.oracle_calls - before
        self.epoch_calls += self._full_calls
        self._spent_calls = -self.oracle_calls

    def _weigh_layers(self) -> None:
        """Whether the layers of the epoch that ends were worth it; if not, do without for a while, then try again."""
        if self._skip > 0:
            self._skip -= 1
        elif self._served > 0 and self._may_skip:
            call = LOOK_COST if self._memory is None else CALL_COST
            sorting = ARM_COST * float(self._runs.meta[LIMIT])
            full = self._served * (FULL_COST + sorting + call * self._full_calls)
            spent = call * (self._spent_calls + self.oracle_calls)
            if self._served * ROUND_COST + len(self._layers) * LAYER_COST + spent > full:
                self._skip = self._next_skip = min(2 * self._next_skip + 1, MOST_SKIPPED)
            else:
                self._next_skip = 0
        self._served = 0

    def _make_layer(self) -> None:
        """One more base of the arms that are cold, which the order still has right."""
        before = self.oracle_calls
        i = len(self._layers)
        # An arm that is away is not seen by this layer, so it must not come back as a cold one.
        for ids in self._left:
            self._layer[ids[(self._layer[ids] == COLD) & ~self._present[ids]]] = GONE
        self._left = []
        members, self._more = self._peel(i + 1)
        self._layer[members] = i
        self._layers.append(np.sort(members))
        self.epoch_calls += self.oracle_calls - before

    def _peel(self, shelf: int) -> tuple[IntArray, bool]:
        """The base of all cold arms outside the layers, and whether there may be other such arms.

        Looks at longer and longer beginnings of the order until a base is full: O(K) and greedy over all cold
        arms at worst, O(rank) at best.
        """
        n = 4 * self.matroid.rank + 32
        while True:
            wanted = min(self._below + n, self.n_arms)
            end = min(int(self._listed[2]), wanted)
            if end < wanted:
                end = list_by_handle(self._runs_handle, self._listed, self._order, wanted)
            at_end = end < wanted or end == self.n_arms
            arms = self._order[self._below : end].copy()  # greedy may be a user's own code
            if shelf > 0:  # in an epoch that begins all arms are cold
                cold = self._layer[arms] == COLD
                if self._n_absent:
                    cold &= self._present[arms]
                if len(arms) and not cold[0]:
                    skipped = int(cold.argmax()) if cold.any() else len(arms)
                    self._below += skipped
                    arms, cold = arms[skipped:], cold[skipped:]
                arms = arms[cold]
            picked = self._greedy(arms, shelf) if len(arms) else arms
            if at_end or len(picked) == self.matroid.rank:
                return picked, not at_end or len(picked) < len(arms)
            n *= 4

    def _greedy(self, order: IntArray, shelf: int = 0) -> IntArray:
        """The matroid's greedy over `order`, counted. Shelf 0: the base of all; others: layers."""
        if self._memory is None:
            picked = self.matroid._greedy(order)
            if len(picked) == self.matroid.rank:
                self.oracle_calls += int((order == picked[-1]).argmax()) + 1
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
            self._present,
            self._order,
            self._hot,
            *self._runs,
            *(self._layers or []),
        ]
        facts = 0 if self._memory is None else self._memory.memory()
        return int(sum(array.nbytes for array in arrays)) + facts

    def _check(self) -> None:
        check_two_runs(self._runs, self._recs)
        present, layer = self._present, self._layer
        assert np.array_equal(self._runs.present, present & ~self._is_loop)
        assert np.array_equal(~present, self._is_deleted(np.arange(self.n_arms)))
        assert np.array_equal(np.sort(self._hot[: self._n_hot]), np.flatnonzero(layer == HOT))
        assert (self._runs.flag[self._hot[: self._n_hot]] == 1).all()
        if np.isnan(self._epoch_lam):
            return
        if self._base is not None:
            assert present[self._base].all() and self.matroid._is_independent(self._base.copy())
        weight = self._recs[:, ALPHA] + self._epoch_lam * self._recs[:, BETA]
        assert (self._missing[len(self._layers) :] == 0).all() and len(self._layers) <= self.reserve + 1
        for i, members in enumerate(self._layers):
            assert np.isin(layer[members], (i, HOT, GONE)).all()
            missing = (layer[members] != i) | ~present[members]
            assert self._missing[i] == missing.sum()
            if self._missing[i] == 0:
                below = np.flatnonzero(present & ((layer >= i) | (layer == COLD)))
                order = below[np.lexsort((below, -weight[below]))]
                assert np.array_equal(np.sort(self.matroid._greedy(order)), members)
