"""FasterCUCB: against a literal implementation, both simulation paths, its lemmas, its bound, its edges."""

from __future__ import annotations

import math

import numpy as np
import pytest

import semibandit as sb
from oracles.faster_cucb import NaiveFasterCUCB
from semibandit.engines import ENGINES
from semibandit.errors import ArmError, ParameterError
from semibandit.paper import HittingSet, Rounding, theory
from semibandit.paper.rounded_engine import MOVES
from semibandit.policies import FasterCUCB
from semibandit.testing import check_policy
from support.random_matroids import RANDOM

CLASSES = ["uniform", "partition", "laminar", "graphic", "transversal"]
BUCKETED = ("laminar", "graphic", "transversal")


def ways(matroid, method):
    """Every engine that serves a method."""
    if method == "cells":
        return ["dynamic"]
    clock = "staircase" if method == "directions" else "exact"
    names = ["auto", "dynamic", *(name for name, spec in ENGINES.items() if spec.fits(matroid, clock))]
    return [*names, "buckets"] if method == "lazy" and matroid.name in BUCKETED else names


@pytest.mark.thin
@pytest.mark.bounds
@pytest.mark.parametrize("kind", [*CLASSES, "modular"])
def test_contract(kind):
    rng = np.random.default_rng(5)
    for size in (1, 5, 12):
        matroid, _ = RANDOM[kind](rng, size)
        for method in ("lazy", "directions"):
            for engine in ways(matroid, method):
                check_policy(
                    lambda m=matroid, k=method, e=engine: FasterCUCB(m, horizon=200, method=k, engine=e),
                    rounds=20,
                )
    check_policy(lambda: FasterCUCB(matroid, horizon=20), rounds=24)  # and beyond the horizon
    tiny, _ = RANDOM[kind](rng, 3)
    check_policy(lambda: FasterCUCB(tiny, horizon=6, reward_range=(0.6, 1.0), method="cells"), rounds=8)


def feed(rng, policies, naive, arms, values):
    rewards = rng.choice(values, len(arms)).tolist()
    naive.update(arms, rewards)
    for policy in policies:
        policy.update(arms, rewards)


@pytest.mark.thin
@pytest.mark.bounds
@pytest.mark.parametrize("kind", CLASSES)
@pytest.mark.parametrize("reward_range", [(0.5, 1.0), (0.0, 1.0), (0.2, 3.0)])
def test_decisions_are_those_of_the_paper_word_for_word(kind, reward_range):
    """Every method "lazy" engine and the cells; late, partial, repeated feedback; exclusions; few reward values."""
    low, high = reward_range
    horizon, alpha_lb = 60, (0.3 if low == 0.0 else None)
    for seed in range(2):
        rng = np.random.default_rng([seed, CLASSES.index(kind)])
        matroid, independent = RANDOM[kind](rng, int(rng.integers(3, 10)))
        naive = NaiveFasterCUCB(matroid.n_arms, independent, horizon, low, high, alpha_lb=alpha_lb)
        policies = [
            FasterCUCB(matroid, horizon=horizon, reward_range=reward_range, engine=engine, alpha_lb=alpha_lb)
            for engine in ways(matroid, "lazy")
        ]
        values = [low, 0.5 * (low + high), high]
        late = []
        for t in range(horizon):
            exclude = rng.integers(0, matroid.n_arms, 2).tolist() if t % 9 == 8 else []
            expected = naive.select(exclude)
            for policy in policies:
                arms = policy.select(exclude=exclude) if exclude else policy.select()
                assert arms.tolist() == expected, (policy, t)
            late.append(expected)
            if rng.random() < 0.6:
                for arms in late:
                    feed(rng, policies, naive, arms, values)
                late.clear()
            if t % 11 == 10:
                feed(rng, policies, naive, rng.integers(0, matroid.n_arms, 4).tolist(), values)
            if t % 20 == 19:
                for policy in policies:
                    policy._engine._check()


def test_all_cells_at_once_decide_as_lazy_cells_do():
    for kind in CLASSES:
        rng = np.random.default_rng(3)
        matroid, _ = RANDOM[kind](rng, 5)
        lazy = FasterCUCB(matroid, horizon=8, reward_range=(0.7, 1.0))
        cells = FasterCUCB(matroid, horizon=8, reward_range=(0.7, 1.0), method="cells")
        assert cells.describe()["instances"] == cells.describe()["cells"] > 50
        for _ in range(12):  # four rounds beyond the horizon
            arms = lazy.select()
            assert np.array_equal(arms, cells.select())
            rewards = rng.uniform(0.7, 1.0, len(arms))
            lazy.update(arms, rewards)
            cells.update(arms, rewards)
        assert lazy.beyond_horizon and cells.beyond_horizon


