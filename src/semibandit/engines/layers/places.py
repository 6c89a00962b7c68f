"""Where every arm is: hot, in a layer, cold below all layers, or gone.

Layers are whole while no member is hot or absent; `missing` counts those that are.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from semibandit.arms import IntArray
from semibandit.compiled.handle import Flags1, Ints1, by_handle, make_handle
from semibandit.compiled.jit import inline_kernel, kernel
from semibandit.engines.order.two_runs import TwoRuns, runs_touch

# Places besides the layers 0, 1, .. COLD: below all layers. GONE: away when a layer was made, or touched while away;
# hot when it comes back.
COLD, HOT, GONE = -1, -2, -3


class PlaceState(NamedTuple):
    """`place` of each arm, members `missing` of each layer, and the arms that are hot, `hot[:n_hot[0]]`.

    `runs` is the order of `cold_order`, which must hear of every arm that changes, appears or disappears.
    """

    runs: TwoRuns
    present: Flags1
    is_loop: Flags1
    place: Ints1
    missing: Ints1
    hot: Ints1
    n_hot: Ints1


@inline_kernel
def _mark_one_hot(state, arm):
    """A present arm is hot from now on, but loops are of no use."""
    place = state.place[arm]
    if state.is_loop[arm]:
        return
    runs_touch(state.runs, arm)
    if place >= 0:
        state.missing[place] += 1
    state.place[arm] = HOT
    state.hot[state.n_hot[0]] = arm
    state.n_hot[0] += 1


@kernel
def mark_hot(state, arms):
    """The weights of `arms` changed: present ones are hot, others gone. How many are hot now. O(1) each."""
    for i in range(arms.shape[0]):
        arm = arms[i]
        if state.place[arm] == HOT:
            continue
        if state.present[arm]:
            _mark_one_hot(state, arm)
        else:
            state.place[arm] = GONE
    return state.n_hot[0]


@kernel
def take_away(state, arms):
    """Present arms leave: they keep their place, but are missing in their layer. O(1) each."""
    for i in range(arms.shape[0]):
        arm = arms[i]
        if not state.is_loop[arm]:
            runs_touch(state.runs, arm)
        state.present[arm] = state.runs.present[arm] = False
        if state.place[arm] >= 0:
            state.missing[state.place[arm]] += 1


@kernel
def bring_back(state, arms):
    """Absent arms return to their place; those that are gone become hot. O(1) each."""
    for i in range(arms.shape[0]):
        arm = arms[i]
        if not state.is_loop[arm]:
            runs_touch(state.runs, arm)
        state.present[arm] = True
        state.runs.present[arm] = not state.is_loop[arm]
        if state.place[arm] >= 0:
            state.missing[state.place[arm]] -= 1
        elif state.place[arm] == GONE:
            _mark_one_hot(state, arm)


class Places:
    """The places of the arms of a matroid, for at most `n_layers` layers."""

    def __init__(self, runs: TwoRuns, is_loop: npt.NDArray[np.bool_], n_layers: int) -> None:
        n_arms = len(is_loop)
        self.state = PlaceState(
            runs=runs,
            present=np.ones(n_arms, dtype=np.bool_),
            is_loop=is_loop,
            place=np.full(n_arms, COLD, dtype=np.int64),
            missing=np.zeros(n_layers + 1, dtype=np.int64),
            hot=np.zeros(n_arms, dtype=np.int64),
            n_hot=np.zeros(1, dtype=np.int64),
        )
        self._handle = make_handle(self.state)
        self._enter_mark_hot = by_handle(mark_hot, PlaceState).entry
        self.n_hot = 0
        self._n_absent = 0
        # Arms that left since the last layer was made, and whether any left or was away in this epoch.
        self._left: list[IntArray] = []
        self._any_left = False

    # -- changes -------------------------------------------------------------------------------------------

    def mark_hot(self, ids: IntArray) -> bool:
        """These arms changed weight. Whether there are more hot arms now. O(number of arms)."""
        n_hot = int(self._enter_mark_hot(self._handle, ids))
        more = n_hot != self.n_hot
        self.n_hot = n_hot
        return more

    def take_away(self, ids: IntArray) -> None:
        """These present arms leave. O(number of arms)."""
        by_handle(take_away, PlaceState)(self._handle, ids)
        self._n_absent += len(ids)
        self._any_left = True
        self._left.append(ids)

    def bring_back(self, ids: IntArray) -> None:
        """These absent arms return. O(number of arms)."""
        by_handle(bring_back, PlaceState)(self._handle, ids)
        self._n_absent -= len(ids)
        self.n_hot = int(self.state.n_hot[0])

    def begin_epoch(self, layers: list[IntArray]) -> None:
        """Everything is cold, what is away gone; `layers` are those of the last epoch. O(arms in them and hot arms), or
        O(K) when arms were away."""
        place = self.state.place
        if self._any_left:
            place[:] = COLD
            place[~self.state.present] = GONE
            self._any_left = self._n_absent > 0
        else:
            place[self.hot] = COLD
            for members in layers:
                place[members] = COLD
        self.n_hot = self.state.n_hot[0] = 0
        self._left = []
        self.state.missing[:] = 0

    def put_in_layer(self, members: IntArray, layer: int) -> None:
        """These cold arms are layer number `layer`. O(members)."""
        self.state.place[members] = layer

    def let_go(self) -> None:
        """Before a layer is made: cold arms that are away are not seen by it, so they must not come back as cold ones.
        O(arms that left)."""
        place, present = self.state.place, self.state.present
        for ids in self._left:
            place[ids[(place[ids] == COLD) & ~present[ids]]] = GONE
        self._left = []

    # -- questions -----------------------------------------------------------------------------------------

    @property
    def hot(self) -> IntArray:
        """The hot arms, in no order."""
        return self.state.hot[: self.n_hot]

    def is_whole(self, layer: int) -> bool:
        """Whether no member of a layer is hot or away."""
        return bool(self.state.missing[layer] == 0)

    def still_in(self, layer: int, members: IntArray) -> IntArray:
        """Those of `members` that are still in their layer, be they away or not."""
        return members[self.state.place[members] == layer]

    def present(self, arms: IntArray) -> IntArray:
        """Those of `arms` that are not away."""
        return arms[self.state.present[arms]] if self._n_absent else arms

    def is_cold(self, arms: IntArray) -> npt.NDArray[np.bool_]:
        """Which of `arms` are there and cold."""
        cold = self.state.place[arms] == COLD
        if self._n_absent:
            cold &= self.state.present[arms]
        return cold

    def memory(self) -> int:
        """Bytes held, without the order."""
        return sum(int(array.nbytes) for array in self.state[1:])

    def check(self, absent: npt.NDArray[np.bool_], layers: list[IntArray]) -> None:
        """Assert the invariants, for `layers` as they were made. O(K)."""
        s = self.state
        assert np.array_equal(s.runs.present, s.present & ~s.is_loop)
        assert np.array_equal(~s.present, absent) and absent.sum() == self._n_absent
        assert self.n_hot == s.n_hot[0] and (s.runs.flag[self.hot] == 1).all()
        assert np.array_equal(np.sort(self.hot), np.flatnonzero(s.place == HOT))
        assert (s.missing[len(layers) :] == 0).all()
        for i, members in enumerate(layers):
            assert np.isin(s.place[members], (i, HOT, GONE)).all()
            assert s.missing[i] == ((s.place[members] != i) | ~s.present[members]).sum()
