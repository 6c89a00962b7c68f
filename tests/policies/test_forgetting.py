"""Sliding-window and discounted CUCB, and worlds that change: against recomputation from the whole history."""

from __future__ import annotations

import math

import numpy as np
import pytest

import semibandit as sb
from semibandit.engines import ENGINES
from semibandit.errors import ParameterError
from semibandit.policies import window_for
from semibandit.policies.index.discounted import UNIT
from semibandit.policies.index.sliding_window import SIZE
from semibandit.testing import check_policy
from support.random_matroids import RANDOM


class History:
    """Everything that was ever seen: (round, arm, reward)."""

    def __init__(self, n_arms, independent):
        self.n_arms, self.independent, self.seen, self.t = n_arms, independent, [], 0

    def update(self, arms, rewards):
        self.seen += [(self.t, k, reward) for k, reward in zip(arms, rewards)]

    def best(self, index, exclude=()):
        base = []
        for k in sorted(range(self.n_arms), key=lambda k: (-index[k], k)):
            if k not in exclude and self.independent([*base, k]):
                base.append(k)
        return sorted(base)

    def window_index(self, window):
        """Indices for the next round, from the last `window` rounds."""
        t = self.t = self.t + 1
        lam = math.sqrt(1.5 * math.log(min(t, window)))
        index = []
        for k in range(self.n_arms):
            rewards = [r for s, arm, r in self.seen if arm == k and s >= t - window]
            n = len(rewards)
            index.append(math.fsum(rewards) / n + lam * (1.0 / math.sqrt(n)) if n else math.inf)
        return index

    def discounted_index(self, discount):
        t = self.t = self.t + 1
        weights = [discount ** (t - s) for s, _, _ in self.seen]
        level = math.log(max(math.e, math.fsum(weights)))
        index = []
        for k in range(self.n_arms):
            mine = [(w, r) for w, (_, arm, r) in zip(weights, self.seen) if arm == k]
            n = math.fsum(w for w, _ in mine)
            mean = math.fsum(w * r for w, r in mine) / n if n else math.inf
            index.append(mean + math.sqrt(1.5 * level / n) if n else math.inf)
        return index


@pytest.mark.parametrize("kind", RANDOM)
def test_sliding_window_equals_recomputation(kind):
    rng = np.random.default_rng(2)
    for trial in range(8):
        matroid, independent = RANDOM[kind](rng, int(rng.integers(1, 8)))
        window = int(rng.choice([1, 2, 5, 13, 40]))
        policy = sb.SlidingWindowCUCB(matroid, window=window)
        history = History(matroid.n_arms, independent)
        for t in range(70):
            out = [int(rng.integers(matroid.n_arms))] if t % 9 == 8 else []
            arms = policy.select(exclude=out) if out else policy.select()
            assert arms.tolist() == history.best(history.window_index(window), out), (trial, t)
            rewards = rng.integers(0, 2, len(arms)).astype(float) if trial % 2 else rng.random(len(arms)) / 3
            if t % 4:
                policy.update(arms, rewards)
                history.update(arms.tolist(), rewards.tolist())
            if t % 11 == 0:  # late feedback of any arms
                policy.update([0, matroid.n_arms - 1], [0.1, 0.7])
                history.update([0, matroid.n_arms - 1], [0.1, 0.7])
            policy._engine._check()


@pytest.mark.parametrize("kind", RANDOM)
def test_discounting_equals_recomputation(kind):
    rng = np.random.default_rng(3)
    for trial in range(8):
        matroid, independent = RANDOM[kind](rng, int(rng.integers(1, 8)))
        discount = float(rng.choice([0.1, 0.5, 0.9, 0.99]))
        policy = sb.DiscountedCUCB(matroid, discount=discount)
        history = History(matroid.n_arms, independent)
        for t in range(70):
            arms = policy.select().tolist()
            index = history.discounted_index(discount)
            wanted = history.best(index)
            if arms != wanted:  # only where two indices agree to rounding
                gap = sum(index[k] for k in wanted if k not in arms) - sum(
                    index[k] for k in arms if k not in wanted
                )
                assert abs(gap) < 1e-9 * max(1.0, *(index[k] for k in wanted)), (trial, t)
            rewards = rng.random(len(arms))
            if t % 4:
                policy.update(arms, rewards)
                history.update(arms, rewards.tolist())
            policy._engine._check()


