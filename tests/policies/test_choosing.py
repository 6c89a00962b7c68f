"""`select(among=..., weights=...)`: the best base of some arms, or by somebody else's weights, for every policy."""

from __future__ import annotations

import inspect
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import semibandit as sb
from semibandit.data.instances import random_environment
from semibandit.policies.catalogue import POLICIES, build_policy

KINDS = ["uniform", "partition", "laminar", "graphic", "transversal", "linear"]
N = 14

# Policies with an index that a formula tells; the options that make another formula of it.
INDEXED = [
    ("cucb", {}),
    ("cucb", {"clock": "staircase"}),
    ("cucb", {"clip": True}),
    ("cucb", {"index": "ucb-v"}),
    ("cucb", {"prior": (0.3, 5.0)}),
    ("kl-osm", {}),
    ("kl-osm", {"clock": "staircase"}),
    ("maub", {"index": "ucb"}),
    ("maub", {"index": "kl"}),
    ("faster-cucb", {"horizon": 500}),
    ("greedy", {}),
    ("oracle", {"means": np.linspace(0.9, 0.1, N)}),
    ("sliding-window-cucb", {"window": 9}),
    ("discounted-cucb", {"discount": 0.9}),
]


def kl_index(mean, n, level):
    def kl(p, q):
        p, q = min(max(p, 1e-15), 1 - 1e-15), min(max(q, 1e-15), 1 - 1e-15)
        return p * math.log(p / q) + (1 - p) * math.log((1 - p) / (1 - q))

    low, high = mean, 1.0
    for _ in range(80):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if n * kl(mean, middle) <= level else (low, middle)
    return low


def stair(x, step):
    return (1 + step) ** math.ceil(math.log(x) / math.log1p(step) - 1e-12) if x > 0 else 0.0


def formula(name, options, arm, seen, t):
    """The index of an arm in round t, from the list of (round, reward) that came of it."""
    if name == "oracle":
        return float(options["means"][arm])
    rewards = [reward for _, reward in seen[arm]]
    n = float(len(rewards))
    if name == "sliding-window-cucb":
        rewards = [reward for came, reward in seen[arm] if came >= t - options["window"]]
        n = float(len(rewards))
    total = sum(rewards)
    if "prior" in options:
        n, total = n + options["prior"][1], total + options["prior"][0] * options["prior"][1]
    if n == 0:
        return math.inf
    log, mean = math.log(t), total / n
    width = math.sqrt(1.5 * log)
    if options.get("clock") == "staircase":
        width = stair(width, 0.01)
    if name == "discounted-cucb":
        weights = [options["discount"] ** (t - came) for came, _ in seen[arm]]
        mean = sum(w * r for w, r in zip(weights, rewards, strict=True)) / sum(weights)
        every = sum(options["discount"] ** (t - came) for one in seen for came, _ in one)
        return mean + math.sqrt(1.5 * math.log(max(every, math.e)) / sum(weights))
    if name == "sliding-window-cucb":
        return mean + math.sqrt(1.5 * math.log(min(t, options["window"])) / n)
    if name == "greedy":
        return mean
    if name == "kl-osm":
        level = log + 3 * math.log(max(1.0, log))
        return kl_index(mean, n, stair(level, 0.0201) if options.get("clock") else level)
    if name == "maub" and options["index"] == "kl":
        log = max(log, math.log(2))
        return kl_index(mean, n, log + 3 * math.log(max(log, 1.0)))
    if options.get("index") == "ucb-v":
        variance = max(0.0, sum(r * r for r in rewards) / n - mean * mean)
        return mean + width * math.sqrt(2 * variance / n) + 3 * width * width / n
    index = mean + width / math.sqrt(n)
    return min(1.0, index) if options.get("clip") else index


