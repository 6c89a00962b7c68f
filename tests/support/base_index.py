"""Random use of a policy that keeps arms in groups of equal counts, in step with what `oracles.escb` knows."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

import semibandit as sb
from oracles.escb import Arms
from support.random_matroids import RANDOM

KINDS = [*RANDOM, "asked"]


class Asked(sb.Matroid):
    """A matroid of the user's: nothing but a test."""

    def __init__(self, n_arms, independent):
        self.independent = independent
        super().__init__(n_arms)

    def _is_independent(self, arms):
        return self.independent(arms.tolist())


def instance(kind, seed, n):
    """A small matroid of this kind, and its slow test."""
    rng = np.random.default_rng(seed)
    if kind != "asked":
        return RANDOM[kind](rng, n)
    _, independent = RANDOM["graphic"](rng, n)
    return Asked(n, independent), independent


# Rewards of which sums depend on their order in the last bit, and many ties.
REWARDS = [0.0, 0.1, 0.2, 0.3, 0.7, 1.0]

ACTIONS = st.lists(
    st.tuples(
        st.sampled_from(
            ["play"] * 6
            + ["exclude", "among", "delete", "insert", "reset", "decide", "learn", "drop", "copy"]
        ),
        st.integers(0, 2**32 - 1),
    ),
    min_size=5,
    max_size=40,
)


def in_step(policy, known, actions, choose):
    """Play `actions` on both; ``choose(t, arms)`` is the naive choice among `arms` in round t."""
    late = []
    for action, seed in actions:
        rng = np.random.default_rng(seed)
        some = rng.permutation(policy.n_arms)[: rng.integers(0, policy.n_arms + 1)].tolist()
        arms = known.here()
        if action == "exclude":
            arms, played = known.here(without=some), policy.select(exclude=some)
        elif action == "among":
            arms, played = known.here(among=sorted(some)), policy.select(among=some)
        elif action == "decide":
            late.append(policy.decide())
            played = late[-1].arms
        elif action == "play":
            played = policy.select()
        else:
            policy = other(policy, known, late, action, some, rng)
            policy._check()
            continue
        assert played.tolist() == choose(policy, policy.t, arms), (action, policy.t)
        if action == "decide":
            for arm in played.tolist():
                known.waiting[arm] += 1
            continue
        heard = [arm for arm in played.tolist() if rng.random() < 0.8]
        rewards = rng.choice(REWARDS, len(heard)).tolist()
        policy.update(heard, rewards)
        known.update(heard, rewards)
        policy._check()
    for arm in range(policy.n_arms):
        assert policy.counts[arm] == known.count[arm]


def other(policy, known, late, action, some, rng):
    if action == "copy":
        return policy.clone()
    if action == "delete":
        some = [arm for arm in some if arm not in known.gone]
        policy.delete(some)
        known.gone |= set(some)
    elif action == "insert":
        some = [arm for arm in some if arm in known.gone]
        policy.insert(some)
        known.gone -= set(some)
    elif action == "reset":
        policy.reset(some)
        for arm in some:
            known.count[arm], known.total[arm] = 0, 0.0
    elif late:
        decision = late.pop(int(rng.integers(len(late))))
        if action == "learn":
            rewards = rng.choice(REWARDS, len(decision.arms)).tolist()
            policy.learn(decision, rewards)
            known.update(decision.arms.tolist(), rewards)
        else:
            policy.drop(decision.id)
        for arm in decision.arms.tolist():
            known.waiting[arm] -= 1
    return policy


def started(kind, seed, n):
    """A small matroid of this kind and an account of its arms."""
    matroid, independent = instance(kind, seed, n)
    return matroid, Arms(matroid.n_arms, independent)
