"""Gaps, regret bound, lower bounds and sizes against their definitions, by brute force on small instances."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np
import pytest
from scipy.optimize import linprog

from semibandit.errors import ParameterError
from semibandit.matroids import Graphic, Laminar, Matroid, Partition, Transversal, Uniform
from semibandit.paper import HittingSet, Rounding, theory

Bases = list[tuple[int, ...]]


class Oracle(Matroid):
    """A user's matroid: only the independence test, so that the generic code paths run."""

    def __init__(self, inner: Matroid) -> None:
        super().__init__(inner.n_arms)
        self.inner = inner

    def _is_independent(self, arms: np.ndarray) -> bool:
        return self.inner.is_independent(arms)


def is_forest(edges: list[tuple[int, int]]) -> bool:
    part = {v: v for e in edges for v in e}
    for u, v in edges:
        a, b = part[u], part[v]
        if a == b:
            return False
        part = {x: (a if p == b else p) for x, p in part.items()}
    return True


def has_matching(lists: list[list[int]]) -> bool:
    return any(len(set(pick)) == len(pick) for pick in itertools.product(*lists))


def instances() -> Iterator[tuple[Matroid, Bases]]:
    """Small matroids with all their bases, which are found from the definitions, not by our code."""
    yield Uniform(6, 2), list(itertools.combinations(range(6), 2))
    groups, capacity = [0, 1, 0, 2, 1, 0, 3], [2, 1, 1, 0]  # arm 6 is a loop
    yield (
        Partition(groups, capacity),
        [
            x
            for x in itertools.combinations(range(7), 4)
            if all([groups[k] for k in x].count(g) <= c for g, c in enumerate(capacity))
        ],
    )
    edges = [(0, 1), (1, 2), (2, 0), (0, 3), (3, 1), (3, 3), (0, 1)]  # a loop and a parallel edge
    yield (
        Graphic(np.array(edges)),
        [x for x in itertools.combinations(range(7), 3) if is_forest([edges[k] for k in x])],
    )
    lists = [[0], [0, 1], [1], [2], [1, 2], [0]]
    yield (
        Transversal(lists),
        [x for x in itertools.combinations(range(6), 3) if has_matching([lists[k] for k in x])],
    )
    families = [([0, 1, 2], 1), ([0, 1, 2, 3, 4], 2)]
    yield (
        Laminar(7, families),
        [
            x
            for x in itertools.combinations(range(7), 4)
            if all(len(set(x) & set(f)) <= c for f, c in families)
        ],
    )


INSTANCES = list(instances())
CASES = [(m, b) for m, b in INSTANCES] + [(Oracle(m), b) for m, b in INSTANCES]
IDS = [m.name for m, _ in INSTANCES] + [f"oracle-{m.name}" for m, _ in INSTANCES]


def some_means(n: int, seed: int) -> np.ndarray:
    """Means on a coarse grid, so that ties are common; multiples of 1/16 keep differences exact."""
    rng = np.random.default_rng(seed)
    return rng.integers(2, 15, n) / 16


def best_base(bases: Bases, mu: np.ndarray) -> tuple[int, ...]:
    """The heaviest base; of several, the one that greedy with ties by smaller id finds."""
    picked: tuple[int, ...] = ()
    for k in sorted(range(len(mu)), key=lambda k: (-mu[k], k)):
        if any({*picked, k} <= set(x) for x in bases):
            picked += (k,)
    assert sum(mu[k] for k in picked) >= max(sum(mu[k] for k in x) for x in bases) - 1e-12
    return picked


@pytest.mark.parametrize(("matroid", "bases"), CASES, ids=IDS)
def test_gaps_are_their_definitions(matroid: Matroid, bases: Bases) -> None:
    for seed in range(40):
        mu = some_means(matroid.n_arms, seed)
        bar = best_base(bases, mu)
        g = theory.gaps(matroid, mu)
        assert g.base.tolist() == list(bar)
        outside = sorted({k for x in bases for k in x} - set(bar))
        assert g.outside.tolist() == outside
        smallest = math.inf
        for i, k in enumerate(outside):
            below = [j for j in range(1, len(bar) + 1) if mu[bar[j - 1]] - mu[k] > 0]
            d = max(below, default=0)
            assert g.depth[i] == d
            if d == 0:
                assert g.gap[i] == math.inf and g.total[i] == 0.0
                continue
            assert g.gap[i] == mu[bar[d - 1]] - mu[k]
            assert g.total[i] == sum(mu[bar[j]] - mu[k] for j in range(d))
            smallest = min(smallest, g.gap[i])
        assert g.minimum == theory.minimum_gap(matroid, mu) == smallest
        matrix = theory.gap_matrix(matroid, mu)
        assert matrix.tolist() == [[mu[j] - mu[k] for k in outside] for j in bar]


