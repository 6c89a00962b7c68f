"""Decisions whose feedback comes late: what waits is counted in the width, and nothing is lost or learnt twice."""

from __future__ import annotations

import copy
import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import semibandit as sb
from semibandit.data.instances import random_environment
from semibandit.policies.catalogue import POLICIES, build_policy
from semibandit.policies.records import EnginePolicy

# Their intervals are those of a model of all arms: tests/policies/linear.
LINEAR = ("comb-lin-ts", "comb-lin-ucb")

KINDS = ["uniform", "partition", "laminar", "graphic", "transversal", "linear"]


def kl(p, q):
    p, q = min(max(p, 1e-15), 1 - 1e-15), min(max(q, 1e-15), 1 - 1e-15)
    return p * math.log(p / q) + (1 - p) * math.log((1 - p) / (1 - q))


def kl_index(mean, n, level):
    low, high = mean, 1.0
    for _ in range(100):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if n * kl(mean, middle) <= level else (low, middle)
    return low


def naive_index(name, arm, seen, waiting, t):
    """The index by its formula, from the list of rewards seen of each arm."""
    n = len(seen[arm]) + waiting[arm]
    if n == 0:
        return math.inf
    mean = sum(seen[arm]) / len(seen[arm]) if seen[arm] else 1.0
    if name == "kl-osm":
        log = math.log(t)
        return kl_index(mean, n, log + 3.0 * math.log(max(1.0, log)))
    return mean + math.sqrt(1.5 * math.log(t) / n)


@pytest.mark.thin
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["cucb", "kl-osm"])
def test_decisions_are_those_of_the_formula(name, kind):
    matroid = random_environment("bernoulli", kind, 14, 3 if kind != "graphic" else 5, seed=2).matroid
    policy = build_policy(name, {}, matroid)
    rng = np.random.default_rng(3)
    seen, waiting, late = [[] for _ in range(14)], np.zeros(14, dtype=int), []
    for t in range(1, 120):
        decision = policy.decide()
        weights = np.array([naive_index(name, arm, seen, waiting, t) for arm in range(14)])
        base = np.sort(matroid.max_weight_base(weights))
        # Ties that rounding breaks are the only excuse.
        if decision.arms.tolist() != base.tolist():
            assert weights[decision.arms].sum() == pytest.approx(weights[base].sum(), abs=1e-7)
        finite = np.isfinite(weights[decision.arms])
        np.testing.assert_allclose(decision.scores[finite], weights[decision.arms][finite], atol=1e-6)
        waiting[decision.arms] += 1
        late.append(decision)
        while len(late) > 3 + t % 5:
            one = late.pop(int(rng.integers(len(late))))
            waiting[one.arms] -= 1
            rewards = rng.integers(0, 2, len(one.arms)).astype(float)
            if t % 7 == 0:
                policy.drop(one.id)
                continue
            policy.learn(one if t % 2 else one.id, rewards)
            for arm, reward in zip(one.arms, rewards, strict=True):
                seen[arm].append(reward)
        if t % 11 == 0:  # feedback of plays that were never decided here
            policy.update([3], [1.0])
            seen[3].append(1.0)
        if t % 13 == 0:
            policy = copy.deepcopy(policy)
    assert policy.counts.tolist() == [len(rewards) for rewards in seen]
    assert policy.waiting == len(late)
    policy._engine._check()


@pytest.mark.parametrize("name", list(POLICIES))
def test_every_policy_decides_and_learns(name):
    matroid = sb.Uniform(n_arms=12, rank=3)
    policy = build_policy(name, {}, matroid, context={"horizon": 100, "means": np.linspace(0.1, 0.9, 12)})
    decisions = policy.decide(count=4)
    assert [d.id for d in decisions] == [0, 1, 2, 3] and policy.waiting == 4 and policy.t == 4
    for decision in reversed(decisions):
        assert matroid.is_independent(decision.arms) and len(decision.scores) == 3
        policy.learn(decision, np.full(3, 0.5))
    assert policy.waiting == 0 and policy.counts.sum() == 12
    costs = sb.minimize(policy)
    one = costs.decide(exclude=[0])
    assert 0 not in one.arms
    costs.learn(one.id, np.full(3, 0.25))
    assert costs.waiting == 0


def test_requests_before_any_feedback_spread():
    policy = sb.CUCB(sb.Uniform(n_arms=1000, rank=10))
    arms = np.concatenate([decision.arms for decision in policy.decide(count=100)])
    assert len(np.unique(arms)) == 1000
    assert len(np.unique(np.concatenate([d.arms for d in policy.decide(count=50)]))) == 500


