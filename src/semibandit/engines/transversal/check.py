"""Invariants of both solvers, for tests."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from semibandit.arms import ALPHA, BETA, FloatArray, IntArray
from semibandit.engines.answer import arms_in
from semibandit.engines.order.check_chunks import arms_of, check_front, places_of, weights_of
from semibandit.engines.order.lazy import END, FRONT, check_lazy_order
from semibandit.engines.transversal.best_outsiders import check_best_outsiders
from semibandit.engines.transversal.greedy_state import MOST, N_BASE, KeptGreedy
from semibandit.engines.transversal.state import (
    ABSENT,
    IN_ANSWER,
    IN_ENTRANTS,
    IN_PASSED,
    IN_RISEN,
    OUTSIDER,
    RIGHT,
    ArmList,
    Challengers,
)


def check_challengers(s: Challengers, absent: npt.NDArray[np.bool_]) -> None:
    """Assert matching, sets, lists, tournaments and bounds. O(D * edges)."""
    _check_matching(s, absent)
    _check_lists(s)
    if s.best_stale[0]:
        return
    weight = s.recs[:, ALPHA] + s.lam[0] * s.recs[:, BETA]
    outside = (s.best.arm_in >= 0) & (s.matching.matched_node[s.best.arm_in] == OUTSIDER)
    assert np.array_equal(s.best.leaf, np.where(outside, weight[s.best.arm_in], -np.inf))
    check_best_outsiders(s.best)
    if not s.bounds_stale[0] and s.risen.length[0] == 0:
        _check_bounds(s, weight)


def _check_matching(s: Challengers, absent: npt.NDArray[np.bool_]) -> None:
    matching = s.matching
    matched_arm, n_right = matching.matched_arm, len(matching.matched_arm)
    matched = np.flatnonzero(matched_arm >= 0)
    base = matched_arm[matched]
    assert len(np.unique(base)) == len(base) == matching.n_base[0]
    assert np.array_equal(matching.matched_node[base], matched)
    assert (matching.matched_node >= 0).sum() == len(base)
    assert np.array_equal(matching.matched_node == ABSENT, absent)
    ahead = np.zeros((n_right, n_right), dtype=np.bool_)
    for r in matched:
        near = s.edge[s.indptr[matched_arm[r]] : s.indptr[matched_arm[r] + 1], RIGHT]
        assert r in near
        ahead[r, near] = True
    assert np.array_equal(_bits(matching.ahead, n_right), ahead)
    assert np.array_equal(_bits(matching.behind, n_right), ahead.T)
    assert np.array_equal(_bits(matching.free[None], n_right)[0], matched_arm < 0)
    assert not s.solving.dead.any()
    assert np.array_equal(np.sort(s.solving.order), np.arange(n_right))


def _bits(rows: IntArray, n: int) -> npt.NDArray[np.bool_]:
    """The sets in `rows` as a matrix of truth values with n columns."""
    little = np.ascontiguousarray(rows, dtype="<i8").view(np.uint8).reshape(len(rows), -1)
    return np.unpackbits(little, axis=1, bitorder="little")[:, :n].astype(np.bool_)


def _check_lists(s: Challengers) -> None:
    lists = (s.answer, IN_ANSWER), (s.entrants, IN_ENTRANTS), (s.passed, IN_PASSED), (s.risen, IN_RISEN)
    for arms, bit in lists:
        assert np.array_equal(np.flatnonzero(s.listed & bit), np.sort(_arms(arms)))
    assert (np.diff(_arms(s.answer)) > 0).all()
    if not s.answer_stale[0]:
        base = s.matching.matched_arm[s.matching.matched_arm >= 0]
        assert np.isin(base, np.concatenate((_arms(s.answer), _arms(s.entrants)))).all()


def _arms(arms: ArmList) -> IntArray:
    return arms.arms[: arms.length[0]]


def _check_bounds(s: Challengers, weight: FloatArray) -> None:
    """No challenger is heavier than a bound, no base arm lighter but those noted, no outsider fits besides the base."""
    passed = set(_arms(s.passed).tolist())
    for r, arm in enumerate(s.matching.matched_arm.tolist()):
        if arm < 0:
            assert not _challengers(s, r), "a free right node that an outsider reaches"
            continue
        bound = (-s.bounds.weight[r], s.bounds.arm[r])
        assert all(bound <= (-weight[c], c) for c in _challengers(s, r))
        assert (-weight[arm], arm) <= bound or bound[0] == np.inf or arm in passed


def _challengers(s: Challengers, start: int) -> set[int]:
    """All outsiders that could replace the arm matched to `start`, by walking every edge backwards."""
    reached, waiting = {start}, [start]
    found: set[int] = set()
    while waiting:
        r = waiting.pop()
        for arm in s.best.arm_in[s.best.first_slot[r] : s.best.first_slot[r + 1]].tolist():
            node = int(s.matching.matched_node[arm]) if arm >= 0 else ABSENT
            if node == OUTSIDER:
                found.add(arm)
            elif node >= 0 and node not in reached:
                reached.add(node)
                waiting.append(node)
    return found


# -- greedy ---------------------------------------------------------------------------------------------------------


def check_greedy(s: KeptGreedy, absent: npt.NDArray[np.bool_]) -> None:
    """Assert matching, answer and order. O(K + edges)."""
    matched = np.flatnonzero(s.matched_arm >= 0)
    base, n_right = s.matched_arm[matched], len(s.matched_arm)
    assert np.array_equal(s.matched_node[base], matched) and (s.matched_node >= 0).sum() == len(base)
    assert np.array_equal(s.matched_node == ABSENT, absent)
    assert len(base) == s.size[N_BASE] <= s.size[MOST] <= len(s.answer.listed)
    assert np.array_equal(arms_in(s.answer), np.sort(base))
    assert np.array_equal(_bits(s.free[None], n_right)[0], s.matched_arm < 0)
    rows = _bits(s.ahead, n_right)
    for r in matched:
        near = s.edge[s.indptr[s.matched_arm[r]] : s.indptr[s.matched_arm[r] + 1], RIGHT]
        assert r in near and np.array_equal(np.flatnonzero(rows[r]), np.sort(near))
    if not s.stale[0]:
        _check_outsiders(s)


def _check_outsiders(s: KeptGreedy) -> None:
    """Every outsider but the loops has an entry with its weight, and every other entry is counted as loose."""
    check_lazy_order(s.order)
    check_front(s.order, s.front)
    weight = s.recs[:, ALPHA] + s.lam[0] * s.recs[:, BETA]
    places, behind = places_of(s.front), slice(int(s.order.at[FRONT]), int(s.order.at[END]))
    arms = np.concatenate((arms_of(s.front, places), s.order.arm[behind]))
    written = np.concatenate((weights_of(s.front, places), s.order.weight[behind]))
    waits = (s.matched_node == OUTSIDER) & (np.diff(s.indptr) > 0)
    counts = (written == weight[arms]) & waits[arms]
    assert np.array_equal(np.unique(arms[counts]), np.flatnonzero(waits))
    assert np.array_equal(np.bincount(arms, minlength=len(waits)), waits + s.order.loose)