@pytest.mark.thin
@pytest.mark.parametrize(("name", "options"), INDEXED, ids=lambda x: x if isinstance(x, str) else ",".join(x))
@pytest.mark.parametrize("kind", KINDS)
def test_the_best_of_some_arms_by_the_index(name, options, kind):
    matroid = random_environment("bernoulli", kind, N, 3 if kind != "graphic" else 5, seed=2).matroid
    policy = POLICIES[name].factory(matroid, **options)
    rng = np.random.default_rng(4)
    seen, gone = [[] for _ in range(N)], set()
    for t in range(1, 61):
        if t % 15 == 0:
            arm = int(rng.integers(N))
            (policy.insert if arm in gone else policy.delete)([arm])
            gone ^= {arm}
        if t % 3 == 0:  # rounds of all arms in between
            arms = policy.select()
        else:
            among = rng.permutation(N)[: rng.integers(1, N)]
            exclude = among[:1] if t % 4 == 0 else None
            arms = policy.select(exclude, among=among)
            left = [k for k in among.tolist() if k not in gone and (exclude is None or k != exclude[0])]
            indices = np.array([formula(name, options, k, seen, t) for k in left])
            best = matroid.max_weight_base(indices, among=left) if left else np.array([], dtype=int)
            assert set(arms.tolist()) <= set(left) and len(arms) == len(best)
            if arms.tolist() != best.tolist():  # ties that rounding breaks are the only excuse
                weight = dict(zip(left, indices, strict=True))
                both = [sorted(weight[k] for k in base.tolist()) for base in (arms, best)]
                np.testing.assert_allclose(*both, atol=1e-7)
        assert policy.t == t and (np.diff(arms) > 0).all()
        rewards = rng.integers(0, 2, len(arms)).astype(float)
        policy.update(arms, rewards)
        for arm, reward in zip(arms.tolist(), rewards, strict=True):
            seen[arm].append((t, reward))
    if name not in ("sliding-window-cucb",):
        assert policy.counts.tolist() == [len(one) for one in seen]


def everything(matroid):
    context = {"horizon": 300, "means": np.linspace(0.1, 0.9, matroid.n_arms)}
    return [build_policy(name, {}, matroid, context=context) for name in POLICIES]


@pytest.mark.parametrize("kind", KINDS)
def test_weights_decide_for_every_policy(kind):
    matroid = random_environment("bernoulli", kind, N, 3 if kind != "graphic" else 5, seed=1).matroid
    rng = np.random.default_rng(7)
    for policy in everything(matroid):
        for wrapped in (policy, sb.minimize(policy)):
            sign = -1.0 if wrapped.objective == "min" else 1.0
            wrapped.delete([2])
            for t in range(1, 13):
                weights = rng.integers(0, 4, N) / 4.0
                assert wrapped.t == t - 1
                left = np.setdiff1d(np.arange(N), [2, 5] if t % 2 else [2])
                exclude = [5] if t % 2 else None
                if t % 3:
                    arms = wrapped.select(exclude, weights=weights)
                else:
                    among = rng.permutation(N)[:9]
                    arms = wrapped.select(exclude, among=among, weights=weights[among])
                    left = np.intersect1d(left, among)
                assert arms.tolist() == matroid.max_weight_base(sign * weights[left], among=left).tolist()
                wrapped.update(arms, np.full(len(arms), 0.5))
            wrapped.insert([2])
            assert len(wrapped.select()) == matroid.rank
            if hasattr(wrapped, "_engine"):
                wrapped._engine._check()