def test_waiting_ends_where_it_began():
    """Once all feedback is there nothing tells that it was late."""
    late, at_once = (sb.CUCB(sb.Uniform(n_arms=30, rank=4)) for _ in range(2))
    rng = np.random.default_rng(1)
    for _ in range(40):
        decisions = late.decide(count=3)
        for decision in decisions:
            rewards = rng.random(4)
            late.learn(decision, rewards)
            at_once.select()
            at_once.update(decision.arms, rewards)
    assert np.array_equal(late.records, at_once.records)
    assert late.select().tolist() == at_once.select().tolist()


def test_part_of_the_feedback_and_errors():
    policy = sb.CUCB(sb.Uniform(n_arms=6, rank=2))
    first, second = policy.decide(count=2)
    before = policy.records.copy()
    for wrong in (99, -1, "0", True, None):
        with pytest.raises(sb.ArmError, match="waits for no feedback"):
            policy.learn(wrong, [1.0, 1.0])
    with pytest.raises(sb.ArmError, match="did not play"):
        policy.learn(first, [1.0], arms=[5])
    with pytest.raises(sb.RewardError):
        policy.learn(first, [1.0, 2.0])
    with pytest.raises(sb.SemibanditError):
        policy.learn(first, [1.0])
    assert np.array_equal(policy.records, before) and policy.waiting == 2
    policy.learn(first, [1.0], arms=[int(first.arms[1])])
    assert policy.counts.sum() == 1 and policy.waiting == 1
    with pytest.raises(sb.ArmError, match="settled already"):
        policy.learn(first, [1.0, 1.0])
    policy.drop(second)
    assert policy.waiting == 0
    with pytest.raises(sb.ParameterError):
        policy.decide(count=0)


@pytest.mark.parametrize("spec", [sb.CUCB, sb.KLOSM, sb.CTS])
def test_what_waits_is_saved(tmp_path, spec):
    for policy in (spec(sb.Uniform(n_arms=9, rank=2)), sb.minimize(spec(sb.Uniform(n_arms=9, rank=2)))):
        first, second, third = policy.decide(count=3)
        policy.learn(second, [0.5, 1.0])
        policy.save(tmp_path / "saved")
        loaded = sb.load(tmp_path / "saved")
        assert loaded.waiting == 2
        for one in (policy, loaded):
            one.learn(third.id, [0.0, 1.0])
            one.drop(first.id)
        assert [d.arms.tolist() for d in policy.decide(count=5)] == [
            d.arms.tolist() for d in loaded.decide(count=5)
        ]


def test_arms_that_come_while_decisions_wait():
    policy = sb.CUCB(sb.Uniform(n_arms=4, rank=2))
    first = policy.decide()
    policy.grow(sb.Uniform(n_arms=8, rank=2))
    assert policy.decide().arms.tolist() == [2, 3]
    policy.decide(count=2)
    policy.learn(first, [0.0, 0.0])
    assert policy.counts.tolist() == [1, 1, 0, 0, 0, 0, 0, 0]
    policy._engine._check()


@settings(max_examples=30, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(["decide", "learn", "drop", "update"]), st.integers(0, 9)), max_size=40
    )
)
def test_any_order_of_calls(calls):
    policy, waiting, learnt = sb.CUCB(sb.Partition([0, 0, 1, 1, 1], 1)), [], 0
    for call, number in calls:
        if call == "decide":
            waiting.append(policy.decide())
        elif call == "update":
            policy.update([number % 5], [0.5])
            learnt += 1
        elif waiting:
            one = waiting.pop(number % len(waiting))
            if call == "learn":
                policy.learn(one, [1.0, 0.0])
                learnt += 2
            else:
                policy.drop(one)
        policy._engine._check()
    assert policy.waiting == len(waiting) and policy.counts.sum() == learnt
    plays = np.bincount(np.concatenate([[0], *(d.arms for d in waiting)]).astype(int), minlength=5)
    plays[0] -= 1
    expected = [1 / math.sqrt(n) if n else 0.0 for n in policy.counts + plays]
    np.testing.assert_allclose(policy.records["beta"], expected)


def test_ranked():
    decision = sb.Decision(0, np.array([2, 5, 7]), np.array([0.5, 0.9, 0.5]))
    assert [row[:2] for row in decision.ranked()] == [(5, 0.9), (2, 0.5), (7, 0.5)]
    assert repr(decision) == "Decision(id=0, arms=[5, 2, 7])"
    assert np.isnan([row[2:5] for row in decision.ranked()]).all()


