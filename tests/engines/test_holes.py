"""A front with holes and tags, against a sorted list."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from semibandit.compiled.jit import kernel
from semibandit.engines.order.holes import (
    Holes,
    check_holes,
    close_holes,
    come,
    holes_in,
    leave,
    new_holes,
    pass_holes,
    write_tags,
)
from semibandit.engines.order.lazy import (
    END,
    FRONT,
    HEAD,
    LOOKED_TO,
    STEADY,
    LazyOrder,
    check_lazy_order,
    extend_front,
    new_lazy_order,
)
from support.lazy_orders import fill

pytestmark = pytest.mark.bounds


@kernel
def extend(order: Any, holes: Any) -> Any:
    found = extend_front(order)
    write_tags(order, holes)
    return found


@kernel
def leave_all(holes: Any, places: Any) -> None:
    for i in range(places.shape[0]):
        leave(holes, places[i])


@kernel
def let_come(order: Any, holes: Any, n: Any) -> Any:
    return come(order, holes, n)


@kernel
def close(order: Any, holes: Any) -> None:
    close_holes(order, holes)


@kernel
def skip(order: Any, holes: Any) -> None:
    pass_holes(order, holes)


Entries = list[tuple[float, int]]


def front(order: LazyOrder, holes: Holes) -> Entries:
    """The entries of the front as (minus weight, arm)."""
    places = int(order.at[HEAD]) + np.flatnonzero(~holes_in(order, holes))
    return list(zip((-order.weight[places]).tolist(), order.arm[places].tolist(), strict=True))


def behind(order: LazyOrder) -> Entries:
    """The entries of the segments, sorted."""
    at = slice(int(order.at[FRONT]), int(order.at[END]))
    return sorted(zip((-order.weight[at]).tolist(), order.arm[at].tolist(), strict=True))


def new_front(
    rng: np.random.Generator, n: int, margin: int, width: int, ties: bool, whole: bool
) -> tuple[LazyOrder, Holes]:
    """All n arms, in the front or as far as it is sorted at first."""
    order = new_lazy_order(n, margin)
    tag_of = rng.integers(0, 2**62, size=(n, width))
    tag_of[:, -1] |= 1
    holes = new_holes(order, tag_of)
    fill(order, rng.integers(0, 3, n).astype(np.float64) if ties else rng.random(n))
    while extend(order, holes) and whole:
        pass
    return order, holes


def check(order: LazyOrder, holes: Holes) -> None:
    check_lazy_order(order)
    check_holes(order, holes)


@pytest.mark.parametrize("width", [1, 2])
@pytest.mark.parametrize("n", [1, 2, 17, 300, 1500])
def test_what_leaves_is_gone_and_what_comes_is_there(n: int, width: int) -> None:
    rng = np.random.default_rng([n, width])
    with_holes = 0
    for round_of in range(8):
        margin = 1 + n // 3
        ties = round_of % 2 == 0
        order, holes = new_front(rng, n, margin, width, ties, round_of % 4 < 2)
        order.at[LOOKED_TO] = int(rng.integers(0, n))
        away: list[int] = []
        for _ in range(20):
            expected, rest = front(order, holes), behind(order)
            # Near the begin, or anywhere.
            near = len(expected) if round_of % 3 else len(expected) // 4 + 1
            places = int(order.at[HEAD]) + np.flatnonzero(~holes_in(order, holes))
            gone = np.sort(rng.permutation(min(near, len(expected)))[: rng.integers(0, margin + 1)])
            leave_all(holes, places[gone])
            check(order, holes)
            away += [expected[i][1] for i in gone.tolist()]
            left = [entry for i, entry in enumerate(expected) if i not in set(gone.tolist())]
            assert front(order, holes) == left and behind(order) == rest
            back = [away.pop() for _ in range(min(len(away), int(rng.integers(0, margin + 1))))]
            new = [(float(-(rng.integers(0, 3) if ties else rng.random())), arm) for arm in back]
            for k, (minus_weight, arm) in enumerate(new):
                order.new_weight[k], order.new_arm[k] = -minus_weight, arm
            assert let_come(order, holes, len(new))
            check(order, holes)
            assert sorted(front(order, holes) + behind(order)) == sorted(left + rest + new)
            assert front(order, holes) == sorted(front(order, holes))
            with_holes += bool(holes.number[0])
            step = int(rng.integers(0, 4))
            now = front(order, holes)
            if step == 0:
                close(order, holes)
                assert holes.number[0] == 0
            elif step == 1:
                skip(order, holes)
                assert not now or not holes_in(order, holes)[0]
            elif step == 2:
                extend(order, holes)
                now = sorted(now + behind(order))[: len(front(order, holes))] if rest else now
            check(order, holes)
            assert step == 2 or front(order, holes) == now
    assert with_holes > 0 or n < 17


def test_there_may_be_no_room_before_the_head() -> None:
    """Then the end of the front moves, and the tags from there on are written again."""
    rng = np.random.default_rng(1)
    order, holes = new_front(rng, 50, 2, 2, False, True)
    expected = front(order, holes)
    for k in range(20):  # second entries of arms
        order.new_weight[0], order.new_arm[0] = rng.random(), k
        expected.append((float(-order.new_weight[0]), k))
        assert let_come(order, holes, 1)
        check(order, holes)
        assert front(order, holes) == sorted(expected)
    assert order.at[HEAD] == 0 and order.at[STEADY] == order.at[FRONT]


def test_there_may_be_no_room_at_all() -> None:
    order, holes = new_front(np.random.default_rng(2), 8, 1, 2, False, True)
    room = len(order.arm) - 8
    came = 0
    order.new_weight[0], order.new_arm[0] = 0.5, 3
    while came <= room and let_come(order, holes, 1):
        came += 1
        order.new_weight[0], order.new_arm[0] = 0.5, 3
    assert came == room


@pytest.mark.parametrize("n", [1, 3, 4, 5, 13])
def test_entries_move_up_to_the_last_place_of_the_arrays(n: int) -> None:
    """Some are copied at a time: never beyond the arrays, and never over one that is still to be moved."""
    rng = np.random.default_rng(n)
    order, holes = new_front(rng, 64, 16, 2, False, True)
    last, head = len(order.arm), int(order.at[HEAD])
    by = last - int(order.at[END])
    for array in (order.weight, order.arm):
        array[head + by :] = array[head : last - by].copy()
    holes.tag[:, head + by : last] = holes.tag[:, head : last - by].copy()
    order.at[[HEAD, FRONT, END, STEADY]] += by
    check(order, holes)
    expected = front(order, holes)
    # At the end and in the middle; there is room at the head only.
    weights = np.sort(np.append(-rng.random(n // 2), rng.random(n - n // 2)))
    order.new_weight[:n], order.new_arm[:n] = weights, np.arange(n)
    expected += [(float(-w), k) for k, w in enumerate(weights)]
    assert let_come(order, holes, n)
    check(order, holes)
    assert front(order, holes) == sorted(expected)
