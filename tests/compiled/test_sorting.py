"""Sorting and heaps against numpy, for weights as they come and as they should not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from semibandit.compiled.jit import kernel
from semibandit.compiled.lanes import first_max
from semibandit.compiled.sorting import (
    heap_offer,
    merge_sort,
    sort_by_arm,
    sort_few,
    sort_ids,
    sort_ids_in_place,
    sort_keys,
)
from semibandit.compiled.words import ordered_bits, places_that_meet, two_words


def spread(rng: np.random.Generator, n: int) -> Any:
    return rng.random(n)


def ties(rng: np.random.Generator, n: int) -> Any:
    return rng.integers(0, 3, size=n) / 2.0


def infinite(rng: np.random.Generator, n: int) -> Any:
    return np.where(rng.random(n) < 0.5, np.inf, rng.random(n))


def all_infinite(rng: np.random.Generator, n: int) -> Any:
    return np.full(n, np.inf)


def clustered(rng: np.random.Generator, n: int) -> Any:
    """All but one in one bucket: only the way out is fast."""
    weights = rng.random(n) * 1e-12
    weights[rng.integers(n)] = 1e6
    return weights


def huge_and_tiny(rng: np.random.Generator, n: int) -> Any:
    return rng.choice([-1e308, 1e308, 5e-324, 0.0, -0.0, 1.0], size=n)


def tail(rng: np.random.Generator, n: int) -> Any:
    return 3.0 + rng.exponential(size=n) ** rng.integers(1, 8) * rng.choice([1.0, 0.1, 0.01], n)


def tail_with_ties(rng: np.random.Generator, n: int) -> Any:
    weights = np.round(tail(rng, n), int(rng.integers(0, 4)))
    return np.where(rng.random(n) < 0.1, np.inf, weights)


@pytest.mark.bounds
@pytest.mark.parametrize(
    "draw", [spread, ties, infinite, all_infinite, clustered, huge_and_tiny, tail, tail_with_ties]
)
def test_sort_keys(draw: Any) -> None:
    rng = np.random.default_rng(11)
    for n in (0, 1, 2, 24, 25, 26, 100, 1000, 3000):
        weight, arm = draw(rng, n) if n else np.empty(0), rng.permutation(10 * n)[:n]
        order = np.lexsort((arm, -weight))
        expected = weight[order], arm[order]
        w, a = weight.copy(), arm.copy()
        sort_keys(w, a, n, np.empty(n), np.empty(n, dtype=np.int64), np.empty(n + 300, dtype=np.int64))
        assert np.array_equal(w, expected[0]) and np.array_equal(a, expected[1])
        w, a = weight.copy(), arm.copy()
        merge_sort(w, a, n, np.empty(n), np.empty(n, dtype=np.int64))
        assert np.array_equal(w, expected[0]) and np.array_equal(a, expected[1])


@pytest.mark.bounds
@pytest.mark.parametrize("draw", [spread, ties, infinite, all_infinite, huge_and_tiny])
def test_few_are_sorted_with_much_room_and_with_little(draw: Any) -> None:
    """Also pairs that are equal, and ids."""
    rng = np.random.default_rng(15)
    for n in (*range(1, 34), 47, 48):
        for room in (n, n + 1, n + 40):
            weight, arm = draw(rng, n), rng.integers(0, rng.choice([2, 1000, 2**62]), n)
            order = np.lexsort((arm, -weight))
            w, a = np.append(weight, 7.0), np.append(arm, 7)
            sort_few(w, a, n, np.empty(room), np.empty(room, dtype=np.int64))
            assert np.array_equal(w, np.append(weight[order], 7.0))
            assert np.array_equal(a, np.append(arm[order], 7))
            ids = np.append(arm, 7)
            sort_ids(ids, n, np.empty(room, dtype=np.int64), np.empty(300, dtype=np.int64))
            assert np.array_equal(ids, np.append(np.sort(arm), 7))


@pytest.mark.bounds
@pytest.mark.parametrize("draw", [spread, ties, infinite, huge_and_tiny])
def test_a_heap_keeps_the_heaviest(draw: Any) -> None:
    rng = np.random.default_rng(14)
    for n, capacity, first in ((1, 1, 0), (5, 9, 2), (40, 3, 1), (300, 64, 0), (300, 300, 4)):
        weights = draw(rng, n)
        weight, arm = np.full(first + capacity, -7.0), np.full(first + capacity, -7)
        size = 0
        for k in range(n):
            size = heap_offer(weight, arm, first, size, capacity, weights[k], k)
        assert size == min(n, capacity)
        kept = arm[first : first + size]
        assert np.array_equal(np.sort(kept), np.sort(np.lexsort((np.arange(n), -weights))[:capacity]))
        assert np.array_equal(weight[first : first + size], weights[kept])
        assert (arm[:first] == -7).all() and (weight[:first] == -7.0).all()


@pytest.mark.bounds
def test_sort_ids_and_by_arm() -> None:
    rng = np.random.default_rng(12)
    for n, top in ((1, 5), (30, 1000), (49, 1), (500, 3), (2000, 10**9), (2000, -1), (3000, 10**6)):
        # -1: one id far above all others, so that their highest bits are the same.
        ids = (
            np.append(rng.integers(0, 10**4, size=n - 1), 10**9) if top < 0 else rng.integers(0, top, size=n)
        )
        expected = np.sort(ids)
        weight = rng.random(n)
        pairs = ids.copy(), weight.copy()
        stable = np.argsort(ids, kind="stable")
        spare, count = np.empty(n, dtype=np.int64), np.empty(300, dtype=np.int64)
        in_place = ids.copy()
        sort_ids_in_place(in_place, n)
        assert np.array_equal(in_place, expected)
        sort_by_arm(pairs[1], pairs[0], n, np.empty(n), spare, count)
        assert np.array_equal(pairs[0], expected) and np.array_equal(pairs[1], weight[stable])
        sort_ids(ids, n, spare, count)
        assert np.array_equal(ids, expected)


@kernel
def _first_max(array, start, lane, value):
    return first_max(array, start, lane, value)


@kernel
def _bits(number):
    return ordered_bits(number)


@kernel
def _meet(columns: Any, start: Any, word0: Any, word1: Any) -> Any:
    return places_that_meet(columns, start, word0, word1)


@kernel
def _pair(rows: Any, i: Any) -> Any:
    return two_words(rows, i)


def test_places_that_meet_and_pairs() -> None:
    rng = np.random.default_rng(16)
    for bits in (1, 2, 60):
        # Words with few bits and with many, the highest among them.
        columns = np.zeros((2, 40), dtype=np.int64)
        for _ in range(bits):
            columns |= np.left_shift(np.int64(1), rng.integers(0, 64, columns.shape))
        columns[:, rng.permutation(40)[:10]] = 0
        for start in range(33):
            word0, word1 = np.left_shift(np.int64(1), rng.integers(0, 64, 2)) | rng.choice([0, 2**40], 2)
            both = (columns[0, start : start + 8] & word0) | (columns[1, start : start + 8] & word1)
            assert _meet(columns, start, word0, word1) == sum(1 << j for j in np.flatnonzero(both).tolist())
        rows = np.ascontiguousarray(columns.T)
        assert all(_pair(rows, i) == tuple(rows[i].tolist()) for i in range(40))


def test_first_max_is_argmax() -> None:
    rng = np.random.default_rng(13)
    for _ in range(200):
        array = rng.choice([-np.inf, 0.0, 1.0, 2.0, np.inf, rng.random()], size=48)
        start, lane, value = int(rng.integers(33)), int(rng.integers(-1, 16)), float(rng.integers(3))
        block = array[start : start + 16].copy()
        if lane >= 0:
            block[lane] = value
        assert _first_max(array, start, lane, value) == start + int(np.argmax(block))


def test_ordered_bits_keep_the_order() -> None:
    numbers = [-np.inf, -1e308, -2.0, -5e-324, -0.0, 0.0, 5e-324, 1.0, 1.5, 1e308, np.inf]
    bits = [_bits(x) for x in numbers]
    for x, b in zip(numbers, bits, strict=True):
        for y, c in zip(numbers, bits, strict=True):
            assert (x < y) == (b < c)
