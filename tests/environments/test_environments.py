"""Environments: the reward generator, the distributions, exact means, and the conformance check."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

import oracles.environments as naive
from semibandit.environments import (
    Bernoulli,
    Beta,
    Correlated,
    Environment,
    Gaussian,
    HeavyTailed,
    Table,
    UniformNoise,
)
from semibandit.environments.draw import draw_many, uniform01, uniforms
from semibandit.matroids import Graphic, Laminar, Linear, Matroid, Partition, Transversal, Uniform
from semibandit.testing.environments import check_environment

MEANS = [0.3, 0.7, 0.45, 0.6, 0.5, 0.55]
ROWS = [[0.1, 0.9], [0.5], [0.2, 0.3, 0.4], [1.0, 0.0, 0.7], [0.6, 0.6], [0.25, 0.75, 0.5, 0.1]]

BUILT_IN: dict[str, Callable[..., Environment]] = {
    "bernoulli": lambda m, **kw: Bernoulli(m, MEANS, **kw),
    "bernoulli-range": lambda m, **kw: Bernoulli(m, MEANS, reward_range=(0.1, 2.0), **kw),
    "beta": lambda m, **kw: Beta(m, MEANS, **kw),
    "beta-per-arm": lambda m, **kw: Beta(m, [0, *MEANS[1:5], 1], [0.1, 0.5, 1, 2, 50, 9], **kw),
    "gaussian": lambda m, **kw: Gaussian(m, MEANS, 0.1, **kw),
    "gaussian-wide": lambda m, **kw: Gaussian(m, MEANS, [0.1, 5, 1, 2, 0.3, 0.4], **kw),
    "heavy-tailed": lambda m, **kw: HeavyTailed(
        m, MEANS, outliers=0.05, start=0.9, reward_range=(0, 4), **kw
    ),
    "heavy-tailed-per-arm": lambda m, **kw: HeavyTailed(
        m, MEANS, [0.1, 1, 0.2, 2, 0.3, 0.4], outliers=0.2, exponent=1.0, reward_range=(0.2, 9), **kw
    ),
    "noise": lambda m, **kw: UniformNoise(m, MEANS, 0.6, **kw),
    "noise-none": lambda m, **kw: UniformNoise(m, MEANS, 0.0, **kw),
    "table": lambda m, **kw: Table(m, ROWS, **kw),
    "correlated": lambda m, **kw: Correlated(m, MEANS, **kw),
    "correlated-width": lambda m, **kw: Correlated(m, MEANS, 0.9, width=0.2, **kw),
}


class Pair(Matroid):
    """A user's matroid: any two arms."""

    def __init__(self) -> None:
        super().__init__(6)

    def _is_independent(self, arms: Any) -> bool:
        return len(arms) <= 2


MATROIDS: dict[str, Callable[[], Matroid]] = {
    "uniform": lambda: Uniform(6, 3),
    "partition": lambda: Partition([0, 0, 1, 1, 2, 2]),
    "laminar": lambda: Laminar(6, [([0, 1, 2, 3], 2), ([0, 1], 1)]),
    "graphic": lambda: Graphic([[0, 1], [1, 2], [2, 0], [2, 3], [3, 3], [0, 3]]),
    "transversal": lambda: Transversal([[0], [0, 1], [1], [2], [], [2, 0]]),
    "linear": lambda: Linear([[1, 0], [0, 1], [1, 1], [2, 2], [0, 0], [1, 2]]),
    "own": Pair,
}


def stream_of(env: Environment, arm: int, size: int) -> Any:
    """The first `size` rewards of one arm (one round each would give the same, unless levels are shared)."""
    return env.clone().draw(np.full(size, arm))


def own_stream(seed: int, size: int, arm: int = 0, streams: int = 1) -> Any:
    out = np.empty((streams, size))
    uniforms(np.uint64(seed), np.zeros(arm + 1, dtype=np.int64), np.full(size, arm), out)
    return out


