"""One-seed Thompson sampling: in lockstep with sorting all arms, the law of Z, and the contract."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import semibandit as sb
from oracles.one_seed import NaiveOneSeed
from semibandit.policies.thompson.seed_directions import normal_levels
from semibandit.testing import check_policy
from support.random_matroids import RANDOM

ACTIONS = (
    "play",
    "play",
    "late",
    "some",
    "exclude",
    "delete",
    "insert",
    "decide",
    "learn",
    "drop",
    "among",
    "reset",
)
FAST = ("uniform", "partition")


class Pair:
    """A policy and its oracle, which is told the policy's Z and nothing else."""

    def __init__(self, kind, n, seed, **options):
        self.rng = np.random.default_rng(seed)
        matroid, independent = RANDOM[kind](self.rng, n)
        self.n, self.late, self.open = n, [], []
        self.policy = sb.OneSeedTS(matroid, seed=seed, **options)
        own = {"epsilon": 0.1} if options.get("variant") == "cl-sg" else {}
        own |= {"stair": 0.01} if options.get("directions") else {}
        first = self.policy._first if options.get("ties") == "random" else None
        low, high = options.get("reward_range", (0.0, 1.0))
        self.naive = NaiveOneSeed(n, independent, low, high, first=first, **own)
        # Few different values make ties.
        self.values = [low, high, 0.25 * low + 0.75 * high, low + 0.3 * (high - low)]

    def rewards(self, arms):
        return self.rng.choice(self.values, size=len(arms))

    def feed(self, arms, rewards):
        self.policy.update(arms, rewards)
        self.naive.update(arms.tolist(), rewards.tolist())

    def same(self, arms, **how):
        assert arms.tolist() == self.naive.select(self.policy.seed_of_round, **how)

    def act(self, what):
        policy, naive, rng = self.policy, self.naive, self.rng
        if what in ("play", "late", "some"):
            arms = policy.select()
            self.same(arms)
            rewards = self.rewards(arms)
            if what == "play":
                self.feed(arms, rewards)
            elif what == "some":
                self.feed(arms[:1], rewards[:1])
            else:
                self.late.append((arms, rewards))
                for arms, rewards in self.late if len(self.late) > 2 else []:
                    self.feed(arms[::-1].copy(), rewards[::-1].copy())
                self.late = self.late if len(self.late) <= 2 else []
        elif what == "exclude":
            out = rng.choice(self.n, size=rng.integers(0, self.n + 1), replace=False)
            self.same(policy.select(exclude=out), exclude=set(out.tolist()))
        elif what == "among":
            some = rng.choice(self.n, size=rng.integers(0, self.n + 1), replace=False)
            self.same(policy.select(among=some), among=some.tolist())
        elif what == "delete":
            here = sorted(set(range(self.n)) - naive.gone)
            arm = int(rng.choice(here)) if here else None
            if arm is not None:
                policy.delete([arm])
                naive.gone.add(arm)
        elif what == "insert" and naive.gone:
            arm = int(rng.choice(sorted(naive.gone)))
            policy.insert([arm])
            naive.gone.remove(arm)
        elif what == "reset":
            arm = int(rng.integers(self.n))
            policy.reset([arm])
            naive.reset(arm)
        elif what == "decide":
            made = policy.decide()
            self.same(made.arms)
            naive.wait(made.arms.tolist(), 1)
            self.open.append(made)
        elif what in ("learn", "drop") and self.open:
            made = self.open.pop(int(rng.integers(len(self.open))))
            if what == "drop":
                policy.drop(made)
            else:
                rewards = self.rewards(made.arms)
                policy.learn(made, rewards)
                naive.update(made.arms.tolist(), rewards.tolist())
            naive.wait(made.arms.tolist(), -1)

    def check(self):
        assert self.policy.counts.tolist() == self.naive.count
        self.policy._engine._check()


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    kind=st.sampled_from(sorted(RANDOM)),
    n=st.integers(1, 11),
    seed=st.integers(0, 2**32),
    variant=st.sampled_from(["cts3", "cl-sg"]),
    ties=st.sampled_from(["id", "random"]),
    span=st.sampled_from([(0.0, 1.0), (-3.0, 5.0)]),
    actions=st.lists(st.sampled_from(ACTIONS), min_size=10, max_size=60),
)
def test_decisions_are_those_of_sorting_all_arms(kind, n, seed, variant, ties, span, actions):
    engines = ("grouped", "resolve") if kind in FAST else ("auto",)
    for engine in engines:
        pair = Pair(kind, n, seed, variant=variant, ties=ties, reward_range=span, engine=engine)
        for what in actions:
            pair.act(what)
        pair.check()


