"""What greedy from the last base on keeps: declared once, by name, and made here."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from semibandit.arms import FloatArray, IntArray
from semibandit.compiled.handle import Flags1, Floats1, Floats2, Ints1, Ints2, Shorts1, Shorts2, opener
from semibandit.engines.answer import Answer, new_answer
from semibandit.engines.order.chunks import Chunks, new_chunks
from semibandit.engines.order.lazy import LazyOrder, new_lazy_order
from semibandit.engines.transversal.bits import all_of, empty_sets
from semibandit.engines.transversal.state import OUTSIDER, RIGHT, Challengers
from semibandit.matroids import Transversal


class Doubt(NamedTuple):
    """Weights of base arms by right node, and those arms that are in doubt, in any order. Scratch of a round."""

    weight: Floats1
    arm: Ints1


class Steps(NamedTuple):
    """Scratch of searches: right nodes `reached`, those of them that are `waiting`; the right node of each step and the
    set of `new` ones reached from there."""

    reached: Ints1
    waiting: Ints1
    node: Ints1
    new: Ints2


class KeptGreedy(NamedTuple):
    """The base, each arm matched to a right node, and the outsiders in order.

    Sets of right nodes are rows of bits, two words at least. `near` has two words for each arm, the bits r mod 128 of
    the right nodes next to it: an arm none of whose bits is that of a right node alive need not be looked at.

    `matched_node` by arm (or OUTSIDER, ABSENT), `matched_arm` by right node (or -1), `ahead` the right nodes next to
    that arm, `free` those without one, `dead` those from which none of these can be reached (scratch). `size` is the
    number of base arms and how many there can be at most. Not to be trusted any more: `stale[0]`, the order of the
    outsiders. `lam[0]` is the query of its weights.
    """

    recs: Floats2
    indptr: Ints1
    edge: Shorts2
    near: Ints2
    order: LazyOrder
    front: Chunks
    matched_node: Shorts1
    matched_arm: Ints1
    ahead: Ints2
    free: Ints1
    dead: Ints1
    search: Steps
    doubt: Doubt
    answer: Answer
    size: Ints1
    stale: Flags1
    lam: Floats1


# Entries of `size`; N_NEW: how many arms came in the last round, LOOKED: how many were looked at.
N_BASE, MOST, N_NEW, LOOKED = range(4)

open_greedy = opener(KeptGreedy)


def new_kept_greedy(matroid: Transversal, recs: FloatArray, challengers: Challengers) -> KeptGreedy:
    """A state whose base is still to be found, over the same edges as `challengers`. O(K + n_right^2 / 64)."""
    n_arms, n_right = matroid.n_arms, matroid.n_right
    n_bits = max(n_right, 65)  # two words at least
    near = _near(challengers)
    return KeptGreedy(
        recs=recs,
        indptr=challengers.indptr,
        edge=challengers.edge,
        near=near,
        order=new_lazy_order(n_arms, n_right),
        front=new_chunks(near, n_right),
        matched_node=np.full(n_arms, OUTSIDER, dtype=np.int32),
        matched_arm=np.full(n_right, -1, dtype=np.int64),
        ahead=empty_sets(n_right, n_bits),
        free=np.append(all_of(n_right), 0)[: (n_bits + 63) >> 6],
        dead=empty_sets(1, n_bits)[0],
        search=Steps(
            reached=empty_sets(1, n_bits)[0],
            waiting=empty_sets(1, n_bits)[0],
            node=np.zeros(n_right, dtype=np.int64),
            new=empty_sets(n_right, n_bits),
        ),
        doubt=Doubt(np.zeros(n_right), np.zeros(n_right, dtype=np.int64)),
        answer=new_answer(matroid.rank),
        size=np.array([0, matroid.rank, 0, 0], dtype=np.int64),
        stale=np.ones(1, dtype=np.bool_),
        lam=np.zeros(1),
    )


def _near(challengers: Challengers) -> IntArray:
    """`near` of a `KeptGreedy`. O(K + edges)."""
    n_arms = len(challengers.indptr) - 1
    arm = np.repeat(np.arange(n_arms), np.diff(challengers.indptr))
    node = challengers.edge[:, RIGHT].astype(np.int64)
    words = np.zeros(2 * n_arms, dtype=np.int64)
    np.bitwise_or.at(words, 2 * arm + (node >> 6) % 2, np.int64(1) << (node & 63))
    return words.reshape(n_arms, 2)
