"""Arms in buckets, one a dominating point, and the buckets in order of weight.

Rounded features are few: at the paper's settings ten thousand arms share some hundred points. Arms of one point
always tie, so the order of all arms is the order of the buckets, and inside each the ids ascending. When a bin
changes, one id moves from bucket to bucket. When the slope changes, only buckets are sorted, and only after it
has passed `holds_until`, up to which all neighbours in the order are known to stay as they are. Nothing here
takes time proportional to the number of arms.

Greedy accepts an arm unless the arms before it span it. So where the SET of arms before some place is the same as
it was, all decisions from there on, up to the next change, are the same too: only a window of buckets has to be
decided anew, given the base arms before it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from semibandit.arms import ALPHA, COUNT, TOTAL, FloatArray
from semibandit.compiled.handle import Flags1, Floats1, Ints1, Ints2, Shorts1, Whole
from semibandit.compiled.jit import inline_kernel, kernel
from semibandit.compiled.memory import shift_entries
from semibandit.compiled.sorting import merge_sort, sort_ids_in_place
from semibandit.engines.kinetic.tournament import shorten

# Columns of `head`. A bucket owns the block pool[BLOCK : BLOCK + (4 << CLASS)], of which pool[START : START + SIZE] are
# in use; room is left on both sides, because arms mostly leave at the front (smaller ids are played first).
BLOCK, START, SIZE, CLASS, RANK = range(5)
# Entries of `window`: ranks FIRST .. LAST must be decided anew, none when FIRST > LAST.
FIRST, LAST = range(2)
# Entries of `order`: the slope at which buckets were sorted and the slope up to which that order stands.
SORTED_AT, HOLDS_UNTIL = range(2)
# Entries of `size`: how many buckets are ranked, how many hold an arm, where the unused part of the pool begins.
N_RANKED, N_FILLED, POOL_TOP = range(3)
NOWHERE = -1
SMALLEST = 4


class Buckets(NamedTuple):
    """`bucket_of[arm]`, NOWHERE for an absent arm. Bucket q * n_beta + r is that of dom_{q,r}; the last one is
    for arms never pulled.

    `ranked[: size[N_RANKED]]` are the buckets in order of their `weight`, among them some that are empty by now;
    `head[b, RANK]` is the place of b there, or NOWHERE. `free[c]` heads a list of unused blocks of class c, linked
    through their first entries. `tied[0]` says that neighbours in the order have equal weights.
    """

    bucket_of: Ints1
    head: Ints2
    pool: Shorts1
    free: Ints1
    alpha: Floats1
    beta: Floats1
    ranked: Ints1
    weight: Floats1
    spare_bucket: Ints1
    spare_weight: Floats1
    order: Floats1
    window: Ints1
    size: Ints1
    tied: Flags1
    n_beta: Whole


def new_buckets(n_arms: int, alpha_edges: FloatArray, beta_edges: FloatArray) -> Buckets:
    """Empty buckets. O(K + W^2).

    A block that is not of the smallest class is at least a quarter full, so that 4 K entries for each class always
    suffice. Most of this memory is never touched.
    """
    n_buckets = alpha_edges.size * beta_edges.size + 1
    classes = 1
    while SMALLEST << (classes - 1) < n_arms:
        classes += 1
    size = classes * 4 * n_arms + (SMALLEST << classes) + n_arms
    head = np.zeros((n_buckets, 5), dtype=np.int64)
    head[:, CLASS] = head[:, RANK] = -1
    return Buckets(
        bucket_of=np.full(n_arms, NOWHERE, dtype=np.int64),
        head=head,
        pool=np.empty(size, dtype=np.int32),
        free=np.full(classes, -1, dtype=np.int64),
        alpha=np.append(np.repeat(alpha_edges, beta_edges.size), np.inf),
        beta=np.append(np.tile(beta_edges, alpha_edges.size), 0.0),
        ranked=np.zeros(n_buckets, dtype=np.int64),
        weight=np.zeros(n_buckets),
        spare_bucket=np.zeros(n_buckets, dtype=np.int64),
        spare_weight=np.zeros(n_buckets),
        order=np.array([0.0, -1.0]),
        window=np.array([0, n_buckets]),
        # The first K entries of the pool are scratch, for buckets that tie.
        size=np.array([0, 0, n_arms]),
        tied=np.zeros(1, dtype=np.bool_),
        n_beta=beta_edges.size,
    )


@inline_kernel
def bucket_for(buckets, recs, arm):
    """The bucket of an arm whose record holds its bins. O(1)."""
    if recs[arm, ALPHA] == np.inf:
        return buckets.head.shape[0] - 1
    return int(recs[arm, COUNT]) * buckets.n_beta + int(recs[arm, TOTAL])


@kernel
def _find(buckets, b, arm):
    """Where `arm` stands, or would stand, in the pool of bucket b. O(log K)."""
    low = buckets.head[b, START]
    high = low + buckets.head[b, SIZE]
    while low < high:
        mid = (low + high) // 2
        if buckets.pool[mid] < arm:
            low = mid + 1
        else:
            high = mid
    return low


@kernel
def _give_block(buckets, b, c):
    """Move bucket b to a block of class c (-1: to none). O(its size). Changes pool, head, free."""
    head, pool, free = buckets.head, buckets.pool, buckets.free
    old, old_class, first = head[b, BLOCK], head[b, CLASS], head[b, START]
    if c >= 0:
        block = free[c]
        if block >= 0:
            free[c] = pool[block]
        else:
            block = buckets.size[POOL_TOP]
            buckets.size[POOL_TOP] = block + (SMALLEST << c)
        shift_entries(pool, block, first, head[b, SIZE])
        head[b, BLOCK] = head[b, START] = block
    if old_class >= 0:
        pool[old] = free[old_class]
        free[old_class] = old
    head[b, CLASS] = c


@inline_kernel
def _widen(buckets, rank):
    """Take a rank into the window. O(1)."""
    window = buckets.window
    if window[FIRST] > window[LAST]:
        window[FIRST] = window[LAST] = rank
    else:
        window[FIRST] = min(window[FIRST], rank)
        window[LAST] = max(window[LAST], rank)


@inline_kernel
def _open_all(buckets):
    buckets.window[FIRST] = 0
    buckets.window[LAST] = buckets.head.shape[0]


@kernel
def _enrol(buckets, b):
    """Put a bucket into the order as it was sorted last. O(number of buckets), a move of memory."""
    ranked, weight, alpha, beta = buckets.ranked, buckets.weight, buckets.alpha, buckets.beta
    head, window = buckets.head, buckets.window
    lam = buckets.order[SORTED_AT]
    w = alpha[b] + lam * beta[b]
    n = buckets.size[N_RANKED]
    low, high = 0, n
    while low < high:
        mid = (low + high) // 2
        if weight[mid] > w:
            low = mid + 1
        else:
            high = mid
    for i in range(n, low, -1):
        ranked[i] = ranked[i - 1]
        weight[i] = weight[i - 1]
        head[ranked[i], RANK] = i
    ranked[low] = b
    weight[low] = w
    head[b, RANK] = low
    buckets.size[N_RANKED] = n + 1
    if window[FIRST] <= window[LAST]:
        window[FIRST] += 1 if window[FIRST] >= low else 0
        window[LAST] += 1 if window[LAST] >= low else 0
    hold = buckets.order[HOLDS_UNTIL]
    for i in range(max(low, 1), min(low + 2, n + 1)):
        x, y = ranked[i - 1], ranked[i]
        hold = shorten(hold, alpha[x], beta[x], alpha[y], beta[y], False, lam)
        if weight[i - 1] == weight[i]:
            buckets.tied[0] = True
    buckets.order[HOLDS_UNTIL] = hold


@kernel
def take_out(buckets, arm):
    """Remove a present arm from its bucket. O(log K) and a move of memory within the bucket.

    The window is the caller's affair: what comes after the arm has lost one of its predecessors.
    """
    head, pool = buckets.head, buckets.pool
    b = buckets.bucket_of[arm]
    at, first, size = _find(buckets, b, arm), head[b, START], head[b, SIZE] - 1
    if at - first < first + size - at:
        shift_entries(pool, first + 1, first, at - first)
        head[b, START] = first + 1
    else:
        shift_entries(pool, at, at + 1, first + size - at)
    head[b, SIZE] = size
    c = head[b, CLASS]
    if size == 0:
        _give_block(buckets, b, -1)
        buckets.size[N_FILLED] -= 1
    elif c > 0 and 4 * size < (SMALLEST << c):
        _give_block(buckets, b, c - 1)
    buckets.bucket_of[arm] = NOWHERE


@kernel
def put_in(buckets, arm, b):
    """Add an absent arm to bucket b. O(log K) and a move of memory within the bucket. Window as in `take_out`."""
    head, pool = buckets.head, buckets.pool
    c, size = head[b, CLASS], head[b, SIZE]
    if c < 0:
        _give_block(buckets, b, 0)
        buckets.size[N_FILLED] += 1
    elif size == (SMALLEST << c):
        _give_block(buckets, b, c + 1)
    at, first = _find(buckets, b, arm), head[b, START]
    front = first > head[b, BLOCK]
    back = first + size < head[b, BLOCK] + (SMALLEST << head[b, CLASS])
    if front and (not back or at - first < first + size - at):
        at -= 1
        shift_entries(pool, first - 1, first, at - first + 1)
        head[b, START] = first - 1
    else:
        shift_entries(pool, at + 1, at, first + size - at)
    pool[at] = arm
    head[b, SIZE] = size + 1
    buckets.bucket_of[arm] = b
    if head[b, RANK] < 0:
        _enrol(buckets, b)


@kernel
def move(buckets, arm, b):
    """Move a present arm to bucket b. Opens the window between its old place and its new one."""
    old = buckets.bucket_of[arm]
    take_out(buckets, arm)
    put_in(buckets, arm, b)
    _widen(buckets, buckets.head[old, RANK])
    _widen(buckets, buckets.head[b, RANK])


@kernel
def insert_many(buckets, recs, arms):
    """Put absent arms where their records say."""
    for i in range(arms.shape[0]):
        put_in(buckets, arms[i], bucket_for(buckets, recs, arms[i]))
    _open_all(buckets)


@kernel
def remove_many(buckets, arms):
    """Take present arms out."""
    for i in range(arms.shape[0]):
        take_out(buckets, arms[i])
    _open_all(buckets)


@kernel
def _drop_empty(buckets):
    """Take empty buckets out of the order. O(number of buckets)."""
    ranked, weight, head = buckets.ranked, buckets.weight, buckets.head
    n = 0
    for i in range(buckets.size[N_RANKED]):
        b = ranked[i]
        head[b, RANK] = -1
        if head[b, SIZE] > 0:
            ranked[n] = b
            weight[n] = weight[i]
            head[b, RANK] = n
            n += 1
    buckets.size[N_RANKED] = n
    _open_all(buckets)


@kernel
def sort_buckets(buckets, lam):
    """Sort buckets at slope lam and find out how long that order holds. O(buckets + inversions).

    Changes the order; opens the window where buckets changed places, or everywhere if some tie, or did.
    """
    ranked, weight, head = buckets.ranked, buckets.weight, buckets.head
    alpha, beta = buckets.alpha, buckets.beta
    if buckets.size[N_RANKED] > 2 * buckets.size[N_FILLED] + 64:
        _drop_empty(buckets)
    n = buckets.size[N_RANKED]
    moves, budget = 0, 8 * n + 64
    for i in range(n):
        b = ranked[i]
        w = alpha[b] + lam * beta[b]
        j = i - 1
        while j >= 0 and weight[j] < w and moves <= budget:
            weight[j + 1] = weight[j]
            ranked[j + 1] = ranked[j]
            j -= 1
            moves += 1
        weight[j + 1] = w
        ranked[j + 1] = b
        if j + 1 < i:
            _widen(buckets, j + 1)
            _widen(buckets, i)
    if moves > budget:
        merge_sort(weight, ranked, n, buckets.spare_weight, buckets.spare_bucket)
        _open_all(buckets)
    hold, tied = np.inf, False
    for i in range(n):
        y = ranked[i]
        head[y, RANK] = i
        if i > 0:
            x = ranked[i - 1]
            hold = shorten(hold, alpha[x], beta[x], alpha[y], beta[y], False, lam)
            if weight[i - 1] == weight[i]:
                tied = True
    if tied or buckets.tied[0]:
        _open_all(buckets)
    buckets.tied[0] = tied
    buckets.order[SORTED_AT] = lam
    buckets.order[HOLDS_UNTIL] = hold


@inline_kernel
def stays(buckets, lam):
    """Bring the order of buckets up to date at lam; whether the order of the arms is as it was last time."""
    if lam > buckets.order[HOLDS_UNTIL] or lam < buckets.order[SORTED_AT]:
        sort_buckets(buckets, lam)
    if buckets.tied[0] and not is_settled(buckets):
        _open_all(buckets)
    return is_settled(buckets)


@inline_kernel
def is_settled(buckets):
    """Whether nothing must be decided anew. O(1)."""
    return buckets.window[FIRST] > buckets.window[LAST]


@inline_kernel
def window_end(buckets):
    """The rank behind the last one of the window. O(1)."""
    return min(buckets.window[LAST] + 1, buckets.size[N_RANKED])


@inline_kernel
def close_window(buckets):
    """Everything is decided. O(1)."""
    buckets.window[FIRST] = 1
    buckets.window[LAST] = 0


@kernel
def next_run(buckets, i):
    """The arms of the i-th bucket in order, as (first, last) in the pool, and the next i.

    Buckets that tie by an accident of rounding are merged into the first K entries of the pool.
    """
    head, pool, weight, ranked = buckets.head, buckets.pool, buckets.weight, buckets.ranked
    n = buckets.size[N_RANKED]
    stop = i + 1
    while stop < n and weight[stop] == weight[i]:
        stop += 1
    b = ranked[i]
    if stop == i + 1:
        return head[b, START], head[b, START] + head[b, SIZE], stop
    m = 0
    for j in range(i, stop):
        b = ranked[j]
        for k in range(head[b, START], head[b, START] + head[b, SIZE]):
            pool[m] = pool[k]
            m += 1
    sort_ids_in_place(pool, m)
    return 0, m, stop


@inline_kernel
def rank_of(buckets, arm):
    """Place of the arm's bucket in the order; NOWHERE for an absent arm. O(1)."""
    b = buckets.bucket_of[arm]
    return NOWHERE if b == NOWHERE else buckets.head[b, RANK]
