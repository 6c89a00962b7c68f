"""Features of each call: contextual use, with decisions that remember their rows."""

from __future__ import annotations

import numpy as np
import pytest

import semibandit as sb
from semibandit.errors import ArmError, FileError, RewardError
from semibandit.policies.files import from_bytes, to_bytes
from semibandit.testing import check_policy
from support.random_matroids import RANDOM

BOTH = [sb.CombLinTS, sb.CombLinUCB]


def with_rows(cls, rows):
    """The policy with features that come with each call, for callers that know of none."""

    class Told(cls):
        name = f"told-{cls.name}"

        def select(self, exclude=None, *, among=None, weights=None, features=None):
            if features is None and self._table is None:
                features = rows if among is None else rows[np.asarray(among)]
            return super().select(exclude, among=among, weights=weights, features=features)

        def decide(self, *, among=None, **asked):
            if among is not None:
                good = np.asarray(among)[np.asarray(among) < self.n_arms]
                asked["features"] = rows[good]
            else:
                asked["features"] = rows
            return super().decide(among=among, **asked)

        def update(self, arms, rewards, features=None):
            if features is None and self._rows is None:
                ids = np.atleast_1d(np.asarray(arms))
                fits = ids.ndim == 1 and ids.dtype.kind == "i" and ((ids >= 0) & (ids < self.n_arms)).all()
                features = rows[ids] if fits else None
            super().update(arms, rewards, features=features)

    return Told


@pytest.mark.parametrize("cls", BOTH)
@pytest.mark.parametrize("kind", RANDOM)
def test_contract(cls, kind):
    rng = np.random.default_rng(2)
    matroid, _ = RANDOM[kind](rng, 11)
    told = with_rows(cls, rng.standard_normal((11, 3)))
    check_policy(lambda: told(matroid, dimension=3, seed=3))


@pytest.mark.parametrize("cls", BOTH)
@pytest.mark.parametrize("kind", RANDOM)
def test_features_that_never_change_are_fixed_ones(cls, kind):
    rng = np.random.default_rng(4)
    matroid, _ = RANDOM[kind](rng, 12)
    rows = rng.standard_normal((4, 3))[rng.integers(0, 4, 12)]
    fixed, told = cls(matroid, features=rows, seed=2), cls(matroid, dimension=3, seed=2)
    assert told.contextual and not fixed.contextual and told.features is None
    for t in range(25):
        if t == 8:
            fixed.delete([3])
            told.delete([3])
        some = rng.permutation(12)[:5]
        if t % 5 == 4:
            one, two = fixed.decide(among=some), told.decide(among=some, features=rows[some])
        else:
            one, two = fixed.decide(), told.decide(features=rows)
        assert one.arms.tolist() == two.arms.tolist(), t
        np.testing.assert_array_equal(one.scores, two.scores)
        if t % 3 == 0:
            continue
        rewards = rng.random(len(one.arms))
        fixed.learn(one, rewards)
        told.learn(two.id, rewards)
    np.testing.assert_array_equal(fixed.theta, told.theta)
    assert fixed.select(exclude=[1]).tolist() == told.select(exclude=[1], features=rows).tolist()
    told._check()


@pytest.mark.parametrize("cls", BOTH)
def test_decisions_remember_their_rows_in_files_too(cls):
    rng = np.random.default_rng(7)
    policy = cls(sb.Partition(np.arange(10) % 2, 2), dimension=4, seed=5)
    decisions = []
    for _ in range(4):
        rows = rng.standard_normal((10, 4))
        decisions.append((policy.decide(features=rows), rows.copy()))
        rows[:] = np.nan  # what was handed over is not looked at again
    blind = policy.decide(weights=np.arange(10.0))
    again = from_bytes(to_bytes(policy))
    late = cls(sb.Partition(np.arange(10) % 2, 2), dimension=4, seed=5)
    for decision, rows in decisions[:3]:
        rewards = rng.random(4)
        for one in (policy, again):
            one.learn(decision, rewards)
        late.update(decision.arms, rewards, features=rows[decision.arms])
    for one in (policy, again):
        np.testing.assert_allclose(one.theta, late.theta, atol=1e-14)
        one.drop(decisions[3][0])
        with pytest.raises(sb.ParameterError, match="features must be given"):
            one.learn(blind, np.full(4, 0.5))
        assert one.waiting == 1
        one.learn(blind, np.full(4, 0.5), features=np.eye(4))
        one._check()
    rows = rng.standard_normal((10, 4))
    assert policy.select(features=rows).tolist() == again.select(features=rows).tolist()