@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    kind=st.sampled_from(sorted(RANDOM)),
    n=st.integers(1, 11),
    seed=st.integers(0, 2**32),
    variant=st.sampled_from(["cts3", "cl-sg"]),
    directions=st.sampled_from([2, 3, 16]),
    actions=st.lists(st.sampled_from(ACTIONS), min_size=10, max_size=60),
)
def test_directions_decide_as_sorting_all_arms_at_their_z(kind, n, seed, variant, directions, actions):
    pair = Pair(kind, n, seed, variant=variant, directions=directions)
    levels = set(normal_levels(directions).tolist())
    for what in actions:
        pair.act(what)
        assert pair.policy.t == 0 or pair.policy.seed_of_round in levels
    pair.check()


@pytest.mark.parametrize("variant", ["cts3", "cl-sg"])
@pytest.mark.parametrize("kind", FAST)
def test_groups_and_one_pass_make_one_run(kind, variant):
    rng = np.random.default_rng(3)
    matroid = (
        sb.Uniform(300, 7) if kind == "uniform" else sb.Partition(rng.integers(0, 6, 300), [2, 1, 0, 3, 1, 4])
    )
    env = sb.UniformNoise(matroid, rng.uniform(0.2, 0.8, 300), 0.2, seed=1)
    runs = [
        sb.simulate(
            sb.OneSeedTS(matroid, variant=variant, engine=engine, seed=5),
            env.clone(),
            1500,
            path=path,
            record_arms=True,
        )
        for engine in ("grouped", "resolve")
        for path in ("compiled", "stepwise")
    ]
    assert all(np.array_equal(run.arms, runs[0].arms) for run in runs[1:])


@pytest.mark.parametrize("kind", sorted(RANDOM))
@pytest.mark.parametrize("options", [{}, {"variant": "cl-sg"}, {"directions": 16}, {"ties": "random"}])
def test_contract(kind, options):
    matroid, _ = RANDOM[kind](np.random.default_rng(8), 13)
    check_policy(lambda: sb.OneSeedTS(matroid, seed=2, **options))


def test_contract_of_groups():
    check_policy(lambda: sb.OneSeedTS(sb.Uniform(40, 6), engine="grouped"))
    check_policy(lambda: sb.OneSeedTS(sb.Uniform(5, 5), engine="grouped", outside="clip"))
    check_policy(lambda: sb.minimize(sb.OneSeedTS(sb.Uniform(40, 6), engine="grouped")))


# -- the law of Z ------------------------------------------------------------------------------------------------


def test_z_is_normal_and_new_in_every_round():
    policy = sb.OneSeedTS(sb.Uniform(3, 1), seed=11)
    z = []
    for _ in range(20_000):
        policy.select()
        z.append(policy.seed_of_round)
    assert stats.kstest(z, "norm").pvalue > 1e-3
    # Correlation of neighbours: standard deviation 1 / sqrt(20,000).
    assert abs(np.corrcoef(z[1:], z[:-1])[0, 1]) < 4.0 / np.sqrt(20_000)
    assert len(set(z)) == 20_000


def test_all_arms_share_one_z():
    rng = np.random.default_rng(1)
    for variant, more in (("cts3", 0.0), ("cl-sg", 1.0)):
        policy = sb.OneSeedTS(sb.Uniform(30, 4), reward_range=(0.0, 4.0), variant=variant)
        arms = np.repeat(np.arange(30), rng.integers(1, 9, 30))
        policy.update(arms, rng.uniform(0.0, 4.0, len(arms)))
        for _ in range(5):
            policy.select()
        z = (
            (policy.scores(np.arange(30)) - policy.means)
            * np.sqrt(policy.counts + more)
            / policy.confidence_width
        )
        assert np.allclose(z, policy.seed_of_round, atol=1e-12)
        assert policy.confidence_width == pytest.approx(
            2.0 if variant == "cts3" else 4.0 * np.sqrt(0.1 * np.log(5))
        )


@pytest.mark.parametrize("engine", ["grouped", "resolve"])
def test_selection_frequencies(engine):
    """Z decides between three arms; where the choice changes follows from their means and counts."""
    policy = sb.OneSeedTS(sb.Uniform(3, 1), sigma=1.0, engine=engine, seed=4)
    plays, wins = [16, 4, 1], [12, 2, 0]
    for k, (n, w) in enumerate(zip(plays, wins)):
        policy.update([k] * n, [1.0] * w + [0.0] * (n - w))
    # Weights 0.75 + z / 4, 0.5 + z / 2, z: the second is never the best but at z = 1, where all are equal.
    n = 8000
    seen = Counter(int(policy.select()[0]) for _ in range(n))
    assert seen[1] == 0
    assert stats.binomtest(seen[2], n, float(stats.norm.sf(1.0))).pvalue > 1e-3


