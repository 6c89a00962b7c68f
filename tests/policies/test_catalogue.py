"""The catalogue: one decorated class is all that a new policy takes."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import numpy as np
import pytest
from click.testing import CliRunner

import semibandit as sb
from semibandit.cli.main import main
from semibandit.compiled.handle import Floats1
from semibandit.compiled.jit import inline_kernel
from semibandit.engines import make_engine
from semibandit.engines.clock import CURRENT, new_clock, tick
from semibandit.policies import catalogue, register
from semibandit.policies.catalogue import POLICIES, make_policy
from semibandit.policies.records import EnginePolicy
from semibandit.policies.rounds import count_rewards, implement_rounds
from semibandit.testing import check_policy
from support.random_matroids import RANDOM


class SlowClockRounds(NamedTuple):
    """The clock of CUCB, looked at in every tenth round only."""

    clock: Floats1


@inline_kernel
def slow_prepare(own, engine, t):
    return tick(own.clock, t) if t % 10 == 1 else own.clock[CURRENT]


implement_rounds(SlowClockRounds, prepare=slow_prepare, learn=count_rewards)


def slow_clock_policy():
    """A policy of a user's own, from outside the package: one class."""

    @register(cost="that of cucb", guarantee="none", reference="this test")
    class SlowClock(EnginePolicy):
        name = "slow-clock"

        def __init__(self, matroid, *, reward_range=(0.0, 1.0), width=1.5, seed=0):
            super().__init__(matroid, reward_range=reward_range, seed=seed)
            self.width = width
            self._clock = new_clock(width)
            self._engine, self._why = make_engine(matroid, self.records)
            self._open()

        def _make_own(self):
            return SlowClockRounds(self._clock)

        def _query_at(self):
            return self._clock, CURRENT

        def _arguments(self) -> dict[str, Any]:
            return {**super()._arguments(), "width": self.width}

        def _state(self):
            return {**super()._state(), "clock": self._clock}

        def _set_state(self, state):
            self._clock[:] = state["clock"]
            super()._set_state(state)

    return SlowClock


@pytest.fixture
def slow_clock():
    yield slow_clock_policy()
    del catalogue._entries["slow-clock"]
    vars(sb).pop("SlowClock", None)


def test_a_decorated_class_is_a_policy_everywhere(slow_clock, tmp_path):
    matroid = sb.Uniform(n_arms=30, rank=3)
    check_policy(lambda: slow_clock(matroid))
    # By name: in the package, in the catalogue with its options, and on the command line.
    assert sb.SlowClock is slow_clock
    assert POLICIES["slow-clock"].options == ("width",)
    assert make_policy("slow-clock:width=0.5", matroid).width == 0.5
    listed = CliRunner().invoke(main, ["policies", "slow-clock", "--json"])
    assert json.loads(listed.output)[0]["reference"] == "this test"
    # In files.
    policy = slow_clock(matroid, width=0.7)
    rng = np.random.default_rng(1)
    for _ in range(25):
        policy.update(policy.select(), rng.random(3))
    policy.save(tmp_path / "p")
    other = sb.load(tmp_path / "p")
    assert type(other) is slow_clock and other.width == 0.7 and other.t == 25
    assert [other.select().tolist() for _ in range(12)] == [policy.select().tolist() for _ in range(12)]


@pytest.mark.parametrize("kind", ["uniform", "graphic"])
def test_a_policy_of_ones_own_is_compiled(slow_clock, kind):
    matroid, _ = RANDOM[kind](np.random.default_rng(8), 13)
    env = sb.Bernoulli(matroid, np.linspace(0.2, 0.8, 13), seed=1)
    runs = [
        sb.simulate(slow_clock(matroid), env.clone(), 200, path=path, record_arms=True)
        for path in ("compiled", "stepwise")
    ]
    assert np.array_equal(runs[0].arms, runs[1].arms)


def test_a_name_is_taken_once():
    with pytest.raises(sb.ParameterError, match="'cucb' is CUCB already"):

        @register(cost="", guarantee="", reference="")
        class Other(sb.CUCB):
            pass


def test_every_entry_says_what_it_is():
    assert list(POLICIES) == sorted(POLICIES) and len(POLICIES) >= 12
    for name, entry in POLICIES.items():
        assert entry.factory.name == name and getattr(sb, entry.factory.__name__) is entry.factory
        assert entry.cost and entry.guarantee and entry.reference
    with pytest.raises(AttributeError, match="Nobody"):
        sb.Nobody  # noqa: B018


def test_every_built_in_policy_says_when_to_take_it():
    lacking = [
        name
        for name, entry in POLICIES.items()
        if entry.factory.__module__.startswith("semibandit.") and not entry.take
    ]
    assert lacking == [], "register(..., take=...) says when to take a policy rather than another"
    told = [entry.take for entry in POLICIES.values()]
    assert len(set(told)) == len(told)
    one = CliRunner().invoke(main, ["policies", "one-seed"]).output
    assert "take     when bases are large" in one and "cost     O(G + D log K)" in one
    rows = json.loads(CliRunner().invoke(main, ["policies", "--json"]).output)
    assert {row["name"]: row["take"] for row in rows} == {
        name: entry.take for name, entry in POLICIES.items()
    }


def test_a_policy_from_outside_need_not_say_when_to_take_it(slow_clock):
    assert POLICIES["slow-clock"].take == ""
    assert "take  " not in CliRunner().invoke(main, ["policies", "slow-clock"]).output


def test_constructors_take_keywords_only():
    for name in POLICIES:
        with pytest.raises(TypeError):
            POLICIES[name].factory(sb.Uniform(4, 2), (0.0, 1.0))
