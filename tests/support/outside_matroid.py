"""A matroid class as somebody outside the package writes it: the class, and its row."""

from __future__ import annotations

import numpy as np

from semibandit.errors import MatroidError
from semibandit.matroids import Matroid, codec


class Deadlines(Matroid):
    """Jobs of an hour each, one at a time: those that can all be done by their deadlines."""

    def __init__(self, deadlines):
        deadlines = np.array(deadlines, dtype=np.int64)
        if (deadlines < 0).any():
            raise MatroidError(f"deadlines: hours are at least 0, got {deadlines.min()}")
        super().__init__(len(deadlines))
        self.deadlines = deadlines
        self.deadlines.setflags(write=False)

    def _is_independent(self, arms):
        due = np.sort(self.deadlines[arms])
        return bool((due >= np.arange(1, len(arms) + 1)).all())

    def _key(self):
        return (self.deadlines,)


def random_deadlines(arms, rank, seed):
    rng = np.random.default_rng([seed, 99])
    deadlines = rng.integers(1, rank + 1, arms)
    deadlines[rng.permutation(arms)[:rank]] = np.arange(1, rank + 1)
    return Deadlines(deadlines)


def from_toml(due, late=0):
    return Deadlines([hour + late for hour in due])


codec.register(
    Deadlines,
    to_parts=lambda m: {"deadlines": m.deadlines},
    from_parts=Deadlines,
    random=random_deadlines,
    from_toml=from_toml,
    words={"deadlines": "due"},
)