@pytest.mark.parametrize("name", list(POLICIES))
def test_every_policy_chooses_among_some(name):
    """Decisions, clones and what is refused; the whole ground set is the same as no restriction where none is drawn."""
    matroid = sb.Partition(np.arange(12) % 3, 2)
    context = {"horizon": 100, "means": np.linspace(0.1, 0.9, 12)}
    policy = build_policy(name, {}, matroid, context=context)
    policy.update(np.arange(12), np.linspace(0, 1, 12))
    before = (policy.t, policy.counts.tolist())
    for wrong, error in (
        ({"among": [0, 0]}, sb.ArmError),
        ({"among": [12]}, sb.ArmError),
        ({"among": ["a"]}, sb.ArmError),
        ({"among": [0], "exclude": [99]}, sb.ArmError),
        ({"weights": [1.0]}, sb.ParameterError),
        ({"weights": np.full(12, np.nan)}, sb.ParameterError),
        ({"among": [0, 1], "weights": [1.0, np.inf]}, sb.ParameterError),
        ({"among": [0, 1], "weights": [1.0]}, sb.ParameterError),
        ({"weights": "abc"}, sb.ParameterError),
    ):
        for call in (policy.select, policy.decide, sb.minimize(policy).select):
            with pytest.raises(error):
                call(**wrong)
    assert (policy.t, policy.counts.tolist()) == before
    twin = policy.clone()
    for among in ([4, 1, 7, 10, 0], [], [3], np.arange(12)):
        one, two = policy.decide(among=among), twin.decide(among=among)
        assert one.arms.tolist() == two.arms.tolist() and set(one.arms.tolist()) <= set(
            np.asarray(among).tolist()
        )
        assert len(one.arms) == len(matroid.max_weight_base(np.zeros(len(among)), among=among))
        policy.learn(one, np.full(len(one.arms), 0.5))
        twin.learn(two.id, np.full(len(one.arms), 0.5))
    assert policy.select().tolist() == twin.select().tolist()
    assert [d.arms.tolist() for d in policy.decide(among=[0, 3, 6], weights=[1, 2, 3], count=2)] == [
        [3, 6]
    ] * 2
    assert policy.waiting == 2
    costs = sb.minimize(policy)
    assert costs.decide(among=[0, 3, 6], weights=[1, 2, 3]).arms.tolist() == [0, 3]


def test_compiled_rounds_go_on_after_a_choice_among_some():
    """Stepwise rounds, choices among some and compiled rounds may be mixed."""
    for name in ("cucb", "kl-osm", "greedy", "sliding-window-cucb", "discounted-cucb"):
        env = sb.Bernoulli(sb.Uniform(30, 3), np.linspace(0.1, 0.9, 30), seed=3)
        policy = build_policy(name, {}, env.matroid)
        sb.simulate(policy, env.clone(), rounds=40)
        for _ in range(5):
            policy.update(policy.select(among=[1, 2, 3, 4]), [0.0, 1.0, 0.5])
        other = policy.clone()
        sb.simulate(policy, env.clone(), rounds=60)
        world = env.clone()
        for _ in range(60):
            arms = other.select()
            other.update(arms, world.draw(arms))
        assert policy.counts.tolist() == other.counts.tolist()


def test_draws_among_some_have_the_law_of_a_small_matroid():
    """Thompson sampling and random bases of a restriction are those of the smaller matroid itself."""
    arms, n = np.array([2, 5, 6, 9]), 2000
    for make in (sb.CTS, sb.Random, lambda m, **k: sb.EpsilonGreedy(m, epsilon=0.3, **k)):
        large, small = make(sb.Uniform(12, 2), seed=1), make(sb.Uniform(4, 2), seed=2)
        for k, rewards in enumerate(([1.0, 0.0], [1.0], [0.0], [1.0, 1.0, 0.0])):
            large.update(np.repeat(arms[k], len(rewards)), rewards)
            small.update(np.full(len(rewards), k), rewards)
        counted = np.zeros((2, 4))
        for _ in range(n):
            counted[0, np.searchsorted(arms, large.select(among=arms))] += 1
            counted[1, small.select()] += 1
        spread = np.sqrt(2 * n * 0.25)
        assert np.abs(counted[0] - counted[1]).max() < 4.5 * spread


