"""FasterCUCB at the paper's own settings: seconds, and regret beside CUCB's and below the theorem's bound."""

from __future__ import annotations

import time

import numpy as np
import pytest

import semibandit as sb
from semibandit.data import instances
from semibandit.paper import theory
from semibandit.policies import FasterCUCB

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("kind", ["uniform", "partition", "laminar", "graphic", "transversal"])
@pytest.mark.parametrize("gap", [0.05, 0.2, None])
def test_regret_beside_cucbs(kind, gap, capsys):
    """20 seeds on common rewards; None: random means. The ratio is reported.

    It depends on how the means fall between the edges of bins. Rounding replaces a mean by the edge above it, at most
    eta = 3 % of 0.8 away, so that means 0.05 apart may come to lie half as far or half as far again, and regret goes
    with 1 / gap while the width, which is rounded too, hides part of it. Seen: 0.87 to 1.15 on these and similar
    instances, near 1 on average; the band is twice that deviation on either side.
    """
    matroid = instances.random_matroid(kind, 100, 14 if kind == "graphic" else 5, 0)
    rng = np.random.default_rng(2)
    if gap is None:
        means = rng.uniform(0.3, 0.8, 100)
    else:
        means = np.full(100, 0.5)
        means[matroid.max_weight_base(rng.random(100))] += gap
    env = sb.UniformNoise(matroid, means, 0.3, reward_range=(0.1, 1.0), seed=0)
    horizon = 50_000
    policies = {
        "faster": FasterCUCB(matroid, horizon=horizon, reward_range=(0.1, 1.0)),
        "cucb": sb.CUCB(matroid, reward_range=(0.1, 1.0)),
    }
    result = sb.compare(policies, env, horizon, repeats=20, seed=3)
    regret = {name: np.array([run.regret[-1] for run in runs]) for name, runs in result.runs.items()}
    mean, ratio = regret["faster"].mean(), regret["faster"].mean() / regret["cucb"].mean()
    bound = theory.regret_bound(matroid, means, horizon, reward_range=(0.1, 1.0))
    with capsys.disabled():
        print(f"\n{kind}, gap {gap}: regret {mean:.0f}, {ratio:.3f} of CUCB's; bound {bound:.3g}")
    assert 0.75 < ratio < 1.3
    assert mean < bound


@pytest.mark.parametrize(
    ("matroid", "horizon"),
    [
        (lambda: sb.Uniform(100_000, 10), 10**6),
        (lambda: sb.Graphic(np.random.default_rng(0).integers(0, 150, (10_000, 2))), 10**5),
    ],
)
def test_the_papers_own_settings_run_in_seconds(matroid, horizon):
    matroid = matroid()
    means = np.random.default_rng(1).uniform(0.2, 0.9, matroid.n_arms)
    env = sb.UniformNoise(matroid, means, 0.2, reward_range=(0.1, 1.0), seed=0)
    policy = FasterCUCB(matroid, horizon=horizon, reward_range=(0.1, 1.0))
    sb.simulate(policy.clone(), env.clone(), 10)
    begin = time.process_time()
    result = sb.simulate(policy, env, horizon)
    assert time.process_time() - begin < 60.0
    assert result.path == "compiled"
    about = policy.describe()
    assert about["cells_visited"] < horizon and about["cells"] > 10**6
    assert result.regret[-1] <= theory.regret_bound(matroid, means, horizon, reward_range=(0.1, 1.0))