@pytest.mark.parametrize(
    ("kind", "method"), [*((kind, "lazy") for kind in CLASSES), ("uniform", "directions")]
)
def test_compiled_and_stepwise_paths_play_the_same_arms(kind, method):
    matroid, _ = RANDOM[kind](np.random.default_rng(8), 40)
    means = np.linspace(0.2, 0.8, 40)
    for env in (sb.Bernoulli(matroid, means, seed=4), sb.Beta(matroid, means, seed=4)):
        runs = []
        for path in ("compiled", "stepwise"):
            policy = FasterCUCB(matroid, horizon=300, method=method)
            runs.append(sb.simulate(policy, env.clone(), 350, path=path, record_arms=True))
            assert runs[-1].path == path and policy.t == 350 and policy.beyond_horizon
            policy._engine._check()
        assert np.array_equal(runs[0].arms, runs[1].arms)
        assert np.allclose(runs[0].regret, runs[1].regret, rtol=1e-12, atol=1e-9)


@pytest.mark.parametrize("kind", CLASSES)
def test_rounds_that_share_a_cell(kind):
    """Late rounds of the paper's T = 10^6, some thirty to a cell, arms that change bins meanwhile: stepwise equals
    re-solving with dominating points in the query's cell, and the compiled path equals both."""
    rng = np.random.default_rng(9)
    matroid, _ = RANDOM[kind](rng, 24)
    runs = []
    env = sb.UniformNoise(matroid, np.linspace(0.2, 0.8, 24), 0.2, reward_range=(0.1, 1.0), seed=6)
    for path in ("compiled", "stepwise"):
        policy = FasterCUCB(matroid, horizon=10**6, reward_range=(0.1, 1.0))
        policy._t = 900_000
        runs.append(sb.simulate(policy, env.clone(), 300, path=path, record_arms=True).arms)
        assert policy.describe()["cells_visited"] < 30
    assert np.array_equal(*runs)
    rounding = Rounding(policy.bounds, policy.epsilon)
    hitting = HittingSet(rounding)
    policy = FasterCUCB(matroid, horizon=10**6, reward_range=(0.1, 1.0))
    policy._t = 900_000
    world = env.clone()
    for arms in runs[0]:
        chosen = policy.select()
        with np.errstate(divide="ignore", invalid="ignore"):
            features = np.column_stack([policy.means, 1.0 / np.sqrt(policy.counts)])
        points = rounding.dom(np.where(policy.counts[:, None] > 0, features, 0.0))
        slope = hitting.cell_slopes((1.0, policy.confidence_width))[1]
        weights = np.where(policy.counts > 0, points[:, 0] + slope * points[:, 1], np.inf)
        assert np.array_equal(chosen, matroid.max_weight_base(weights))
        assert np.array_equal(chosen, arms)
        policy.update(chosen, world.draw(chosen, policy.t))


def test_both_paths_may_alternate_and_clones_go_on_alike():
    matroid = sb.Uniform(300, 4)
    env = sb.Bernoulli(matroid, np.linspace(0.1, 0.9, 300), seed=1)
    mixed, plain = FasterCUCB(matroid, horizon=2000), FasterCUCB(matroid, horizon=2000)
    world = env.clone()
    for n, path in [(150, "stepwise"), (300, "compiled"), (20, "stepwise"), (400, "compiled")]:
        sb.simulate(mixed, world, n, path=path)
        mixed = mixed.clone()
        mixed._engine._check()
    sb.simulate(plain, env, 870, path="stepwise")
    assert np.array_equal(mixed.counts, plain.counts) and mixed.t == plain.t == 870
    assert np.array_equal(mixed.select(), plain.select())
    assert mixed.describe()["cells_visited"] == plain.describe()["cells_visited"]


def exchange(independent, base, optimum, weight):
    """The bijection g_t of Lemma gt-property, built as in its proof: from the lightest arm played backwards."""
    played = sorted(base, key=lambda k: (-weight[k], k))
    left = set(optimum)
    image = {}
    for i in reversed(range(len(played))):
        before = played[:i]
        if played[i] in left:
            chosen = played[i]
        else:
            chosen = next(j for j in sorted(left) if j not in before and independent([*before, j]))
        left.remove(chosen)
        image[chosen] = played[i]
    assert not left
    return image


