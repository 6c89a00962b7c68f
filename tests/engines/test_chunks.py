"""A front in chunks, with holes and tags, against a sorted list."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from semibandit.compiled.jit import kernel
from semibandit.engines.order import chunks as chunked
from semibandit.engines.order.check_chunks import arms_of, check_front, places_of, weights_of
from semibandit.engines.order.chunks import (
    FIRST,
    LAST,
    N_FREE,
    PLACES,
    Chunks,
    first_of,
    has_room_to_extend,
    new_chunks,
)
from semibandit.engines.order.lazy import END, FRONT, LazyOrder, check_lazy_order, new_lazy_order
from support.lazy_orders import fill

pytestmark = pytest.mark.bounds


@kernel
def extend(order: Any, chunks: Any) -> Any:
    return chunked.extend_chunks(order, chunks) if has_room_to_extend(chunks) else -2


@kernel
def leave_all(chunks: Any, places: Any) -> None:
    for i in range(places.shape[0]):
        chunked.leave(chunks, places[i])


@kernel
def let_come(order: Any, chunks: Any, n: Any) -> Any:
    return chunked.come(order, chunks, n)


@kernel
def first_place(chunks: Any) -> Any:
    return chunked.first_place(chunks)


@kernel
def empty(chunks: Any) -> None:
    chunked.forget_chunks(chunks)


@kernel
def all_with(chunks: Any, tag0: Any, tag1: Any, out: Any) -> Any:
    """The places of all entries with one of these tags, and how many."""
    n, j = 0, chunks.at[FIRST]
    if j == chunks.at[LAST]:
        return n
    place = first_of(chunks, j)
    while True:
        j, place = chunked.next_with(chunks, j, place, chunks.at[LAST], tag0, tag1)
        if j == chunks.at[LAST]:
            return n
        out[n] = place
        n += 1
        place += 1


Entries = list[tuple[float, int]]


def front(chunks: Chunks) -> Entries:
    """The entries of the front as (minus weight, arm)."""
    places = places_of(chunks)
    weights, arms = weights_of(chunks, places), arms_of(chunks, places)
    return list(zip((-weights).tolist(), arms.tolist(), strict=True))


def behind(order: LazyOrder) -> Entries:
    """The entries of the segments, sorted."""
    at = slice(int(order.at[FRONT]), int(order.at[END]))
    return sorted(zip((-order.weight[at]).tolist(), order.arm[at].tolist(), strict=True))


def new_front(
    rng: np.random.Generator, n: int, margin: int, ties: bool, whole: bool
) -> tuple[LazyOrder, Chunks]:
    """All n arms, in the front or as far as it is sorted at first."""
    order = new_lazy_order(n, margin)
    tag_of = np.int64(1) << rng.integers(0, 62, size=(n, 2))
    tag_of[rng.random(n) < 0.5, int(rng.integers(0, 2))] = 0
    chunks = new_chunks(tag_of, margin)
    fill(order, rng.integers(0, 3, n).astype(np.float64) if ties else rng.random(n))
    while extend(order, chunks) >= 0 and whole:
        pass
    return order, chunks


def check(order: LazyOrder, chunks: Chunks) -> None:
    check_lazy_order(order)
    check_front(order, chunks)


@pytest.mark.parametrize("n", [1, 2, 17, 300, 1500])
def test_what_leaves_is_gone_and_what_comes_is_there(n: int) -> None:
    rng = np.random.default_rng(n)
    most_chunks = full = 0
    for round_of in range(12):
        margin = 1 + n // 3
        ties = round_of % 2 == 0
        order, chunks = new_front(rng, n, margin, ties, round_of % 4 < 2)
        away: list[int] = []
        for _ in range(20):
            expected, rest = front(chunks), behind(order)
            # Near the begin, or anywhere.
            near = len(expected) if round_of % 3 else len(expected) // 4 + 1
            gone = np.sort(rng.permutation(min(near, len(expected)))[: rng.integers(0, margin + 1)])
            leave_all(chunks, places_of(chunks)[gone])
            check(order, chunks)
            away += [expected[i][1] for i in gone.tolist()]
            left = [entry for i, entry in enumerate(expected) if i not in set(gone.tolist())]
            assert front(chunks) == left and behind(order) == rest
            back = [away.pop() for _ in range(min(len(away), int(rng.integers(0, margin + 1))))]
            # All over the front, or all into one place: chunks are made two of, again and again.
            one = float(rng.random()) if round_of % 3 == 2 else 0.0
            new = [
                (float(-(rng.integers(0, 3) if ties else one or rng.random())), arm)
                for arm in rng.permutation(back).tolist()
            ]
            for k, (minus_weight, arm) in enumerate(new):
                order.new_weight[k], order.new_arm[k] = -minus_weight, arm
            if not let_come(order, chunks, len(new)):
                assert chunks.at[N_FREE] == 0
                full += 1
                break
            check(order, chunks)
            assert sorted(front(chunks) + behind(order)) == sorted(left + rest + new)
            assert front(chunks) == sorted(front(chunks))
            most_chunks = max(most_chunks, int(chunks.at[LAST] - chunks.at[FIRST]))
            now, step = front(chunks), int(rng.integers(0, 3))
            if step == 0:
                place = first_place(chunks)
                assert place == (places_of(chunks)[0] if now else -1)
            elif step == 1:
                first = extend(order, chunks)
                if first >= 0:
                    assert chunks.key_weight[first] == -front(chunks)[len(now)][0]
                now = sorted(now + behind(order))[: len(front(chunks))] if rest else now
            check(order, chunks)
            assert step == 1 or front(chunks) == now
    assert most_chunks > n // PLACES and full < 6


@pytest.mark.parametrize("n", [1, 40, 700])
def test_entries_are_found_by_their_tags(n: int) -> None:
    rng = np.random.default_rng(n)
    order, chunks = new_front(rng, n, n, False, True)
    out = np.zeros(n, dtype=np.int64)
    for _ in range(30):
        places = places_of(chunks)
        leave_all(chunks, rng.permutation(places)[: len(places) // 9])
        few = rng.integers(0, 2**62, size=(2, 4))
        tag0, tag1 = (int(np.bitwise_and.reduce(row)) for row in few)
        places = places_of(chunks)
        has = (chunks.tag[0, places] & tag0 != 0) | (chunks.tag[1, places] & tag1 != 0)
        found = all_with(chunks, tag0, tag1, out)
        assert out[:found].tolist() == places[has].tolist()
    assert all_with(chunks, -1, -1, out) == len(places_of(chunks))
    check(order, chunks)


def test_all_may_leave_and_come_again() -> None:
    rng = np.random.default_rng(1)
    order, chunks = new_front(rng, 90, 90, False, True)
    for _ in range(4):
        entries = front(chunks)
        leave_all(chunks, places_of(chunks))
        assert first_place(chunks) == -1 and chunks.at[N_FREE] == len(chunks.count)
        check(order, chunks)
        for k, (minus_weight, arm) in enumerate(entries):
            order.new_weight[k], order.new_arm[k] = -minus_weight, arm
        assert let_come(order, chunks, len(entries))
        check(order, chunks)
        assert front(chunks) == entries
    empty(chunks)
    assert front(chunks) == [] and chunks.at[N_FREE] == len(chunks.count)


def test_there_may_be_no_chunk_left() -> None:
    """Then the caller hears of it, and nothing is lost before it does."""
    order, chunks = new_front(np.random.default_rng(2), 8, 1, False, True)
    came = 0
    order.new_weight[0], order.new_arm[0] = 0.5, 3
    while let_come(order, chunks, 1):
        came += 1
        assert came < len(chunks.count) * PLACES
        order.new_weight[0], order.new_arm[0] = 0.5, 3
    assert chunks.at[N_FREE] == 0 and len(front(chunks)) == 8 + came
    check(order, chunks)
    assert not has_room_to_extend.py_func(chunks) and extend(order, chunks) == -2


def test_the_directory_goes_back_to_its_begin() -> None:
    """The front moves on and on: pieces are appended at its end, and what is before it leaves."""
    rng = np.random.default_rng(3)
    order, chunks = new_front(rng, 400, 400, False, False)
    wrapped, last = 0, 0
    for _ in range(200):
        entries = front(chunks)
        leave_all(chunks, places_of(chunks))
        assert first_place(chunks) == -1
        for k, (_, arm) in enumerate(entries):  # behind all others
            order.new_weight[k], order.new_arm[k] = -rng.random() - len(entries), arm
        assert let_come(order, chunks, len(entries))
        rest = behind(order)
        assert extend(order, chunks) >= 0 or not rest
        check(order, chunks)
        wrapped += int(chunks.at[LAST]) < last
        last = int(chunks.at[LAST])
        assert len(front(chunks)) + len(behind(order)) == 400
    assert wrapped > 0