def literal_bound(bases: Bases, mu: np.ndarray, n: int, t: float, m: int, a: float, b: float) -> float:
    """Theorem regret-noanytime, term by term as printed."""
    bar = best_base(bases, mu)
    outside = sorted({k for x in bases for k in x} - set(bar))
    d = {k: max([j for j in range(1, len(bar) + 1) if mu[bar[j - 1]] > mu[k]], default=0) for k in outside}
    smallest = min([mu[bar[d[k] - 1]] - mu[k] for k in outside if d[k]], default=math.inf)
    t_zero = max(n, math.exp((b / smallest) ** (1 / m)))
    bound = len(bar) * b * t_zero
    for k in outside:
        for j in range(1, d[k] + 1):
            bound += (mu[bar[j - 1]] - mu[k]) * t_zero
            bound += (mu[bar[j - 1]] - mu[k]) * (1 / t + math.pi**2 / 6)
        if d[k]:
            last = mu[bar[d[k] - 1]]
            bound += (
                12
                * (last - mu[k])
                * (b - a) ** 2
                * math.log(t)
                / (last / (1 + math.log(t) ** (-m)) - mu[k]) ** 2
            )
    return bound


@pytest.mark.parametrize(("matroid", "bases"), CASES, ids=IDS)
def test_regret_bound_is_the_theorem(matroid: Matroid, bases: Bases) -> None:
    a, b = 0.1, 0.95
    compared = 0
    for seed, m in itertools.product(range(10), (1, 2)):
        mu = some_means(matroid.n_arms, seed)
        times = np.array([50.0, 1e4, 1e8, 1e30, 1e200])
        bound = theory.regret_bound(matroid, mu, times, m=m, reward_range=(a, b))
        t_zero = theory.burn_in(matroid, mu, m, upper=b)
        for t, value in zip(times.tolist(), bound.tolist()):
            assert value == theory.regret_bound(matroid, mu, t, m=m, reward_range=(a, b))
            if t <= t_zero:
                assert value == pytest.approx(t * max(sum(mu[k] for k in x) for x in bases))
            else:
                assert value == pytest.approx(literal_bound(bases, mu, matroid.n_arms, t, m, a, b))
                compared += 1
    assert compared > 20


def test_the_bound_over_log_t_tends_to_its_constant() -> None:
    matroid, mu = Uniform(6, 2), np.array([0.9, 0.8, 0.3, 0.2, 0.8, 0.1])
    constant = theory.asymptotic_constant(matroid, mu, reward_range=(0.1, 0.9))
    # arm 4 ties with arm 1, so only arm 0 is above it
    assert constant == pytest.approx(12 * 0.8**2 * (1 / 0.5 + 1 / 0.6 + 1 / 0.1 + 1 / 0.7))
    low, high = theory.regret_bound(matroid, mu, [1e100, 1e300], m=3, reward_range=(0.1, 0.9))
    assert (high - low) / math.log(1e200) == pytest.approx(constant, rel=1e-3)


def test_burn_in_is_the_threshold_of_lemma_regret_t0() -> None:
    """Just beyond T_0 a positive gap survives division by 1 + epsilon; T_0 is at least K."""
    for seed, m in itertools.product(range(20), (1, 2, 3)):
        mu = some_means(6, seed)
        matroid = Uniform(6, 2)
        t_zero = theory.burn_in(matroid, mu, m, upper=1.0)
        assert t_zero >= 6
        epsilon = math.log(t_zero * 1.001) ** -m
        matrix = theory.gap_matrix(matroid, mu)
        base = theory.gaps(matroid, mu).base
        shrunk = mu[base][:, None] / (1 + epsilon) - (mu[base][:, None] - matrix)
        assert (shrunk[matrix > 0] > 0).all()
    assert theory.burn_in(Uniform(2, 1), [0.5, 0.4999], upper=1.0) == math.inf
    assert theory.burn_in(Uniform(5, 2), [0.5] * 5) == 5.0