def naive_interval(policy, rewards, t):
    """Mean, interval and plays of an arm by the definitions, of rewards that were seen at once; None: not compared."""
    low, high = policy.reward_range
    n = len(rewards)
    mean = sum(rewards) / n if n else math.nan
    width = math.sqrt(1.5 * math.log(t) / n) if n else math.nan
    log = math.log(t)
    if policy.name == "escb":
        width = math.sqrt(0.5 * math.log(t) / n) if n else math.nan
    if policy.name in ("cucb", "faster-cucb", "sliding-window-cucb", "escb"):
        return mean, *((mean - width, mean + width) if n else (low, high)), n
    if policy.name == "one-seed":  # the central 95 % of what is added, sigma = 1/2
        likely = 1.959963984540054 * 0.5 / math.sqrt(n) if n else math.nan
        return mean, *((mean - likely, mean + likely) if n else (low, high)), n
    if policy.name == "robust-cucb":  # of so few rewards no scale is estimated
        return mean, low, high, n
    if policy.name in ("kl-osm", "maub"):
        level = log + 3.0 * math.log(max(1.0, log))
        return (
            mean,
            *((1.0 - kl_index(1.0 - mean, n, level), kl_index(mean, n, level)) if n else (low, high)),
            n,
        )
    return mean, math.nan, math.nan, n


@pytest.mark.parametrize(
    "name", [name for name in POLICIES if name not in ("cts", "discounted-cucb", *LINEAR)]
)
def test_ranked_rows_are_those_of_the_definitions(name):
    context = {"horizon": 100, "means": np.linspace(0.1, 0.9, 6)}
    policy = build_policy(name, {}, sb.Uniform(n_arms=6, rank=4), context=context)
    seen = [[0.5, 1.0], [0.25], [0.0, 0.0, 1.0], [1.0], [0.75], []]
    for arm, rewards in enumerate(seen):
        policy.update([arm] * len(rewards), rewards)
    for _ in range(9):
        policy.select()
    for one in (policy, sb.minimize(policy)):
        decision = one.decide()
        rows = decision.ranked()
        assert sorted(row.arm for row in rows) == decision.arms.tolist()
        index = [-row.index if one.objective == "min" else row.index for row in rows]
        assert np.isnan(index).any() or sorted(index, reverse=True) == index
        for row in rows:
            mean, low, high, plays = naive_interval(policy, seen[row.arm], one.t)
            if one.objective == "min":
                mean, low, high = 1.0 - mean, 1.0 - high, 1.0 - low
            np.testing.assert_allclose(row[2:], (mean, low, high, plays), atol=1e-7)


@pytest.mark.parametrize("name", POLICIES)
def test_a_decision_tells_what_was_known_when_it_was_made(name):
    """The account is computed when it is asked for, from the numbers of the moment of the decision."""
    context = {"horizon": 100, "means": np.linspace(0.1, 0.9, 6)}
    policy = build_policy(name, {}, sb.Uniform(n_arms=6, rank=4), context=context)
    for k, reward in enumerate([1.0, 0.25, 0.5, 0.75, 1.0, 0.0] * 3):
        policy.update([k % 6], [reward])
    for one in (policy, sb.minimize(policy)):
        twin = one.clone()
        at_once = twin.decide()
        rows = at_once.ranked()
        late = one.decide()
        carried = copy.deepcopy(late)
        for _ in range(5):
            one.update(one.select(), [0.0] * 4)
        one.reset([0, 1]) if name != "fpl" else None
        for told in (late, carried, pickle.loads(pickle.dumps(late))):
            np.testing.assert_array_equal([row[0] for row in told.ranked()], [row[0] for row in rows])
            np.testing.assert_array_equal([row[1:] for row in told.ranked()], [row[1:] for row in rows])


def test_intervals_of_posteriors():
    """A tenth of a percent of the mass of Beta posteriors, counted; Gaussian ones by their formula."""
    policy = sb.CTS(sb.Uniform(n_arms=4, rank=4), reward_range=(-1.0, 3.0), seed=1)
    policy.update([0, 0, 0, 1, 1, 2], [3.0, 3.0, -1.0, -1.0, -1.0, 3.0])
    rng = np.random.default_rng(1)
    for row in policy.decide().ranked():
        wins, losses = int(policy.successes[row.arm]), int(policy.failures[row.arm])
        drawn = -1.0 + 4.0 * rng.beta(1 + wins, 1 + losses, size=200_000)
        assert np.mean(drawn < row.low) == pytest.approx(0.025, abs=0.002)
        assert np.mean(drawn > row.high) == pytest.approx(0.025, abs=0.002)
    normal = sb.CTS(sb.Uniform(n_arms=2, rank=2), posterior="gaussian", sigma=2.0)
    normal.update([0, 0, 0, 0], [0.5, 0.5, 0.5, 0.5])
    first = next(row for row in normal.decide().ranked() if row.arm == 0)
    assert (first.low, first.high) == pytest.approx((0.5 - 1.96, 0.5 + 1.96), abs=1e-3)


