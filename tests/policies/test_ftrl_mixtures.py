"""FTRL on matroids without families: Frank-Wolfe ends near the optimum, its gap is true, its mixture is played."""

from __future__ import annotations

import numpy as np
import pytest

import semibandit as sb
from oracles import ftrl as naive
from semibandit.policies.ftrl.mixture_state import N_ATOMS, SIZE
from semibandit.policies.ftrl.regularisers import CHOICES
from support.leaders import HORIZON, leader
from support.random_matroids import RANDOM

GENERAL = ("graphic", "transversal", "rational", "modular")


class Plain(sb.Matroid):
    """A matroid of a user: an independence test and nothing else."""

    def __init__(self, n_arms, independent):
        super().__init__(n_arms)
        self.test = independent

    def _is_independent(self, arms):
        return self.test(arms.tolist())


def atoms_of(policy):
    atoms = policy._way.atoms
    n, size = int(atoms.count[N_ATOMS]), int(atoms.count[SIZE])
    return atoms.members[:n, :size], atoms.weight[:n]


def true_gap(policy, name, independent, t=50):
    """The duality gap at the chances of `policy`, by all bases."""
    n, x = policy.n_arms, policy.chances.tolist()
    all_bases = naive.bases(n, independent)
    gamma, eta = naive.gamma_of(name, n, len(all_bases[0]), HORIZON), naive.rate(name, t)
    movable = {k for base in all_bases for k in base} - set(all_bases[0]).intersection(*all_bases)
    gradient = [
        eta * policy._est.cost[k] + policy._est.scale[k] * naive.slope(name, gamma, x[k], policy._est.rest[k])
        if k in movable
        else 0.0
        for k in range(n)
    ]
    return naive.gap(gradient, x, all_bases)


@pytest.mark.thin
@pytest.mark.parametrize("name", CHOICES)
@pytest.mark.parametrize("kind", GENERAL)
def test_the_gap_is_true_and_below_the_tolerance(kind, name):
    rng = np.random.default_rng(5)
    for size in (1, 4, 6):
        matroid, independent = RANDOM[kind](rng, size)
        for spread in (0.0, 8.0, 60.0):
            policy = leader(matroid, name, rng.uniform(0.0, spread, size) if spread else 0.0)
            about = policy.describe()
            assert naive.outside(policy.chances.tolist(), size, independent) < 1e-9
            gap = true_gap(policy, name, independent)
            assert gap == pytest.approx(about["gap"], abs=1e-6) and gap <= policy.tolerance + 1e-6
            members, weights = atoms_of(policy)
            assert weights.sum() == pytest.approx(1.0) and (weights > 0.0).all()
            assert all(independent(base.tolist()) for base in members)
            mixed = np.zeros(size)
            np.add.at(mixed, members.ravel(), np.repeat(weights, members.shape[1]))
            assert mixed == pytest.approx(policy.chances, abs=1e-9)


@pytest.mark.parametrize("name", CHOICES)
def test_a_small_tolerance_gives_the_exact_projection(name):
    """Families told by a test alone: both ways meet, the closer the smaller the tolerance."""
    rng = np.random.default_rng(2)
    for kind in ("uniform", "laminar"):
        matroid, independent = RANDOM[kind](rng, 8)
        costs = rng.uniform(0.0, 20.0, 8)
        exact = leader(matroid, name, costs).chances
        off = []
        for tolerance in (0.1, 1e-7):
            policy = sb.FTRL(
                Plain(8, independent), regulariser=name, horizon=HORIZON, tolerance=tolerance, seed=1
            )
            policy._est.cost[:] = costs
            policy._t = 49
            policy.select()
            assert policy.describe()["gap"] <= tolerance
            off.append(np.abs(policy.chances - exact).max())
        assert off[1] < 1e-3 and off[1] <= off[0] + 1e-9


@pytest.mark.parametrize("kind", ["graphic", "modular"])
def test_sampled_marginals_are_the_chances(kind):
    rng = np.random.default_rng(12)
    matroid, _ = RANDOM[kind](rng, 9)
    policy = leader(matroid, "hybrid", rng.uniform(0.0, 12.0, 9))
    members, weights = atoms_of(policy)
    x, draws = policy.chances, 4000
    counts, by_atom = np.zeros(9), dict.fromkeys(map(tuple, members.tolist()), 0)
    for _ in range(draws):
        base = policy._way.draw()
        counts[base] += 1
        by_atom[tuple(base.tolist())] += 1
    assert x == pytest.approx(policy.chances, abs=1e-9), "drawing again must not move the leader"
    expected = {}
    for base, weight in zip(map(tuple, members.tolist()), weights):
        expected[base] = expected.get(base, 0.0) + draws * weight
    likely = [base for base, mean in expected.items() if mean >= 5.0]
    score = sum((by_atom[base] - expected[base]) ** 2 / expected[base] for base in likely)
    assert score < len(likely) + 4.0 * np.sqrt(2.0 * len(likely)) + 4.0
    free = (x > 1e-3) & (x < 1.0 - 1e-3)
    scores = (counts[free] - draws * x[free]) ** 2 / (draws * x[free] * (1.0 - x[free]))
    assert scores.max() < 16.0


def test_room_for_atoms_grows():
    graph = sb.Graphic([(a, b) for a in range(6) for b in range(a)])
    env = sb.Bernoulli(graph, np.linspace(0.1, 0.9, 15), seed=3)
    policy = sb.FTRL(graph, tolerance=1e-6, seed=1)
    policy._way._make_room(16)
    policy._way._start()
    policy._open()
    for path in ("compiled", "stepwise"):
        sb.simulate(policy, env, rounds=40, path=path)
    assert len(policy._way.atoms.weight) > 16
    assert policy.describe()["gap"] <= 1e-6


def test_the_mixture_survives_exclusions():
    rng = np.random.default_rng(4)
    matroid, _ = RANDOM["graphic"](rng, 9)
    policy = leader(matroid, "hybrid", rng.uniform(0.0, 9.0, 9))
    before = [part.copy() for part in atoms_of(policy)]
    arms = policy.select(exclude=[0, 3])
    assert not np.isin(arms, [0, 3]).any() and policy.chances[[0, 3]].tolist() == [0.0, 0.0]
    assert all(np.array_equal(a, b) for a, b in zip(before, atoms_of(policy)))
    policy._engine._check()


def test_mixtures_of_no_bases_are_refused():
    matroid = sb.Graphic([(0, 1), (1, 2), (2, 0), (2, 3)])
    policy = sb.FTRL(matroid, seed=1)
    policy.select()
    state = policy._state()
    for wrong in (
        {"atoms": np.zeros_like(state["atoms"])},
        {"atoms": np.tile(np.array([0, 1, 2]), len(state["weights"]))},  # a circle
        {"weights": -state["weights"]},
        {"weights": state["weights"][:-1]},
        {"room": np.array([0])},
    ):
        with pytest.raises(sb.FileError):
            sb.FTRL(matroid)._set_state({**state, **wrong})
