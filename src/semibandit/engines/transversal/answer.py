"""The answer in order of ids, kept from round to round: arms that came are merged in, arms that went are left out."""

from __future__ import annotations

import numpy as np

from semibandit.compiled.jit import inline_kernel, kernel
from semibandit.compiled.sorting import sort_ids_in_place
from semibandit.engines.transversal.state import IN_ANSWER, IN_ENTRANTS, forget, open_challengers


@kernel
def write_answer(handle, out):
    """Bring the sorted answer up to date and copy it to `out`; how many arms. O(D + s log s) for s arms that came."""
    state = open_challengers(handle)
    answer = state.answer
    n = answer.length[0]
    if state.answer_stale[0]:
        n = _list_anew(state, out)
    elif state.entrants.length[0] > 0 or n != state.matching.n_base[0]:
        n = _merge_entrants(state, out)
    else:
        for i in range(n):
            out[i] = answer.arms[i]
        return n
    for i in range(n):
        answer.arms[i] = out[i]
    answer.length[0] = n
    return n


@inline_kernel
def _merge_entrants(state, out):
    """The arms of the last answer that are still in the base, and those that came, ascending. Empties the list of
    entrants; changes `out` and `listed`."""
    node, listed, answer, entrants = (
        state.matching.matched_node,
        state.listed,
        state.answer.arms,
        state.entrants.arms,
    )
    n_entrants = state.entrants.length[0]
    forget(state.entrants, listed, IN_ENTRANTS)
    m = 0
    for i in range(n_entrants):
        arm = entrants[i]
        if node[arm] >= 0:
            listed[arm] |= IN_ANSWER
            entrants[m] = arm
            m += 1
    sort_ids_in_place(entrants, m)
    n, j = 0, 0
    for i in range(state.answer.length[0]):
        arm = answer[i]
        if node[arm] < 0:
            listed[arm] &= ~np.uint8(IN_ANSWER)
            continue
        while j < m and entrants[j] < arm:
            out[n] = entrants[j]
            n += 1
            j += 1
        out[n] = arm
        n += 1
    while j < m:
        out[n] = entrants[j]
        n += 1
        j += 1
    return n


@inline_kernel
def _list_anew(state, out):
    """All arms of the base, ascending; for when entrants were lost. Changes `out`, both lists and `listed`.

    O(n_right log n_right).
    """
    listed, matched_arm = state.listed, state.matching.matched_arm
    forget(state.entrants, listed, IN_ENTRANTS)
    forget(state.answer, listed, IN_ANSWER)
    state.answer_stale[0] = False
    n = 0
    for r in range(matched_arm.shape[0]):
        arm = matched_arm[r]
        if arm >= 0:
            listed[arm] |= IN_ANSWER
            out[n] = arm
            n += 1
    sort_ids_in_place(out, n)
    return n
