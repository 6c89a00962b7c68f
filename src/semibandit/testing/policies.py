"""`check_policy`: the contract of a policy, by use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from semibandit.arms import IntArray
from semibandit.errors import ArmError, ParameterError, RewardError
from semibandit.matroids import Matroid
from semibandit.policies.base import Policy


def check_policy(
    make: Callable[[], Policy], *, rounds: int = 40, seed: int = 0, excludes: bool = True
) -> None:
    """Assert that what `make` builds behaves as `semibandit.policies.Policy` promises.

    Bases are bases, sorted; feedback late, partial, repeated, out of order or never; refused calls change
    nothing; a clone goes on exactly as the original; two built alike decide alike; decisions among some arms, or by
    weights, are the best bases there; `reset` forgets the arms it names, or is refused.
    """
    rng = np.random.default_rng(seed)
    policy = make()
    matroid = policy.matroid
    low, high = _some_range(policy)
    n = matroid.n_arms

    def rewards_for(arms: IntArray) -> Any:
        return rng.uniform(low, high, size=len(arms))

    assert policy.t == 0
    policy.update(np.arange(n)[: min(n, 3)], rewards_for(np.arange(n)[: min(n, 3)]))  # a warm start
    assert policy.t == 0, "update must not count as a round"
    late: list[tuple[IntArray, Any]] = []
    for t in range(1, rounds + 1):
        arms = policy.select()
        _check_base(matroid, arms)
        assert policy.t == t
        rewards = rewards_for(arms)
        if t % 4 == 0:
            late.append((arms, rewards))
        elif t % 4 == 1:
            order = rng.permutation(len(arms))
            policy.update(arms[order], rewards[order])
        elif t % 4 == 2:
            policy.update(arms[:1].tolist(), rewards[:1].tolist())
        if t % 10 == 0 and late:
            policy.update(np.concatenate([a for a, _ in late]), np.concatenate([r for _, r in late]))
            late.clear()
        if t % 7 == 0:
            _check_refusals(policy, low, high)
    _check_counts(policy)
    _check_clone(policy, rewards_for)
    _check_twins(make, seed)
    if excludes:
        _check_exclusions(policy)
    _check_choices(policy)
    _check_reset(policy)
    assert {"policy", "engine"} <= set(policy.describe()) or "policy" in policy.describe()


def _check_base(matroid: Matroid, arms: IntArray) -> None:
    assert isinstance(arms, np.ndarray) and arms.dtype == np.int64 and arms.ndim == 1
    assert (np.diff(arms) > 0).all(), f"arms must ascend without repeats: {arms.tolist()}"
    assert len(arms) == matroid.rank and matroid.is_independent(arms), f"not a base: {arms.tolist()}"


def _some_range(policy: Policy) -> tuple[float, float]:
    """The policy's range, or one inside it that has ends."""
    low, high = policy.reward_range
    if np.isinf(low):
        low = min(high, 1e3) - 2e3
    return low, high if np.isfinite(high) else low + 2e3


def _snapshot(policy: Policy) -> tuple[Any, ...]:
    return policy.t, policy.counts.tolist(), np.nan_to_num(policy.means, nan=-7.0).tolist()


def _check_refusals(policy: Policy, low: float, high: float) -> None:
    before = _snapshot(policy)
    n, middle = policy.n_arms, 0.5 * (low + high)
    cases: list[tuple[type[Exception], Any, Any]] = [
        (RewardError, [0], [np.nan]),
        (RewardError, [0], [np.inf]),
        (RewardError, [0], [-np.inf]),
        (RewardError, [0, 0], [middle]),
        (RewardError, [0], ["high"]),
        (ArmError, [n], [middle]),
        (ArmError, [0, -1], [middle, middle]),
        (ArmError, [0.5], [middle]),
        (ArmError, [[0]], [[middle]]),
    ]
    if policy.outside == "error" and np.isfinite(policy.reward_range).all():
        cases += [(RewardError, [0, 0], [middle, high + 1.0]), (RewardError, [0], [low - 1.0])]
    for error, arms, rewards in cases:
        try:
            policy.update(arms, rewards)
        except error:
            pass
        else:
            raise AssertionError(f"update({arms}, {rewards}) was accepted, {error.__name__} expected")
    assert _snapshot(policy) == before, "a refused update changed the policy"


