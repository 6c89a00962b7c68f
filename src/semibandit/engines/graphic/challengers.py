"""Challenger bounds for spanning forests (docs/theory.md, F), for states in which little of the base changes.

For each tree edge h a bound is kept: no cold edge that could replace h comes before it. While no edge is beaten by its
bound nothing needs doing. Those that are beaten are exchanged all at once (`parts`); all other bounds hold as they
are. A cold edge that becomes heavier raises the bounds on its circuit.
"""

from __future__ import annotations

import numpy as np

from semibandit.compiled.jit import inline_kernel, kernel
from semibandit.engines.graphic.answer import change_answer
from semibandit.engines.graphic.edges import COLD, IN_BASE, STATUS, TREE_INDEX
from semibandit.engines.graphic.parts import exchange_loose
from semibandit.engines.graphic.state import N_BASE, N_BEATEN, N_CHANGED, N_RISEN, open_forest
from semibandit.engines.graphic.tree import is_beaten, raise_bounds


@inline_kernel
def _answer_from_tree(state):
    """Bring the answer up to date with the arms that changed. Returns how many are new. O(D) at most."""
    table, lengths, answer = state.edges.table, state.lengths, state.answer
    n_added, n_gone = np.int64(0), np.int64(0)
    for i in range(lengths[N_CHANGED]):
        arm = state.tree.changed[i]
        if table[arm, TREE_INDEX] >= 0 and table[arm, IN_BASE] == 0:
            table[arm, IN_BASE] = 1
            answer.added[n_added] = arm
            n_added += 1
        elif table[arm, TREE_INDEX] < 0 and table[arm, IN_BASE] == 1:
            table[arm, IN_BASE] = 0
            answer.gone[n_gone] = arm
            n_gone += 1
    if n_added + n_gone > 0:
        lengths[N_BASE] = change_answer(answer, lengths[N_BASE], n_added, n_gone, state.scratch)
    return n_added


@kernel
def solve_challengers(handle, lam):
    """Make the tree and the answer right again. Returns how many arms are new. O(D + what `exchange_loose` takes)."""
    state = open_forest(handle)
    tree, lengths, table = state.tree, state.lengths, state.edges.table
    lengths[N_CHANGED] = 0
    for i in range(lengths[N_RISEN]):
        arm = tree.risen[i]
        if table[arm, STATUS] == COLD:
            raise_bounds(state, arm, lam)
    lengths[N_RISEN] = 0
    n_loose = np.int64(0)
    for i in range(lengths[N_BEATEN]):
        arm = tree.beaten[i]
        state.edges.pending[arm] = 0
        if is_beaten(state, arm, lam):
            tree.beaten[n_loose] = arm
            n_loose += 1
    lengths[N_BEATEN] = 0
    if n_loose > 0:
        exchange_loose(handle, n_loose, lam)
    return _answer_from_tree(state)
