"""Sorting ids and (weight, arm) pairs, and heaps of the heaviest few.

=====================  ==============================================  ==============================================
`sort_keys`            pairs, heaviest first, then smaller arm          expected O(n): a round's few thousand keys
`sort_few`             the same                                         O(n^2) without branches, for few
`merge_sort`           the same                                         O(n log n); no counters needed
`sort_by_arm`          pairs by arm                                     a byte a pass, stable
`sort_ids`             ids                                              all with all for few, else a byte a pass
`sort_ids_in_place`    ids                                              O(n log n) without scratch space
`heap_offer`           the heaviest `capacity` of pairs that pass by    O(log capacity), O(1) for most
=====================  ==============================================  ==============================================

Comparison sorts mispredict half their branches on fresh data: at n = 1,000 a merge sort takes 66 us, `sort_keys` 12 us
(measured).
"""

from __future__ import annotations

import numpy as np

from semibandit.compiled.jit import inline_kernel, kernel

# Up to so many, comparing all with all is best; a bucket with more entries than this calls for another way.
FEW, CROWD = 24, 24
# Weights whose mean lies below so much of their range, from the lowest on, are those of a tail.
_SKEW = 0.3

# Up to so many ids are sorted by insertion.
_VERY_FEW = 6

# Loops over so many, or a multiple of that, stay in vector registers to the end; after every id.
_WHOLE, _LAST = 16, 2**63 - 1

# Up to so many ids are spread by their highest byte first.
MOST_SPREAD = 2048

# -- pairs of weight and arm -------------------------------------------------------------------------------------


@kernel
def merge_sort(weight, arm, n, spare_weight, spare_arm):
    """Sort (weight[:n], arm[:n]) by weight descending, then arm ascending; bottom-up. O(n log n).

    Changes all arrays; the spare ones need n entries.
    """
    if n < 2:
        return
    run = n if n <= FEW else 8
    for first in range(0, n, run):
        last = min(first + run, n)
        for i in range(first + 1, last):
            w, a = weight[i], arm[i]
            j = i - 1
            while j >= first and (weight[j] < w or (weight[j] == w and arm[j] > a)):
                weight[j + 1] = weight[j]
                arm[j + 1] = arm[j]
                j -= 1
            weight[j + 1] = w
            arm[j + 1] = a
    while run < n:
        for first in range(0, n, 2 * run):
            mid = min(first + run, n)
            last = min(first + 2 * run, n)
            i, j, o = first, mid, first
            while i < mid and j < last:
                if weight[i] > weight[j] or (weight[i] == weight[j] and arm[i] < arm[j]):
                    spare_weight[o] = weight[i]
                    spare_arm[o] = arm[i]
                    i += 1
                else:
                    spare_weight[o] = weight[j]
                    spare_arm[o] = arm[j]
                    j += 1
                o += 1
            while i < mid:
                spare_weight[o] = weight[i]
                spare_arm[o] = arm[i]
                i += 1
                o += 1
            while j < last:
                spare_weight[o] = weight[j]
                spare_arm[o] = arm[j]
                j += 1
                o += 1
        for i in range(n):
            weight[i] = spare_weight[i]
            arm[i] = spare_arm[i]
        run *= 2


@inline_kernel
def _count_bytes(ids, n, shift, count):
    """Make count[d] the number of ids[:n] whose byte at `shift` is below d. Changes count[:257]. O(n)."""
    count[:257] = 0
    for i in range(n):
        count[((ids[i] >> shift) & 255) + 1] += 1
    for d in range(256):
        count[d + 1] += count[d]


@kernel
def sort_by_arm(weight, arm, n, spare_weight, spare_arm, count):
    """Sort pairs by arm (nonnegative), a byte a pass, stable. O(n log K). `count` needs 257 entries."""
    top = arm[0]
    for i in range(1, n):
        top = max(top, arm[i])
    shift = 0
    while (top >> shift) > 0:
        _count_bytes(arm, n, shift, count)
        for i in range(n):
            d = (arm[i] >> shift) & 255
            spare_weight[count[d]] = weight[i]
            spare_arm[count[d]] = arm[i]
            count[d] += 1
        for i in range(n):
            weight[i] = spare_weight[i]
            arm[i] = spare_arm[i]
        shift += 8


@inline_kernel
def _bend(weight, n, low, mean, bend, bucket, count):
    """The buckets of the weights of a tail, as `sort_keys` says: the farther from `low`, the wider. O(n)."""
    for i in range(n):
        d = weight[i] - low
        b = 0
        if d < np.inf:
            b = 1 + max(0, min(n - 2, int((n - 2) - bend * (d / (d + mean)))))
        bucket[i] = b
        count[b + 1] += 1


