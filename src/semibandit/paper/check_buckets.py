"""Invariants of the buckets, for `_check`."""

from __future__ import annotations

import numpy as np

from semibandit.arms import ALPHA, COUNT, TOTAL, FloatArray
from semibandit.paper.buckets import (
    CLASS,
    N_FILLED,
    N_RANKED,
    NOWHERE,
    POOL_TOP,
    RANK,
    SIZE,
    SMALLEST,
    SORTED_AT,
    Buckets,
)


def check_buckets(b: Buckets, recs: FloatArray) -> None:
    """Assert the invariants of the buckets. O(K + W^2)."""
    present = np.flatnonzero(b.bucket_of != NOWHERE)
    expected = recs[present, COUNT] * b.n_beta + recs[present, TOTAL]
    expected[np.isinf(recs[present, ALPHA])] = len(b.head) - 1
    assert np.array_equal(b.bucket_of[present], expected)
    filled = np.flatnonzero(b.head[:, SIZE])
    assert len(filled) == b.size[N_FILLED] and b.head[:, SIZE].sum() == len(present)
    assert np.array_equal(np.flatnonzero(b.head[:, CLASS] >= 0), filled)
    blocks = []
    for bucket in filled.tolist():
        block, start, size, c, rank = b.head[bucket].tolist()
        assert b.ranked[rank] == bucket and size <= SMALLEST << c and (c == 0 or 4 * size >= SMALLEST << c)
        assert block <= start and start + size <= block + (SMALLEST << c)
        assert np.array_equal(b.pool[start : start + size], np.flatnonzero(b.bucket_of == bucket))
        blocks.append((block, SMALLEST << c))
    for c, start in enumerate(b.free.tolist()):
        while start >= 0:
            blocks.append((start, SMALLEST << c))
            start = int(b.pool[start])
    at = len(b.bucket_of)
    for start, length in sorted(blocks):
        assert start == at, "blocks must neither overlap nor get lost"
        at += length
    assert at == b.size[POOL_TOP] <= len(b.pool)
    order = b.ranked[: b.size[N_RANKED]]
    assert np.array_equal(b.head[order, RANK], np.arange(len(order))) and (b.head[:, RANK] >= 0).sum() == len(
        order
    )
    weight = b.weight[: len(order)]
    assert np.array_equal(weight, b.alpha[order] + b.order[SORTED_AT] * b.beta[order])
    assert (weight[1:] <= weight[:-1]).all()
