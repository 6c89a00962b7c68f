"""One change of weight in the dynamic maximum spanning forest, from the leaf of the sparsification tree up.

What is under way is written on a TASK: the seat concerned, the arm that now sits (or shall sit) there, whether it
is another edge than before and where its ends then are, and whether the change is upwards. It also counts steps:
an update that walks more of them than a chord diagram would cost adds to the EXCESS, and when the excess has grown
to what it costs to draw the diagrams, the update is answered with TIRED, and the caller should draw them. So any
sequence of updates costs no more, in order, than with diagrams from the start.

Chord graphs are left to `_chord_forest`, compiled only where they occur: `climb` stops in front of one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from semibandit.compiled.jit import njit
from semibandit.paper.dynamic.order import replay
from semibandit.paper.dynamic.seats import ARM, END, LIFT, LOOSE, NODE, OFF, SEAT, TOP, UP
from semibandit.paper.dynamic.walk import (
    END0,
    END1,
    MOVED,
    PLACE,
    RISING,
    STEPS,
    WHO,
    walk_fallen,
    walk_risen,
)

EXCESS, ALLOWANCE, LIMIT = 7, 8, 9  # further entries of a task
TASK = 10  # its length
SAME, CHANGED, CHORDS, GO_ON = (
    0,
    1,
    2,
    3,
)  # done, base as before; done, base changed; a chord graph is next; go on
TIRED = 4  # added to SAME or CHANGED


@njit
def ascend(keeper: int, loose: bool, task: Any, seats: Any, verts: Any, base: Any) -> int:
    """Hand a task on to the parent graph. O(1). Changes `task`, at the root `base`.

    `keeper` is the seat by which the parent is concerned (-1: by none), `loose` tells whether the edge of the
    task was outside the forest before.
    """
    if keeper < 0:
        return SAME
    # The parent's seat changes hands, rather than weight, once another edge has come in below.
    if loose or keeper != task[PLACE]:
        task[MOVED] = 1
    arm = np.int64(seats[keeper, ARM])
    up = np.int64(seats[keeper, UP])
    if up < LOOSE:
        if base[-2 - up] == arm:
            return SAME
        base[-2 - up] = arm
        return CHANGED
    task[PLACE] = up
    task[WHO] = arm
    task[END0] = verts[seats[keeper, END], LIFT]
    task[END1] = verts[seats[keeper, END + 1], LIFT]
    return GO_ON


@njit
def climb(task: Any, weight: Any, seats: Any, verts: Any, queue: Any, base: Any) -> int:
    """Carry a task up until it is done or a chord graph is next. O(n) a level. Changes all but `weight`."""
    state = GO_ON
    while state == GO_ON:
        seat = task[PLACE]
        if verts[seats[seat, END], TOP] < -1:
            return CHORDS
        loose = seats[seat, UP] == LOOSE
        if task[RISING] != 0:
            keeper = walk_risen(task, seats, verts, weight)
        else:
            keeper = walk_fallen(task, seats, verts, weight, queue)
        state = ascend(keeper, loose, task, seats, verts, base)
    task[EXCESS] = max(0, task[EXCESS] + task[STEPS] - task[ALLOWANCE])
    if task[EXCESS] > task[LIMIT]:
        state += TIRED
    return state


@njit
def set_one(arm: int, new: float, weight: Any, arms: Any, win: Any, task: Any, trees: Any, work: Any) -> int:
    """Give `arm` the weight `new` and `climb`. `trees` is (seats, vertices), `work` (queue, base)."""
    old = weight[arm]
    weight[arm] = new
    seat = arms[arm, SEAT]
    if new == old or seat < 0:
        return SAME
    who = np.int64(arm)
    off = arms[arm, OFF]
    if off >= 0:
        # Of parallel edges only the champion is seated.
        before = win[off + 1]
        replay(who, off, arms[arm, NODE], win, weight)
        who = np.int64(win[off + 1])
        if who == before and who != arm:
            return SAME
    task[PLACE] = seat
    task[WHO] = who
    task[MOVED] = 0
    task[STEPS] = 0
    task[RISING] = 1 if new > old else 0
    return climb(task, weight, trees[0], trees[1], work[0], work[1])


@njit
def set_many(
    start: int, ids: Any, new: Any, weight: Any, arms: Any, win: Any, task: Any, trees: Any, work: Any
) -> Any:
    """`set_one` for each of ids[start:] in turn, while there are no chord graphs and the walker is not tired.

    Returns (where it stopped, how often the base changed).
    """
    count = 0
    for i in range(start, ids.size):
        state = set_one(ids[i], new[i], weight, arms, win, task, trees, work)
        count += state & CHANGED
        if state >= TIRED:
            return i + 1, count
    return ids.size, count
