"""Entries that leave and come at known places, against a list that is written anew."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from semibandit.compiled.jit import kernel
from semibandit.engines.order.lazy import (
    FRONT,
    HEAD,
    STEADY,
    LazyOrder,
    check_lazy_order,
    extend_front,
    join,
    new_lazy_order,
    place_in_front,
)
from semibandit.engines.order.splice import (
    Splice,
    check_splice,
    comes,
    leaves,
    new_splice,
    put_through,
    write_tags,
)
from support.lazy_orders import fill

pytestmark = pytest.mark.bounds


@kernel
def extend(order: Any, splice: Any) -> Any:
    found = extend_front(order)
    write_tags(order, splice)
    return found


@kernel
def leave(splice: Any, place: Any) -> Any:
    return leaves(splice, place)


@kernel
def come(order: Any, splice: Any, first: Any, weight: Any, arm: Any) -> Any:
    place = place_in_front(order, first, weight, arm)
    comes(order, splice, place, weight, arm)
    return place


@kernel
def put(order: Any, splice: Any) -> None:
    put_through(order, splice)


@kernel
def join_one(order: Any, arm: Any, weight: Any) -> Any:
    return join(order, arm, weight)


@kernel
def tag_all(order: Any, splice: Any) -> None:
    write_tags(order, splice)


def front(order: LazyOrder) -> list[tuple[float, int]]:
    """The entries of the front as (minus weight, arm)."""
    at = slice(int(order.at[HEAD]), int(order.at[FRONT]))
    return list(zip((-order.weight[at]).tolist(), order.arm[at].tolist(), strict=True))


def new_front(
    rng: np.random.Generator, n: int, margin: int, width: int, ties: bool
) -> tuple[LazyOrder, Splice]:
    """All n arms in the front."""
    order = new_lazy_order(n, margin)
    splice = new_splice(order, rng.integers(-(2**62), 2**62, size=(n, width)))
    fill(order, rng.integers(0, 3, n).astype(np.float64) if ties else rng.random(n))
    while extend(order, splice):
        pass
    return order, splice


@pytest.mark.parametrize("width", [0, 1, 2])
@pytest.mark.parametrize("n", [1, 2, 17, 300])
def test_what_leaves_is_gone_and_what_comes_is_there(n: int, width: int) -> None:
    rng = np.random.default_rng([n, width])
    both_ways = 0
    for round_of in range(12):
        margin = 1 + n // 3
        ties = round_of % 2 == 0
        order, splice = new_front(rng, n, margin, width, ties)
        away: list[int] = []
        for _ in range(8):
            expected, head, end = front(order), int(order.at[HEAD]), int(order.at[FRONT])
            # Gaps near the begin and entries near the end, the other way round, or anywhere.
            near = [np.arange(len(expected)), np.arange(len(expected) // 2 + 1)][round_of % 2]
            gone = np.sort(rng.permutation(near)[: rng.integers(0, min(margin, len(expected)) + 1)])
            gone = gone[gone < len(expected)]
            back = [away.pop() for _ in range(min(len(away), len(gone), int(rng.integers(0, margin + 1))))]
            new = [(float(-(rng.integers(0, 3) if ties else rng.random())), arm) for arm in back]
            for place in gone.tolist():
                assert leave(splice, head + place)
            place = head
            for minus_weight, arm in sorted(new):
                place = come(order, splice, place, -minus_weight, arm)
                assert place - head == sum(entry < (minus_weight, arm) for entry in expected)
            put(order, splice)
            shift = splice.shift[: len(gone) + len(new)]
            both_ways += bool((shift > 0).any() and (shift < 0).any())
            left = [entry for i, entry in enumerate(expected) if i not in set(gone.tolist())]
            assert front(order) == sorted(left + new)
            assert order.at[FRONT] == end
            away += [expected[i][1] for i in gone.tolist()]
            check_splice(order, splice)
            check_lazy_order(order)
            assert order.at[STEADY] == order.at[FRONT]
    assert both_ways > 0 or n < 17


def test_there_are_only_so_many_gaps() -> None:
    order, splice = new_front(np.random.default_rng(0), 20, 4, 2, False)
    head = int(order.at[HEAD])
    assert [leave(splice, head + i) for i in range(5)] == [True] * 4 + [False]
    expected = front(order)[4:]
    put(order, splice)
    assert front(order) == expected and leave(splice, head + 4)


def test_tags_are_written_again_from_where_somebody_joined() -> None:
    rng = np.random.default_rng(1)
    order, splice = new_front(rng, 50, 4, 2, False)
    arms = [arm for _, arm in front(order)]
    assert leave(splice, int(order.at[HEAD]))
    put(order, splice)
    middle = float(order.weight[order.at[HEAD] + 20])
    assert join_one(order, arms[0], np.nextafter(middle, 0.0))
    assert order.at[STEADY] == order.at[HEAD] + 21 < order.at[FRONT]
    check_splice(order, splice)
    tag_all(order, splice)
    assert order.at[STEADY] == order.at[FRONT]
    check_splice(order, splice)