@pytest.mark.parametrize(("matroid", "bases"), CASES, ids=IDS)
def test_exchange_partner_is_the_lightest_replaceable_arm(matroid: Matroid, bases: Bases) -> None:
    known = {frozenset(x) for x in bases}
    for seed in range(40):
        mu = some_means(matroid.n_arms, seed)
        base = set(best_base(bases, mu))
        outside, partner = theory.exchange_partners(matroid, mu)
        assert outside.tolist() == sorted({k for x in bases for k in x} - base)
        for k, s in zip(outside.tolist(), partner.tolist()):
            replaceable = [j for j in base if frozenset(base - {j} | {k}) in known]
            assert s in replaceable
            assert mu[s] == min(mu[j] for j in replaceable)


def kl(p: float, q: float) -> float:
    return sum(x * math.log(x / y) for x, y in ((p, q), (1 - p, 1 - q)) if x > 0)


@pytest.mark.parametrize("rewards", ["bernoulli", "gaussian"])
@pytest.mark.parametrize(("matroid", "bases"), CASES[:5], ids=IDS[:5])
def test_lower_bound_solves_the_graves_lai_program(matroid: Matroid, bases: Bases, rewards: str) -> None:
    """Least sum of c_x gap_x such that no alternative that keeps the best base's means is plausible."""
    rng = np.random.default_rng(17)
    for _ in range(10):
        mu = rng.uniform(0.1, 0.9, matroid.n_arms)
        best = best_base(bases, mu)
        divergence = kl if rewards == "bernoulli" else (lambda p, q: (p - q) ** 2 / (2 * 0.3))
        cost = [sum(mu[k] for k in best) - sum(mu[k] for k in x) for x in bases]
        rows, limit = [], []
        known = {frozenset(x) for x in bases}
        for k in sorted({k for x in bases for k in x} - set(best)):
            for j in best:
                if frozenset(set(best) - {j} | {k}) in known:  # raising k above j makes the exchange pay
                    rows.append([-divergence(mu[k], mu[j]) * (k in x) for x in bases])
                    limit.append(-1.0)
        solved = linprog(cost, A_ub=rows, b_ub=limit, bounds=(0, None))
        assert solved.status == 0
        c = theory.lower_bound_constant(matroid, mu, rewards=rewards, variance=0.3)  # type: ignore[arg-type]
        assert c == pytest.approx(solved.fun, rel=1e-6)
        # alternatives that raise several arms at once are implausible under the same pulls
        pulls = np.array([sum(v for v, x in zip(solved.x, bases) if k in x) for k in range(matroid.n_arms)])
        for _ in range(200):
            other = mu.copy()
            for k in set(range(matroid.n_arms)) - set(best):
                other[k] = rng.uniform(mu[k], 0.99)
            if max(sum(other[k] for k in x) for x in bases) > sum(mu[k] for k in best) + 1e-9:
                changed = set(range(matroid.n_arms)) - set(best) - set(matroid.loops.tolist())
                assert sum(pulls[k] * divergence(mu[k], other[k]) for k in changed) >= 1 - 1e-6


def test_lower_bound_at_ties_and_at_the_edge() -> None:
    assert theory.lower_bound_constant(Uniform(4, 2), [0.5, 0.5, 0.5, 0.5]) == 0.0
    # nothing is better than a sure reward: no alternative mean exceeds 1
    assert theory.lower_bound_constant(Uniform(2, 1), [1.0, 0.5]) == 0.0
    assert theory.lower_bound_constant(Uniform(2, 1), [0.5, 0.0]) == pytest.approx(0.5 / math.log(2))
    # partition with means 1/2 and 1/2 - delta: the order (K - D) / delta, constant at least 1/4
    delta = 0.01
    matroid = Partition([0, 0, 0, 1, 1])
    mu = np.array([0.5, 0.5 - delta, 0.5 - delta, 0.5, 0.5 - delta])
    c = theory.lower_bound_constant(matroid, mu)
    order = theory.gap_lower_bound(matroid, mu, math.e**2) / 2
    assert order == pytest.approx(3 / delta)
    assert 0.25 * order <= c <= 0.51 * order