@pytest.mark.parametrize("kind", ["uniform", "partition", "laminar", "graphic", "transversal", "rational"])
def test_all_engines_decide_alike(kind):
    rng = np.random.default_rng(4)
    for trial in range(4):
        matroid, _ = RANDOM[kind](rng, int(rng.integers(2, 25)))
        for make in (
            lambda **o: sb.SlidingWindowCUCB(matroid, window=30, **o),  # noqa: B023
            lambda **o: sb.DiscountedCUCB(matroid, discount=0.95, **o),  # noqa: B023
        ):
            for clock in ("exact", "staircase"):
                names = [key for key, spec in ENGINES.items() if spec.fits(matroid, clock)]
                policies = [make(clock=clock, step=0.05, engine=engine) for engine in names]
                for t in range(100):
                    bases = [policy.select() for policy in policies]
                    assert all(np.array_equal(bases[0], b) for b in bases[1:]), (trial, t, names)
                    rewards = rng.integers(0, 2, len(bases[0])).astype(float)
                    for policy in policies:
                        policy.update(bases[0], rewards)


@pytest.mark.bounds
def test_discounting_goes_on_over_a_change_of_unit():
    matroid = sb.Uniform(6, 2)
    policy, twin = (
        sb.DiscountedCUCB(matroid, discount=0.5),
        sb.DiscountedCUCB(matroid, discount=0.5, engine="resolve"),
    )
    rng = np.random.default_rng(0)
    history = History(6, lambda arms: len(arms) <= 2)
    for t in range(1000):  # the unit changes every 200 rounds
        arms = policy.select()
        assert arms.tolist() == twin.select().tolist()
        assert arms.tolist() == history.best(history.discounted_index(0.5))
        rewards = rng.random(2)
        for one in (policy, twin, history):
            one.update(arms, rewards)
        history.seen = history.seen[-400:]
        if t == 700:
            policy.delete([5])
            policy.insert([5])
    assert policy._now[UNIT] < 2.0**201 and policy.counts.sum() == 2000
    assert 0.9 < policy.effective_counts.sum() / (2 / (1 - 0.5) - 2) < 2.1


@pytest.mark.bounds
def test_the_ring_grows_and_empties():
    policy = sb.SlidingWindowCUCB(sb.Uniform(50, 5), window=100)
    rng = np.random.default_rng(0)
    for _ in range(500):
        policy.update(policy.select(), rng.random(5))
    # Rounds 400 to 499 counted in round 500, whose own feedback came afterwards.
    assert policy.counts.sum() == 505 and policy._meta[SIZE] == 505
    for _ in range(101):
        policy.select()
    assert policy.counts.sum() == 0 and policy._meta[SIZE] == 0
    assert np.isnan(policy.means).all()
    assert (policy.records["total"] == 0.0).all() and (policy._rest == 0.0).all()


MAKERS = {
    "window": lambda m, clock: sb.SlidingWindowCUCB(m, window=15, clock=clock),
    "long window": lambda m, clock: sb.SlidingWindowCUCB(m, window=10_000, clock=clock),
    "discount": lambda m, clock: sb.DiscountedCUCB(m, discount=0.9, clock=clock),
}


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("kind", RANDOM)
@pytest.mark.parametrize("clock", ["exact", "staircase"])
def test_contract(kind, name, clock):
    matroid, _ = RANDOM[kind](np.random.default_rng(3), 9)
    check_policy(lambda: MAKERS[name](matroid, clock))


def test_a_refused_select_forgets_nothing():
    policy = sb.SlidingWindowCUCB(sb.Uniform(4, 2), window=1)
    policy.update(policy.select(), [0.5, 0.5])
    with pytest.raises(sb.ArmError, match="exclude"):
        policy.select(exclude=[9])
    assert policy.counts.sum() == 2 and policy.t == 1


