"""Dynamic maximum-weight base of a laminar matroid, hence of uniform and partition matroids.

Every family keeps one tournament over what lies directly in it: its arms and its sub-families. Each node of
the tournament names two arms of its part: the LIGHTEST arm of the base, and the heaviest rejected arm that no
full family inside the part holds back, the CHALLENGER. A full family shows no challenger to its parent.

- A rejected arm that rises enters through its innermost full family, against the lightest base arm there
  (the circuit of B + e is e and the base's part of the innermost full family).
- A base arm that falls opens every family around it; the best challenger of any of these may replace it.

So a change costs O(log K) a level of nesting, and the memory is O(K + F) whatever the depth.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from semibandit.arms import FloatArray, IntArray
from semibandit.compiled.jit import njit
from semibandit.matroids import Laminar, Partition, Uniform
from semibandit.paper.dynamic.base import DynamicBase
from semibandit.paper.dynamic.order import ahead, better, worse

# Columns of the tables below.
PARENT, OFF, SLACK, PLACE = 0, 1, 2, 3  # families; PLACE: node of the family in its parent's tournament
HOME, NODE, SEAT = 0, 1, 2  # arms; NODE: node in the tournament of HOME, SEAT: index in members or -1
LIGHTEST, CHALLENGER = 0, 1  # tournament nodes


@njit
def _match(left: int, win: Any, weight: Any) -> Any:
    """What the parent of the tournament nodes `left` and `left + 1` shows. O(1)."""
    low = worse(weight, np.int64(win[left, LIGHTEST]), np.int64(win[left + 1, LIGHTEST]))
    high = better(weight, np.int64(win[left, CHALLENGER]), np.int64(win[left + 1, CHALLENGER]))
    return low, high


@njit
def _climb(arm: int, family: int, place: int, fams: Any, win: Any, weight: Any) -> bool:
    """Replay the matches above `place` after a change of `arm`. False: the top is as before. Changes `win`."""
    off = fams[family, OFF]
    i = place >> 1
    while i > 0:
        left = off + 2 * i
        low, high = _match(left, win, weight)
        node = off + i
        if win[node, LIGHTEST] == low and win[node, CHALLENGER] == high and low != arm and high != arm:
            return False
        win[node, LIGHTEST] = low
        win[node, CHALLENGER] = high
        i >>= 1
    return True


@njit
def _lift(arm: int, family: int, fams: Any, win: Any) -> bool:
    """Copy the top of `family` to its place in the parent's tournament. True if that changed. Changes `win`."""
    top = fams[family, OFF] + 1
    low = win[top, LIGHTEST]
    high = win[top, CHALLENGER] if fams[family, SLACK] > 0 else -1
    node = fams[fams[family, PARENT], OFF] + fams[family, PLACE]
    if win[node, LIGHTEST] == low and win[node, CHALLENGER] == high and low != arm and high != arm:
        return False
    win[node, LIGHTEST] = low
    win[node, CHALLENGER] = high
    return True


@njit
def _refresh(arm: int, arms: Any, fams: Any, win: Any, weight: Any) -> None:
    """Repair all tournaments after the weight of `arm` changed. Stops as soon as it loses. Changes `win`."""
    family = arms[arm, HOME]
    place = arms[arm, NODE]
    while _climb(arm, family, place, fams, win, weight):
        if fams[family, PARENT] < 0 or not _lift(arm, family, fams, win):
            return
        place = fams[family, PLACE]
        family = fams[family, PARENT]


@njit
def _move(arm: int, into: bool, arms: Any, fams: Any, win: Any, weight: Any) -> None:
    """Take `arm` into the base or out of it, in all families around it. Changes `win` and the slacks."""
    family = arms[arm, HOME]
    place = arms[arm, NODE]
    node = fams[family, OFF] + place
    win[node, LIGHTEST] = arm if into else -1
    win[node, CHALLENGER] = -1 if into else arm
    dirty = True
    while True:
        if dirty:
            _climb(arm, family, place, fams, win, weight)
        fams[family, SLACK] += -1 if into else 1
        if fams[family, PARENT] < 0:
            return
        # Slack moves all the way up even where the tournaments are at rest.
        dirty = _lift(arm, family, fams, win)
        place = fams[family, PLACE]
        family = fams[family, PARENT]


