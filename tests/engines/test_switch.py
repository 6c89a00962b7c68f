"""The choice between two solvers by counted cost."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from semibandit.compiled.jit import kernel
from semibandit.engines.switch import (
    CHANGES,
    IN_USE,
    LOST,
    MOST_PATIENCE,
    PATIENCE,
    STAY,
    busy_pays,
    change_to_busy,
    change_to_quiet,
    check_switch,
    count_cost,
    count_round,
    new_switch,
    quiet_pays,
)

BUSY, QUIET = 0, 1


@kernel
def play(switch, price, busy_cost, quiet_cost):
    """Rounds of an engine whose solvers cost so much; returns what they cost in all, changes included."""
    total = 0.0
    for t in range(busy_cost.shape[0]):
        count_round(switch)
        if switch[IN_USE] == QUIET:
            total += quiet_cost[t]
            count_cost(switch, quiet_cost[t], busy_cost[t])
            if busy_pays(switch, price):
                change_to_busy(switch, BUSY)
                total += price
        else:
            total += busy_cost[t]
            count_cost(switch, busy_cost[t], quiet_cost[t])
            if quiet_pays(switch, price):
                change_to_quiet(switch, QUIET)
                total += price
    return total


def run(busy: Any, quiet: Any, price: float = 10.0) -> tuple[Any, float]:
    switch = new_switch(BUSY)
    busy, quiet = (np.asarray(cost, dtype=np.float64) for cost in (busy, quiet))
    total = float(play(switch, price, busy, quiet))
    check_switch(switch, (BUSY, QUIET))
    return switch, total


def test_changes_when_the_loss_exceeds_the_price() -> None:
    switch, total = run([3.0] * 3, [0.0] * 3)
    assert switch[IN_USE] == BUSY and switch[LOST] == 9.0 and switch[STAY] == 3.0 and total == 9.0
    switch, total = run([3.0] * 4, [0.0] * 4)
    assert switch[IN_USE] == QUIET and switch[LOST] == 0.0 and switch[STAY] == 0.0 and switch[CHANGES] == 1.0
    assert total == 22.0


def test_old_gains_do_not_hide_a_loss() -> None:
    """What the solver in use gained before does not count against what it loses now."""
    switch, _ = run([0.0] * 1000 + [3.0] * 4, [5.0] * 1000 + [0.0] * 4)
    assert switch[IN_USE] == QUIET


def test_equal_solvers_do_not_flutter() -> None:
    rng = np.random.default_rng(1)
    switch, _ = run(5.0 + rng.random(10_000), 5.0 + rng.random(10_000) + 0.1, price=20.0)
    assert switch[CHANGES] == 0.0


def test_patience_after_short_stays() -> None:
    """States that turn busy whenever the quiet solver is tried: it is tried less and less often."""
    switch = new_switch(BUSY)
    waits = []
    for _ in range(8):
        waits.append(0)
        while switch[IN_USE] == BUSY:
            play(switch, 10.0, np.full(1, 3.0), np.zeros(1))
            waits[-1] += 1
        while switch[IN_USE] == QUIET:
            play(switch, 10.0, np.full(1, 3.0), np.full(1, 9.0))
    assert waits == [4, 7, 14, 27, 54, 107, 107, 107] and switch[PATIENCE] == MOST_PATIENCE
    for _ in range(3):
        while switch[IN_USE] == BUSY:
            play(switch, 10.0, np.full(1, 3.0), np.zeros(1))
        play(switch, 10.0, np.full(100, 3.0), np.zeros(100))
        while switch[IN_USE] == QUIET:
            play(switch, 10.0, np.full(1, 3.0), np.full(1, 9.0))
    assert switch[PATIENCE] == MOST_PATIENCE / 8


@pytest.mark.parametrize("seed", range(5))
def test_costs_little_more_than_the_better_solver_of_each_stretch(seed: int) -> None:
    """Stretches of 200 rounds: in each, at most two prices more than its better solver, patience aside."""
    rng = np.random.default_rng(seed)
    busy = np.full(4000, 4.0)
    quiet = np.repeat(rng.choice([0.5, 12.0], size=20), 200)
    switch, total = run(busy, quiet)
    best = np.minimum(busy, quiet).sum()
    assert total <= best + 20 * (2 * 10.0 + 12.0)
    assert switch[CHANGES] <= 20
