"""The stochastically constrained adversary: phases, gaps, rewards and regret against its definition."""

from __future__ import annotations

import math

import numpy as np
import pytest

import semibandit as sb
from semibandit.environments.codec import make_environment
from semibandit.environments.draw import phase_of

MEANS = [0.6, 0.5, 0.35, 0.6]


def papers_phase(t):
    """As the code of Zimmert, Luo and Wei has it: whether round t is in a phase of the first kind."""
    return math.floor(math.log(t) / math.log(1.1)) % 10 < 5


def test_phases_are_those_of_the_paper():
    for t in range(1, 20_000):
        even = int(phase_of.py_func(t, math.log(1.61051))) % 2 == 0
        assert even == papers_phase(t), t


@pytest.mark.parametrize("reward_range", [(0.0, 1.0), (-2.0, 3.0)])
def test_means_jump_and_gaps_stay(reward_range):
    low, high = reward_range
    means = low + (high - low) * np.array(MEANS)
    env = sb.Adversary(sb.Uniform(4, 2), means, reward_range=reward_range)
    down, up = env.means_at(1), env.means_at(2)
    assert down.min() == pytest.approx(low) and up.max() == pytest.approx(high)
    for now in (down, up, env.means):
        assert np.diff(now) == pytest.approx(np.diff(means))
    assert env.means == pytest.approx(0.5 * (down + up))
    assert env.optimal_base.tolist() == [0, 3]
    assert env.regret([1, 2]) == pytest.approx((high - low) * 0.35)
    assert env.round_dependent


def test_rewards_have_the_means_of_their_phase():
    env = sb.Adversary(sb.Uniform(4, 2), MEANS, growth=3.0, seed=5)
    everyone = np.arange(4)
    for first, last in ((27, 80), (81, 242), (243, 728), (729, 2186)):
        drawn = np.array([env.draw(everyone, t) for t in range(first, last + 1)])
        assert set(np.unique(drawn)) <= {0.0, 1.0}
        p, n = env.means_at(first), last + 1 - first
        assert np.array_equal(p, env.means_at(last))
        assert (np.abs(drawn.mean(axis=0) - p) <= 4.5 * np.sqrt(p * (1.0 - p) / n) + 1e-12).all()


def test_rewards_are_common_to_all_policies():
    one, two = (sb.Adversary(sb.Uniform(4, 2), MEANS, seed=3) for _ in range(2))
    two.draw([3], 1)
    assert [one.draw([0, 1], t).tolist() for t in range(1, 30)] == [
        two.draw([0, 1], t).tolist() for t in range(1, 30)
    ]
    again = one.clone()
    assert again.pulls.sum() == 0 and again.growth == one.growth


def test_compiled_and_stepwise_draws_agree():
    env = sb.Adversary(sb.Uniform(6, 2), np.linspace(0.3, 0.6, 6), seed=3)
    runs = [
        sb.simulate(sb.CUCB(env.matroid), env.clone(), rounds=300, path=path)
        for path in ("compiled", "stepwise")
    ]
    assert runs[0].reward[-1] == runs[1].reward[-1]
    assert runs[0].regret[-1] == pytest.approx(runs[1].regret[-1])


def test_costs_jump_too():
    env = sb.minimize(sb.Adversary(sb.Uniform(4, 2), MEANS, seed=3))
    assert env.optimal_base.tolist() == [1, 2]
    run = sb.simulate(sb.minimize(sb.FTRL(env.matroid)), env, rounds=200)
    assert run.path == "compiled" and run.regret[-1] >= 0.0


def test_bad_parameters_are_named():
    m = sb.Uniform(4, 2)
    for growth in (1.0, 0.0, -1.0, math.nan, math.inf, "fast"):
        with pytest.raises(sb.ParameterError, match="growth"):
            sb.Adversary(m, MEANS, growth)
    with pytest.raises(sb.ParameterError, match="means"):
        sb.Adversary(m, [0.1, 0.2])
    assert make_environment("adversary", m, MEANS).growth == 1.61051
