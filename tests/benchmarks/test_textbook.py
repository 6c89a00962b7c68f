"""Textbook versions: the decisions of our policies, or their regret where both draw."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from benchmarks import textbook
from benchmarks.policies import ENTRIES, measure_policies, players, rank_of
from semibandit.bench.contenders import Contender
from semibandit.data.instances import random_environment
from semibandit.policies.catalogue import POLICIES, make_policy

EXACT = ("CUCB", "CUCB on costs", "UCB-V", "KL-OSM", "ESCB", "OSSB", "sliding window", "discounted", "greedy")
BY_NAME = {entry.label: entry for entry in ENTRIES}


@pytest.mark.parametrize("label", EXACT)
def test_they_make_our_decisions(label: str) -> None:
    from semibandit import minimize

    entry, arms = BY_NAME[label], 40
    # Rewards without ties, so that it does not matter who breaks them how.
    env = random_environment("noise", "uniform", arms, rank_of(arms), seed=3)
    window = ":window=70" if label == "sliding window" else ""
    policy = make_policy(entry.spec + window, env.matroid, seed=1)
    if entry.costs:
        env, policy = minimize(env), minimize(policy)
    assert entry.textbook is not None
    extra = {"window": 70} if window else {}
    theirs = entry.textbook(arms, rank_of(arms), 1, **extra)
    played = []
    for player in (policy, theirs):
        world = env.clone()
        if window:  # which counts feedback by its round
            assert isinstance(theirs, textbook.SlidingWindow)
            for first in range(0, arms, rank_of(arms)):
                player.select()
                some = np.arange(first, first + rank_of(arms))
                player.update(some, world.draw(some))
        else:
            textbook.seen_once(player, world)
        played.append([np.sort(arms).tolist() for arms in Contender(label, "", player, world).play(250)[1]])
    assert played[0] == played[1]


@pytest.mark.parametrize("label", ["CTS3", "CL-SG"])
def test_one_seed_decides_as_ours_at_the_same_z(label: str) -> None:
    """Each draws a Z of its own; told ours, the textbook plays our arms."""
    entry, arms = BY_NAME[label], 40
    env = random_environment("noise", "uniform", arms, rank_of(arms), seed=3)
    policy: Any = make_policy(entry.spec, env.matroid, seed=1)
    assert entry.textbook is not None
    theirs: Any = entry.textbook(arms, rank_of(arms), 1)

    class Told:
        def standard_normal(self) -> float:
            return float(policy.seed_of_round)

    theirs.rng = Told()
    everyone = np.arange(arms)
    seen = env.draw(everyone)
    policy.update(everyone, seen)
    theirs.update(everyone, seen)
    for _ in range(250):
        played = policy.select()
        assert np.sort(theirs.select()).tolist() == played.tolist()
        rewards = env.draw(played)
        policy.update(played, rewards)
        theirs.update(played, rewards)


@pytest.mark.thin
@pytest.mark.parametrize(
    "label",
    [
        "CTS",
        "CTS, Gaussian",
        "CTS, boosted",
        "FPL",
        "FTRL, hybrid",
        "FTRL, LBINFV",
        "epsilon-greedy",
        "random",
        "scaled",
        "CombLinTS",
    ],
)
def test_they_lose_what_we_lose(label: str) -> None:
    lost = []
    for which in (0, 1):
        total = 0.0
        for seed in range(6):
            player = players(BY_NAME[label], 20, seed)[which]
            assert player is not None
            total += sum(player.env.regret(arms) for arms in player.play(600)[1])
        lost.append(total)
    assert 0.75 < lost[0] / lost[1] < 1.33, lost


def test_linear_rounds_are_ours() -> None:
    ours, theirs = players(BY_NAME["CombLinUCB"], 40)
    assert theirs is not None
    played = [[np.sort(arms).tolist() for arms in player.play(250)[1]] for player in (ours, theirs)]
    assert played[0] == played[1]


def test_resampling_in_blocks_counts_draws_as_one_by_one() -> None:
    """The mean weight of an arm is one over the chance to play it: D / K where nothing is known yet."""
    player = textbook.Fpl(20, 5, seed=1, horizon=10**8)
    assert player.cap > 100 and player.block > 1
    weights = []
    for _ in range(400):
        arms = player.select()
        weights.extend(player.again[arms])
    assert abs(np.mean(weights) - 4.0) < 0.3


def test_measured_policies_are_complete() -> None:
    entries = [BY_NAME[label] for label in ("CUCB", "epsilon-greedy", "MAUB")]
    rows = measure_policies(seconds=0.002, repeats=2, arms=(20,), entries=entries)
    assert [row["policy"] for row in rows] == ["CUCB", "epsilon-greedy", "MAUB"]
    for row in rows:
        assert row["python_us"] > 0 and row["stepwise_us"] > row["python_us"] and row["rank"] == 5
        assert len(row["repeats_us"]["python"]) == 2
    assert rows[0]["compiled_us"] > 0 and rows[0]["textbook_us"] > 0
    assert rows[2]["textbook_us"] is None


def test_every_policy_that_learns_is_measured() -> None:
    measured = {entry.spec.partition(":")[0] for entry in ENTRIES}
    assert set(POLICIES) - measured <= {"oracle"}
    assert [entry.label for entry in ENTRIES if entry.textbook is None] == ["FasterCUCB", "MAUB"]