@settings(deadline=None, derandomize=True, max_examples=300)
@given(st.integers(0, 2**64 - 1), st.integers(-1, 2**40), st.integers(0, 2**62), st.integers(0, 1000))
def test_uniform_equals_integer_arithmetic(seed: int, arm: int, n: int, stream: int) -> None:
    assert uniform01(np.uint64(seed), arm, n, stream) == naive.uniform(seed, arm, n, stream)


AXES: dict[str, Callable[[int], tuple[int, int, int, int]]] = {
    "seed": lambda i: (i, 3, 5, 0),
    "arm": lambda i: (1, i, 5, 0),
    "pull": lambda i: (1, 3, i, 0),
    "stream": lambda i: (1, 3, 5, i),
    "arm and pull together": lambda i: (1, i, i, 0),
    "seed and arm against": lambda i: (i, 40_000 - i, 0, 0),
    "pull in steps of 2^20": lambda i: (1, 3, i << 20, 0),
    "seed in steps of 2^40": lambda i: (i << 40, 3, 0, 0),
}


@pytest.mark.parametrize("axis", AXES)
def test_uniform_along_every_argument(axis: str) -> None:
    """Uniform, and without memory, when one argument counts up: neighbouring arms, pulls, seeds."""
    size = 40_000
    u = np.array([naive.uniform(*AXES[axis](i)) for i in range(size)])
    assert stats.kstest(u, "uniform").pvalue > 1e-3
    for lag in (1, 2, 3, 16):
        assert abs(np.corrcoef(u[:-lag], u[lag:])[0, 1]) < 4.5 / math.sqrt(size)
    cells = np.floor(u[: size // 2 * 2].reshape(-1, 2) * 16).astype(int)
    counts = np.bincount(cells[:, 0] * 16 + cells[:, 1], minlength=256)
    assert stats.chisquare(counts).pvalue > 1e-3
    low_bits = np.array([naive.bits(*AXES[axis](i)) & 255 for i in range(size)])
    assert stats.chisquare(np.bincount(low_bits, minlength=256)).pvalue > 1e-3


def test_two_streams_of_numbers_are_independent() -> None:
    """Whole sequences over pulls do not know each other: other arm, other seed, other stream."""
    size = 40_000
    first = own_stream(1, size, arm=3, streams=2)
    others = [own_stream(1, size, arm=4)[0], own_stream(2, size, arm=3)[0], first[1]]
    for other in others:
        assert abs(np.corrcoef(first[0], other)[0, 1]) < 4.5 / math.sqrt(size)
        assert not np.isin(first[0], other).any()
        cells = np.floor(first[0] * 16).astype(int) * 16 + np.floor(other * 16).astype(int)
        assert stats.chisquare(np.bincount(cells, minlength=256)).pvalue > 1e-3


@pytest.mark.parametrize("which", range(4))
def test_every_input_bit_flips_half_of_the_output(which: int) -> None:
    rng = np.random.default_rng(5)
    for bit in range(0, 40, 3):
        flips = np.zeros(53)
        trials = 400
        for _ in range(trials):
            args = [int(x) for x in rng.integers(0, 2**40, 4)]
            before = naive.bits(*args)
            args[which] ^= 1 << bit
            changed = before ^ naive.bits(*args)
            flips += [(changed >> i) & 1 for i in range(53)]
        # 53 output bits at 5.5 standard deviations
        assert np.abs(flips / trials - 0.5).max() < 5.5 * 0.5 / math.sqrt(trials)


def test_rewards_equal_the_textbook_formulas() -> None:
    matroid, seed = Uniform(6, 3), 99
    bernoulli = Bernoulli(matroid, MEANS, reward_range=(0.1, 2.0), seed=seed)
    noise = UniformNoise(matroid, MEANS, 0.6, seed=seed)
    gaussian = Gaussian(matroid, MEANS, 0.4, seed=seed)
    table = Table(matroid, ROWS, seed=seed)
    correlated = Correlated(matroid, MEANS, 0.3, width=0.5, seed=seed)
    for n in range(200):
        for k in range(6):
            p = (MEANS[k] - 0.1) / 1.9
            assert bernoulli.draw([k])[0] == naive.bernoulli(seed, 0.1, 2.0, p, k, n)
            assert noise.draw([k])[0] == pytest.approx(
                naive.uniform_noise(seed, MEANS[k], 0.6, k, n), abs=1e-15
            )
            expected = naive.gaussian(seed, 0.0, 1.0, MEANS[k], 0.4, k, n)
            assert gaussian.draw([k])[0] == pytest.approx(expected, abs=1e-14)
            assert table.draw([k])[0] == naive.table(seed, ROWS[k], k, n)
            expected = naive.correlated(seed, MEANS[k], 0.5, 0.3, k, n, n + 7)
            assert correlated.draw([k], n + 7)[0] == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize(
    "mean, concentration", [(0.5, 2.0), (0.2, 10.0), (0.9, 1.0), (0.3, 0.2), (0.05, 3.0), (0.6, 5000.0)]
)
def test_beta_distribution(mean: float, concentration: float) -> None:
    x = stream_of(Beta(Uniform(1, 1), [mean], concentration, seed=3), 0, 40_000)
    law = stats.beta(mean * concentration, (1 - mean) * concentration)
    # Floats are coarse just below 1, where a small second parameter puts much of its mass: count that part.
    edge = 1 - 1e-9
    assert stats.binomtest(int((x > edge).sum()), x.size, law.sf(edge)).pvalue > 1e-3
    assert stats.kstest(x[x <= edge], lambda q: law.cdf(q) / law.cdf(edge)).pvalue > 1e-3


def test_beta_with_extreme_parameters_stays_in_range() -> None:
    means = [1e-300, 0.5, 0.5, 0.0, 1.0, 1.0 - 1e-16]
    x = Beta(Uniform(6, 1), means, [1.0, 1e-6, 1e12, 1.0, 1.0, 1e-6], seed=1)
    for k in range(6):
        r = stream_of(x, k, 2000)
        assert np.isfinite(r).all() and (r >= 0).all() and (r <= 1).all()
    assert set(stream_of(x, 1, 2000)) <= {0.0, 1.0}
    assert abs(stream_of(x, 1, 2000).mean() - 0.5) < 0.06
    assert np.abs(stream_of(x, 2, 2000) - 0.5).max() < 1e-5
    assert not stream_of(x, 3, 100).any() and stream_of(x, 4, 100).all()


def test_gaussian_distribution_and_clipping() -> None:
    env = Gaussian(Uniform(1, 1), [0.4], 0.5, seed=11)
    x = stream_of(env, 0, 60_000)
    law = stats.norm(0.4, 0.5)
    for end, probability in ((0.0, law.cdf(0)), (1.0, law.sf(1))):
        assert stats.binomtest(int((x == end).sum()), x.size, probability).pvalue > 1e-3
    inside = x[(x > 0) & (x < 1)]
    assert stats.kstest(inside, lambda q: (law.cdf(q) - law.cdf(0)) / (law.cdf(1) - law.cdf(0))).pvalue > 1e-3


@settings(deadline=None, derandomize=True, max_examples=60)
@given(st.floats(-3, 3), st.floats(0.01, 5), st.floats(0, 1), st.floats(1e-3, 20))
def test_gaussian_means_are_the_exact_expectations(
    low: float, span: float, share: float, sigma: float
) -> None:
    high = low + span
    location = min(max(low + share * span, low), high)
    env = Gaussian(Uniform(1, 1), [location], sigma, reward_range=(low, high))
    # Where the tail falls from 1 to 0, so that the quadrature does not step over it.
    bends = sorted({min(max(location + k * sigma, low), high) for k in (-8, -3, 0, 3, 8)})
    tail, _ = integrate.quad(
        lambda x: stats.norm.sf(x, location, sigma), low, high, points=bends, epsabs=1e-12, epsrel=1e-12
    )
    assert env.means[0] == pytest.approx(low + tail, abs=1e-9)
    assert env.locations[0] == location


def test_heavy_tailed_distribution() -> None:
    """A share of outliers from the Pareto tail; the rest log-normal; what is beyond the range at its ends."""
    env = HeavyTailed(
        Uniform(1, 1), [2.0], 0.4, outliers=0.3, start=5.0, exponent=1.5, reward_range=(1, 40), seed=5
    )
    x = stream_of(env, 0, 60_000)
    usual, rare = stats.lognorm(0.4, scale=2.0), stats.pareto(1.5, scale=5.0)

    def below(q: Any) -> Any:
        return 0.7 * usual.cdf(q) + 0.3 * rare.cdf(q)

    for end, probability in ((1.0, below(1.0)), (40.0, 1.0 - below(40.0))):
        assert stats.binomtest(int((x == end).sum()), x.size, probability).pvalue > 1e-3
    inside = x[(x > 1) & (x < 40)]
    law = stats.kstest(inside, lambda q: (below(q) - below(1.0)) / (below(40.0) - below(1.0)))
    assert law.pvalue > 1e-3


@settings(deadline=None, derandomize=True, max_examples=40)
@given(
    st.floats(0.05, 50),
    st.floats(0.05, 2),
    st.floats(0, 1),
    st.floats(0.1, 100),
    st.one_of(st.just(1.0), st.floats(0.3, 5)),
    st.floats(0, 2),
    st.floats(0.1, 300),
)
def test_heavy_tailed_means_are_the_exact_expectations(
    median: float, sigma: float, outliers: float, start: float, exponent: float, low: float, span: float
) -> None:
    high = low + span
    env = HeavyTailed(
        Uniform(1, 1),
        [median],
        sigma,
        outliers=outliers,
        start=start,
        exponent=exponent,
        reward_range=(low, high),
    )
    usual, rare = stats.lognorm(sigma, scale=median), stats.pareto(exponent, scale=start)
    bends = {start, *(median * math.exp(k * sigma) for k in (-6, -3, -1, 0, 1, 3, 6))}
    tail, _ = integrate.quad(
        lambda x: (1.0 - outliers) * usual.sf(x) + outliers * rare.sf(x),
        low,
        high,
        points=sorted({min(max(bend, low), high) for bend in bends}),
        epsabs=1e-11,
        epsrel=1e-11,
        limit=400,
    )
    assert env.means[0] == pytest.approx(low + tail, rel=1e-8)
    assert env.medians[0] == median


def test_noise_and_table_distributions() -> None:
    x = stream_of(UniformNoise(Uniform(2, 1), [0.5, 0.3], [0.2, 0.6], seed=4), 1, 40_000)
    assert stats.kstest(x, stats.uniform(0.0, 0.6).cdf).pvalue > 1e-3
    row = [0.1, 0.4, 0.2, 0.8, 0.3]
    y = stream_of(Table(Uniform(2, 1), [[1.0], row], seed=4), 1, 40_000)
    assert stats.chisquare([(y == v).sum() for v in row]).pvalue > 1e-3


@pytest.mark.parametrize("correlation", [0.0, 0.25, 0.8, 1.0])
def test_correlation_is_what_was_asked_for(correlation: float) -> None:
    rounds = 20_000
    env = Correlated(Uniform(3, 2), [0.4, 0.7, 0.5], correlation, seed=8)
    x = np.array([env.draw([0, 1]) for _ in range(rounds)])
    assert np.corrcoef(x.T)[0, 1] == pytest.approx(correlation, abs=4.5 / math.sqrt(rounds))
    # successive rounds have nothing in common
    assert abs(np.corrcoef(x[:-1, 0], x[1:, 0])[0, 1]) < 4.5 / math.sqrt(rounds)


def test_flat_table_equals_list_of_rows() -> None:
    matroid = Uniform(6, 2)
    flat = Table(matroid, np.concatenate([np.asarray(r) for r in ROWS]), [0, 2, 3, 6, 9, 11, 15], seed=2)
    rows = Table(matroid, ROWS, seed=2)
    assert np.array_equal(flat.means, rows.means)
    assert np.allclose(rows.means, [np.mean(r) for r in ROWS], rtol=1e-15)
    arms = np.arange(6)
    for _ in range(50):
        assert np.array_equal(flat.draw(arms), rows.draw(arms))


@pytest.mark.bounds
@pytest.mark.parametrize("name", BUILT_IN)
def test_drawing_together_is_drawing_arm_by_arm(name: str) -> None:
    env = BUILT_IN[name](Uniform(6, 3), seed=2**63 + 5)
    twin = env.clone()
    state = env.kernel_state()
    assert state is not None
    rng = np.random.default_rng(1)
    for t in range(1, 200):
        arms = rng.permutation(6)[:3]
        numbers = state.pulls[arms].copy()
        got = env.draw(arms, t)
        assert got.tolist() == [float(twin.draw([k], t)[0]) for k in arms[::-1]][::-1]
        assert np.array_equal(state.pulls[arms], numbers + 1)


def test_all_environments_share_one_compiled_signature() -> None:
    Bernoulli(Uniform(6, 3), MEANS).draw([0])
    before = set(draw_many.dispatcher.signatures)
    for make in BUILT_IN.values():
        env = make(Uniform(6, 3))
        env.draw(env.optimal_base)
        env.draw(np.array([1, 2], dtype=np.int32), np.int64(7))
    assert set(draw_many.dispatcher.signatures) == before


def test_an_arm_named_twice_is_pulled_twice() -> None:
    env = Gaussian(Uniform(6, 3), MEANS, 0.1, seed=1)
    one_by_one = [env.draw([2])[0] for _ in range(4)]
    assert env.clone().draw([2, 2, 2, 2]).tolist() == one_by_one


def test_a_million_arms() -> None:
    n_arms = 1_000_000
    env = Bernoulli(Uniform(n_arms, 10), np.linspace(0.0, 1.0, n_arms), seed=1)
    assert env.optimal_base.tolist() == list(range(n_arms - 10, n_arms))
    assert env.draw(env.optimal_base).sum() == 10.0
    assert env.pulls.sum() == 10


@pytest.mark.parametrize("name", BUILT_IN)
def test_conformance_of_the_built_in(name: str) -> None:
    check_environment(BUILT_IN[name](Uniform(6, 3), seed=17))


@pytest.mark.parametrize("kind", MATROIDS)
@pytest.mark.parametrize("name", ["bernoulli", "correlated"])
def test_conformance_on_every_matroid(name: str, kind: str) -> None:
    check_environment(BUILT_IN[name](MATROIDS[kind]()), rounds=500)


@settings(deadline=None, derandomize=True, max_examples=100)
@given(st.lists(st.sampled_from([0.1, 0.2, 0.3, 0.7, 1 / 3]), min_size=6, max_size=6), st.integers(0, 99))
def test_regret_is_never_negative_and_order_is_immaterial(means: list[float], seed: int) -> None:
    rng = np.random.default_rng(seed)
    env = Bernoulli(MATROIDS["graphic"](), means)
    assert env.regret(rng.permutation(env.optimal_base)) == 0.0
    base = rng.permutation(env.matroid.max_weight_base(rng.random(6)))
    assert env.regret(base) >= 0.0
    assert env.regret(base) == pytest.approx(env.optimal_value - sum(means[k] for k in base))


def test_round_counts_on_and_can_be_set() -> None:
    env = Correlated(Uniform(6, 3), MEANS, 1.0, seed=1)
    assert env.round == 0
    env.draw([0])
    env.draw([1], 10)
    env.draw([2])
    assert env.round == 11
    other = env.clone()
    assert (other.round, other.pulls.sum()) == (0, 0)
    env.reset(seed=5)
    assert (env.round, env.pulls.sum(), env.seed, other.seed) == (0, 0, 5, 1)


def test_results_are_read_only() -> None:
    env = Gaussian(Uniform(6, 3), MEANS, 0.1)
    for array in (env.means, env.pulls, env.optimal_base, env.locations):
        with pytest.raises(ValueError):
            array[0] = 1
    means = np.array(MEANS)
    env = Bernoulli(Uniform(6, 3), means)
    means[0] = 0.9
    assert env.means[0] == 0.3
    assert repr(env).startswith("Bernoulli(")