def test_lower_bound_is_below_the_upper_bound() -> None:
    """12 / gap against gap / KL <= 1 / (2 gap) by Pinsker, and partners are never nearer than bar d_k."""
    for (matroid, _), seed in itertools.product(CASES, range(10)):
        mu = some_means(matroid.n_arms, seed)
        upper = theory.asymptotic_constant(matroid, mu, reward_range=(0.0, 1.0))
        assert theory.lower_bound_constant(matroid, mu) <= upper / 24 + 1e-12


def test_divergences() -> None:
    p, q = 0.3, np.array([0.0, 0.1, 0.3, 0.6, 1.0])
    expected = [math.inf, kl(0.3, 0.1), 0.0, kl(0.3, 0.6), math.inf]
    assert theory.kl_bernoulli(p, q) == pytest.approx(expected)
    assert theory.kl_bernoulli([0.0, 1.0], [0.0, 1.0]).tolist() == [0.0, 0.0]
    # close means: second order, 2e-14, far below the rounding of the logarithms
    assert theory.kl_bernoulli(0.5, 0.5 + 1e-7) == pytest.approx(2e-14, rel=1e-6)
    assert theory.kl_gaussian([0.0, 1.0], 0.5, variance=2.0).tolist() == [0.0625, 0.0625]


def test_settings_agree_with_the_structures_themselves() -> None:
    for horizon, m, a, b in [(100, 1, 0.2, 0.9), (10**4, 1, 0.1, 1.0), (30, 2, 0.5, 0.6)]:
        s = theory.settings(horizon, m, reward_range=(a, b))
        r = Rounding(((a, b), (1 / math.sqrt(horizon), 1.0)), epsilon=1 / math.log(horizon) ** m)
        assert (s.n_alpha, s.n_beta, s.W, s.epsilon, s.eta) == (r.n_alpha, r.n_beta, r.W, r.epsilon, r.eta)
        assert s.cells == HittingSet(r).n_cells
        assert s.square_cells == HittingSet(r, square=True).n_cells == r.W**3 + 3 * r.W + 2


def test_wrong_arguments_are_refused() -> None:
    matroid, mu = Uniform(3, 1), [0.2, 0.3, 0.4]
    with pytest.raises(ParameterError, match="means"):
        theory.gaps(matroid, [0.1, 0.2])
    with pytest.raises(ParameterError, match="means"):
        theory.gaps(matroid, [0.1, 0.2, math.nan])
    with pytest.raises(ParameterError, match="reward_range"):
        theory.regret_bound(matroid, mu, 100, reward_range=(0.25, 1.0))
    with pytest.raises(ParameterError, match="reward_range"):
        theory.asymptotic_constant(matroid, mu, reward_range=(1.0, 0.0))
    with pytest.raises(ParameterError, match="horizon"):
        theory.regret_bound(matroid, mu, [100, 2], reward_range=(0.0, 1.0))
    with pytest.raises(ParameterError, match="m must"):
        theory.burn_in(matroid, mu, m=0)
    with pytest.raises(ParameterError, match="positive lower end"):
        theory.settings(100, reward_range=(0.0, 1.0))
    with pytest.raises(ParameterError, match="Bernoulli"):
        theory.lower_bound_constant(matroid, [0.2, 0.3, 1.4])
    with pytest.raises(ParameterError, match="rewards"):
        theory.lower_bound_constant(matroid, mu, rewards="poisson")  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="variance"):
        theory.lower_bound_constant(matroid, mu, rewards="gaussian", variance=0.0)


def test_large_uniform_and_partition_are_fast() -> None:
    rng = np.random.default_rng(2)
    mu = rng.uniform(0.1, 0.9, 200_000)
    for matroid in (Uniform(200_000, 10), Partition(rng.integers(10, size=200_000))):
        assert theory.lower_bound_constant(matroid, mu) > 0
        assert theory.gaps(matroid, mu).outside.size == 200_000 - 10


def test_theory_stands_at_the_top_level():
    import subprocess
    import sys

    import semibandit
    from semibandit.paper import theory as same

    assert semibandit.theory is same and "theory" in dir(semibandit) and "theory" in semibandit.__all__
    script = "import sys, semibandit; assert not any('paper' in name for name in sys.modules); semibandit.theory.gaps"
    assert subprocess.run([sys.executable, "-c", script]).returncode == 0