@njit
def _exchange(leaver: int, entrant: int, arms: Any, fams: Any, win: Any, weight: Any, members: Any) -> None:
    _move(leaver, False, arms, fams, win, weight)
    _move(entrant, True, arms, fams, win, weight)
    seat = arms[leaver, SEAT]
    arms[leaver, SEAT] = -1
    arms[entrant, SEAT] = seat
    members[seat] = entrant


@njit
def _set_one(arm: int, new: float, weight: Any, arms: Any, fams: Any, win: Any, members: Any) -> int:
    """Give `arm` the weight `new`; 1 if the base changed. O(log K) a level. Changes all arrays."""
    old = weight[arm]
    weight[arm] = new
    if new == old:
        return 0
    family = arms[arm, HOME]
    if arms[arm, SEAT] >= 0:
        if new < old:
            rival = np.int64(-1)
            while family >= 0:
                rival = better(weight, rival, np.int64(win[fams[family, OFF] + 1, CHALLENGER]))
                family = fams[family, PARENT]
            if rival >= 0 and ahead(weight, rival, arm):
                _exchange(arm, rival, arms, fams, win, weight, members)
                return 1
        _refresh(arm, arms, fams, win, weight)
        return 0
    if new > old:
        while fams[family, SLACK] > 0:
            family = fams[family, PARENT]
        rival = np.int64(win[fams[family, OFF] + 1, LIGHTEST])
        if rival >= 0 and ahead(weight, arm, rival):
            # Not yet replayed in its place as a challenger: the move out of that place does it.
            _exchange(rival, arm, arms, fams, win, weight, members)
            return 1
    _refresh(arm, arms, fams, win, weight)
    return 0


@njit
def _set_many(ids: Any, new: Any, weight: Any, arms: Any, fams: Any, win: Any, members: Any) -> int:
    """`_set_one` for each of `ids` in turn."""
    count = 0
    for i in range(ids.size):
        count += _set_one(ids[i], new[i], weight, arms, fams, win, members)
    return count


@njit
def _thin(leaf: Any, parent: Any, capacity: Any) -> Any:
    """Drop families that bind nothing: (home of each arm, parents, capacities), parents first. O(K + F).

    A family binds nothing when what it holds cannot exceed its capacity anyway, or else when a kept family
    around it has no larger capacity. Arms in no kept family share a last family that holds just them.
    """
    n_families = parent.size
    reach = np.zeros(n_families, np.int64)
    for k in range(leaf.size):
        reach[leaf[k]] += 1
    keep = np.ones(n_families, np.bool_)
    for f in range(n_families - 1, -1, -1):
        keep[f] = reach[f] > capacity[f]
        if parent[f] >= 0:
            reach[parent[f]] += min(reach[f], capacity[f])
    around = np.empty(n_families, np.int64)  # new index of the innermost kept family at or around f
    up = np.empty(n_families + 1, np.int64)
    cap = np.empty(n_families + 1, np.int64)
    size = 0
    for f in range(n_families):
        around[f] = around[parent[f]] if parent[f] >= 0 else -1
        if keep[f] and (around[f] < 0 or capacity[f] < cap[around[f]]):
            up[size] = around[f]
            cap[size] = capacity[f]
            around[f] = size
            size += 1
    home = np.empty(leaf.size, np.int64)
    free = 0
    for k in range(leaf.size):
        home[k] = around[leaf[k]]
        if home[k] < 0:
            home[k] = size
            free += 1
    if free > 0:
        up[size] = -1
        cap[size] = free
        size += 1
    return home, up[:size].copy(), cap[:size].copy()


