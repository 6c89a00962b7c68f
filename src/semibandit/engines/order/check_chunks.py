"""Invariants of a front in chunks, and what is in it, for tests."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from semibandit.arms import FloatArray, IntArray
from semibandit.engines.order.chunks import FIRST, LAST, PLACES, Chunks
from semibandit.engines.order.lazy import FRONT, HEAD, N_SEGMENTS, LazyOrder


def places_of(chunks: Chunks) -> IntArray:
    """The places of all entries, in order. O(length of the front)."""
    listed = chunks.chunk[int(chunks.at[FIRST]) : int(chunks.at[LAST])]
    places = (listed[:, None] * PLACES + np.arange(PLACES)).reshape(-1)
    there: npt.NDArray[np.bool_] = chunks.tag[:, places].any(axis=0)
    return places[there]


def check_chunks(chunks: Chunks) -> None:
    """Assert directory, order and tags. O(length of the front + chunks)."""
    first, last, begin, n_free = chunks.at.tolist()
    listed = chunks.chunk[first:last]
    assert sorted([*listed.tolist(), *chunks.free[:n_free].tolist()]) == list(range(len(chunks.count)))
    assert 0 <= first <= last <= len(chunks.chunk) and (begin == 0 or first < last)
    entries: list[tuple[float, int]] = []
    keys = list(zip((-chunks.key_weight).tolist(), chunks.key_arm.tolist(), strict=True))
    for j, c in enumerate(listed.tolist(), start=first):
        n, tag = int(chunks.count[c]), chunks.tag[:, c * PLACES : (c + 1) * PLACES]
        assert n <= PLACES and np.isneginf(chunks.weight[c, n:]).all() and not tag[:, n:].any()
        here = list(zip((-chunks.weight[c, :n]).tolist(), chunks.arm[c, :n].tolist(), strict=True))
        assert j == first or all(entry >= keys[j] for entry in here)
        entries += here
        there: npt.NDArray[np.bool_] = tag.any(axis=0)
        assert j > first or not there[:begin].any()
        assert np.array_equal(tag[:, there].T, chunks.tag_of[chunks.arm[c, there]])
        assert not (np.bitwise_or.reduce(tag, axis=1) & ~chunks.sum[:, j]).any()
    assert entries == sorted(entries) and keys[first + 1 : last] == sorted(keys[first + 1 : last])


def check_front(order: LazyOrder, chunks: Chunks) -> None:
    """Assert that all entries of the front are in chunks, and none is after what lies in segments. O(length of the
    front)."""
    check_chunks(chunks)
    assert order.at[HEAD] == order.at[FRONT]
    if order.at[N_SEGMENTS] > 0:
        top, places = int(order.at[N_SEGMENTS]) - 1, places_of(chunks)
        weights, arms, key = weights_of(chunks, places), arms_of(chunks, places), float(order.key_weight[top])
        assert np.all((weights > key) | ((weights == key) & (arms <= int(order.key_arm[top]))))


def weights_of(chunks: Chunks, places: IntArray) -> FloatArray:
    """The weights at these places."""
    weights: FloatArray = chunks.weight.reshape(-1)[places]
    return weights


def arms_of(chunks: Chunks, places: IntArray) -> IntArray:
    """The arms at these places."""
    arms: IntArray = chunks.arm.reshape(-1)[places]
    return arms
