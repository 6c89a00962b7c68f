"""CombLinTS and CombLinUCB against a model that keeps every row, on every class of matroids."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import semibandit as sb
from oracles.linear_bandit import LinearModel
from semibandit.testing import check_policy
from support.random_matroids import RANDOM

BOTH = [sb.CombLinTS, sb.CombLinUCB]


def naive_sums(rows, theta):
    """Inner products added from the left, as the policies add them."""
    total = np.zeros(len(rows))
    for j in range(len(theta)):
        total = total + rows[:, j] * theta[j]
    return total


@pytest.mark.parametrize("cls", BOTH)
@pytest.mark.parametrize("kind", RANDOM)
def test_contract(cls, kind):
    rng = np.random.default_rng(2)
    matroid, _ = RANDOM[kind](rng, 11)
    features = rng.standard_normal((11, 3))
    check_policy(lambda: cls(matroid, features=features, seed=3))
    check_policy(lambda: sb.minimize(cls(matroid, features=features, reward_range=(-1.0, 2.0), seed=3)))


@pytest.mark.parametrize("cls", BOTH)
@pytest.mark.parametrize("kind", RANDOM)
def test_rounds_are_exact_and_ties_go_to_the_smaller_id(cls, kind):
    """Equal rows are ties, bit for bit, whichever way the round was found: the few that were looked at decide."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        matroid, _ = RANDOM[kind](rng, 14)
        features = rng.standard_normal((5, 3))[rng.integers(0, 5, 14)]
        policy = cls(matroid, features=features, seed=seed)
        for t in range(25):
            exclude = None if t % 4 else rng.integers(0, 14, 3)
            arms = policy.select() if exclude is None else policy.select(exclude)
            weights = policy._indices_of(np.arange(14), t)
            if cls is sb.CombLinTS:
                assert np.array_equal(weights, naive_sums(features, policy._posterior.drawn))
            here = np.setdiff1d(np.arange(14), [] if exclude is None else exclude)
            assert arms.tolist() == matroid.max_weight_base(weights[here], among=here).tolist()
            policy.update(arms, rng.random(len(arms)))


@pytest.mark.parametrize("cls", BOTH)
@pytest.mark.parametrize("groups", [1, 7])
def test_large_rounds_are_exact_too(cls, groups):
    """Many arms take the products of the BLAS, which adds in an order of its own, for a hint only."""
    rng = np.random.default_rng(5)
    n, d = 6000, 9
    features = rng.standard_normal((400, d))[rng.integers(0, 400, n)]
    matroid = sb.Uniform(n, 12) if groups == 1 else sb.Partition(rng.integers(0, groups, n), 3)
    policy = cls(matroid, features=features, seed=1)
    policy.delete(rng.choice(n, 500, replace=False))
    here = np.flatnonzero(~policy._is_gone(np.arange(n)))
    for t in range(40):
        arms = policy.select()
        weights = policy._indices_of(here, t)
        assert arms.tolist() == matroid.max_weight_base(weights, among=here).tolist(), t
        policy.update(arms, rng.random(len(arms)))
    if cls is sb.CombLinUCB:
        assert policy.describe()["widths"] < 0.2 * 40 * n, "most widths are never computed"
    policy._check()