@njit
def _plant(home: Any, up: Any, cap: Any, base: Any, weight: Any) -> Any:
    """Tables and tournaments (arms, fams, win) for a given base. O(K + F)."""
    n_families = up.size
    n_arms = home.size
    fams = np.empty((n_families, 4), np.int64)
    arms = np.empty((n_arms, 3), np.int64)
    width = np.zeros(n_families, np.int64)
    for k in range(n_arms):
        width[home[k]] += 1
    for f in range(n_families):
        if up[f] >= 0:
            width[up[f]] += 1
    total = 0
    filled = np.empty(n_families, np.int64)
    for f in range(n_families):
        fams[f, PARENT] = up[f]
        fams[f, OFF] = total
        fams[f, SLACK] = cap[f]
        filled[f] = width[f]
        total += 2 * width[f]
    win = np.full((total, 2), -1, np.int32)
    for k in range(n_arms):
        arms[k, HOME] = home[k]
        arms[k, NODE] = filled[home[k]]
        arms[k, SEAT] = -1
        filled[home[k]] += 1
    for i in range(base.size):
        arms[base[i], SEAT] = i
        fams[home[base[i]], SLACK] -= 1
    for k in range(n_arms):
        node = fams[home[k], OFF] + arms[k, NODE]
        win[node, LIGHTEST if arms[k, SEAT] >= 0 else CHALLENGER] = k
    for f in range(n_families):
        fams[f, PLACE] = -1
        if up[f] >= 0:
            fams[f, PLACE] = filled[up[f]]
            filled[up[f]] += 1
    for f in range(n_families - 1, -1, -1):
        off = fams[f, OFF]
        for i in range(width[f] - 1, 0, -1):
            left = off + 2 * i
            low, high = _match(left, win, weight)
            win[off + i, LIGHTEST] = low
            win[off + i, CHALLENGER] = high
        if up[f] >= 0:
            fams[up[f], SLACK] -= cap[f] - fams[f, SLACK]
            _lift(-2, f, fams, win)
    return arms, fams, win


class DynamicLaminar(DynamicBase):
    """Exact dynamic base of a uniform, partition or laminar matroid.

    `set_weight` costs O(log K) worst case for each level of nesting that binds (one level for uniform and
    partition matroids); building costs O(K log K); memory is 56 bytes an arm.

    Examples
    --------
    >>> from semibandit.paper.dynamic.laminar import DynamicLaminar
    >>> from semibandit.matroids import Partition
    >>> best = DynamicLaminar(Partition([0, 0, 1, 1]), [1.0, 2.0, 3.0, 4.0])
    >>> best.set_weight(0, 5.0)
    >>> best.base()
    array([0, 3])
    """

    def __init__(self, matroid: Uniform | Partition | Laminar, weights: Any) -> None:
        if isinstance(matroid, Uniform):
            leaf = np.zeros(matroid.n_arms, dtype=np.int64)
            parent, capacity = np.array([-1]), np.array([matroid.rank])
        elif isinstance(matroid, Partition):
            leaf, capacity = matroid._group.copy(), matroid._capacity.copy()
            parent = np.full(capacity.size, -1)
        else:
            leaf, parent, capacity = matroid._leaf.copy(), matroid._parent.copy(), matroid._capacity.copy()
        self._home, self._up, self._cap = _thin(leaf, parent, capacity)
        super().__init__(matroid, weights)

    def _build(self) -> None:
        self._base: IntArray = self.matroid.max_weight_base(self._weight)
        self._arms, self._fams, self._win = _plant(self._home, self._up, self._cap, self._base, self._weight)

    def _set_weight(self, arm: int, weight: float) -> None:
        self._exchanged(_set_one(arm, weight, self._weight, self._arms, self._fams, self._win, self._base))

    def _apply(self, arms: IntArray, weights: FloatArray) -> None:
        args = (self._weight, self._arms, self._fams, self._win, self._base)
        self._exchanged(_set_many(arms, weights, *args))

    def _members(self) -> IntArray:
        return self._base

    def memory(self) -> int:
        """Bytes held. O(1)."""
        held: list[npt.NDArray[Any]] = [self._weight, self._arms, self._fams, self._win, self._base]
        return sum(array.nbytes for array in [*held, self._home, self._up, self._cap])

    def _check(self) -> None:
        self._check_base()
        in_base = self._arms[:, SEAT] >= 0
        assert np.array_equal(np.flatnonzero(in_base), np.sort(self._base))
        assert np.array_equal(self._base[self._arms[self._base, SEAT]], self._base)
        again = _plant(self._home, self._up, self._cap, self._base, self._weight)
        assert np.array_equal(self._arms, again[0])
        assert np.array_equal(self._fams, again[1]) and (self._fams[:, SLACK] >= 0).all()
        assert np.array_equal(self._win, again[2])