@pytest.mark.parametrize("kind", CLASSES)
def test_lemma_gt_property_holds_on_played_bases(kind):
    """(i) common arms stay; (ii) the arm played for j has at least 1/(1+eta) of j's rounded weight under h, hence
    at least 1/(1+epsilon) of j's index under the query (Eqs. regret-e0, regret-e01)."""
    exchanged = 0
    rng = np.random.default_rng(77)
    for horizon in (20, 20, 60, 60):
        matroid, independent = RANDOM[kind](rng, 9)
        while matroid.rank > 4 or len(matroid.loops) > 3:
            matroid, independent = RANDOM[kind](rng, 9)
        naive = NaiveFasterCUCB(matroid.n_arms, independent, horizon, 0.4, 1.0)
        policy = FasterCUCB(matroid, horizon=horizon, reward_range=(0.4, 1.0))
        means = rng.uniform(0.5, 0.9, matroid.n_arms)
        optimum = matroid.max_weight_base(means).tolist()
        eta = naive.epsilon / 3
        for _ in range(horizon):
            base = policy.select().tolist()
            naive.t += 1
            if all(naive.count[k] > 0 for k in range(matroid.n_arms) if k not in matroid.loops):
                h = naive.direction()
                heavy = [naive.weight(k, h) for k in range(matroid.n_arms)]
                lam = naive.width()
                image = exchange(independent, base, optimum, heavy)
                assert sorted(image.values()) == base
                for j, k in image.items():
                    if j in base:
                        assert k == j
                    else:
                        exchanged += 1
                        index = [
                            naive.total[i] / naive.count[i] + lam / math.sqrt(naive.count[i]) for i in (k, j)
                        ]
                        assert heavy[k] * (1 + 1e-12) >= heavy[j] / (1 + eta)
                        assert index[0] * (1 + naive.epsilon) * (1 + 1e-12) >= index[1]
                        # A is exact here, so even the rounded weight itself is not smaller
                        assert heavy[k] * (1 + 1e-12) >= heavy[j]
            rewards = np.clip(means[base] + rng.uniform(-0.1, 0.1, len(base)), 0.4, 1.0).tolist()
            naive.update(base, rewards)
            policy.update(base, rewards)
    assert exchanged > 20


def two_level(matroid, rng, high, low):
    """Means `high` on a random base, `low` elsewhere."""
    means = np.full(matroid.n_arms, low)
    means[matroid.max_weight_base(rng.random(matroid.n_arms))] = high
    return means


@pytest.mark.parametrize("kind", CLASSES)
def test_the_theorem_bounds_the_measured_regret(kind):
    """T > T_0, so that the formula itself is meant; the mean of eight runs of every horizon lies below it."""
    rng = np.random.default_rng(12)
    matroid, _ = RANDOM[kind](rng, 12)
    for means in (two_level(matroid, rng, 0.9, 0.4), two_level(matroid, rng, 0.8, 0.55)):
        for horizon in (300, 3000):
            regret = []
            for seed in range(8):
                env = sb.UniformNoise(matroid, means, 0.2, reward_range=(0.2, 1.0), seed=seed)
                policy = FasterCUCB(matroid, horizon=horizon, reward_range=(0.2, 1.0))
                regret.append(sb.simulate(policy, env, horizon).regret[-1])
            assert horizon > theory.burn_in(matroid, means)
            bound = theory.regret_bound(matroid, means, horizon, reward_range=(0.2, 1.0))
            assert 0.0 <= np.mean(regret) <= bound


def test_an_arm_whose_bin_did_not_change_is_not_touched():
    matroid = sb.Uniform(500, 3)
    policy = FasterCUCB(matroid, horizon=10**5, reward_range=(0.1, 1.0))
    counts, rounded = policy._engine.progress.counts, policy._engine.inner.records
    policy.update([7] * 2000, [0.5] * 2000)
    before, moves = rounded.copy(), int(counts[MOVES])
    for _ in range(10):
        policy.update([7], [0.5])
    assert counts[MOVES] == moves, "ten more pulls after two thousand leave the bin of 1/sqrt(N)"
    assert np.array_equal(rounded, before)
    policy.update([7] * 400, [0.5] * 400)
    assert counts[MOVES] > moves
    assert np.flatnonzero(rounded != before).tolist() == [7]
    about = policy.describe()
    assert about["moves"] < about["touches"] / 10


def test_loops_are_never_waited_for_and_a_round_covers_many_unpulled_arms():
    matroid = sb.Graphic([(0, 0), (0, 1), (1, 2), (2, 2), (0, 2), (2, 3)])
    policy = FasterCUCB(matroid, horizon=50)
    for _ in range(2):
        arms = policy.select()
        policy.update(arms, [0.5] * len(arms))
    assert policy.counts.tolist() == [0, 2, 1, 0, 1, 2]
    assert np.isnan(policy.means[[0, 3]]).all()


def test_beyond_the_horizon_decisions_are_cucbs():
    rng = np.random.default_rng(4)
    matroid = sb.Partition(rng.integers(0, 4, 60), 2)
    policy, cucb = FasterCUCB(matroid, horizon=40), sb.CUCB(matroid)
    policy.delete([3])
    cucb.delete([3])
    for t in range(120):
        arms = policy.select()
        other = cucb.select()
        assert policy.beyond_horizon == (t >= 40)
        if t >= 40:
            assert np.array_equal(arms, other)
        rewards = rng.random(len(arms))
        policy.update(arms, rewards)
        cucb.update(arms, rewards)
    assert "horizon" in policy.describe()["why"]
    assert np.array_equal(policy.clone().select(), cucb.select())
    policy.insert([3])
    assert 3 in policy.select()


