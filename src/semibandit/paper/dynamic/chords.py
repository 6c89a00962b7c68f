"""A spanning forest as a chord diagram: both searches of the dynamic forest in O(sqrt(m) log m).

Walk around the forest and write down every half-edge where it is met: a forest edge when it is walked (once in
each direction), any other edge at both its ends. In this sequence of 2 m half-edges each edge is a chord, and

- a loose edge joins the two parts that a forest edge leaves when cut, exactly if the two chords interlace;
- a forest edge is on the path between the ends of a loose edge, exactly if the two chords interlace;
- to exchange two such edges is to swap the second and the fourth of the five blocks that the four half-edges
  (each the last of its block) divide the sequence into: X0 X1 X2 X3 X4 becomes X0 X3 X2 X1 X4.

So both searches are one: the best chord of the other kind that interlaces a given one. The sequence is kept in
CHUNKS of at most q half-edges, q of the order of sqrt(m). Cell (kind, i, j) is the best chord of a kind (0: heaviest
loose, 1: lightest in the forest) between chunks i and j. A search tree over the chunks in their order (a treap
whose priorities are hashed chunk ids) keeps in the cells (kind + BELOW, i, .) the best of the rows below node i. An
exchange splits at most four chunks, merges what has become small, and recomputes the cells of O(log m) expected
nodes. Cells hold the seat and, so that comparing them is one step, its KEY: the weight, negated for the forest.

`where[h]` is the place of half-edge h, as chunk * q + index. One spare seat a graph holds an edge that is about to
replace another. This module moves half-edges and marks the chunks concerned as dirty; `chord_cells` makes cells and
search tree follow, and searches.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np
import numpy.typing as npt

from semibandit.compiled.handle import ArrayOf, Floats3, Ints1, Shorts1, Shorts2, Whole
from semibandit.compiled.jit import inline_kernel, kernel

Shorts3 = Annotated[npt.NDArray[np.int32], ArrayOf("int32", 3)]

# The kinds of chords, and what is added to a kind for the cells of a search tree node with all below it.
LOOSE_CHORD, FOREST_CHORD = range(2)
BELOW = 2
SCRATCH_ROWS = 5


class Diagram(NamedTuple):
    """The chord diagram of one graph.

    `where` (shared by all diagrams); ``half_edges[c, : count[c]]``, the sequence in chunk c; `order`: live chunks in
    sequence, ``live[0]`` of them, then the free ones; `rank`: a chunk's place in `order`, -1 if it is free; `left`
    and `right`: children in the search tree; `dirty` chunks; `cell` and `key` as told above.
    """

    where: Shorts1
    half_edges: Shorts2
    count: Shorts1
    order: Shorts1
    rank: Shorts1
    left: Shorts1
    right: Shorts1
    dirty: Shorts1
    scratch: Shorts2
    cell: Shorts3
    key: Floats3
    live: Ints1
    spare: Whole


def new_diagram(where: npt.NDArray[np.int32], length: int, chunk: int, spare: int) -> Diagram:
    """An empty diagram for a sequence of `length` in chunks of `chunk`. O(chunks^2)."""
    cap = 2 * length // chunk + 10
    count, order, rank, left, right, dirty = (np.zeros(cap, dtype=np.int32) for _ in range(6))
    return Diagram(
        where=where,
        half_edges=np.full((cap, chunk), -1, dtype=np.int32),
        count=count,
        order=order,
        rank=rank,
        left=left,
        right=right,
        dirty=dirty,
        scratch=np.zeros((SCRATCH_ROWS, cap), dtype=np.int32),
        cell=np.full((4, cap, cap), -1, dtype=np.int32),
        key=np.zeros((4, cap, cap)),
        live=np.zeros(1, dtype=np.int64),
        spare=spare,
    )


@inline_kernel
def chunk_of(d, half_edge):
    """The chunk that holds a half-edge. O(1)."""
    return d.where[half_edge] // d.half_edges.shape[1]


@inline_kernel
def index_of(d, half_edge):
    """Where in its chunk a half-edge stands. O(1)."""
    return d.where[half_edge] % d.half_edges.shape[1]


@inline_kernel
def put(d, chunk, index, half_edge):
    """Write a half-edge at a place. O(1)."""
    d.half_edges[chunk, index] = half_edge
    d.where[half_edge] = chunk * d.half_edges.shape[1] + index


@inline_kernel
def touch(d, seat):
    """Note that a chord's weight or kind has changed. O(1)."""
    d.dirty[chunk_of(d, 2 * seat)] = 1


@kernel
def _open_after(d, rank):
    """Take a free chunk into the order behind the chunk of this rank. O(chunks)."""
    live = d.live[0]
    chunk = np.int64(d.order[live])
    for r in range(live, rank + 1, -1):
        c = d.order[r - 1]
        d.order[r] = c
        d.rank[c] = r
    d.order[rank + 1] = chunk
    d.rank[chunk] = rank + 1
    d.count[chunk] = 0
    d.live[0] = live + 1
    return chunk


