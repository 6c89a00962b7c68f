"""CUCB's exact decisions in sublinear time for uniform and partition matroids (docs/theory.md, E).

The base is kept outside a kinetic tournament per group. At a new lam the group's base is sorted, and while the
tournament's winner is heavier than the lightest base arm not yet exchanged, the two change places. Playing an arm
of the base touches its record only. O(D log D + s fanout log K) a round for s exchanges, plus the certificates
that ended.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from semibandit.arms import ALPHA, BETA
from semibandit.compiled.lanes import ABSENT, LANES
from semibandit.engines.answer import N_CAME, arms_in
from semibandit.engines.base import CompiledEngine
from semibandit.engines.kernels import implement_engine
from semibandit.engines.kinetic.rounds import (
    kinetic_remove,
    kinetic_restore,
    kinetic_select,
    kinetic_touch,
    kinetic_touch_all,
    kinetic_touch_answer,
    kinetic_touch_many,
)
from semibandit.engines.kinetic.state import (
    BASE0,
    CAPACITY,
    LEAF0,
    LEVELS,
    N_BASE,
    POSITION0,
    SIZE,
    KineticState,
    new_state,
)
from semibandit.engines.kinetic.tournament import KEY_ALPHA, KEY_BETA, Tree, check_tree
from semibandit.engines.registry import register_engine
from semibandit.errors import ParameterError
from semibandit.matroids import Matroid, Partition, Uniform

implement_engine(
    KineticState,
    kinetic_select,
    kinetic_touch,
    touch_many=kinetic_touch_many,
    touch_answer=kinetic_touch_answer,
    touch_all=kinetic_touch_all,
    remove=kinetic_remove,
    restore=kinetic_restore,
)


@register_engine(
    "kinetic",
    serves=(Uniform, Partition),
    cost="O(D log D + s log K) a round for s exchanges",
    why="kinetic tournaments are exact at every round and sublinear in K",
    fast_from=8,
)
class KineticEngine(CompiledEngine):
    """Kinetic tournaments for uniform and partition matroids: CUCB's own decisions, sublinear in K.

    `fanout` is the width of the trees (a power of two up to 16). lam must not go down.
    """

    name = "kinetic"
    monotone_clock = True

    def __init__(
        self, matroid: Matroid, records: npt.NDArray[np.void] | None = None, fanout: int = LANES
    ) -> None:
        super().__init__(matroid, records)
        if fanout not in (2, 4, 8, 16):
            raise ParameterError(f"fanout must be 2, 4, 8 or 16, got {fanout}")
        self._run_on(new_state(self._recs, matroid, fanout))
        self.touch_all()

    def _check(self) -> None:
        s = self._state
        lam, shift, fan = float(s.lam[0]), int(s.shift), 1 << int(s.shift)
        held = [s.base[row[BASE0] : row[BASE0] + row[N_BASE]] for row in s.group]
        assert s.answer.size[N_CAME] == 0
        assert np.array_equal(np.sort(np.concatenate(held)), arms_in(s.answer))
        deleted = self._is_deleted(np.arange(self.n_arms))
        for g, (row, members) in enumerate(zip(s.group, held, strict=True)):
            assert len(np.unique(members)) == len(members) <= row[CAPACITY]
            assert not deleted[members].any()
            positions = slice(row[POSITION0], row[POSITION0] + row[SIZE])
            arms = s.arm_of[positions] if len(s.arm_of) else np.arange(self.n_arms)
            assert (np.diff(arms) > 0).all()
            blocks = -(-int(row[SIZE]) // fan)
            keys = s.leaf[row[LEAF0] : row[LEAF0] + blocks, :, :fan].transpose(1, 0, 2).reshape(2, -1)
            keys = keys[:, : row[SIZE]]
            absent = keys[KEY_ALPHA] == ABSENT
            assert np.array_equal(absent, deleted[arms] | np.isin(arms, members))
            assert np.array_equal(keys[KEY_ALPHA][~absent], self._recs[arms[~absent], ALPHA])
            assert np.array_equal(keys[KEY_BETA][~absent], self._recs[arms[~absent], BETA])
            tree = Tree(s.leaf, s.node, s.first[g], int(row[LEAF0]), int(row[LEVELS]), g, shift)
            check_tree(tree, int(row[SIZE]), lam)