def test_bad_options_are_named():
    matroid = sb.Uniform(4, 2)
    for make, word in (
        (lambda: sb.SlidingWindowCUCB(matroid, window=0), "window"),
        (lambda: sb.SlidingWindowCUCB(matroid, window=2.5), "window"),
        (lambda: sb.DiscountedCUCB(matroid, discount=1.0), "discount"),
        (lambda: sb.DiscountedCUCB(matroid, discount=math.nan), "discount"),
        (lambda: window_for(1, 2), "horizon"),
        (lambda: window_for(100, 0), "changes"),
    ):
        with pytest.raises(ParameterError, match=word):
            make()


# Worlds that change


@pytest.mark.slow
def test_forgetting_beats_cucb_where_the_world_switches():
    """The best arm becomes the worst: CUCB goes on with it until thousands of bad rewards have worn its mean down."""
    matroid = sb.Uniform(6, 1)
    before, after = [0.9, 0.5, 0.5, 0.5, 0.5, 0.5], [0.1, 0.5, 0.5, 0.5, 0.5, 0.6]
    env = sb.Switching([sb.Bernoulli(matroid, before), sb.Bernoulli(matroid, after)], [1, 8001])
    rounds = 16_000
    policies = {
        "cucb": sb.CUCB(matroid),
        "cucb, same width": sb.CUCB(matroid, exploration=0.5),
        "window": sb.SlidingWindowCUCB(matroid, window=window_for(rounds, 1), exploration=0.5),
        "discount": sb.DiscountedCUCB(matroid, discount=0.998, exploration=0.5),
    }
    result = sb.compare(policies, env, rounds, repeats=3, seed=1)
    regret = {name: np.array([run.regret[-1] for run in runs]) for name, runs in result.runs.items()}
    for name in ("window", "discount"):
        for rival in ("cucb", "cucb, same width"):
            assert (regret[name] < 0.8 * regret[rival]).all(), (name, rival, regret)


def test_a_switching_world_keeps_its_word():
    matroid = sb.Partition([0, 0, 1, 1], [1, 1])
    one = sb.Bernoulli(matroid, [0.9, 0.1, 0.5, 0.6])
    two = sb.Bernoulli(matroid, [0.1, 0.7, 0.9, 0.6])
    env = sb.Switching([one, two], [1, 11], seed=5)
    assert env.optimal_base.tolist() == [0, 3] and env.starts.tolist() == [1, 11]
    for t in range(1, 21):
        env.draw([0, 2], t)
        expected = 1.5 - 1.4 if t < 11 else 1.6 - 1.0
        assert env.regret([0, 2]) == pytest.approx(expected)
    assert env.pulls.tolist() == [20, 0, 20, 0] and env.round == 20
    twin = env.clone()
    assert twin.optimal_base.tolist() == [0, 3] and env.optimal_base.tolist() == [1, 2]
    assert twin.pulls.sum() == 0 and env.pulls.sum() == 40
    # The n-th reward of an arm does not depend on what else was drawn.
    first = [twin.draw([0, 2], t)[0] for t in range(1, 21)]
    other = env.clone()
    assert first == [other.draw([0], t)[0] for t in range(1, 21)]
    assert [env.clone(seed=6).draw([0], 1)[0] for _ in range(3)] == [env.clone(seed=6).draw([0], 1)[0]] * 3
    # Frequencies follow the means of the part.
    many = sb.Switching([one, two], [1, 4001], seed=7)
    rewards = np.array([many.draw([1], t)[0] for t in range(1, 8001)])
    assert abs(rewards[:4000].mean() - 0.1) < 0.02 and abs(rewards[4000:].mean() - 0.7) < 0.03