@kernel
def sort_few(weight, arm, n, spare_weight, spare_arm):
    """Sort (weight[:n], arm[:n]) by weight descending, then arm ascending. O(n^2), but in vector registers and without
    branches that depend on the data: best for few.

    Every pair goes where as many are as come before it. Changes all arrays; the spare ones need n entries.
    """
    for i in range(n):
        spare_weight[i] = weight[i]
        spare_arm[i] = arm[i]
    end = min((n + _WHOLE - 1) & -_WHOLE, spare_arm.shape[0], spare_weight.shape[0])
    for i in range(n, end):
        spare_weight[i] = -np.inf
        spare_arm[i] = _LAST
    total = 0
    for i in range(n):
        w, a = spare_weight[i], spare_arm[i]
        before = 0
        for j in range(end):
            x = spare_weight[j]
            before += np.int64((x > w) | ((x == w) & (spare_arm[j] < a)))
        weight[before] = w
        arm[before] = a
        total += before
    if 2 * total != n * (n - 1):
        # Some pairs are equal and went to one place.
        for i in range(n):
            weight[i] = spare_weight[i]
            arm[i] = spare_arm[i]
        merge_sort(weight, arm, n, spare_weight, spare_arm)


@kernel
def sort_keys(weight, arm, n, spare_weight, spare_arm, count):
    """Sort (weight[:n], arm[:n]) by weight descending, then arm ascending. Expected O(n), at worst O(n log n).

    Weights go to n buckets of equal width, or, where they are those of a tail, of growing width; then insertion puts
    right what is left. Many equal weights crowd a bucket; then the pairs are sorted by arm first, which the buckets
    preserve. Changes all arrays; the spare ones need n entries, `count` n + 2 and at least 257.
    """
    if n <= FEW:
        sort_few(weight, arm, n, spare_weight, spare_arm)
        return
    top, low = -np.inf, np.inf
    for i in range(n):
        w = weight[i]
        if w != np.inf:
            top = max(top, w)
            low = min(low, w)
    # One bucket for all when there is no finite width to divide.
    scale = (n - 2) / (top - low) if 0.0 < top - low < np.inf else 0.0
    if scale == np.inf:
        scale = 0.0
    # Where most lie near the lowest, as in a tail, buckets get wider upwards, evenly over d / (d + mean) for weights d
    # beyond the lowest. Every eighth one tells the mean.
    mean, some = 0.0, 0
    if scale > 0.0:
        for i in range(0, n, 8):
            w = weight[i]
            if w != np.inf:
                mean += w - low
                some += 1
    mean /= max(1, some)
    steep = 0.0 < mean < _SKEW * (top - low)
    bend = (n - 2) * (1.0 + mean / (top - low)) if steep else 0.0
    by_arm = False
    while True:
        count[: n + 2] = 0
        if steep:
            _bend(weight, n, low, mean, bend, spare_arm, count)
        else:
            for i in range(n):
                w = weight[i]
                b = 0
                if w < np.inf:
                    b = 1 if scale == 0.0 else 1 + int((top - w) * scale)
                spare_arm[i] = b
                count[b + 1] += 1
        largest = 0
        for b in range(n):
            largest = max(largest, count[b + 1])
            count[b + 1] += count[b]
        if largest <= CROWD or by_arm:
            break
        sort_by_arm(weight, arm, n, spare_weight, spare_arm, count)
        by_arm = True
    for i in range(n):
        b = spare_arm[i]
        at = count[b]
        count[b] = at + 1
        spare_weight[at] = weight[i]
        spare_arm[i] = at
    for i in range(n):
        count[spare_arm[i]] = arm[i]
    budget = CROWD * n
    for i in range(n):
        w = spare_weight[i]
        a = count[i]
        j = i - 1
        while j >= 0 and budget > 0 and (weight[j] < w or (weight[j] == w and arm[j] > a)):
            weight[j + 1] = weight[j]
            arm[j + 1] = arm[j]
            j -= 1
            budget -= 1
        weight[j + 1] = w
        arm[j + 1] = a
    if budget == 0:
        merge_sort(weight, arm, n, spare_weight, spare_arm)


# -- ids ---------------------------------------------------------------------------------------------------------


@inline_kernel
def _insert(ids, n):
    """Sort ids[:n] ascending by insertion. O(n^2), best for few."""
    for i in range(1, n):
        x = ids[i]
        j = i - 1
        while j >= 0 and ids[j] > x:
            ids[j + 1] = ids[j]
            j -= 1
        ids[j + 1] = x


@inline_kernel
def _is_sorted(ids, n):
    """Whether ids[:n] ascend. O(n), in vector registers."""
    falls = False
    for i in range(1, n):
        falls |= ids[i - 1] > ids[i]
    return not falls


