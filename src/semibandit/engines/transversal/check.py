"""Invariants of `ChallengerArrays`, for tests."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from semibandit.arms import ALPHA, BETA
from semibandit.engines.transversal.matching import (
    ABSENT,
    AHEAD,
    BOUND,
    BOUND_ARM,
    CAME,
    CROWDED,
    DEAD,
    FREE,
    IN_CAME,
    IN_PASSED,
    IN_RISEN,
    IN_SORTED,
    MATE,
    N_BASE,
    N_CAME,
    N_PASSED,
    N_RISEN,
    N_SORTED,
    ORDER,
    OUTSIDER,
    PASSED,
    RELIST,
    RISEN,
    SORTED,
    STALE,
    ChallengerArrays,
)
from semibandit.engines.transversal.tops import FIRST_SLOT, RIGHT, check_tops


def _bits(rows: npt.NDArray[np.int64], n: int) -> npt.NDArray[np.bool_]:
    """The sets in `rows` as a matrix of truth values with n columns."""
    little = np.ascontiguousarray(rows, dtype="<i8").view(np.uint8).reshape(len(rows), -1)
    return np.unpackbits(little, axis=1, bitorder="little")[:, :n].astype(np.bool_)


def _challengers(s: ChallengerArrays, start: int) -> set[int]:
    """All outsiders that could replace the arm matched to `start`, by walking every edge backwards."""
    reached, waiting = {start}, [start]
    found: set[int] = set()
    while waiting:
        r = waiting.pop()
        for arm in s.arm_of[s.first[FIRST_SLOT, r] : s.first[FIRST_SLOT, r + 1]].tolist():
            host = int(s.host[arm]) if arm >= 0 else ABSENT
            if host == OUTSIDER:
                found.add(arm)
            elif host >= 0 and host not in reached:
                reached.add(host)
                waiting.append(host)
    return found


def check_challenger(s: ChallengerArrays, absent: npt.NDArray[np.bool_]) -> None:
    """Assert matching, rows, lists, tournaments and bounds. O(D * edges)."""
    n_right = len(s.right)
    mate = s.right[:, MATE]
    matched = np.flatnonzero(mate >= 0)
    base = mate[matched]
    assert len(np.unique(base)) == len(base) == s.meta[N_BASE]
    assert np.array_equal(s.host[base], matched) and (s.host >= 0).sum() == len(base)
    assert np.array_equal(s.host == ABSENT, absent)
    assert np.array_equal(np.sort(s.lists[ORDER]), np.arange(n_right))
    ahead = np.zeros((n_right, n_right), dtype=np.bool_)
    for r in matched:
        near = s.edge[s.indptr[mate[r]] : s.indptr[mate[r] + 1], RIGHT]
        assert r in near
        ahead[r, near] = True
    assert np.array_equal(_bits(s.bits[AHEAD : AHEAD + n_right], n_right), ahead)
    assert np.array_equal(_bits(s.bits[AHEAD + n_right :], n_right), ahead.T)
    masks = _bits(s.bits[:AHEAD], n_right)
    assert np.array_equal(masks[FREE], mate < 0) and not masks[DEAD].any()
    rows = (
        (SORTED, IN_SORTED, N_SORTED),
        (CAME, IN_CAME, N_CAME),
        (PASSED, IN_PASSED, N_PASSED),
    )
    for row, bit, count in (*rows, (RISEN, IN_RISEN, N_RISEN)):
        assert np.array_equal(np.flatnonzero(s.flag & bit), np.sort(s.lists[row, : s.meta[count]]))
    listed = s.lists[SORTED, : s.meta[N_SORTED]]
    assert (np.diff(listed) > 0).all()
    if not s.meta[RELIST]:
        assert np.isin(base, np.concatenate((listed, s.lists[CAME, : s.meta[N_CAME]]))).all()
    if s.meta[STALE]:
        return
    weight = s.recs[:, ALPHA] + s.lam[0] * s.recs[:, BETA]
    outside = (s.arm_of >= 0) & (s.host[s.arm_of] == OUTSIDER)
    assert np.array_equal(s.leaf, np.where(outside, weight[s.arm_of], -np.inf))
    check_tops(s.first, s.leaf, s.node_weight, s.node_slot)
    if s.meta[CROWDED] or s.meta[N_RISEN]:
        return
    passed = set(s.lists[PASSED, : s.meta[N_PASSED]].tolist())
    for r in matched:
        bound = (-s.weights[BOUND, r], s.right[r, BOUND_ARM])
        arm = int(mate[r])
        assert all(bound <= (-weight[c], c) for c in _challengers(s, int(r)))
        assert (-weight[arm], arm) <= bound or bound[0] == np.inf or arm in passed
    for r in np.flatnonzero(mate < 0):
        assert not _challengers(s, int(r)), "a free right node that an outsider reaches"