class Sequence:
    """A CombLinUCB and the model that keeps every row, through the same calls."""

    def __init__(self, seed, kind):
        self.rng = np.random.default_rng(seed)
        self.matroid, _ = RANDOM[kind](self.rng, 9)
        self.features = self.rng.standard_normal((9, 3))
        self.width = float(self.rng.uniform(0.2, 3.0))
        self.policy = sb.CombLinUCB(
            self.matroid, features=self.features, width=self.width, prior_scale=1.3, noise=0.6
        )
        self.model = LinearModel(3, 1.3, 0.6)
        self.waiting = {}
        self.gone = set()

    def check(self, arms, among):
        weights = self.model.index(self.features, self.width)
        best = self.matroid.max_weight_base(weights[among], among=among)
        assert len(best) == len(arms) and self.matroid.is_independent(arms) and np.isin(arms, among).all()
        assert weights[arms].sum() == pytest.approx(weights[best].sum(), abs=1e-9)

    def here(self):
        return np.array(sorted(set(range(9)) - self.gone), dtype=np.int64)

    def step(self, what):
        rng, policy = self.rng, self.policy
        if what == "play":
            arms = policy.select()
            self.check(arms, self.here())
            rewards = rng.random(len(arms))
            policy.update(arms, rewards)
            self.model.learn(self.features[arms], rewards)
        elif what == "decide":
            some = rng.permutation(9)[: rng.integers(1, 10)]
            decision = policy.decide(among=some) if rng.random() < 0.3 else policy.decide()
            self.waiting[decision.id] = decision.arms.copy()
            self.model.held[decision.id] = self.features[decision.arms]
        elif what in ("learn", "drop", "part") and self.waiting:
            number = list(self.waiting)[rng.integers(len(self.waiting))]
            arms = played = self.waiting.pop(number)
            remembered = self.model.held.pop(number)
            if what == "drop":
                policy.drop(number)
                return
            if what == "part":
                arms = rng.permutation(arms)[: rng.integers(0, len(arms) + 1)]
                arms = np.concatenate((arms, arms[: rng.integers(0, 2)]))  # one of them perhaps twice
            rewards = rng.random(len(arms))
            policy.learn(number, rewards, arms=None if what == "learn" else arms)
            self.model.learn(remembered[np.searchsorted(played, arms)], rewards)
        elif what == "late":
            arms, rows = rng.integers(0, 9, 3), rng.standard_normal((3, 3))
            rewards = rng.random(3)
            policy.update(arms, rewards, features=rows)
            self.model.learn(rows, rewards)
        elif what == "come or go":
            arm = int(rng.integers(9))
            if arm in self.gone:
                policy.insert([arm])
                self.gone.remove(arm)
            elif len(self.gone) < 4:
                policy.delete([arm])
                self.gone.add(arm)
        elif what == "other features":
            arm, row = int(rng.integers(9)), rng.standard_normal(3)
            policy.reset([arm], features=[row])
            self.features[arm] = row
        elif what == "copy":
            self.policy = policy.clone()


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    kind=st.sampled_from(sorted(RANDOM)),
    steps=st.lists(
        st.sampled_from(
            ["play", "play", "decide", "decide", "learn", "drop", "part", "late", "come or go"]
            + ["other features", "copy"]
        ),
        min_size=5,
        max_size=30,
    ),
)
def test_any_sequence_of_calls(seed, kind, steps):
    one = Sequence(seed, kind)
    for what in steps:
        one.step(what)
        one.policy._check()
    np.testing.assert_allclose(one.policy.theta, one.model.theta(), atol=1e-10)
    np.testing.assert_allclose(one.policy.covariance, np.linalg.inv(one.model.precision()), atol=1e-10)
    if len(one.here()) and len(one.policy.matroid._greedy(one.here())):
        one.check(one.policy.select(), one.here())


def test_intervals_are_those_of_the_model():
    rng = np.random.default_rng(1)
    features = rng.standard_normal((6, 3))
    model = LinearModel(3)
    rewards = rng.random(12)
    model.learn(features[np.arange(12) % 6], rewards)
    sigma = np.linalg.inv(model.precision())
    spread = np.sqrt(np.einsum("ij,jk,ik->i", features, sigma, features))
    for cls, factor in ((sb.CombLinTS, 1.959963984540054), (sb.CombLinUCB, 1.0)):
        policy = cls(sb.Uniform(6, 3), features=features)
        policy.update(np.arange(12) % 6, rewards)
        for row in policy.decide().ranked():
            centre = features[row.arm] @ model.theta()
            assert (row.low, row.high) == pytest.approx(
                (centre - factor * spread[row.arm], centre + factor * spread[row.arm])
            )
            assert row.plays == 2 and row.mean == pytest.approx(rewards[[row.arm, row.arm + 6]].mean())
            if cls is sb.CombLinUCB:
                assert row.index == pytest.approx(row.high)


def test_what_waits_spreads_over_directions_and_is_taken_back():
    features = np.vstack([np.eye(3) + 0.01, np.eye(3)])
    policy = sb.CombLinUCB(sb.Uniform(6, 1), features=features)
    first = [decision.arms[0] for decision in policy.decide(count=3)]
    assert sorted(arm % 3 for arm in first) == [0, 1, 2], "three directions, not three times one"
    prompt = sb.CombLinUCB(sb.Uniform(6, 1), features=features)
    for number, arm in enumerate(first):
        if number == 1:
            policy.drop(number)
            continue
        policy.learn(number, [0.25])
        prompt.update([arm], [0.25])
    np.testing.assert_allclose(policy.covariance, prompt.covariance, atol=1e-14)
    assert policy.select().tolist() == prompt.select().tolist()
    assert policy.waiting == 0 and not policy._posterior.held.any()


