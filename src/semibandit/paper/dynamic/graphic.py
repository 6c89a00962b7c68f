"""Dynamic maximum-weight base of a graphic matroid: a fully dynamic maximum spanning forest.

The paper cites O(sqrt K) worst case and polylogarithmic amortised time an update. The engines for graphic matroids
(`engines.graphic`) promise neither: a change of one weight may cost them O(K). Hence this structure of its own.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from semibandit.arms import FloatArray, IntArray
from semibandit.compiled.handle import by_handle, make_handle
from semibandit.engines.base import bytes_of
from semibandit.errors import ParameterError
from semibandit.matroids import Graphic
from semibandit.matroids.base import heaviest_first
from semibandit.paper.dynamic.base import ExchangedBase
from semibandit.paper.dynamic.check_forest import check_diagram, check_graphs, check_lists, check_pointers
from semibandit.paper.dynamic.chord_forest import chord_step, lay_out
from semibandit.paper.dynamic.chords import Diagram, new_diagram
from semibandit.paper.dynamic.forest import CHANGED, CHORDS, GO_ON, TIRED, climb, set_many, set_one
from semibandit.paper.dynamic.seats import (
    ALLOWANCE,
    ARM,
    DIAGRAM,
    EXCESS,
    LIMIT,
    LOOSE,
    SEAT,
    TASK_ENTRIES,
    TOP,
    UP,
    Forests,
)
from semibandit.paper.dynamic.sparsify import VERT, hold_tournaments, interleave, plant_tree, seat_edges

# Measured: an update of a chord diagram costs as much as 6 to 20 sqrt(V) log2(V) steps of walking (ladders, random
# graphs), chunks of 4 sqrt(2 m) half-edges are best, and graphs of fewer vertices than _CHORDS_FROM never gain.
_STEPS_OF_CHORDS = 12.0
_CHUNK = 4.0
_CHORDS_FROM = 8192


class DynamicGraphic(ExchangedBase):
    """Exact dynamic base of a graphic matroid; loops, parallel edges and disconnected graphs are welcome.

    A sparsification tree (module `sparsify`) splits the edges over graphs on V, V/2, V/4, ... vertices, so that
    a change costs O(log K) for parallel edges and one repair in each of O(log V) graphs, the largest of which
    has O(V) edges however large K is; most changes stop in a small one. Two ways to repair a graph's forest:

    - walking (`walk`): parent pointers, search on the smaller side of the cut. O(n) worst case on n vertices,
      so O(V + log K) an update; as a rule far less, because paths and smaller sides are short.
    - chord diagrams (`chords`): O(sqrt(n) log n) expected whatever the graph, so O(sqrt(V) log V + log K) an
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
        self._tree = plant_tree(tail[one], head[one], code[first], matroid.n_vertices, spread)
        self._mode, self._chords_from, self._chunk = chords, chords_from, chunk
        super().__init__(matroid, weights)

    def _build(self) -> None:
        members, start = self._parallel
        arms, champions, champion = hold_tournaments(members, start, self._weight)
        order = heaviest_first(self._weight)
        edge = arms[order, SEAT]
        ordered = edge[(edge >= 0) & (champion[edge] == order)]
        seats, base, self._load = seat_edges(self._tree, ordered, champion, self.matroid.rank)
        widest = int(self._tree.widths.max())
        queue = np.empty(2 * widest, dtype=np.int64)
        task = np.zeros(TASK_ENTRIES, dtype=np.int64)
        n = max(int(self._tree.widths[0]), 2)
        task[ALLOWANCE] = int(_STEPS_OF_CHORDS * n**0.5 * np.log2(n)) + 64
        task[LIMIT] = 8 * len(seats) if self._mode == "auto" else np.iinfo(np.int64).max
        self._n_seats = len(seats)
        self._run_on(Forests(self._weight, arms, champions, seats, self._tree.verts, base, queue, task))
        self._diagrams: list[Diagram] = []
        self._diagram_handles: list[IntArray] = []
        if self._mode == "always":
            self._draw_chords()

    def _run_on(self, state: Forests) -> None:
        self._state, self._handle = state, make_handle(state)
        self._enter = by_handle(set_one, Forests).entry

    def _draw_chords(self) -> None:
        """Go over from walking to chord diagrams in all large graphs. O(K)."""
        self._mode = "always"
        self._state.task[LIMIT] = np.iinfo(np.int64).max
        big = np.flatnonzero(self._tree.widths >= self._chords_from)
        if not big.size:
            return
        columns = self._state.seats.shape[1]
        spare = np.full((big.size, columns), -1, dtype=np.int32)
        self._run_on(self._state._replace(seats=np.concatenate((self._state.seats, spare))))
        where = np.full(2 * (self._n_seats + big.size), -1, dtype=np.int32)
        for k, z in enumerate(big):
            length = 2 * int(self._load[z]) + 2
            chunk = self._chunk or max(16, int(_CHUNK * length**0.5))
            self._diagrams.append(new_diagram(where, length, chunk, self._n_seats + k))
            self._diagram_handles.append(make_handle(self._diagrams[-1]))
            scratch = np.empty((3, int(self._tree.widths[z])), dtype=np.int64)
            first = int(self._tree.nodes[z, VERT])
            by_handle(lay_out, Forests, Diagram)(self._handle, self._diagram_handles[-1], k, first, scratch)

    def _set_weight(self, arm: int, weight: float) -> None:
        state = int(self._enter(self._handle, arm, weight))
        while state == CHORDS:
            drawn = self._diagram_handles[self._state.task[DIAGRAM]]
            state = int(by_handle(chord_step, Forests, Diagram)(self._handle, drawn))
            if state == GO_ON:
                state = int(by_handle(climb, Forests)(self._handle))
        if state:
            self._exchanged(state & CHANGED)
            if state >= TIRED:
                self._draw_chords()

    def _apply(self, arms: IntArray, weights: FloatArray) -> None:
        done, changes = 0, np.zeros(1, dtype=np.int64)
        while done < arms.size and not self._diagrams:
            done = int(by_handle(set_many, Forests)(self._handle, done, arms, weights, changes))
            if self._state.task[EXCESS] > self._state.task[LIMIT]:
                self._draw_chords()
        self._exchanged(int(changes[0]))
        for arm, weight in zip(arms[done:].tolist(), weights[done:].tolist(), strict=True):
            self._set_weight(arm, weight)

    def _members(self) -> IntArray:
        return self._state.base

    def memory(self) -> int:
        """Bytes held. O(diagrams)."""
        # The vertex table is in tree and state, `where` in every diagram.
        drawn = sum(bytes_of(d) - d.where.nbytes for d in self._diagrams)
        where = self._diagrams[0].where.nbytes if self._diagrams else 0
        held = bytes_of(self._state) + bytes_of(self._tree) - self._tree.verts.nbytes
        return int(held + drawn + where + bytes_of(self._parallel) + self._load.nbytes)

    def _check(self) -> None:
        self._check_base()
        seats, verts, nodes = self._state.seats, self._state.verts, self._tree.nodes
        members, start = self._parallel
        for e in range(start.size - 1):
            arms = members[start[e] : start[e + 1]]
            assert seats[e, ARM] == min(arms, key=lambda k: (-self._weight[k], k))
            assert (self._state.arms[arms, SEAT] == e).all()
        check_lists(seats, verts, self._n_seats)
        graphs = check_graphs(seats, verts, nodes, self._n_seats, self._weight)
        for s in np.flatnonzero(seats[: self._n_seats, UP] < LOOSE):
            assert self._state.base[-2 - seats[s, UP]] == seats[s, ARM]
        for z, held in enumerate(graphs):
            assert len(held) == self._load[z]
            k = -2 - int(verts[nodes[z, VERT], TOP])
            if k < 0:
                check_pointers(seats, verts, held)
            else:
                check_diagram(self._diagrams[k], seats, held, self._weight)