def test_levels_of_directions_are_as_likely_as_each_other():
    policy = sb.OneSeedTS(sb.Uniform(3, 1), directions=16, seed=4)
    seen = Counter()
    for _ in range(8000):
        policy.select()
        seen[policy.seed_of_round] += 1
    assert sorted(seen) == normal_levels(16).tolist()
    assert stats.chisquare(list(seen.values())).pvalue > 1e-3


@pytest.mark.parametrize("number", [2, 5, 16, 64])
def test_levels_are_quantiles(number):
    levels = normal_levels(number)
    assert np.allclose(stats.norm.cdf(levels), (np.arange(number) + 0.5) / number, atol=1e-12)
    assert np.array_equal(levels, -levels[::-1])


# -- the rest ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"variant": "ctsx"}, "variant"),
        ({"sigma": 0.0}, "sigma"),
        ({"sigma": 0.5, "variant": "cl-sg"}, "sigma is for variant = 'cts3'"),
        ({"epsilon": 0.5}, "epsilon is for variant = 'cl-sg'"),
        ({"epsilon": -1.0, "variant": "cl-sg"}, "epsilon"),
        ({"engine": "kinetic"}, "engine"),
        ({"directions": 1}, "directions"),
        ({"directions": 5000}, "at most 4096"),
        ({"directions": 16, "engine": "resolve"}, "directions are an engine"),
    ],
)
def test_refused_options(options, told):
    with pytest.raises(sb.ParameterError, match=told):
        sb.OneSeedTS(sb.Uniform(4, 2), **options)


def test_groups_refuse_other_classes():
    with pytest.raises(sb.ParameterError, match="not graphic"):
        sb.OneSeedTS(sb.Graphic([(0, 1)]), engine="grouped")


@pytest.mark.parametrize(
    "options", [{}, {"variant": "cl-sg", "epsilon": 0.3}, {"directions": 8}, {"ties": "random"}]
)
def test_saved_grown_and_cloned(tmp_path, options):
    policy = sb.OneSeedTS(sb.Uniform(1200, 5), seed=9, **options)
    rng = np.random.default_rng(2)
    for _ in range(60):
        policy.update(policy.select(), rng.random(5))
    waits = policy.decide()
    policy.delete([3])
    policy.save(tmp_path / "p")
    other = sb.load(tmp_path / "p")
    twin = policy.clone()
    for made in (policy, other, twin):
        made.learn(waits.id, [0.5] * 5)
        made.grow(sb.Uniform(1500, 6))
        made.update([1300], [1.0])
    plays = [[made.select().tolist() for _ in range(40)] for made in (policy, other, twin)]
    assert plays[0] == plays[1] == plays[2]
    for made in (policy, other, twin):
        made._engine._check()
        assert made._arguments() == policy._arguments()


@pytest.mark.parametrize("spoilt", [np.array([np.nan, 0.0]), np.zeros(3), np.zeros(2, dtype=np.int64)])
def test_a_state_that_makes_no_sense_is_refused(spoilt):
    policy = sb.OneSeedTS(sb.Uniform(4, 2))
    with pytest.raises(sb.FileError):
        policy.clone()._set_state({**policy._state(), "last": spoilt})


def test_auto_takes_groups_for_many_arms():
    assert sb.OneSeedTS(sb.Uniform(500, 3)).engine == "grouped"
    assert sb.OneSeedTS(sb.Uniform(499, 3)).engine == "resolve"
    assert sb.OneSeedTS(sb.Uniform(4000, 50)).engine == "resolve"
    assert sb.OneSeedTS(sb.Partition([0] * 600 + [1] * 600, 1)).engine == "grouped"
    roads = sb.OneSeedTS(sb.Graphic([(0, 1), (1, 2)]))
    assert roads.engine == "resolve" and "Z jumps" in roads.describe()["why"]
    about = sb.OneSeedTS(sb.Graphic([(0, 1), (1, 2)]), directions=16).describe()
    assert about["engine"] == "directions" and about["directions"] == 16 and "no theorem" in about["why"]


def test_a_decision_tells_what_was_known():
    policy = sb.OneSeedTS(sb.Uniform(4, 2), seed=1)
    policy.update([0, 1, 2, 3], [1.0, 0.5, 0.0, 0.0])
    rows = policy.decide().ranked()
    for row in rows:
        assert row.high - row.mean == pytest.approx(1.959964 * 0.5) and row.mean - row.low == pytest.approx(
            0.979982
        )
        assert row.index == pytest.approx(row.mean + 0.5 * policy.seed_of_round)
    never = sb.OneSeedTS(sb.Uniform(2, 1)).decide().ranked()[0]
    assert (never.index, never.low, never.high) == (np.inf, 0.0, 1.0)