def test_fpl_weighs_what_it_saw_by_how_rarely_it_plays_it():
    """In a restriction to D arms each draw plays all of them, so that feedback counts once."""
    policy = sb.FPL(sb.Uniform(8, 2), horizon=100, seed=3)
    policy.update(policy.select(among=[3, 6]), [0.0, 0.0])
    assert policy.losses.tolist() == [0, 0, 0, 1, 0, 0, 1, 0]
    policy = sb.FPL(sb.Uniform(8, 2), horizon=10_000, eta=1e-9, seed=3)
    for _ in range(1500):  # of 4 arms 2 are played: one over the chance is 2 on average
        policy.update(policy.select(among=[1, 2, 3, 4]), [0.0, 0.0])
    assert policy.losses[[1, 2, 3, 4]].sum() / policy.counts.sum() == pytest.approx(2.0, rel=0.08)


def test_plain_rounds_are_as_before():
    assert list(inspect.signature(sb.CUCB.select).parameters) == ["self", "exclude", "among", "weights"]
    one, two = (sb.CUCB(sb.Uniform(20, 3)) for _ in range(2))
    for t in range(50):
        arms = one.select()
        assert arms.tolist() == two.select(among=np.arange(20)).tolist()
        for policy in (one, two):
            policy.update(arms, (arms + t) % 2)
    assert one.records.tolist() == two.records.tolist()


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_any_sequence_of_choices(data):
    """Rounds of all kinds in any order: the engine stays whole, and answers are bases of what was asked for."""
    policy = data.draw(st.sampled_from([sb.CUCB, sb.KLOSM, sb.SlidingWindowCUCB, sb.DiscountedCUCB, sb.CTS]))(
        sb.Graphic([(0, 1), (1, 2), (2, 0), (2, 3), (3, 0), (3, 4)])
    )
    arm_lists = st.lists(st.integers(0, 5), unique=True, max_size=6)
    for t in range(1, data.draw(st.integers(1, 15)) + 1):
        among, exclude = (
            data.draw(st.one_of(st.none(), arm_lists)),
            data.draw(st.one_of(st.none(), arm_lists)),
        )
        n = 6 if among is None else len(among)
        weights = data.draw(st.one_of(st.none(), st.lists(st.floats(-5, 5), min_size=n, max_size=n)))
        decision = policy.decide(exclude=exclude, among=among, weights=weights)
        left = np.setdiff1d(
            np.arange(6) if among is None else among, [] if exclude is None else exclude
        ).astype(int)
        assert set(decision.arms.tolist()) <= set(left.tolist()) and policy.t == t
        assert len(decision.arms) == len(policy.matroid.max_weight_base(np.zeros(len(left)), among=left))
        if data.draw(st.booleans()):
            policy.learn(decision, np.full(len(decision.arms), 0.5))
        if hasattr(policy, "_engine"):
            policy._engine._check()


def test_a_policy_of_ones_own_decides_among_some():
    class Plain(sb.Policy):
        name = "plain"

        def __init__(self, matroid):
            super().__init__(matroid)
            self.sums = np.zeros((2, matroid.n_arms))

        def select(self, exclude=None):
            self._t += 1
            return np.arange(self.matroid.rank)

        def _update(self, arms, rewards):
            np.add.at(self.sums[0], arms, 1)
            np.add.at(self.sums[1], arms, rewards)

        counts = property(lambda self: self.sums[0].astype(np.int64))
        means = property(
            lambda self: np.where(self.sums[0] > 0, self.sums[1] / np.maximum(self.sums[0], 1), np.nan)
        )

        def describe(self):
            return {"policy": self.name}

    policy = Plain(sb.Uniform(6, 2))
    policy.update([0, 1, 2, 3], [0.1, 0.9, 0.5, 0.6])
    assert policy.decide(among=[0, 1, 2, 3]).arms.tolist() == [1, 3]
    assert policy.decide(among=[0, 1, 5]).arms.tolist() == [1, 5]
    assert policy.decide(weights=[0, 0, 3, 0, 0, 4]).arms.tolist() == [2, 5] and policy.t == 3
