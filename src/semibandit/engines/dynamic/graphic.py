"""Dynamic maximum-weight base of a graphic matroid: a fully dynamic maximum spanning forest."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from semibandit._records import FloatArray, IntArray
from semibandit.engines.dynamic._chord_forest import chord_step, lay_out
from semibandit.engines.dynamic._chords import pool_size
from semibandit.engines.dynamic._forest import CHANGED, CHORDS, GO_ON, climb, set_many, set_one
from semibandit.engines.dynamic._sparsify import (
    crown,
    interleave,
    number_vertices,
    root_forests,
    seat_edges,
    split,
)
from semibandit.engines.dynamic.base import DynamicBase
from semibandit.matroids import Graphic
from semibandit.matroids.base import heaviest_first


class DynamicGraphic(DynamicBase):
    matroid: Graphic
    _rebuild_share = 0.05

    def __init__(
        self, matroid: Graphic, weights: Any, *, spread: int = 4, chords_from: int = 1 << 14, chunk: int | None = None
    ) -> None:
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
        verts, self._ends, self._widths = number_vertices(self._nodes, tail[one], head[one], matroid.n_vertices)
        self._verts = verts
        self._chords_from, self._chunk = chords_from, chunk
        super().__init__(matroid, weights)

    def _build(self) -> None:
        members, start = self._parallel
        arms, win, champion = crown(members, start, self._weight, self.n_arms)
        order = heaviest_first(self._weight)
        edge = arms[order, 0]
        ordered = edge[(edge >= 0) & (champion[edge] == order)]
        self._verts[:, 1:3] = -1
        seats, base, load = seat_edges(
            ordered, champion, self._nodes, self._ends, self._verts, self.matroid.rank
        )
        root_forests(seats, self._verts)
        big = np.flatnonzero(self._widths >= self._chords_from)
        heads = np.zeros((big.size, 6), dtype=np.int64)
        n_keys = 0
        total = 2 * (seats.shape[0] + big.size) if big.size else 0
        for k, z in enumerate(big):
            length = 2 * int(load[z]) + 2
            q = self._chunk or max(16, int(3.0 * length ** 0.5))
            cap = 2 * length // q + 10
            heads[k] = q, cap, total, 0, seats.shape[0] + k, n_keys
            n_keys += 4 * cap * cap
            total += pool_size(q, cap)
        seats = np.concatenate((seats, np.full((big.size, 8), -1, dtype=np.int32)))
        self._lanes = arms, win
        self._trees = seats, self._verts
        self._chords = heads, np.full(total, -1, dtype=np.int32), np.zeros(n_keys)
        self._work = np.empty(2 * int(self._widths.max()), dtype=np.int64), base
        self._task = np.zeros(6, dtype=np.int64)
        for k, z in enumerate(big):
            first = int(self._nodes[z, 6])
            lay_out(k, first, first + int(self._widths[z]), seats, self._verts, self._weight, *self._chords)

    def _set_weight(self, arm: int, weight: float) -> None:
        state = set_one(arm, weight, self._weight, *self._lanes, self._task, self._trees, self._work)
        while state == CHORDS:
            state = chord_step(self._task, self._weight, *self._trees, *self._chords, self._work[1])
            if state == GO_ON:
                state = climb(self._task, self._weight, *self._trees, *self._work)
        if state == CHANGED:
            self._exchanged(1)

    def _apply(self, arms: IntArray, weights: FloatArray) -> None:
        if len(self._chords[0]):
            for arm, weight in zip(arms.tolist(), weights.tolist(), strict=True):
                self._set_weight(arm, weight)
            return
        args = (self._weight, *self._lanes, self._task, self._trees, self._work)
        self._exchanged(set_many(arms, weights, *args))

    def _members(self) -> IntArray:
        return self._work[1]

    def memory(self) -> int:
        """Bytes held. O(1)."""
        held: list[npt.NDArray[Any]] = [self._weight, *self._lanes, *self._trees, *self._chords, *self._work]
        held += [self._nodes, self._ends, self._widths, *self._parallel]
        return sum(array.nbytes for array in held)

    def _check(self) -> None:
        self._check_base()