@pytest.mark.parametrize("cls", BOTH)
def test_costs_are_linear_without_a_constant(cls):
    """A cost c is the reward a + b - c inside; what is learnt must be linear in the features all the same."""
    rng = np.random.default_rng(3)
    features = rng.random((30, 3))
    theta = np.array([0.1, 0.4, 0.2])
    policy = sb.minimize(cls(sb.Uniform(30, 4), features=features, noise=0.01, seed=2))
    assert policy.objective == "min" and policy.name == cls.name
    for _ in range(60):
        decision = policy.decide()
        policy.learn(decision, features[decision.arms] @ theta)
    np.testing.assert_allclose(-policy.inner.theta, theta, atol=0.02)
    assert policy.select().tolist() == np.sort(np.argsort(features @ theta)[:4]).tolist()
    shown = policy.decide()
    np.testing.assert_allclose(shown.scores, (features @ theta)[shown.arms], atol=0.05)
    assert (shown.account.low <= shown.account.high).all()
    twin = policy.clone()
    assert twin.waiting == 1 and twin.decide().arms.tolist() == policy.decide().arms.tolist()
    policy.learn(shown, np.full(4, 0.5), features=features[:4])
    assert twin.waiting == 2 and policy.waiting == 1
    grown = np.vstack([features, np.zeros((1, 3))])
    policy.grow(sb.Uniform(31, 4), features=grown[30:])
    assert policy.n_arms == 31 and policy.waiting == 1
    policy.reset([30], features=[[0.5, 0.5, 0.5]])
    policy.drop(next(iter(policy._decisions._arms)))


@pytest.mark.parametrize("cls", BOTH)
def test_grown_policies_go_on(cls):
    rng = np.random.default_rng(6)
    features = rng.standard_normal((12, 3))
    small, large = sb.Uniform(8, 3), sb.Uniform(12, 3)
    growing, roomy = cls(small, features=features[:8], seed=1), cls(large, features=features, seed=1)
    roomy.delete(np.arange(8, 12))
    for t in range(30):
        if t == 15:
            before = growing.theta
            growing.grow(large, features=features[8:])
            np.testing.assert_array_equal(growing.theta, before)
            roomy.insert(np.arange(8, 12))
        one, two = growing.decide(), roomy.decide()
        assert one.arms.tolist() == two.arms.tolist(), t
        if t % 3:
            rewards = rng.random(3)
            growing.learn(one, rewards)
            roomy.learn(two, rewards)
    growing._check()
    with pytest.raises(sb.ParameterError, match="features must be given: one row for each of the 2 new arms"):
        growing.grow(sb.Uniform(14, 3))
    with pytest.raises(sb.ParameterError, match="features must have one row per new arm"):
        growing.grow(sb.Uniform(14, 3), features=features[:3])
    assert growing.n_arms == 12 and growing.select().size == 3


def test_bad_arguments_are_named():
    matroid = sb.Uniform(4, 2)
    features = np.ones((4, 2))
    for options, match in (
        ({"features": np.ones((3, 2))}, "one row per arm"),
        ({"features": np.ones(4)}, "matrix"),
        ({"features": np.ones((4, 0))}, "length"),
        ({"features": "many"}, "matrix of numbers"),
        ({"features": [[1.0, np.nan]] * 4}, r"features\[0, 1\] = nan"),
        ({"features": [[1.0, 1e101]] * 4}, "1e\\+100"),
        ({"features": features, "dimension": 2}, "give one of them"),
        ({"dimension": 0}, "dimension"),
        ({"features": features, "prior_scale": 0.0}, "prior_scale"),
        ({"features": features, "noise": -1.0}, "noise"),
        ({"features": features, "reward_range": None}, "noise must be given"),
    ):
        with pytest.raises(sb.ParameterError, match=match):
            sb.CombLinTS(matroid, **options)
    with pytest.raises(sb.ParameterError, match="width"):
        sb.CombLinUCB(matroid, features=features, width=0.0)
    with pytest.raises(sb.ParameterError, match="at most 512 arms"):
        sb.CombLinTS(sb.Uniform(513, 2))
    policy = sb.CombLinUCB(matroid, features=features)
    for call in (
        lambda: policy.select(features=features),
        lambda: policy.decide(features=features),
        lambda: policy.update([0], [0.5], features=[[1.0]]),
        lambda: policy.update([0], [0.5], features=[[np.inf, 0.0]]),
        lambda: policy.update([0, 1], [0.5, 0.5], features=[[1.0, 1.0]]),
        lambda: policy.reset([0, 0], features=np.ones((2, 2))),
        lambda: policy.reset([0], features=[[1.0, np.nan]]),
    ):
        with pytest.raises(sb.ParameterError, match="features"):
            call()
    assert policy.t == 0 and policy.counts.sum() == 0 and not policy.theta.any()


def test_features_are_copied():
    given_rows = np.eye(3)
    policy = sb.CombLinUCB(sb.Uniform(3, 1), features=given_rows)
    given_rows[:] = 0.0
    assert policy.features.tolist() == np.eye(3).tolist()
    policy.features[:] = 7.0
    assert policy.features.tolist() == np.eye(3).tolist()