@kernel
def _close(d, chunk):
    """Give an empty chunk back. O(chunks)."""
    live = d.live[0] - 1
    for r in range(d.rank[chunk], live):
        c = d.order[r + 1]
        d.order[r] = c
        d.rank[c] = r
    d.order[live] = chunk
    d.rank[chunk] = -1
    d.count[chunk] = 0
    d.dirty[chunk] = 1
    d.live[0] = live


@kernel
def _split(d, chunk, index):
    """Let a new chunk begin at this index of a chunk. O(q + chunks)."""
    size = d.count[chunk]
    if index == size:
        return
    new = _open_after(d, d.rank[chunk])
    for i in range(index, size):
        put(d, new, i - index, d.half_edges[chunk, i])
    d.count[new] = size - index
    d.count[chunk] = index
    d.dirty[chunk] = 1
    d.dirty[new] = 1


@kernel
def merge_small(d):
    """Join neighbours that fit in one chunk. O(chunks + half-edges moved)."""
    q = d.half_edges.shape[1]
    r = 0
    while r + 1 < d.live[0]:
        a = np.int64(d.order[r])
        b = np.int64(d.order[r + 1])
        size = d.count[a]
        more = d.count[b]
        if size + more > q:
            r += 1
            continue
        for i in range(more):
            put(d, a, size + i, d.half_edges[b, i])
        d.count[a] = size + more
        d.dirty[a] = 1
        _close(d, b)


@kernel
def _insert(d, half_edge, before):
    """Put a half-edge in front of another one. O(q + chunks)."""
    q = d.half_edges.shape[1]
    if d.count[chunk_of(d, before)] == q:
        _split(d, np.int64(chunk_of(d, before)), q // 2)
    c = np.int64(chunk_of(d, before))
    at = np.int64(index_of(d, before))
    for i in range(d.count[c], at, -1):
        put(d, c, i, d.half_edges[c, i - 1])
    put(d, c, at, half_edge)
    d.count[c] += 1
    d.dirty[c] = 1


@kernel
def _remove(d, half_edge):
    """Take a half-edge out. O(q + chunks)."""
    c = np.int64(chunk_of(d, half_edge))
    for i in range(index_of(d, half_edge), d.count[c] - 1):
        put(d, c, i, d.half_edges[c, i + 1])
    d.count[c] -= 1
    d.dirty[c] = 1
    if d.count[c] == 0:
        _close(d, c)


@kernel
def insert_spare(d, before0, before1):
    """Put the spare chord in, its ends in front of two half-edges at its vertices. O(q + chunks)."""
    _insert(d, 2 * d.spare, before0)
    _insert(d, 2 * d.spare + 1, before1)


@kernel
def replace_by_spare(d, seat):
    """Take a loose chord out and let the spare one go by its name. O(q + chunks)."""
    for i in range(2):
        _remove(d, 2 * seat + i)
    for i in range(2):
        c = np.int64(chunk_of(d, 2 * d.spare + i))
        put(d, c, np.int64(index_of(d, 2 * d.spare + i)), 2 * seat + i)
        d.dirty[c] = 1


@inline_kernel
def _cut_after(d, half_edge):
    return d.rank[chunk_of(d, half_edge)] + 1


@kernel
def exchange(d, a, b):
    """Reorder the sequence for the exchange of two interlacing chords. O(q + chunks); `settle` must follow."""
    for i in range(4):
        h = 2 * (a if i < 2 else b) + (i & 1)
        _split(d, np.int64(chunk_of(d, h)), np.int64(index_of(d, h)) + 1)
        d.dirty[chunk_of(d, h)] = 1
    # Chords that interlace: an end of one lies between the ends of the other.
    a0, a1 = np.int64(_cut_after(d, 2 * a)), np.int64(_cut_after(d, 2 * a + 1))
    b0, b1 = np.int64(_cut_after(d, 2 * b)), np.int64(_cut_after(d, 2 * b + 1))
    a0, a1 = min(a0, a1), max(a0, a1)
    b0, b1 = min(b0, b1), max(b0, b1)
    first, second, third, fourth = min(a0, b0), max(a0, b0), min(a1, b1), max(a1, b1)
    new = d.scratch[0]
    size = 0
    for r in range(third, fourth):
        new[size] = d.order[r]
        size += 1
    for r in range(second, third):
        new[size] = d.order[r]
        size += 1
    for r in range(first, second):
        new[size] = d.order[r]
        size += 1
    for i in range(size):
        d.order[first + i] = new[i]
        d.rank[new[i]] = first + i
