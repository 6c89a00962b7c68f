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
index. One spare seat a graph holds an edge that is about to replace another.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from semibandit._jit import njit

ARM, END, UP = 0, 1, 3  # columns of the seat table, as in `_forest`
LOOSE = -1
Q, CAP, START, LIVE, SPARE, KEYS = 0, 1, 2, 3, 4, 5  # columns of the table of graphs
LINES = 11  # arrays of one entry a chunk in a graph's state


@njit
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


@njit(inline="always")
def _beats(kind: int, a: int, key_a: float, b: int, key_b: float, seats: Any) -> bool:
    """Whether chord a is better of its kind than chord b: the heavier if loose, the lighter in the forest."""
    if a < 0 or a == b:
        return False
    if b < 0 or key_a > key_b:
        return True
    return key_a == key_b and (seats[a, ARM] < seats[b, ARM]) == (kind == 0)


@njit
def _kind(seat: int, seats: Any) -> int:
    return 0 if seats[seat, UP] == LOOSE else 1


@njit
def touch(seat: int, graph: Any) -> None:
    """Note that a chord's weight or kind has changed. O(1)."""
    _, _, where, buf, line, _, _ = graph
    line[DIRTY, where[2 * seat] // buf.shape[1]] = 1


@njit
def _open_after(rank: int, graph: Any) -> int:
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
def _merge_small(graph: Any) -> None:
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
    k, heads, where, buf, line, _, _ = graph
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


@njit
def _hash(chunk: int) -> int:
    """A fixed pseudo-random priority below 2^31."""
    x = np.uint64(chunk + 1) * np.uint64(0x9E3779B97F4A7C15)
    return np.int64((x ^ (x >> np.uint64(29))) >> np.uint64(33))


@njit
def _key(kind: int, seat: int, seats: Any, weight: Any) -> float:
    w = weight[seats[seat, ARM]]
    return w if kind == 0 else -w


@njit
def _fill_rows(graph: Any, seats: Any, weight: Any) -> None:
    """Recompute the rows and columns of dirty chunks. O(q + chunks) each."""
    _, _, where, buf, line, cells, keys = graph
    cap, q = buf.shape
    for c in range(cap):
        if line[DIRTY, c] != 0:
            for kind in range(2):
                for d in range(cap):
                    cells[kind, 0, c, d] = -1
                    cells[kind, 0, d, c] = -1
    for c in range(cap):
        if line[DIRTY, c] == 0 or line[RANK, c] < 0:
            continue
        for i in range(line[COUNT, c]):
            h = np.int64(buf[c, i])
            s = h >> 1
            d = where[h ^ 1] // q
            kind = _kind(s, seats)
            key = _key(kind, s, seats, weight)
            if _beats(kind, s, key, cells[kind, 0, c, d], keys[kind, 0, c, d], seats):
                cells[kind, 0, c, d] = s
                cells[kind, 0, d, c] = s
                keys[kind, 0, c, d] = key
                keys[kind, 0, d, c] = key


@njit
def _combine(node: int, columns: Any, count: int, graph: Any, seats: Any) -> None:
    """Recompute cells of a search tree node from its row and its children: `count` columns, or all if -1."""
    _, _, _, buf, line, cells, keys = graph
    for kind in range(2):
        for j in range(buf.shape[0] if count < 0 else count):
            d = j if count < 0 else columns[j]
            best = cells[kind, 0, node, d]
            key = keys[kind, 0, node, d]
            for side in range(2):
                child = line[LEFT + side, node]
                if child >= 0:
                    if _beats(kind, cells[kind, 1, child, d], keys[kind, 1, child, d], best, key, seats):
                        best = cells[kind, 1, child, d]
                        key = keys[kind, 1, child, d]
            cells[kind, 1, node, d] = best
            keys[kind, 1, node, d] = key


@njit
def settle(graph: Any, seats: Any, weight: Any) -> None:
    """Make cells and search tree agree with the sequence again. O(q + chunks log chunks) expected."""
    k, heads, _, buf, line, _, _ = graph
    _merge_small(graph)
    _fill_rows(graph, seats, weight)
    left = line[SCRATCH]
    right = line[SCRATCH + 1]
    stack = line[SCRATCH + 2]
    queue = line[SCRATCH + 3]
    stale = line[SCRATCH + 4]
    live = heads[k, LIVE]
    size = 0
    for r in range(live):
        c = np.int64(line[ORDER, r])
        last = np.int64(-1)
        while size > 0 and _hash(np.int64(stack[size - 1])) < _hash(c):
            size -= 1
            last = np.int64(stack[size])
        left[c] = last
        right[c] = -1
        if size > 0:
            right[stack[size - 1]] = c
        stack[size] = c
        size += 1
    # Breadth first, then backwards: children before parents.
    queue[0] = stack[0]
    size = 1
    for i in range(live):
        c = np.int64(queue[i])
        stale[c] = line[DIRTY, c] != 0 or left[c] != line[LEFT, c] or right[c] != line[RIGHT, c]
        line[LEFT, c] = left[c]
        line[RIGHT, c] = right[c]
        if left[c] >= 0:
            queue[size] = left[c]
            size += 1
        if right[c] >= 0:
            queue[size] = right[c]
            size += 1
    changed = 0
    for c in range(buf.shape[0]):
        if line[DIRTY, c] != 0:
            stack[changed] = c
            line[DIRTY, c] = 0
            changed += 1
    for i in range(live - 1, -1, -1):
        c = np.int64(queue[i])
        if (left[c] >= 0 and stale[left[c]] != 0) or (right[c] >= 0 and stale[right[c]] != 0):
            stale[c] = 1
        # Where the chunks below are as they were, only the columns of dirty chunks can differ.
        _combine(c, stack, -1 if stale[c] != 0 else changed, graph, seats)


@njit
def _outside(kind: int, deep: int, node: int, lo: int, hi: int, graph: Any, seats: Any) -> int:
    """The best chord from chunk `node` (deep: 1: from those below) to one of rank outside [lo, hi]. O(chunks)."""
    _, _, _, buf, line, cells, keys = graph
    best = np.int64(-1)
    key = 0.0
    for d in range(buf.shape[0]):
        if line[RANK, d] < lo or line[RANK, d] > hi:
            if _beats(kind, cells[kind, deep, node, d], keys[kind, deep, node, d], best, key, seats):
                best = np.int64(cells[kind, deep, node, d])
                key = keys[kind, deep, node, d]
    return best


@njit
def _pick(kind: int, a: int, b: int, seats: Any, weight: Any) -> int:
    """The better of two chords of a kind, -1 being nobody. O(1)."""
    if a < 0 or b < 0:
        return max(a, b)
    return a if _beats(kind, a, _key(kind, a, seats, weight), b, _key(kind, b, seats, weight), seats) else b


@njit
def best_interlacing(seat: int, graph: Any, seats: Any, weight: Any) -> int:
    """The heaviest loose edge across the cut of a forest edge, or the lightest forest edge on a loose one's path.

    -1 if there is none. O(q + chunks log chunks) expected. The graph must be settled.
    """
    _, _, where, buf, line, _, _ = graph
    q = buf.shape[1]
    kind = 1 - _kind(seat, seats)
    c = where[2 * seat] // q
    d = where[2 * seat + 1] // q
    first = line[RANK, c] * q + where[2 * seat] % q
    last = line[RANK, d] * q + where[2 * seat + 1] % q
    if first > last:
        first, last = last, first
        c, d = d, c
    best = np.int64(-1)
    for side in range(2 if c != d else 1):
        e = c if side == 0 else d
        for i in range(line[COUNT, e]):
            h = np.int64(buf[e, i])
            s = h >> 1
            if s == seat or _kind(s, seats) != kind:
                continue
            here = line[RANK, e] * q + i
            there = line[RANK, where[h ^ 1] // q] * q + where[h ^ 1] % q
            if (first < here < last) != (first < there < last):
                best = _pick(kind, best, s, seats, weight)
    lo = line[RANK, c]
    hi = line[RANK, d]
    if lo + 1 >= hi:
        return best
    # Both boundary chunks are done with; what is left is between whole chunks: those inside, ranks lo + 1 to
    # hi - 1, and those outside. The top node inside, then down along both borders of the range.
    node = np.int64(line[ORDER, lo + 1])
    for r in range(lo + 2, hi):
        if _hash(np.int64(line[ORDER, r])) > _hash(node):
            node = np.int64(line[ORDER, r])
    best = _pick(kind, best, _outside(kind, 0, node, lo, hi, graph, seats), seats, weight)
    for side in range(2):
        x = np.int64(line[LEFT + side, node])
        while x >= 0:
            r = line[RANK, x]
            if r <= lo or r >= hi:
                x = np.int64(line[RIGHT - side, x])
                continue
            best = _pick(kind, best, _outside(kind, 0, x, lo, hi, graph, seats), seats, weight)
            y = np.int64(line[RIGHT - side, x])
            if y >= 0:
                best = _pick(kind, best, _outside(kind, 1, y, lo, hi, graph, seats), seats, weight)
            x = np.int64(line[LEFT + side, x])
    return best
