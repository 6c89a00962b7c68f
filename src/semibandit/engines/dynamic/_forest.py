"""One change of weight in the dynamic maximum spanning forest, from the leaf of the sparsification tree up."""

from __future__ import annotations

from typing import Any

from semibandit._jit import njit
from semibandit.engines.dynamic._chord_forest import chord_fallen, chord_risen
from semibandit.engines.dynamic._order import replay
from semibandit.engines.dynamic._seats import ARM, END, LIFT, LOOSE, NODE, OFF, SEAT, TOP, UP
from semibandit.engines.dynamic._walk import walk_fallen, walk_risen


@njit
def set_one(arm: int, new: float, weight: Any, lanes: Any, trees: Any, chords: Any, work: Any) -> int:
    """Give `arm` the weight `new`; 1 if the base changed.

    `lanes` is (arm table, tournaments of parallel edges), `trees` (seats, vertices), `chords` (heads, pool) and
    `work` (queue, base). Changes everything. O(log K) and a repair of one graph a level, until nothing changes.
    """
    old = weight[arm]
    weight[arm] = new
    arms, win = lanes
    seat = arms[arm, SEAT]
    if new == old or seat < 0:
        return 0
    rising = new > old
    if arms[arm, OFF] >= 0:
        # Of parallel edges only the champion is seated.
        off = arms[arm, OFF]
        before = win[off + 1]
        replay(arm, off, arms[arm, NODE], win, weight)
        champion = win[off + 1]
        if champion == before and champion != arm:
            return 0
        arm = champion
    seats, verts = trees
    queue, base = work
    moved = False
    end0 = -1
    end1 = -1
    while True:
        loose = seats[seat, UP] == LOOSE
        graph = -2 - verts[seats[seat, END], TOP]
        if graph >= 0:
            if rising:
                keeper = chord_risen(seat, arm, moved, end0, end1, graph, seats, verts, weight, chords)
            else:
                keeper = chord_fallen(seat, arm, moved, end0, end1, graph, seats, verts, weight, chords)
        elif rising:
            keeper = walk_risen(seat, arm, moved, end0, end1, seats, verts, weight)
        else:
            keeper = walk_fallen(seat, arm, moved, end0, end1, seats, verts, weight, queue)
        if keeper < 0:
            return 0
        # The parent's seat changes hands, rather than weight, once another edge has come in below.
        moved = moved or loose or keeper != seat
        arm = seats[keeper, ARM]
        up = seats[keeper, UP]
        if up < LOOSE:
            changed = 1 if base[-2 - up] != arm else 0
            base[-2 - up] = arm
            return changed
        end0 = verts[seats[keeper, END], LIFT]
        end1 = verts[seats[keeper, END + 1], LIFT]
        seat = up


@njit
def set_many(ids: Any, new: Any, weight: Any, lanes: Any, trees: Any, chords: Any, work: Any) -> int:
    """`set_one` for each of `ids` in turn; how many times the base changed."""
    count = 0
    for i in range(ids.size):
        count += set_one(ids[i], new[i], weight, lanes, trees, chords, work)
    return count