@inline_kernel
def _spread(ids, n, shift, spare, count):
    """Sort ids[:n] by their bits from `shift` on, 8 at most, into `spare` and back. Stable. O(n)."""
    _count_bytes(ids, n, shift, count)
    for i in range(n):
        d = (ids[i] >> shift) & 255
        spare[count[d]] = ids[i]
        count[d] += 1
    for i in range(n):
        ids[i] = spare[i]


@inline_kernel
def _insert_within(ids, n, budget):
    """Sort ids[:n] ascending by insertion with at most `budget` moves; whether that was enough."""
    for i in range(1, n):
        x = ids[i]
        j = i - 1
        while j >= 0 and ids[j] > x:
            ids[j + 1] = ids[j]
            j -= 1
        ids[j + 1] = x
        budget -= i - 1 - j
        if budget < 0:
            return False
    return True


@inline_kernel
def _sort_few_ids(ids, n, spare):
    """`sort_few` for ids."""
    for i in range(n):
        spare[i] = ids[i]
    end = min((n + _WHOLE - 1) & -_WHOLE, spare.shape[0])
    for i in range(n, end):
        spare[i] = _LAST
    total = 0
    for i in range(n):
        a = spare[i]
        before = 0
        for j in range(end):
            before += np.int64(spare[j] < a)
        ids[before] = a
        total += before
    if 2 * total != n * (n - 1):
        # Some ids are equal and went to one place.
        for i in range(n):
            ids[i] = spare[i]
        _insert(ids, n)


@kernel
def sort_ids(ids, n, spare, count):
    """Sort ids[:n] (nonnegative) ascending: by comparing all for few, else a byte a pass. O(n log K).

    Ids that lie evenly need one pass, by their highest bits, and a few moves. Changes all arrays; `spare` needs n
    entries, `count` 257.
    """
    if n <= 2 * FEW:
        if n <= _VERY_FEW:
            _insert(ids, n)
        else:
            _sort_few_ids(ids, n, spare)
        return
    if _is_sorted(ids, n):
        return
    top = ids[0]
    for i in range(1, n):
        top = max(top, ids[i])
    if n <= MOST_SPREAD:
        shift = 0
        while (top >> shift) > 255:
            shift += 1
        _spread(ids, n, shift, spare, count)
        if _insert_within(ids, n, FEW * n):
            return
    shift = 0
    while (top >> shift) > 0:
        _spread(ids, n, shift, spare, count)
        shift += 8


@kernel
def sort_ids_in_place(ids, n):
    """`sort_ids` for callers without scratch space: insertion for few, heapsort for many. O(n log n)."""
    if n <= 32:
        _insert(ids, n)
        return
    begin = n // 2
    end = n
    while end > 1:
        if begin > 0:
            begin -= 1
            x = ids[begin]
        else:
            end -= 1
            x = ids[end]
            ids[end] = ids[0]
        i = begin
        while True:
            c = 2 * i + 1
            if c >= end:
                break
            if c + 1 < end and ids[c + 1] > ids[c]:
                c += 1
            if ids[c] > x:
                ids[i] = ids[c]
                i = c
            else:
                break
        ids[i] = x


# -- heaps of the heaviest few -----------------------------------------------------------------------------------


@kernel
def heap_sink(weight, arm, first, n, i):
    """Restore the heap of n pairs from `first` on after its item i became heavier. Changes both arrays. O(log n).

    The lightest is on top (of equal weights the largest arm): the one that leaves for a heavier pair.
    """
    w = weight[first + i]
    a = arm[first + i]
    while True:
        c = 2 * i + 1
        if c >= n:
            break
        if c + 1 < n:
            x, y = first + c, first + c + 1
            if weight[y] < weight[x] or (weight[y] == weight[x] and arm[y] > arm[x]):
                c += 1
        if weight[first + c] < w or (weight[first + c] == w and arm[first + c] > a):
            weight[first + i] = weight[first + c]
            arm[first + i] = arm[first + c]
            i = c
        else:
            break
    weight[first + i] = w
    arm[first + i] = a


@kernel
def heap_offer(weight, arm, first, size, capacity, w, a):
    """Offer (w, a) to a heap from `first` on that keeps the heaviest `capacity` > 0; its new size. O(log capacity).

    For arms offered in ascending order, so that one of equal weight displaces none. Changes both arrays.
    """
    if size < capacity:
        i = size
        while i > 0:
            p = (i - 1) // 2
            if w < weight[first + p] or (w == weight[first + p] and a > arm[first + p]):
                weight[first + i] = weight[first + p]
                arm[first + i] = arm[first + p]
                i = p
            else:
                break
        weight[first + i] = w
        arm[first + i] = a
        return size + 1
    if w > weight[first]:
        weight[first] = w
        arm[first] = a
        heap_sink(weight, arm, first, capacity, 0)
    return size
