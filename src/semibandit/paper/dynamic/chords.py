"""A spanning forest as a chord diagram: both searches of the dynamic forest in O(sqrt(m) log m).

Walk around the forest and write down every half-edge where it is met: a forest edge when it is walked (once in
each direction), any other edge at both its ends. In this sequence of 2 m half-edges each edge is a chord, and

- a loose edge joins the two parts that a forest edge leaves when cut, exactly if the two chords interlace;
- a forest edge is on the path between the ends of a loose edge, exactly if the two chords interlace;
- to exchange two such edges is to swap the second and the fourth of the five blocks that the four half-edges
  (each the last of its block) divide the sequence into: X0 X1 X2 X3 X4 becomes X0 X3 X2 X1 X4.

So both searches are one: the best chord of the other kind that interlaces a given one. The sequence is kept in
CHUNKS of at most q half-edges, q of the order of sqrt(m). Cell (kind, 0, i, j) is the best chord of a kind (0: heaviest
loose, 1: lightest in the forest) between chunks i and j. A search tree over the chunks in their order (a treap
whose priorities are hashed chunk ids) keeps in the cells (kind, 1, i, .) the best of the rows below node i. An
exchange splits at most four chunks, merges what has become small, and recomputes the cells of O(log m) expected
nodes. Cells hold the seat and, so that comparing them is one step, its KEY: the weight, negated for the forest.

A graph's state is a tuple of views into two pools (`view`); `where[h]` is the place of half-edge h, as chunk * q +
index. One spare seat a graph holds an edge that is about to replace another. This module moves half-edges and
marks the chunks concerned as dirty; `_chord_cells` makes cells and search tree follow, and searches.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from semibandit.compiled.jit import njit

Q, CAP, START, LIVE, SPARE, KEYS = 0, 1, 2, 3, 4, 5  # columns of the table of graphs
LINES = 11  # arrays of one entry a chunk in a graph's state


def pool_size(q: int, cap: int) -> int:
    """Words of the integer pool that a graph with `cap` chunks of `q` takes. O(1)."""
    return cap * q + LINES * cap + 4 * cap * cap


@njit
def view(k: int, heads: Any, pool: Any, keys: Any) -> Any:
    """The state of graph k: (k, heads, where, buf, line, cells, keys of the cells). O(1).

    The rows of `line` are COUNT, ORDER (live chunks in sequence, then the free ones), RANK (place in ORDER, -1
    if free), LEFT, RIGHT (children in the search tree), DIRTY, and scratch.
    """
    q = heads[k, Q]
    cap = heads[k, CAP]
    a = heads[k, START]
    b = a + cap * q
    c = b + LINES * cap
    size = 4 * cap * cap
    buf = pool[a:b].reshape((cap, q))
    line = pool[b:c].reshape((LINES, cap))
    cells = pool[c : c + size].reshape((2, 2, cap, cap))
    key = keys[heads[k, KEYS] : heads[k, KEYS] + size].reshape((2, 2, cap, cap))
    return k, heads, pool[: heads[0, START]], buf, line, cells, key


COUNT, ORDER, RANK, LEFT, RIGHT, DIRTY, SCRATCH = 0, 1, 2, 3, 4, 5, 6


@njit
def touch(seat: int, graph: Any) -> None:
    """Note that a chord's weight or kind has changed. O(1)."""
    _, _, where, buf, line, _, _ = graph
    line[DIRTY, where[2 * seat] // buf.shape[1]] = 1


@njit
def _open_after(rank: int, graph: Any) -> Any:
    """Take a free chunk into the order behind the chunk of this rank. O(chunks)."""
    k, heads, _, _, line, _, _ = graph
    live = heads[k, LIVE]
    chunk = np.int64(line[ORDER, live])
    for r in range(live, rank + 1, -1):
        c = line[ORDER, r - 1]
        line[ORDER, r] = c
        line[RANK, c] = r
    line[ORDER, rank + 1] = chunk
    line[RANK, chunk] = rank + 1
    line[COUNT, chunk] = 0
    heads[k, LIVE] = live + 1
    return chunk


@njit
def _close(chunk: int, graph: Any) -> None:
    """Give an empty chunk back. O(chunks)."""
    k, heads, _, _, line, _, _ = graph
    live = heads[k, LIVE] - 1
    for r in range(line[RANK, chunk], live):
        c = line[ORDER, r + 1]
        line[ORDER, r] = c
        line[RANK, c] = r
    line[ORDER, live] = chunk
    line[RANK, chunk] = -1
    line[COUNT, chunk] = 0
    line[DIRTY, chunk] = 1
    heads[k, LIVE] = live


@njit
def _split(chunk: int, index: int, graph: Any) -> None:
    """Let a new chunk begin at this index of a chunk. O(q + chunks)."""
    _, _, where, buf, line, _, _ = graph
    q = buf.shape[1]
    size = line[COUNT, chunk]
    if index == size:
        return
    new = _open_after(line[RANK, chunk], graph)
    for i in range(index, size):
        h = buf[chunk, i]
        buf[new, i - index] = h
        where[h] = new * q + i - index
    line[COUNT, new] = size - index
    line[COUNT, chunk] = index
    line[DIRTY, chunk] = 1
    line[DIRTY, new] = 1


@njit
def merge_small(graph: Any) -> None:
    """Join neighbours that fit in one chunk. O(chunks + half-edges moved)."""
    k, heads, where, buf, line, _, _ = graph
    q = buf.shape[1]
    r = 0
    while r + 1 < heads[k, LIVE]:
        a = line[ORDER, r]
        b = np.int64(line[ORDER, r + 1])
        size = line[COUNT, a]
        more = line[COUNT, b]
        if size + more > q:
            r += 1
            continue
        for i in range(more):
            h = buf[b, i]
            buf[a, size + i] = h
            where[h] = a * q + size + i
        line[COUNT, a] = size + more
        line[DIRTY, a] = 1
        _close(b, graph)


@njit
def _insert(half_edge: int, before: int, graph: Any) -> None:
    """Put a half-edge in front of another one. O(q + chunks)."""
    _, _, where, buf, line, _, _ = graph
    q = buf.shape[1]
    if line[COUNT, where[before] // q] == q:
        _split(where[before] // q, q // 2, graph)
    c = where[before] // q
    at = where[before] % q
    for i in range(line[COUNT, c], at, -1):
        h = buf[c, i - 1]
        buf[c, i] = h
        where[h] = c * q + i
    buf[c, at] = half_edge
    where[half_edge] = c * q + at
    line[COUNT, c] += 1
    line[DIRTY, c] = 1


@njit
def _remove(half_edge: int, graph: Any) -> None:
    """Take a half-edge out. O(q + chunks)."""
    _, _, where, buf, line, _, _ = graph
    q = buf.shape[1]
    c = where[half_edge] // q
    for i in range(where[half_edge] % q, line[COUNT, c] - 1):
        h = buf[c, i + 1]
        buf[c, i] = h
        where[h] = c * q + i
    line[COUNT, c] -= 1
    line[DIRTY, c] = 1
    if line[COUNT, c] == 0:
        _close(c, graph)


@njit
def insert_spare(before0: int, before1: int, graph: Any) -> None:
    """Put the spare chord in, its ends in front of two half-edges at its vertices. O(q + chunks)."""
    k, heads, _, _, _, _, _ = graph
    _insert(2 * heads[k, SPARE], before0, graph)
    _insert(2 * heads[k, SPARE] + 1, before1, graph)


@njit
def replace_by_spare(seat: int, graph: Any) -> None:
    """Take a loose chord out and let the spare one go by its name. O(q + chunks)."""
    k, heads, where, buf, line, _, _ = graph
    q = buf.shape[1]
    for i in range(2):
        _remove(2 * seat + i, graph)
    for i in range(2):
        at = where[2 * heads[k, SPARE] + i]
        buf[at // q, at % q] = 2 * seat + i
        where[2 * seat + i] = at
        line[DIRTY, at // q] = 1


@njit
def exchange(a: int, b: int, graph: Any) -> None:
    """Reorder the sequence for the exchange of two interlacing chords. O(q + chunks); `settle` must follow."""
    _, _, where, buf, line, _, _ = graph
    q = buf.shape[1]
    for i in range(4):
        h = 2 * (a if i < 2 else b) + (i & 1)
        _split(where[h] // q, where[h] % q + 1, graph)
        line[DIRTY, where[h] // q] = 1
    cuts = np.empty(4, np.int64)
    for i in range(4):
        h = 2 * (a if i < 2 else b) + (i & 1)
        r = line[RANK, where[h] // q] + 1
        j = i
        while j > 0 and cuts[j - 1] > r:
            cuts[j] = cuts[j - 1]
            j -= 1
        cuts[j] = r
    size = 0
    for block in range(2, -1, -1):
        for r in range(cuts[block], cuts[block + 1]):
            line[SCRATCH, size] = line[ORDER, r]
            size += 1
    for i in range(size):
        line[ORDER, cuts[0] + i] = line[SCRATCH, i]
        line[RANK, line[SCRATCH, i]] = cuts[0] + i
