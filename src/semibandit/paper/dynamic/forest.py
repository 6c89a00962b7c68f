"""One change of weight in the dynamic maximum spanning forest, from the leaf of the sparsification tree up.

What is under way is written on a TASK: the seat concerned, the arm that now sits (or shall sit) there, whether it
is another edge than before and where its ends then are, and whether the change is upwards. It also counts steps:
an update that walks more of them than a chord diagram would cost adds to the EXCESS, and when the excess has grown
to what it costs to draw the diagrams, the update is answered with TIRED, and the caller should draw them. So any
sequence of updates costs no more, in order, than with diagrams from the start.

Graphs with chord diagrams are left to `chord_forest`, compiled only where they occur: `climb` stops in front of one.
"""

from __future__ import annotations

import numpy as np

from semibandit.compiled.jit import kernel
from semibandit.paper.dynamic.order import replay
from semibandit.paper.dynamic.seats import (
    ALLOWANCE,
    ARM,
    DIAGRAM,
    END,
    END0,
    END1,
    EXCESS,
    LIFT,
    LIMIT,
    LOOSE,
    MOVED,
    OFFSET,
    PLACE,
    RISING,
    SEAT,
    SLOT,
    STEPS,
    TOP,
    UP,
    WHO,
)
from semibandit.paper.dynamic.walk import walk_fallen, walk_risen

# How a task stands: done, base as before; done, base changed; a graph with a chord diagram is next; go on.
SAME, CHANGED, CHORDS, GO_ON = range(4)
TIRED = 4  # added to SAME or CHANGED


@kernel
def ascend(f, keeper, loose):
    """Hand a task on to the parent graph. O(1). Changes `task`, at the root `base`.

    `keeper` is the seat by which the parent is concerned (-1: by none), `loose` tells whether the edge of the
    task was outside the forest before.
    """
    task, seats, verts, base = f.task, f.seats, f.verts, f.base
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


@kernel
def climb(f):
    """Carry a task up until it is done or a chord diagram is next. O(n) a level. Changes all but `weight`."""
    task, seats, verts = f.task, f.seats, f.verts
    state = GO_ON
    while state == GO_ON:
        seat = task[PLACE]
        top = np.int64(verts[seats[seat, END], TOP])
        if top < -1:
            task[DIAGRAM] = -2 - top
            return CHORDS
        loose = seats[seat, UP] == LOOSE
        keeper = walk_risen(f) if task[RISING] != 0 else walk_fallen(f)
        state = ascend(f, keeper, loose)
    task[EXCESS] = max(0, task[EXCESS] + task[STEPS] - task[ALLOWANCE])
    if task[EXCESS] > task[LIMIT]:
        state += TIRED
    return state


@kernel
def set_one(f, arm, new):
    """Give `arm` the weight `new` and `climb`."""
    weight, arms, task = f.weight, f.arms, f.task
    old = weight[arm]
    weight[arm] = new
    seat = arms[arm, SEAT]
    if new == old or seat < 0:
        return SAME
    who = np.int64(arm)
    offset = arms[arm, OFFSET]
    if offset >= 0:
        # Of parallel edges only the champion is seated.
        before = f.champions[offset + 1]
        replay(f.champions, weight, who, offset, arms[arm, SLOT])
        who = np.int64(f.champions[offset + 1])
        if who == before and who != arm:
            return SAME
    task[PLACE] = seat
    task[WHO] = who
    task[MOVED] = 0
    task[STEPS] = 0
    task[RISING] = 1 if new > old else 0
    return climb(f)


@kernel
def set_many(f, start, arms, new, changes):
    """`set_one` for each of arms[start:] in turn, while there are no diagrams and the walker is not tired.

    Returns where it stopped; ``changes[0]`` counts how often the base changed.
    """
    for i in range(start, arms.shape[0]):
        state = set_one(f, arms[i], new[i])
        changes[0] += state & CHANGED
        if state >= TIRED:
            return i + 1
    return arms.shape[0]