@pytest.mark.parametrize("options", [{"prior": (0.25, 8.0)}, {"clip": True}, {"index": "ucb-v"}])
def test_intervals_of_the_variants(options):
    policy = sb.CUCB(sb.Uniform(n_arms=3, rank=3), **options)
    policy.update([0, 0, 1], [0.5, 1.0, 1.0])
    policy.decide(count=4)
    rows = {row.arm: row for row in policy.decide().ranked()}
    assert [rows[k].plays for k in range(3)] == [2, 1, 0]
    if "prior" in options:
        assert rows[0].mean == pytest.approx((1.5 + 2.0) / 10)
        assert rows[2].mean == pytest.approx(0.25)
        assert rows[2].high - rows[2].mean == pytest.approx(math.sqrt(1.5 * math.log(5) / (8 + 4)))
    else:
        assert rows[0].mean == 0.75 and rows[0].high == rows[0].index
        if "clip" in options:
            assert rows[0].low == pytest.approx(0.75 - math.sqrt(1.5 * math.log(5) / 6))
        else:
            assert rows[0].low == pytest.approx(1.5 - rows[0].high)


@pytest.mark.parametrize("library", ["polars", "pandas"])
def test_decisions_as_frames(library):
    pytest.importorskip(library)
    policy = sb.CUCB(sb.Uniform(n_arms=30, rank=12))
    decision = policy.decide()
    frame = decision.to_frame(library)
    assert list(frame.columns) == ["arm", "index", "mean", "low", "high", "plays"] and len(frame) == 12
    assert repr(decision).endswith("9, ...])")
    with pytest.raises(sb.ParameterError, match="library"):
        decision.to_frame("numpy")


def test_what_is_done_to_a_decision_changes_nothing_that_waits():
    policy = sb.CUCB(sb.Uniform(n_arms=6, rank=2))
    decision = policy.decide()
    decision.arms[:] = 5
    policy.learn(decision.id, [1.0, 0.0])
    assert policy.counts.tolist() == [1, 1, 0, 0, 0, 0]


@pytest.mark.parametrize("name", list(POLICIES))
def test_scores_of_arms_seen_and_not_seen(name):
    """Where there is no index they are the means, read for these arms alone."""
    policy = build_policy(name, {}, sb.Uniform(9, 2), context={"horizon": 50, "means": np.linspace(0, 1, 9)})
    policy.select()
    policy.update([3, 3, 7], [1.0, 0.5, 0.25])
    scores = policy.scores([7, 0, 3])
    assert scores.shape == (3,)
    if not isinstance(policy, EnginePolicy) and name not in ("oracle", "maub", "escb", *LINEAR):
        np.testing.assert_array_equal(scores, policy.means[[7, 0, 3]])


@pytest.mark.parametrize("make", [sb.CUCB, sb.KLOSM, lambda m: sb.CUCB(m, clip=True), sb.ESCB, sb.OSSB])
def test_growing_keeps_what_waits(make):
    late, prompt = make(sb.Uniform(n_arms=6, rank=2)), make(sb.Uniform(n_arms=6, rank=2))
    decisions = late.decide(count=3)
    late.grow(sb.Uniform(n_arms=8, rank=2))
    assert late.decide().arms.tolist() == [6, 7], "the six others wait"
    late.drop(3)
    for decision in decisions:
        late.learn(decision, [0.5, 1.0])
    for _ in range(4):
        prompt.select()
    prompt.grow(sb.Uniform(n_arms=8, rank=2))
    for decision in decisions:
        prompt.update(decision.arms, [0.5, 1.0])
    assert late.select().tolist() == prompt.select().tolist() == [6, 7]
    for policy in (late, prompt):
        policy.update([6, 7], [0.0, 0.0])
    one, other = late.decide(), prompt.decide()
    assert one.arms.tolist() == other.arms.tolist() and one.scores.tolist() == other.scores.tolist()