def test_a_range_that_touches_zero():
    policy = FasterCUCB(sb.Uniform(3, 1), horizon=100)
    assert policy.bounds == ((0.01, 1.0), (0.1, 1.0))
    policy.update([0, 0, 1, 1], [0.0, 0.0, 0.0, 0.002])
    alpha = policy._engine.inner._recs[:, 2]
    growth = 1.0 + policy.epsilon / 3
    assert alpha[0] == 0.0, "zero has a bin of its own"
    assert alpha[1] == 0.01 * growth, "a smaller positive mean counts as alpha_lb (1 + eta)"
    assert alpha[2] == np.inf
    coarse = FasterCUCB(sb.Uniform(3, 1), horizon=100, alpha_lb=0.25)
    assert coarse.bounds[0] == (0.25, 1.0) and coarse.describe()["cells"] < policy.describe()["cells"]
    # rewards of 0 and b only: no mean lies strictly between 0 and b / T
    assert min(1.0 / n for n in range(1, 101)) >= policy.bounds[0][0]
    with pytest.raises(ParameterError, match="alpha_lb"):
        FasterCUCB(sb.Uniform(3, 1), horizon=100, alpha_lb=0.0)
    with pytest.raises(ParameterError, match="alpha_lb"):
        FasterCUCB(sb.Uniform(3, 1), horizon=100, reward_range=(0.2, 1.0), alpha_lb=0.1)


def test_more_feedback_than_the_horizon_counts_as_the_horizon():
    policy = FasterCUCB(sb.Uniform(2, 1), horizon=50, reward_range=(0.1, 1.0))
    policy.update([0] * 500, [0.5] * 500)
    growth = 1.0 + policy.epsilon / 3
    assert policy._engine.inner._recs[0, 3] == pytest.approx(growth / math.sqrt(50))
    assert policy.counts.tolist() == [500, 0]
    policy._engine._check()


def test_a_ground_set_that_grows():
    rng = np.random.default_rng(0)
    small, large = sb.Uniform(6, 2), sb.Uniform(12, 2)
    for kwargs in ({}, {"engine": "dynamic"}, {"method": "directions"}):
        policy = FasterCUCB(small, horizon=100, **kwargs)
        for _ in range(20):
            arms = policy.select()
            policy.update(arms, rng.random(2))
        policy.delete([5])
        counts = policy.counts
        policy.grow(large)
        policy._engine._check()
        assert policy.n_arms == 12 and policy.counts[:6].tolist() == counts.tolist()
        seen = set()
        for _ in range(3):
            arms = policy.select()
            seen |= set(arms.tolist())
            policy.update(arms, rng.random(2))
        assert seen == {6, 7, 8, 9, 10, 11}
        with pytest.raises(ParameterError, match="at least 12"):
            policy.grow(small)
    with pytest.raises(ArmError, match="deleted already"):
        policy.delete([5])


def test_auto_takes_resolving_where_it_is_cheaper():
    """The paper: use CUCB where FasterCUCB would cost more per round. Decisions stay those of the rounding."""
    assert FasterCUCB(sb.Uniform(6, 3), horizon=1000).engine == "resolve"
    assert FasterCUCB(sb.Uniform(2000, 3), horizon=1000).engine == "kinetic"
    assert (
        FasterCUCB(sb.Graphic([(i, j) for i in range(9) for j in range(i)]), horizon=1000).engine == "buckets"
    )
    finer = FasterCUCB(sb.Uniform(2000, 3), horizon=10**6, m=3)
    assert "its own direction" in finer.describe()["why"]
    assert finer.select().tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"horizon": 2}, "horizon"),
        ({"horizon": 10.5}, "horizon"),
        ({"horizon": True}, "horizon"),
        ({"horizon": "long"}, "horizon"),
        ({"m": 0}, "m must"),
        ({"m": 1.5}, "m must"),
        ({"reward_range": (-0.1, 1.0)}, "add 0.1 to every reward"),
        ({"reward_range": (1.0, 0.5)}, "reward_range"),
        ({"method": "quick"}, "method = 'quick'"),
        ({"engine": "quick"}, "engine = 'quick'"),
        ({"engine": "buckets"}, "engine = 'buckets' serves"),
        ({"method": "cells", "engine": "kinetic"}, "'auto' or 'dynamic'"),
        ({"method": "cells", "horizon": 10**6}, "instances"),
    ],
)
def test_bad_parameters_are_named(arguments, message):
    with pytest.raises(ParameterError, match=message):
        FasterCUCB(**{"matroid": sb.Uniform(4, 2), "horizon": 100, **arguments})
