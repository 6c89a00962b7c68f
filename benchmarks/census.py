"""Whom to show an advertisement: Wen, Kveton and Ashkan (2015), Section 6.2, on a generated table.

The paper takes 33,000 people of the Adult census and shows an advertisement to 50 women and 50 men in every round; a
person with an income of 50,000 or more accepts with probability 0.15, any other with 0.05. Features are the age in
seven groups, the gender, whether the person works more than 40 hours a week, and the years of education. Nothing
installable ships the census, so the table here is generated: its marginals (a third women, a quarter with such an
income, 31 % of men and 11 % of women, the shares of ages, education and hours) are near those of the census, and
incomes follow a logistic model of the features. Mean rewards are thus not linear in the features, there as here.

``python -m benchmarks.census`` plays it; docs/regret.md holds the results.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from semibandit.arms import FloatArray
from semibandit.environments import Bernoulli
from semibandit.matroids import Partition
from semibandit.policies import CTS, CUCB, CombLinTS, CombLinUCB
from semibandit.policies.base import Policy
from semibandit.simulation import simulate
from semibandit.text import table

PEOPLE = 33_000
EACH = 50
ACCEPT, ACCEPT_LESS = 0.15, 0.05

_MEN = 0.669
_AGES = (0.051, 0.248, 0.265, 0.219, 0.135, 0.062, 0.020)
_YEARS = (
    (0.0016, 0.0052, 0.0102, 0.0198, 0.0158, 0.0287, 0.0361, 0.0133)
    + (0.3225, 0.2239, 0.0424, 0.0328, 0.1645, 0.0529, 0.0177, 0.0126)
)  # fmt: skip
_LONG_MEN, _LONG_WOMEN = 0.36, 0.17
_RICH = 0.241

# Log-odds of a large income: by age, per year of education, for long hours, for men.
_BY_AGE = (-4.5, -1.7, 0.0, 0.65, 0.75, 0.2, -0.3)
_PER_YEAR, _FOR_HOURS, _FOR_MEN = 0.36, 0.75, 1.25

# Rounds after which returns are told.
MARKS = (100, 1_000)


class Census(NamedTuple):
    """A world and the features of its people."""

    env: Bernoulli
    features: FloatArray
    rich: FloatArray
    men: FloatArray


def census(people: int = PEOPLE, each: int = EACH, seed: int = 2015) -> Census:
    """The generated table. O(people)."""
    rng = np.random.default_rng(seed)
    men = rng.random(people) < _MEN
    age = rng.choice(len(_AGES), people, p=_AGES)
    years = 1 + rng.choice(len(_YEARS), people, p=_YEARS)
    hours = rng.random(people) < np.where(men, _LONG_MEN, _LONG_WOMEN)
    odds = np.array(_BY_AGE)[age] + _PER_YEAR * years + _FOR_HOURS * hours + _FOR_MEN * men
    low, high = -30.0, 30.0
    for _ in range(60):  # the constant for which so many have a large income
        middle = 0.5 * (low + high)
        enough = float(np.mean(1.0 / (1.0 + np.exp(-odds - middle)))) >= _RICH
        low, high = (low, middle) if enough else (middle, high)
    rich = rng.random(people) < 1.0 / (1.0 + np.exp(-odds - high))
    features = np.zeros((people, len(_AGES) + 3))
    features[np.arange(people), age] = 1.0
    features[:, -3], features[:, -2], features[:, -1] = men, hours, years / 16.0
    matroid = Partition(men.astype(np.int64), [each, each])
    env = Bernoulli(matroid, np.where(rich, ACCEPT, ACCEPT_LESS), seed=seed)
    return Census(env, features, rich.astype(float), men.astype(float))


def players(world: Census, seed: int = 0) -> dict[str, Policy]:
    """Those of the paper; its lambda and sigma are not stated, so several."""
    matroid, features = world.env.matroid, world.features
    made: dict[str, Policy] = {}
    for scale, noise in ((1.0, 1.0), (1.0, 0.5), (1.0, 0.3), (0.1, 0.3)):
        made[f"CombLinTS, lambda {scale:g}, sigma {noise:g}"] = CombLinTS(
            matroid, features=features, prior_scale=scale, noise=noise, seed=seed
        )
    for width in (0.5, 1.0):
        made[f"CombLinUCB, lambda 1, sigma 0.5, c {width:g}"] = CombLinUCB(
            matroid, features=features, noise=0.5, width=width
        )
    made["CombUCB1"] = CUCB(matroid)
    made["CombTS"] = CTS(matroid, seed=seed)
    return made


def returns(
    world: Census, policy: Policy, rounds: Sequence[int] = MARKS, seed: int = 0
) -> tuple[FloatArray, FloatArray]:
    """Expected return as a share of the best one: on average up to each of `rounds`, and in the tenth before it."""
    best = world.env.optimal_value
    marks = sorted({n for last in rounds for n in (last - last // 10, last)})
    run = simulate(policy, world.env.clone(seed=seed), max(rounds), record_every=marks, progress=False)
    earned = dict(zip(run.rounds.tolist(), (best * run.rounds - run.regret).tolist(), strict=True))
    mean = np.array([earned[n] / (n * best) for n in rounds])
    late = np.array([(earned[n] - earned[n - n // 10]) / (n // 10 * best) for n in rounds])
    return mean, late


def main(repeats: int = 10) -> None:
    """Print the table of docs/regret.md. About a minute."""
    world = census()
    lines = []
    for label in players(world):
        found = [returns(world, players(world, seed)[label], seed=seed) for seed in range(repeats)]
        mean, late = (np.mean([one[part] for one in found], axis=0) for part in (0, 1))
        lines.append(
            [label, *(f"{100 * share:.0f} %" for pair in zip(mean, late, strict=True) for share in pair)]
        )
    heads = [f"{what} {n:,}" for n in MARKS for what in ("mean up to round", "in the last tenth before")]
    print(table(["policy", *heads], lines))


if __name__ == "__main__":
    main()