def _check_counts(policy: Policy) -> None:
    low, high = _some_range(policy)
    middle = 0.5 * (low + high)
    before = policy.counts
    policy.update([0, 0, 0], [middle, low, high])
    after = policy.counts
    assert after[0] == before[0] + 3 and np.array_equal(after[1:], before[1:]), "each naming of an arm counts"
    policy.update(np.empty(0, dtype=np.int64), np.empty(0))
    assert np.array_equal(policy.counts, after)
    seen = after > 0
    assert np.isnan(policy.means[~seen]).all()
    assert (policy.means[seen] >= low - 1e-9).all() and (policy.means[seen] <= high + 1e-9).all()


def _check_choices(policy: Policy) -> None:
    matroid, n = policy.matroid, policy.n_arms
    sign = -1.0 if policy.objective == "min" else 1.0
    some = np.arange(n)[::2]
    t, waiting = policy.t, policy.waiting
    decision = policy.decide(among=some[::-1])
    assert np.isin(decision.arms, some).all() and (np.diff(decision.arms) > 0).all()
    best = matroid.max_weight_base(np.zeros(len(some)), among=some)
    assert len(decision.arms) == len(best) and matroid.is_independent(decision.arms), "no base of these arms"
    assert {row.arm for row in decision.ranked()} == set(decision.arms.tolist())
    policy.drop(decision)
    weights = np.arange(n) % 5 / 4.0
    by_weight = policy.decide(weights=weights)
    assert np.array_equal(by_weight.arms, matroid.max_weight_base(sign * weights)), "weights must decide"
    policy.drop(by_weight.id)
    assert policy.t == t + 2 and policy.waiting == waiting
    for wrong in ({"among": [0, 0]}, {"among": [n]}, {"weights": [0.0] * (n + 1)}, {"weights": [np.nan] * n}):
        try:
            policy.decide(**wrong)
        except (ArmError, ParameterError):
            continue
        raise AssertionError(f"decide({wrong}) was accepted")
    assert policy.t == t + 2


def _check_reset(policy: Policy) -> None:
    before = policy.counts
    try:
        policy.reset([0])
    except ParameterError:
        assert np.array_equal(policy.counts, before), "a refused reset changed the policy"
        return
    after = policy.counts
    assert after[0] == 0 and np.array_equal(after[1:], before[1:]), (
        "reset forgets the arms named, and no other"
    )
    assert np.isnan(policy.means[0])
    _check_base(policy.matroid, policy.select())


def _check_clone(policy: Policy, rewards_for: Callable[[IntArray], Any]) -> None:
    other = policy.clone()
    assert other is not policy and _snapshot(other) == _snapshot(policy)
    for _ in range(15):
        arms = policy.select()
        assert np.array_equal(arms, other.select()), "a clone must go on as the original would"
        rewards = rewards_for(arms)
        policy.update(arms, rewards)
        other.update(arms, rewards)
    before = _snapshot(policy)
    for _ in range(3):  # never any feedback again
        other.update(other.select(), rewards_for(other.select()))
    assert _snapshot(policy) == before, "a clone shares state with the original"


def _check_twins(make: Callable[[], Policy], seed: int) -> None:
    one, two = make(), make()
    rng = np.random.default_rng(seed + 1)
    low, high = _some_range(one)
    for _ in range(15):
        arms = one.select()
        assert np.array_equal(arms, two.select()), "same arguments and seed must give the same run"
        rewards = rng.uniform(low, high, size=len(arms))
        one.update(arms, rewards)
        two.update(arms, rewards)
    for _ in range(10):
        one.select()  # selecting for ever without feedback is fine


def _check_exclusions(policy: Policy) -> None:
    arms = policy.select()
    banned = arms[:1]
    left = policy.select(exclude=banned)
    assert banned[0] not in left, "an excluded arm was played"
    assert policy.matroid.is_independent(left)
    others = np.setdiff1d(np.arange(policy.n_arms), banned)
    assert len(left) == len(policy.matroid._greedy(others)), "what is left must be backfilled to a base"
    try:
        policy.select(exclude=[policy.n_arms])
    except ArmError:
        pass
    else:
        raise AssertionError("an unknown arm was accepted in exclude")
