"""The order that is sorted only as far as someone looks, against sorting everything, operation by operation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from semibandit.compiled.jit import kernel
from semibandit.engines.order.lazy import (
    END,
    FRONT,
    HEAD,
    LONG_FRONT,
    N_SEGMENTS,
    PIECE,
    check_lazy_order,
    close_gaps,
    extend_front,
    join,
    join_many,
    loosen,
    new_lazy_order,
)
from support.lazy_orders import fill

pytestmark = pytest.mark.bounds


@kernel
def extend(order: Any) -> Any:
    return extend_front(order)


@kernel
def take(order: Any, end: Any) -> None:
    close_gaps(order, end)


@kernel
def join_one(order: Any, arm: Any, weight: Any) -> Any:
    return join(order, arm, weight)


@kernel
def join_all(order: Any, n: Any) -> Any:
    return join_many(order, n)


@kernel
def loosen_one(order: Any, arm: Any) -> Any:
    return loosen(order, arm)


class Waiting:
    """A lazy order beside a set of (minus weight, arm)."""

    def __init__(self, rng: np.random.Generator, n: int, margin: int, style: int) -> None:
        self.rng, self.n, self.margin, self.style = rng, n, margin, style
        self.order = new_lazy_order(n, margin)
        self.start()

    def weight(self) -> float:
        if self.style == 0:
            return float(self.rng.integers(0, 3))
        if self.style == 1 and self.rng.random() < 0.3:
            return np.inf
        return float(self.rng.random())

    def start(self) -> None:
        weights = np.array([self.weight() for _ in range(self.n)])
        fill(self.order, weights)
        self.expected = {(-w, k) for k, w in enumerate(weights.tolist())}
        self.away: list[int] = []

    def look(self, n: int) -> None:
        """The first n entries are right; some of them leave."""
        order, listed = self.order, sorted(self.expected)[:n]
        i = order.at[HEAD]
        for entry in listed:
            assert i < order.at[FRONT] or extend(order)
            assert (-order.weight[i], order.arm[i]) == entry
            if self.rng.random() < 0.5:
                self.expected.discard(entry)
                self.away.append(entry[1])
                order.arm[i] = -1
            i += 1
        if len(listed) < n:
            assert i == order.at[FRONT] and not extend(order)
        take(order, i)

    def come(self, n: int, at_once: bool) -> bool:
        """Some of those that left join again; False if there was no room."""
        arms = [self.away.pop() for _ in range(min(n, len(self.away), self.margin))]
        entries = [(self.weight(), arm) for arm in arms]
        self.expected.update((-w, arm) for w, arm in entries)
        if not at_once:
            return all([join_one(self.order, arm, w) for w, arm in entries])
        for i, (w, arm) in enumerate(entries):
            self.order.new_weight[i], self.order.new_arm[i] = w, arm
        return bool(join_all(self.order, len(entries)))


@pytest.mark.thin
@pytest.mark.parametrize("seed", range(9))
def test_entries_come_in_order(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rooms = segments = 0
    for n in (1, 2, 30, 1500):
        waiting = Waiting(rng, n, 1 + n // 8, seed % 3)
        for _ in range(40):
            waiting.look(int(rng.integers(0, n // 3 + 2)))
            before = waiting.order.at[END]
            if not waiting.come(int(rng.integers(0, n // 4 + 2)), bool(rng.integers(2))):
                waiting.start()
            rooms += waiting.order.at[END] < before
            segments = max(segments, int(waiting.order.at[N_SEGMENTS]))
            check_lazy_order(waiting.order)
        waiting.look(n + 1)
    assert rooms > 0 and segments >= 2


def test_a_long_front_is_cut() -> None:
    waiting = Waiting(np.random.default_rng(1), 4000, 8, 2)
    for _ in range(20):
        assert extend(waiting.order)
    assert waiting.order.at[FRONT] - waiting.order.at[HEAD] > LONG_FRONT
    waiting.expected.add((-2.0, 0))
    assert join_one(waiting.order, 0, 2.0)
    assert waiting.order.at[FRONT] - waiting.order.at[HEAD] == PIECE + 1
    check_lazy_order(waiting.order)
    waiting.look(4001)


def test_entries_of_one_arm_are_limited() -> None:
    """So a segment that is to be halved has other keys too, whatever was drawn from it."""
    order = new_lazy_order(400, 4)
    fill(order, np.zeros(400))
    while loosen_one(order, 7):
        assert join_one(order, 7, -1.0)
    assert order.loose[7] < PIECE
    n = int(order.at[END] - order.at[HEAD])
    assert n == 400 + int(order.loose[7])
    while extend(order):
        pass
    check_lazy_order(order)
    assert order.at[FRONT] == order.at[END]


def test_the_same_key_again_and_again_is_halved() -> None:
    order = new_lazy_order(600, 4)
    fill(order, np.r_[np.ones(1), np.zeros(599)])
    order.arm[order.at[HEAD] : order.at[END]] = 5  # no other key than two
    while extend(order):
        check_lazy_order(order)
        if order.at[FRONT] - order.at[HEAD] == 1:
            break
    assert order.weight[order.at[HEAD]] == 1.0
