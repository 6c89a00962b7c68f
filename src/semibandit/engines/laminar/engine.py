"""CUCB's exact decisions in sublinear time for laminar matroids (docs/theory.md, A and E).

The base B is kept outside nested kinetic tournaments (`engines.laminar.tree`) whose gates are shut exactly at the
FULL families, those with as many base arms as their capacity. The winner at the top of a full family, its
challenger, is then the heaviest outsider whose innermost full family it is.

A round (`engines.laminar.rounds`) has three steps. "Lighter" means of smaller weight or, of equal ones, of larger
id; so the best base B* is unique.

1. Fill. While the outermost tournament, which is never full, has a winner, that arm enters. Now B is a base.
2. Find. An outsider g can replace a base arm e (B - e + g is a base) exactly when the innermost full family of
   g holds e. So e is improvable when some full family around it has a challenger heavier than e. One pass over
   the D base arms finds those; the heaviest challenger around a family is looked up once a round.
3. Exchange. Lightest first, each arm e that was found meets its best challenger f and leaves if f is heavier.

Why this gives B*.

(a) Let e be the lightest improvable arm and f its best replacement. f is the heaviest arm of a cocircuit (e and
    all that can replace it), so f is in B*. The other base arms in the circuit of B + f could be replaced by f
    too; one lighter than e would be improvable. So e is the lightest arm of a circuit, hence not in B*.
(b) An arm h that is not improvable stays so after the exchange of any e for its best f. For let g replace h in
    B - e + f but not in B. If g = e, then f could replace h in B, so f is lighter than h, and e lighter still.
    Otherwise, by circuit elimination, g could replace e and f could replace h in B; so g is not heavier than f,
    which is lighter than h.
(c) An arm that filled B was the heaviest that no full family held back, and filling only shuts gates; so it is
    not improvable.

By (b) and (c) the arms found in step 2 are all that need a look, and one pass meets the lightest improvable arm
each time. What enters is in B*, and by (a) the lightest improvable arm never is; so in the end no arm is improvable
and B = B*. The pass makes |B* - B| exchanges, as few as there can be.

Cost: O(D + A + s (log s + depth fanout log K)) a round for s exchanges and A families that hold base arms, plus
O(fanout) for each certificate that ended. A touched outsider costs O(depth fanout log K) at most, a touched base
arm O(1). Families that bind nothing are dropped first, so along `depth` the capacities fall strictly.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from semibandit.arms import ALPHA, BETA, IntArray
from semibandit.compiled.lanes import ABSENT, LANES
from semibandit.engines.answer import N_CAME, arms_in, new_answer
from semibandit.engines.base import CompiledEngine
from semibandit.engines.kernels import implement_engine
from semibandit.engines.kinetic.tournament import FAIL, KEY_ALPHA, KEY_BETA, WINNER
from semibandit.engines.laminar.families import binding_families
from semibandit.engines.laminar.rounds import (
    GONE,
    IN_BASE,
    LaminarKineticState,
    laminar_remove,
    laminar_restore,
    laminar_select,
    laminar_touch,
    laminar_touch_all,
    laminar_touch_many,
)
from semibandit.engines.laminar.tree import (
    A_GATE,
    CAPACITY,
    FIRST,
    GATE,
    KIND,
    LAST,
    NOTHING,
    OVER_SLOTS,
    PARENT,
    SLOT_BITS,
    SLOT_MASK,
    TOP,
    UNUSED,
    UP,
    USED,
    new_tree,
)
from semibandit.engines.registry import register_engine
from semibandit.errors import ParameterError
from semibandit.matroids import Laminar, Matroid

implement_engine(
    LaminarKineticState,
    laminar_select,
    laminar_touch,
    touch_many=laminar_touch_many,
    touch_all=laminar_touch_all,
    remove=laminar_remove,
    restore=laminar_restore,
)


def _check_tree(tree: Any, lam: float) -> None:
    """Assert that every node is right at lam and that its certificate is no longer than it may be. O(K + F).

    A certificate is tried at its very end: the same child must win there by the rounded weights.
    """
    node = tree.node.transpose(0, 2, 1).reshape(-1, 4)
    leaf = tree.leaf.transpose(0, 2, 1).reshape(-1, 2)
    link, family = tree.link, tree.family
    reached = np.zeros(len(link), dtype=np.int64)
    for v in range(len(link)):
        up, first, last, kind = (int(x) for x in link[v])
        if kind == UNUSED:
            continue
        assert up > v or (up == -1 and v == len(link) - 1)
        part = slice(first, first + 1 if kind == A_GATE else last)
        assert part.start >> 4 == (part.stop - 1) >> 4
        if kind == OVER_SLOTS:
            keys, arms, fails = leaf[part], tree.arm_of[part], np.array([np.inf])
            assert (np.diff(arms) > 0).all()
        else:
            keys, arms, fails = node[part, :FAIL], node[part, WINNER], node[part, FAIL]
            assert (link[part, UP] == v).all()
            reached[part] += 1
        assert lam <= node[v, FAIL] <= fails.min()
        if kind == A_GATE and last == 0:
            assert node[v, KEY_ALPHA] == ABSENT and node[v, WINNER] == NOTHING
            continue
        for at in (lam, min(float(node[v, FAIL]), 2.0 * lam + 10.0)):
            weights = keys[:, KEY_ALPHA] + at * keys[:, KEY_BETA]
            best = np.lexsort((arms, -weights))[0]
            assert node[v, KEY_ALPHA] == keys[best, KEY_ALPHA]
            if node[v, KEY_ALPHA] != ABSENT:
                assert node[v, WINNER] == arms[best] and node[v, KEY_BETA] == keys[best, KEY_BETA]
    assert np.array_equal(reached, (link[:, KIND] != UNUSED) & (link[:, UP] >= 0))
    gates = family[1:, GATE]
    assert (link[gates, KIND] == A_GATE).all() and np.array_equal(link[gates, FIRST], family[1:, TOP])
    assert family[0, TOP] == len(link) - 1


@register_engine(
    "kinetic",
    serves=(Laminar,),
    cost="O(D log D + s log K) a round for s exchanges",
    why="kinetic tournaments are exact at every round and sublinear in K",
    fast_from=8,
)
class LaminarKineticEngine(CompiledEngine):
    """Nested kinetic tournaments for laminar matroids: CUCB's own decisions, sublinear in K.

    `fanout` is the width of the tournaments (a power of two up to 16). lam must not go down. Memory: about 70
    bytes an arm, records included, and 220 for each family that binds.

    >>> from semibandit.engines.laminar.engine import LaminarKineticEngine
    >>> from semibandit.matroids import Laminar
    >>> engine = LaminarKineticEngine(Laminar(5, [([0, 1, 2, 3], 2), ([0, 1], 1)]))
    >>> engine.set_weights([0, 1, 2, 3, 4], [0.9, 0.8, 0.7, 0.6, 0.1], [0.0, 0.0, 0.0, 1.0, 0.0])
    >>> engine.base()
    array([0, 2, 4])
    >>> engine.advance(0.5)
    >>> engine.base()
    array([0, 3, 4])
    """

    name = "kinetic"
    monotone_clock = True

    def __init__(
        self, matroid: Matroid, records: npt.NDArray[np.void] | None = None, fanout: int = LANES
    ) -> None:
        if not isinstance(matroid, Laminar):
            raise TypeError(f"LaminarKineticEngine serves laminar matroids, got {matroid!r}")
        super().__init__(matroid, records)
        if fanout not in (2, 4, 8, 16):
            raise ParameterError(f"fanout must be 2, 4, 8 or 16, got {fanout}")
        home, parent, capacity = binding_families(matroid)
        tree = new_tree(home, parent, capacity, fanout)
        rank = matroid.rank
        state = LaminarKineticState(
            recs=self._recs,
            tree=tree,
            answer=new_answer(rank),
            bar=np.zeros((len(tree.family), 2)),
            round_now=np.zeros(1, dtype=np.int64),
            lam=np.zeros(1),
            found=np.zeros(rank, dtype=np.int64),
            found_weight=np.zeros(rank),
            spare_arm=np.zeros(rank, dtype=np.int64),
            spare_weight=np.zeros(rank),
        )
        self._loop: npt.NDArray[np.bool_] = capacity[home] == 0
        slot = tree.place & SLOT_MASK
        tree.leaf[slot >> 4, KEY_BETA, slot & 15] = np.where(self._loop, GONE, 0.0)
        tree.leaf[slot >> 4, KEY_ALPHA, slot & 15] = np.where(self._loop, ABSENT, 0.0)
        self._run_on(state)
        self.touch_all()

    def _remove(self, ids: IntArray) -> None:
        super()._remove(ids[~self._loop[ids]])

    def _restore(self, ids: IntArray) -> None:
        super()._restore(ids[~self._loop[ids]])

    def _check(self) -> None:
        tree = self._state.tree
        _check_tree(tree, float(self._state.lam[0]))
        base = arms_in(self._state.answer)
        assert self._state.answer.size[N_CAME] == 0 and self.matroid.is_independent(base)
        gone = self._is_deleted(np.arange(self.n_arms)) | self._loop
        expected = self._recs[:, [ALPHA, BETA]].copy()
        expected[base] = ABSENT, IN_BASE
        assert not gone[base].any()
        expected[gone] = ABSENT, GONE
        slot = tree.place & SLOT_MASK
        assert np.array_equal(tree.leaf[slot >> 4, :, slot & 15], expected)
        used = np.bincount(tree.place[base] >> SLOT_BITS, minlength=len(tree.family))
        for f in range(len(used) - 1, 0, -1):
            used[tree.family[f, PARENT]] += used[f]
        assert np.array_equal(used[1:], tree.family[1:, USED])
        is_open = tree.link[tree.family[1:, GATE], LAST] == 1
        assert np.array_equal(is_open, used[1:] < tree.family[1:, CAPACITY])