def refusals(policy, rows):
    broken, large = rows.copy(), rows.copy()
    broken[5, 1], large[:, 0] = np.inf, 1e101
    select, decide, update = policy.select, policy.decide, policy.update
    return (
        (select, {}, sb.ParameterError),
        (select, {"among": [1, 2]}, sb.ParameterError),
        (decide, {}, sb.ParameterError),
        (select, {"features": rows[:5]}, sb.ParameterError),
        (select, {"features": rows[:, :2]}, sb.ParameterError),
        (select, {"features": broken}, sb.ParameterError),
        (select, {"features": large}, sb.ParameterError),
        (select, {"features": large * 1e100}, sb.ParameterError),
        (select, {"among": [0, 5], "features": broken[[0, 5]]}, sb.ParameterError),
        (select, {"among": [0, 1], "features": rows}, sb.ParameterError),
        (select, {"among": [0, 0], "features": rows[:2]}, ArmError),
        (select, {"exclude": [6], "features": rows}, ArmError),
        (update, {"arms": [0], "rewards": [0.5]}, sb.ParameterError),
        (update, {"arms": [0], "rewards": [1.5], "features": rows[:1]}, RewardError),
        (update, {"arms": [6], "rewards": [0.5], "features": rows[:1]}, ArmError),
        (policy.reset, {"arms": [0], "features": rows[:1]}, sb.ParameterError),
        (policy.grow, {"matroid": sb.Uniform(7, 2), "features": rows[:1]}, sb.ParameterError),
    )


@pytest.mark.parametrize("cls", BOTH)
def test_refused_calls_change_nothing(cls):
    rows = np.random.default_rng(8).standard_normal((6, 3))
    policy, twin = (cls(sb.Uniform(6, 2), dimension=3, seed=3) for _ in range(2))
    for call, asked, error in refusals(policy, rows):
        with pytest.raises(error):
            call(**asked)
    assert policy.t == 0 and policy.waiting == 0 and not policy.theta.any()
    policy.update([], [])
    for _ in range(3):
        assert policy.select(features=rows).tolist() == twin.select(features=rows).tolist()
    assert np.isnan(policy.scores([0, 1])).all(), "without rows nothing is known of an arm"


def test_rows_of_any_kind_of_numbers():
    policy = sb.CombLinUCB(sb.Uniform(3, 1), dimension=2)
    told = sb.CombLinUCB(sb.Uniform(3, 1), dimension=2)
    rows = np.array([[0, 1], [2, 1], [1, 1]])
    frozen = np.asfortranarray(rows.astype(float))
    frozen.flags.writeable = False
    for shape in (rows, rows.tolist(), rows.astype(np.float32), frozen):
        assert policy.select(features=shape).tolist() == told.select(features=rows.astype(float)).tolist()
        policy.update([1], [0.5], features=shape[1:2] if isinstance(shape, np.ndarray) else [shape[1]])
        told.update([1], [0.5], features=rows[1:2].astype(float))
    np.testing.assert_array_equal(policy.theta, told.theta)


def test_growing_keeps_rows():
    rng = np.random.default_rng(9)
    for options in ({"dimension": 3}, {}):
        policy = sb.CombLinUCB(sb.Uniform(6, 2), **options)
        asked = {"features": rng.standard_normal((6, 3))} if options else {}
        decision = policy.decide(**asked)
        policy.grow(sb.Uniform(8, 2))
        policy._check()
        policy.learn(decision, [0.5, 1.0])
        policy._check()
        assert policy.counts.sum() == 2 and policy.waiting == 0


def test_costs_with_features_of_each_call():
    rng = np.random.default_rng(10)
    theta = np.array([0.2, 0.3, 0.4])
    policy = sb.minimize(sb.CombLinTS(sb.Uniform(20, 3), dimension=3, noise=0.02, seed=1))
    lost = []
    for t in range(150):
        rows = rng.random((20, 3))
        costs = rows @ theta
        if t % 2:
            decision = policy.decide(features=rows)
            policy.learn(decision, costs[decision.arms])
            arms = decision.arms
        else:
            arms = policy.select(features=rows)
            policy.update(arms, costs[arms], features=rows[arms])
        lost.append(costs[arms].sum() - np.sort(costs)[:3].sum())
    assert np.mean(lost[100:]) < 0.02 < np.mean(lost[:5])
    rows = rng.random((20, 3))
    decision = policy.decide(features=rows)
    again = from_bytes(to_bytes(policy))
    assert again.waiting == 1 and again.objective == "min"
    for one in (policy, again):
        one.learn(decision, np.full(3, 0.25))
    np.testing.assert_array_equal(policy.inner.theta, again.inner.theta)
    assert again.select(features=rows).tolist() == policy.select(features=rows).tolist()


def test_damaged_files_are_refused():
    policy = sb.CombLinUCB(sb.Uniform(4, 2), features=np.eye(4)[:, :3] + 0.5)
    policy.decide()
    state = policy._state()
    for name, value in (
        ("posterior_root", np.zeros(9)),
        ("posterior_root", np.full(9, np.nan)),
        ("posterior_root", np.ones(4)),
        ("posterior_meta", -np.ones(8, dtype=np.int64)),
        ("waiting_rows", np.ones(5)),
        ("waiting_sizes", np.array([7])),
        ("waiting_rows", np.full(6, np.nan)),
        ("last", np.array([9])),
        ("shift", np.nan),
    ):
        other = sb.CombLinUCB(sb.Uniform(4, 2), features=np.eye(4)[:, :3] + 0.5)
        with pytest.raises(FileError):
            other._set_state({**state, name: value})
    other = sb.CombLinUCB(sb.Uniform(4, 2), features=np.eye(4)[:, :3] + 0.5)
    other._set_state({**state})
    with pytest.raises(FileError, match="features of decisions"):
        other._take_decisions(type(policy._decisions)())
