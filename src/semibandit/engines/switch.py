"""Which of two solvers when, by counted cost: what the "adaptive" engines go by.

An adaptive engine has one solver for busy states, whose cost hardly depends on what changed, and one for quiet states,
whose cost is that of the changes. Only one is kept up to date. In every round the engine counts what the solver in use
did and estimates what the other would have done. The difference is summed and never goes below nothing, so that what
was gained long ago does not hide a loss of late. When what was lost exceeds the price of a change, the other solver
takes over. So, where the estimates are right, no stretch of rounds between two changes costs more than with the other
solver by more than that price and one round; and two solvers of about the same cost do not flutter.

Estimates can be wrong where states change quickly. So a short stay with the quiet solver makes the engine more patient:
the next time, more must have been lost before it is tried. A long stay takes this back.

The unit of all costs is a nanosecond of the machine on which they were measured; only their ratios matter. The choice
decides what a round costs, never what it answers.
"""

from __future__ import annotations

import numpy as np

from semibandit.arms import FloatArray
from semibandit.compiled.jit import inline_kernel

# Entries of a switch: the solver in use (a whole number of the engine's own), what it has lost against the other,
# rounds since the last change, how many times the price must be lost before the quiet solver is tried, and changes made
# because they pay.
IN_USE, LOST, STAY, PATIENCE, CHANGES = range(5)

# A stay of less rounds is short.
SHORT_STAY, MOST_PATIENCE = 16.0, 32.0


def new_switch(solver: int) -> FloatArray:
    """A switch that begins with `solver`."""
    switch = np.zeros(5)
    switch[IN_USE], switch[PATIENCE] = solver, 1.0
    return switch


@inline_kernel
def count_round(switch):
    """Another round begins. O(1)."""
    switch[STAY] += 1.0


@inline_kernel
def count_cost(switch, cost, other_cost):
    """The solver in use takes `cost` for a round for which the other would take `other_cost`. O(1)."""
    switch[LOST] = max(0.0, switch[LOST] + cost - other_cost)


@inline_kernel
def quiet_pays(switch, price):
    """Whether the busy solver has lost what changing to the quiet one costs, as often as patience asks for. O(1)."""
    return switch[LOST] > price * switch[PATIENCE]


@inline_kernel
def busy_pays(switch, price):
    """Whether the quiet solver has lost what changing to the busy one costs. O(1)."""
    return switch[LOST] > price


@inline_kernel
def change_to_quiet(switch, solver):
    """The quiet solver takes over. O(1)."""
    switch[IN_USE] = solver
    switch[LOST] = 0.0
    switch[STAY] = 0.0
    switch[CHANGES] += 1.0


@inline_kernel
def change_to_busy(switch, solver):
    """The busy solver takes over, because it pays; patience learns from how long the quiet one was in use. O(1)."""
    if switch[STAY] < SHORT_STAY:
        switch[PATIENCE] = min(2.0 * switch[PATIENCE], MOST_PATIENCE)
    else:
        switch[PATIENCE] = max(1.0, 0.5 * switch[PATIENCE])
    switch[IN_USE] = solver
    switch[LOST] = 0.0
    switch[STAY] = 0.0
    switch[CHANGES] += 1.0


def check_switch(switch: FloatArray, solvers: tuple[int, ...]) -> None:
    """Assert what holds at any time, for an engine with these solvers."""
    assert switch[IN_USE] in solvers and switch[LOST] >= 0.0
    assert 1.0 <= switch[PATIENCE] <= MOST_PATIENCE and np.log2(switch[PATIENCE]) % 1.0 == 0.0
