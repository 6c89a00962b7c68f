"""Schedules by name: the same widths as functions of one's own, and they go into files, TOML and the command line."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import semibandit as sb
from semibandit.policies.catalogue import make_policy
from semibandit.policies.schedules import SCHEDULES, Schedule, as_schedule, schedule

WIDTHS = {
    "constant(0.4)": lambda t: 0.4,
    "log": lambda t: math.sqrt(1.5 * math.log(t)),
    "log(0.5)": lambda t: math.sqrt(0.5 * math.log(t)),
    "log(0.5, 100)": lambda t: math.sqrt(0.5 * math.log(100 + t)),
    "loglog(0.5, 2)": lambda t: math.sqrt(0.5 * (math.log(t) + 2 * math.log(max(1.0, math.log(t))))),
    "power(0.1, 0.5)": lambda t: 0.1 * t**0.5,
}


@pytest.mark.parametrize("text", WIDTHS)
@pytest.mark.parametrize("options", [{}, {"clock": "staircase"}, {"clip": True}])
def test_named_ones_decide_as_functions_do(text, options, tmp_path):
    matroid = sb.Uniform(20, 3)
    named, plain = (sb.CUCB(matroid, schedule=s, **options) for s in (text, WIDTHS[text]))
    rng = np.random.default_rng(1)
    for t in range(1, 120):
        arms = named.select(among=np.arange(12)) if t % 5 == 0 else named.select()
        assert arms.tolist() == (plain.select(among=np.arange(12)) if t % 5 == 0 else plain.select()).tolist()
        assert named.confidence_width == pytest.approx(plain.confidence_width)
        rewards = rng.integers(0, 2, len(arms)).astype(float)
        named.update(arms, rewards)
        plain.update(arms, rewards)
        if t % 40 == 0:
            named.save(tmp_path / "policy")
            named = sb.load(tmp_path / "policy").clone()
            assert named.schedule == as_schedule(text)
    with pytest.raises(sb.ParameterError, match=r"semibandit\.schedules"):
        plain.save(tmp_path / "policy")


@given(st.sampled_from(sorted(SCHEDULES)), st.lists(st.floats(0, 1e6), max_size=1))
def test_a_text_is_read_back_as_it_was(name, numbers):
    made = SCHEDULES[name](*numbers)
    assert as_schedule(str(made)) == made and hash(made) == hash(as_schedule(str(made)))


def test_in_specifications_and_comparisons():
    policy = make_policy("cucb:schedule=power(0.1, 0.25),step=0.02", sb.Uniform(5, 2))
    assert policy.schedule == sb.schedules.Power(0.1, 0.25) and policy.step == 0.02
    env = sb.Bernoulli(sb.Uniform(5, 2), np.linspace(0.1, 0.9, 5), seed=1)
    found = sb.simulate(policy, env, rounds=30)
    assert found.path == "stepwise"
    assert make_policy("cucb:schedule=none", sb.Uniform(5, 2)).schedule is None
    assert sb.CUCB(sb.Uniform(5, 2), schedule=sb.schedules.Log).schedule == sb.schedules.Log(1.5)


@pytest.mark.parametrize(
    ("wrong", "what"),
    [
        ("lgo", "log"),
        ("log(", "cannot be read"),
        ("log(a)", "numbers"),
        ("constant(1, 2)", "at most width"),
        ("log(-1)", "at least 0"),
        ("log(nan)", "finite"),
        ("", "cannot be read"),
        (3.0, "function of the round"),
    ],
)
def test_what_is_refused(wrong, what):
    with pytest.raises(sb.ParameterError, match=what):
        sb.CUCB(sb.Uniform(3, 1), schedule=wrong)


def test_one_of_ones_own_is_saved_too(tmp_path):
    @schedule("test-root")
    @dataclass(frozen=True)
    class Root(Schedule):
        c: float = 1.0

        def __call__(self, t):
            return self.c * math.log1p(t) ** 0.5

    try:
        policy = sb.CUCB(sb.Uniform(4, 2), schedule=Root(2.0))
        policy.select()
        policy.save(tmp_path / "policy")
        assert sb.load(tmp_path / "policy").schedule == Root(2.0)
        with pytest.raises(sb.ParameterError, match="already"):
            schedule("test-root")(sb.schedules.Log)
    finally:
        del SCHEDULES["test-root"]
        sb.schedules.Log.name = "log"
    with pytest.raises(sb.ParameterError, match="small letters"):
        schedule("Big Name")(Root)
    with pytest.raises(sb.ParameterError, match="schedule"):
        policy.save(tmp_path / "policy")


def test_grown_and_for_costs(tmp_path):
    policy = sb.minimize(sb.CUCB(sb.Uniform(4, 2), schedule="log(0.2)"))
    policy.update(policy.select(), [0.5, 0.25])
    policy.grow(sb.Uniform(6, 2))
    policy.save(tmp_path / "policy")
    again = sb.load(tmp_path / "policy")
    assert again.schedule == sb.schedules.Log(0.2) and again.select().tolist() == policy.select().tolist()
