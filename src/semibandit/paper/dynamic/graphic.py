"""Dynamic maximum-weight base of a graphic matroid: a fully dynamic maximum spanning forest."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from semibandit.arms import FloatArray, IntArray
from semibandit.errors import ParameterError
from semibandit.matroids import Graphic
from semibandit.matroids.base import heaviest_first
from semibandit.paper.dynamic.base import DynamicBase
from semibandit.paper.dynamic.check_forest import check_diagram, check_graphs, check_lists, check_pointers
from semibandit.paper.dynamic.chord_forest import chord_step, lay_out
from semibandit.paper.dynamic.chords import pool_size
from semibandit.paper.dynamic.forest import (
    ALLOWANCE,
    CHANGED,
    CHORDS,
    EXCESS,
    GO_ON,
    LIMIT,
    TASK,
    TIRED,
    climb,
    set_many,
    set_one,
)
from semibandit.paper.dynamic.seats import ARM, LOOSE, MARK, SEAT, TOP, UP
from semibandit.paper.dynamic.sparsify import (
    VERT,
    crown,
    interleave,
    number_vertices,
    root_forests,
    seat_edges,
    split,
)

# Measured: an update of a chord diagram costs as much as 6 to 20 sqrt(V) log2(V) steps of walking (ladders, random
# graphs), chunks of 4 sqrt(2 m) half-edges are best, and graphs of fewer vertices than _CHORDS_FROM never gain.
_STEPS_OF_CHORDS = 12.0
_CHUNK = 4.0
_CHORDS_FROM = 8192


class DynamicGraphic(DynamicBase):
    """Exact dynamic base of a graphic matroid; loops, parallel edges and disconnected graphs are welcome.

    A sparsification tree (module `_sparsify`) splits the edges over graphs on V, V/2, V/4, ... vertices, so that
    a change costs O(log K) for parallel edges and one repair in each of O(log V) graphs, the largest of which
    has O(V) edges however large K is; most changes stop in a small one. Two ways to repair a graph's forest:

    - walking (`_walk`): parent pointers, search on the smaller side of the cut. O(n) worst case on n vertices,
      so O(V + log K) an update; as a rule far less, because paths and smaller sides are short.
    - chord diagrams (`_chords`): O(sqrt(n) log n) expected whatever the graph, so O(sqrt(V) log V + log K) an
      update, which is O(sqrt(K) log K); but with a large constant.

    By default forests are walked until steps beyond the cost of chord diagrams add up to the cost of drawing
    them; then they are drawn. So a sequence of updates costs O(sqrt(V) log V + log K) each, amortised over
    construction, and short forests are never slowed down. Building costs O(K log K); memory is O(K) for dense
    and for sparse graphs (some 100 bytes an edge), O(K log V) at worst.

    Parameters
    ----------
    matroid, weights
        As in `DynamicBase`.
    chords
        "auto" as above; "always" for chord diagrams from the start; "never" for walking only.
    chords_from
        Graphs of fewer vertices than this are walked in any case.
    spread, chunk
        Edges per vertex at which a graph of the tree is split, and half-edges in a chunk. For tests.

    Examples
    --------
    >>> from semibandit.paper.dynamic.graphic import DynamicGraphic
    >>> from semibandit.matroids import Graphic
    >>> best = DynamicGraphic(Graphic([(0, 1), (1, 2), (0, 2)]), [3.0, 2.0, 1.0])
    >>> best.set_weight(0, 0.5)
    >>> best.base()
    array([1, 2])
    """

    matroid: Graphic
    _rebuild_share = 0.05

    def __init__(
        self,
        matroid: Graphic,
        weights: Any,
        *,
        chords: str = "auto",
        chords_from: int = _CHORDS_FROM,
        spread: int = 4,
        chunk: int | None = None,
    ) -> None:
        if chords not in ("auto", "always", "never"):
            raise ParameterError(f'chords = {chords!r}: need "auto", "always" or "never"')
        tail, head = np.minimum(matroid._tail, matroid._head), np.maximum(matroid._tail, matroid._head)
        edges = np.flatnonzero(tail != head)
        code = interleave(tail[edges], head[edges])
        order = np.argsort(code, kind="stable")
        code = code[order]
        first = np.flatnonzero(np.diff(code, prepend=-1))
        self._parallel = edges[order], np.append(first, code.size)
        one = edges[order[first]]
        bits = int(matroid.n_vertices - 1).bit_length()
        self._nodes: IntArray = split(code[first], bits, spread)
        numbered = number_vertices(self._nodes, tail[one], head[one], matroid.n_vertices)
        self._verts, self._ends, self._widths = numbered
        self._mode, self._chords_from, self._chunk = chords, chords_from, chunk
        super().__init__(matroid, weights)

    def _build(self) -> None:
        members, start = self._parallel
        self._arms, self._win, champion = crown(members, start, self._weight, self.n_arms)
        order = heaviest_first(self._weight)
        edge = self._arms[order, SEAT]
        ordered = edge[(edge >= 0) & (champion[edge] == order)]
        self._verts[:, 1:] = -1
        self._verts[:, MARK] = 0
        seated = seat_edges(ordered, champion, self._nodes, self._ends, self._verts, self.matroid.rank)
        self._seats, base, self._load = seated
        root_forests(self._seats, self._verts)
        self._work = np.empty(2 * int(self._widths.max()), dtype=np.int64), base
        self._task = np.zeros(TASK, dtype=np.int64)
        n = max(int(self._widths[0]), 2)
        self._task[ALLOWANCE] = int(_STEPS_OF_CHORDS * n**0.5 * np.log2(n)) + 64
        self._chords: tuple[IntArray, npt.NDArray[np.int32], FloatArray] | None = None
        if self._mode == "always":
            self._draw_chords()
        else:
            self._task[LIMIT] = 8 * len(self._seats) if self._mode == "auto" else np.iinfo(np.int64).max

    def _draw_chords(self) -> None:
        """Go over from walking to chord diagrams in all large graphs. O(K)."""
        self._mode = "always"
        self._task[LIMIT] = np.iinfo(np.int64).max
        big = np.flatnonzero(self._widths >= self._chords_from)
        if not big.size:
            return
        n_seats = self._seats.shape[0]
        heads = np.zeros((big.size, 6), dtype=np.int64)
        pool = 2 * (n_seats + big.size)
        keys = 0
        for k, z in enumerate(big):
            length = 2 * int(self._load[z]) + 2
            q = self._chunk or max(16, int(_CHUNK * length**0.5))
            cap = 2 * length // q + 10
            heads[k] = q, cap, pool, 0, n_seats + k, keys
            pool += pool_size(q, cap)
            keys += 4 * cap * cap
        spare = np.full((big.size, self._seats.shape[1]), -1, dtype=np.int32)
        self._seats = np.concatenate((self._seats, spare))
        self._chords = heads, np.full(pool, -1, dtype=np.int32), np.zeros(keys)
        for k, z in enumerate(big):
            first = int(self._nodes[z, VERT])
            end = first + int(self._widths[z])
            lay_out(k, first, end, self._seats, self._verts, self._weight, *self._chords)

    def _set_weight(self, arm: int, weight: float) -> None:
        trees = self._seats, self._verts
        state = set_one(arm, weight, self._weight, self._arms, self._win, self._task, trees, self._work)
        while state == CHORDS:
            assert self._chords is not None
            state = chord_step(self._task, self._weight, *trees, *self._chords, self._work[1])
            if state == GO_ON:
                state = climb(self._task, self._weight, *trees, *self._work)
        if state:
            self._exchanged(state & CHANGED)
            if state >= TIRED:
                self._draw_chords()

    def _apply(self, arms: IntArray, weights: FloatArray) -> None:
        done = 0
        while done < arms.size and self._chords is None:
            args = (self._weight, self._arms, self._win, self._task, (self._seats, self._verts), self._work)
            done, count = set_many(done, arms, weights, *args)
            self._exchanged(count)
            if self._task[EXCESS] > self._task[LIMIT]:
                self._draw_chords()
        for arm, weight in zip(arms[done:].tolist(), weights[done:].tolist(), strict=True):
            self._set_weight(arm, weight)

    def _members(self) -> IntArray:
        return self._work[1]

    def memory(self) -> int:
        """Bytes held. O(1)."""
        held: list[npt.NDArray[Any]] = [self._weight, self._arms, self._win, self._seats, self._verts]
        held += [self._nodes, self._ends, self._widths, self._load, self._task, *self._parallel, *self._work]
        return sum(array.nbytes for array in [*held, *(self._chords or ())])

    def _check(self) -> None:
        self._check_base()
        seats, verts = self._seats, self._verts
        n_seats = len(seats) - (len(self._chords[0]) if self._chords else 0)
        members, start = self._parallel
        for e in range(start.size - 1):
            arms = members[start[e] : start[e + 1]]
            assert seats[e, ARM] == min(arms, key=lambda k: (-self._weight[k], k))
            assert (self._arms[arms, SEAT] == e).all()
        check_lists(seats, verts, n_seats)
        graphs = check_graphs(seats, verts, self._nodes, n_seats, self._weight)
        for s in np.flatnonzero(seats[:n_seats, UP] < LOOSE):
            assert self._work[1][-2 - seats[s, UP]] == seats[s, ARM]
        for z, held in enumerate(graphs):
            assert len(held) == self._load[z]
            k = -2 - int(verts[self._nodes[z, VERT], TOP])
            if k < 0:
                check_pointers(seats, verts, held)
            else:
                check_diagram(k, seats, held, self._weight, self._chords)
