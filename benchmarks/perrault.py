"""Perrault, Perchet and Valko 2019, Figure 1 left: ESCB beside CUCB on the spanning trees of five vertices.

Means 1, and 1.1 on four of the ten edges; normal rewards of variance 1; regret after 10^5 rounds, mean over 100 runs:
CUCB 549, ESCB 397. The paper does not say which four edges, and both radii are "up to universal factors";
docs/regret.md says which readings were tried. Here: the four edges at one vertex, and f = log t for both.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from semibandit.arms import FloatArray, IntArray
from semibandit.environments import Gaussian
from semibandit.matroids import Graphic
from semibandit.policies.index.cucb import CUCB
from semibandit.policies.index.escb import ESCB
from semibandit.simulation import simulate

PUBLISHED = {"CUCB": 549.0, "ESCB": 397.0}

EDGES = tuple(combinations(range(5), 2))
STAR = tuple(EDGES.index((0, j)) for j in range(1, 5))
PATH = tuple(EDGES.index((i, i + 1)) for i in range(4))

# So wide that no reward is ever clipped; f = e (b - a)^2 log t is then c log t for e = c / 400.
RANGE = (-9.0, 11.0)


def instance(better: Sequence[int] = STAR, seed: int = 0) -> Gaussian:
    """Ten edges, four of them better by 0.1."""
    means = np.ones(10)
    means[list(better)] = 1.1
    return Gaussian(Graphic(EDGES), means, 1.0, reward_range=RANGE, seed=seed)


class ExactESCB:
    """The base of largest M + sqrt(f V), found by looking at all of them. O(bases * D) a round."""

    def __init__(self, env: Gaussian, factor: float = 1.0) -> None:
        rank = env.matroid.rank
        sets = [s for s in combinations(range(env.n_arms), rank) if env.matroid.is_independent(s)]
        self.bases: IntArray = np.array(sets, dtype=np.int64)
        self.counts, self.totals = np.zeros(env.n_arms), np.zeros(env.n_arms)
        self.factor, self.t = factor, 0

    def select(self) -> IntArray:
        """The base of the next round; one with the most arms never seen, while there are such."""
        self.t += 1
        unseen = self.counts == 0.0
        if unseen.any():
            return np.asarray(self.bases[unseen[self.bases].sum(axis=1).argmax()])
        both = (self.totals / self.counts)[self.bases].sum(axis=1)
        both += np.sqrt(self.factor * math.log(self.t) * (1.0 / self.counts)[self.bases].sum(axis=1))
        return np.asarray(self.bases[both.argmax()])

    def update(self, arms: IntArray, rewards: FloatArray) -> None:
        """Count one reward of each arm."""
        self.counts[arms] += 1.0
        self.totals[arms] += rewards


def play(player: Any, env: Gaussian, rounds: int) -> float:
    """The regret of a player that is no policy, round by round."""
    lost = 0.0
    for _ in range(rounds):
        arms = player.select()
        player.update(arms, env.draw(arms))
        lost += env.regret(arms)
    return lost


def perrault(
    repeats: int = 100,
    rounds: int = 100_000,
    seed: int = 0,
    *,
    factor: float = 1.0,
    better: Sequence[int] = STAR,
    exact: bool = False,
    say: Callable[[str], None] | None = None,
) -> dict[str, FloatArray]:
    """Final regrets of CUCB and ESCB with f = `factor` log t, on common rewards; `exact`: of the true maximum too."""
    labels = ("CUCB", "ESCB", "ESCB, exact") if exact else ("CUCB", "ESCB")
    found: dict[str, list[float]] = {label: [] for label in labels}
    share = factor / (RANGE[1] - RANGE[0]) ** 2
    for i in range(repeats):
        if say is not None:
            say(f"run {i + 1} of {repeats}")
        env = instance(better, seed + i)
        for policy in (CUCB, ESCB):
            player = policy(env.matroid, reward_range=RANGE, exploration=share)
            run = simulate(player, env.clone(), rounds, progress=False)
            found[policy.__name__].append(float(run.regret[-1]))
        if exact:
            world = env.clone()
            found["ESCB, exact"].append(play(ExactESCB(world, factor), world, rounds))
    return {label: np.array(values) for label, values in found.items()}