def test_a_drifting_world_swings():
    matroid = sb.Uniform(2, 1)
    env = sb.Drifting(matroid, [0.5, 0.5], 0.4, period=1000, every=10, phases=[0.0, 0.5], seed=1)
    bases, rewards = [], []
    for t in range(1, 1001):
        rewards.append(env.draw([0], t)[0])
        bases.append(int(env.optimal_base[0]))
        phase = 2 * math.pi * ((t - 1) // 10) * 10 / 1000
        assert env.means[0] == pytest.approx(0.5 + 0.4 * math.sin(phase))
        assert env.regret([1]) == pytest.approx(max(0.0, 0.8 * math.sin(phase)), abs=1e-9)
    assert bases[100] == 0 and bases[700] == 1
    assert np.mean(rewards[:500]) > 0.65 and np.mean(rewards[500:]) < 0.35
    again = env.clone()
    assert [again.draw([0], t)[0] for t in range(1, 51)] == rewards[:50]


def test_bad_worlds_are_refused():
    m, other = sb.Uniform(3, 1), sb.Uniform(4, 1)
    a, b = sb.Bernoulli(m, [0.1, 0.2, 0.3]), sb.Bernoulli(other, [0.1, 0.2, 0.3, 0.4])
    wide = sb.Bernoulli(m, [0.1, 0.2, 0.3], reward_range=(0.0, 2.0))
    for make, word in (
        (lambda: sb.Switching([], []), "parts"),
        (lambda: sb.Switching([a, b], [1, 5]), r"parts\[1\]"),
        (lambda: sb.Switching([a, wide], [1, 5]), "reward_range"),
        (lambda: sb.Switching([a, a], [1]), "starts"),
        (lambda: sb.Switching([a, a], [2, 5]), "starts"),
        (lambda: sb.Switching([a, a], [1, 1]), "starts"),
        (lambda: sb.Switching([sb.Switching([a], [1])], [1]), "changes over time"),
        (lambda: sb.Drifting(m, [0.1, 0.5, 0.9], 0.2), r"amplitude\[0\]"),
        (lambda: sb.Drifting(m, [0.5] * 3, [0.2, 0.1]), "amplitude"),
        (lambda: sb.Drifting(m, [0.5] * 3, 0.2, every=0), "every"),
        (lambda: sb.Drifting(m, [0.5] * 3, 0.2, phases=[0.1]), "phases"),
    ):
        with pytest.raises(ParameterError, match=word):
            make()


@pytest.mark.parametrize("clock", ["exact", "staircase"])
@pytest.mark.parametrize(
    "make",
    [
        lambda m, **o: sb.SlidingWindowCUCB(m, window=12, **o),
        lambda m, **o: sb.DiscountedCUCB(m, discount=0.6, **o),
        lambda m, **o: sb.minimize(sb.SlidingWindowCUCB(m, window=12, **o)),
    ],
)
def test_a_ground_set_that_grows_goes_on_as_if_it_had_been_large(make, clock):
    rng = np.random.default_rng(4)
    edges = rng.integers(0, 7, (30, 2))
    edges[:3] = [(0, 1), (1, 2), (2, 0)]
    worlds = [
        (sb.Uniform(8, 3), sb.Uniform(30, 3)),
        (sb.Partition(np.arange(8) % 3, [1, 2, 4]), sb.Partition(np.arange(30) % 3, [1, 2, 4])),
        (sb.Graphic(edges[:8], n_vertices=7), sb.Graphic(edges, n_vertices=7)),
    ]
    for small, large in worlds:
        grown, whole = make(small, clock=clock), make(large, clock=clock)
        whole.delete(np.arange(8, 30))
        for t in range(400):
            if t == 20:
                grown.grow(large)
                grown.delete(np.arange(8, 30))
            if t > 20 and t % 40 == 0:
                some = np.arange(t // 40 * 2, t // 40 * 2 + 2) + 6
                grown.insert(some), whole.insert(some)
            if t == 30:
                grown.delete([1]), whole.delete([1])
            arms = grown.select()
            assert arms.tolist() == whole.select().tolist()
            rewards = rng.integers(0, 5, len(arms)) / 4
            grown.update(arms, rewards), whole.update(arms, rewards)
        assert grown.counts.tolist() == whole.counts.tolist()
        assert grown.clone().select().tolist() == whole.select().tolist()
