"""Environments: bad input, a user's own subclass, and proof that the conformance check notices faults."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

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
from semibandit.errors import ArmError, ParameterError, RewardError
from semibandit.matroids import Uniform
from semibandit.testing.environments import check_environment

M = Uniform(3, 2)
OK = [0.2, 0.5, 0.8]
NAN, INF = float("nan"), float("inf")


class Triangular(Environment):
    """Two uniform numbers a pull: what the documentation shows to a user."""

    def _draw(self, arms: Any, t: int) -> Any:
        u = self.next_uniforms(arms, streams=2)
        return self.means[arms] + 0.1 * (u[0] + u[1] - 1.0)


BAD_PARAMETERS: list[tuple[Callable[[], Any], str]] = [
    (lambda: Bernoulli(M, [0.2, 0.5]), "means .*n_arms = 3.* 2 values"),
    (lambda: Bernoulli(M, [[0.2, 0.5, 0.8]]), "means .*shape"),
    (lambda: Bernoulli(M, 0.5), "means .*shape"),
    (lambda: Bernoulli(M, [0.2, NAN, 0.8]), r"means\[1\] = nan"),
    (lambda: Bernoulli(M, [0.2, 0.5, INF]), r"means\[2\] = inf"),
    (lambda: Bernoulli(M, [0.2, 0.5, 1.1]), r"reward_range \(0.0, 1.0\), got means\[2\] = 1.1"),
    (lambda: Bernoulli(M, [-0.1, 0.5, 1.0]), r"means\[0\] = -0.1"),
    (lambda: Bernoulli(M, ["a", "b", "c"]), "means .*numbers"),
    (lambda: Bernoulli(M, [[0.1], [0.2, 0.3], 0.1]), "means .*numbers"),
    (lambda: Bernoulli(M, OK, reward_range=(0.5, 2.0)), r"means\[0\] = 0.2"),
    (lambda: Bernoulli(M, OK, reward_range=(1.0, 0.0)), r"low < high, got \(1.0, 0.0\)"),
    (lambda: Bernoulli(M, OK, reward_range=(1.0, 1.0)), "low < high"),
    (lambda: Bernoulli(M, OK, reward_range=(0.0, INF)), r"reward_range\[1\] must be a finite number"),
    (lambda: Bernoulli(M, OK, reward_range=3.0), "pair"),  # type: ignore[arg-type]
    (lambda: Bernoulli(M, OK, reward_range=("a", 1)), r"reward_range\[0\]"),  # type: ignore[arg-type]
    (lambda: Bernoulli(M, OK, seed=-1), "seed .*-1"),
    (lambda: Bernoulli(M, OK, seed=2**64), "seed "),
    (lambda: Bernoulli(M, OK, seed=0.5), "seed .*0.5"),  # type: ignore[arg-type]
    (lambda: Bernoulli(M, OK, seed=True), "seed .*True"),
    (lambda: Bernoulli(M, OK, seed=None), "seed .*None"),  # type: ignore[arg-type]
    (lambda: Bernoulli(3, OK), "matroid .*3"),  # type: ignore[arg-type]
    (lambda: Triangular(None, OK), "matroid .*None"),  # type: ignore[arg-type]
    (lambda: Triangular(M, [0.2]), "means"),
    (lambda: Beta(M, OK, 0.0), r"concentration .*concentration\[0\] = 0.0"),
    (lambda: Beta(M, OK, -1.0), "concentration"),
    (lambda: Beta(M, OK, NAN), "concentration must be a finite number"),
    (lambda: Beta(M, OK, [1.0, 2.0]), "concentration .*n_arms = 3"),
    (lambda: Beta(M, [0.2, 0.5]), "means"),
    (lambda: Gaussian(M, OK, 0.0), r"sigma must be positive, got sigma\[0\] = 0.0"),
    (lambda: Gaussian(M, OK, [0.1, -0.2, 0.1]), r"sigma\[1\] = -0.2"),
    (lambda: Gaussian(M, OK, INF), "sigma must be a finite number"),
    (lambda: Gaussian(M, OK, "wide"), "sigma must be a number"),
    (lambda: Gaussian(M, OK, [0.1, NAN, 0.1]), r"sigma\[1\] = nan"),
    (lambda: Gaussian(M, [0.1, 0.2, 3.0], 0.1), r"means\[2\] = 3.0"),
    (lambda: HeavyTailed(M, [0.2, 0.0, 1.0]), r"medians must be positive, got medians\[1\] = 0.0"),
    (lambda: HeavyTailed(M, OK, -1.0), "sigma must be positive"),
    (lambda: HeavyTailed(M, OK, start=[1.0, 2.0]), "start .*n_arms = 3"),
    (lambda: HeavyTailed(M, OK, outliers=1.5), "outliers"),
    (lambda: HeavyTailed(M, OK, exponent=0.0), "exponent"),
    (lambda: HeavyTailed(M, OK, reward_range=(-1.0, 5.0)), "begin at 0"),
    (lambda: UniformNoise(M, OK, 0.5), "width 0.5 for arm 0 of mean 0.2"),
    (lambda: UniformNoise(M, OK, -0.1), r"width must be at least 0, got width\[0\] = -0.1"),
    (lambda: UniformNoise(M, OK, [0.1, 0.1]), "width .*n_arms = 3"),
    (lambda: Correlated(M, OK, -0.1), "correlation .*-0.1"),
    (lambda: Correlated(M, OK, 1.5), "correlation .*1.5"),
    (lambda: Correlated(M, OK, NAN), "correlation must be a finite number"),
    (lambda: Correlated(M, OK, width=0.5), "width 0.5 for arm 0"),
    (lambda: Table(M, [[0.1], [0.2]]), "observations .*n_arms = 3.* 2 vectors"),
    (lambda: Table(M, [[0.1], [], [0.2]]), r"observations\[1\] .*at least one"),
    (lambda: Table(M, [[0.1], [NAN], [0.2]]), r"observations\[1\] must be finite"),
    (lambda: Table(M, [0.1, 0.2, 0.3]), r"observations\[0\]"),
    (lambda: Table(M, 0.1), "observations"),  # type: ignore[arg-type]
    (lambda: Table(M, [[0.1], ["a"], [0.2]]), "observations"),
    (lambda: Table(M, [[0.1], [0.1], [0.1]]), "reward_range must be given"),
    (lambda: Table(M, [[0.1], [2.0], [0.1]], reward_range=(0, 1)), r"observations\[1\] = 2.0"),
    (lambda: Table(M, np.ones(4), [0, 1, 2]), "offsets .*= 4 integers"),
    (lambda: Table(M, np.ones(4), [0.0, 1.0, 2.0, 4.0]), "offsets .*integers"),
    (lambda: Table(M, np.ones(4), [0, 1, 2, 5]), "offsets .*end at .*4.* got 0 and 5"),
    (lambda: Table(M, np.ones(4), [0, 2, 2, 4]), "offsets .*arm 1"),
    (lambda: Table(M, np.ones(4), [0, 3, 2, 4]), "offsets .*3:2 for arm 1"),
    (lambda: Table(M, np.array([1.0, NAN, 0.0]), [0, 1, 2, 3]), r"observations\[1\] = nan"),
]


@pytest.mark.parametrize("make, message", BAD_PARAMETERS)
def test_bad_parameters_are_named(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(ParameterError) as caught:
        make()
    assert re.search(message, str(caught.value)), str(caught.value)


BAD_ARMS: list[tuple[Any, str]] = [
    ([3], "arms\\[0\\] = 3 is not an arm"),
    ([0, -1], "arms\\[1\\] = -1 is not an arm"),
    ([0.0, 1.0], "integers"),
    ([0, 1.5], "integers"),
    ([True], "integers"),
    (["a"], "integers"),
    ([[0, 1]], "one-dimensional"),
    ([[0], [1, 2]], "integers|vector"),
    (None, "integers"),
    (np.array([2**63], dtype=np.uint64), "is not an arm"),
    ([2**70], "integers"),
]


@pytest.mark.parametrize("make", [lambda: Bernoulli(M, OK), lambda: Triangular(M, OK)])
@pytest.mark.parametrize("arms, message", BAD_ARMS)
def test_bad_arms_are_named_and_change_nothing(
    make: Callable[[], Environment], arms: Any, message: str
) -> None:
    env = make()
    env.draw([1])
    for call in (env.draw, env.regret):
        with pytest.raises(ArmError, match=message):
            call(arms)
    assert (env.pulls.tolist(), env.round) == ([0, 1, 0], 1)


def test_regret_wants_distinct_arms() -> None:
    with pytest.raises(ArmError, match="arm 2 is named twice"):
        Bernoulli(M, OK).regret([1, 2, 2])


@pytest.mark.parametrize("make", [lambda: Bernoulli(M, OK), lambda: Triangular(M, OK)])
@pytest.mark.parametrize("t", [0, -3, 1.5, True, "1", 2**63])
def test_bad_rounds_and_seeds_change_nothing(make: Callable[[], Environment], t: Any) -> None:
    env = make()
    env.draw([1])
    with pytest.raises(ParameterError, match=r"t must be an integer .*\(a round number\)"):
        env.draw([0], t)
    for call in (env.reset, env.clone):
        with pytest.raises(ParameterError, match="seed"):
            call(seed=-1)
    assert (env.pulls.tolist(), env.round, env.seed) == ([0, 1, 0], 1, 0)


def test_own_environment_passes_the_conformance_check() -> None:
    env = Triangular(M, OK, seed=3)
    check_environment(env)
    assert env.kernel_state() is None


class Replaying(Triangular):
    """Returns whatever it is told to, after having counted the pulls."""

    answer: Any = None

    def _draw(self, arms: Any, t: int) -> Any:
        self.next_uniforms(arms)
        return self.answer


@pytest.mark.parametrize(
    "answer, message",
    [
        ([0.5, NAN], "nan"),
        ([0.5, INF], "inf"),
        ([0.5, 1.5], "1.5"),
        ([0.5, -0.5], "-0.5"),
        ([0.5], r"one reward per arm \(2\)"),
        (0.5, "one reward per arm"),
        ("high", "_draw must return"),
    ],
)
def test_bad_rewards_of_own_environment_change_nothing(answer: Any, message: str) -> None:
    env = Replaying(M, OK)
    env.answer = answer
    with pytest.raises(RewardError, match=message):
        env.draw([0, 0])
    assert (env.pulls.tolist(), env.round) == ([0, 0, 0], 0)
    env.answer = [0.5, 1.0]
    assert env.draw([0, 0]).tolist() == [0.5, 1.0]
    assert (env.pulls.tolist(), env.round) == ([2, 0, 0], 1)


class Halved(Bernoulli):
    """A built-in environment changed in Python: the compiled loop must not bypass it."""

    def _draw(self, arms: Any, t: int) -> Any:
        return 0.5 * super()._draw(arms, t)


def test_changed_built_in_is_not_drawn_by_the_kernel() -> None:
    env = Halved(M, OK, seed=1)
    assert env.kernel_state() is None
    assert set(env.draw(np.repeat([0, 1, 2], 20))) == {0.0, 0.5}
    state = Bernoulli(M, OK, seed=1).kernel_state()
    assert state is not None and state.seed == 1


class OneGenerator(Triangular):
    """One generator for all arms: rewards depend on what was drawn before."""

    def reset(self, seed: Any = None) -> None:
        super().reset(seed)
        self._rng = np.random.default_rng(self.seed)

    def _draw(self, arms: Any, t: int) -> Any:
        self._pulls[arms] += 1
        return self.means[arms] + 0.1 * (self._rng.random(arms.size) - 0.5)


class NotCounting(Triangular):
    def _draw(self, arms: Any, t: int) -> Any:
        return self.means[arms]


class CountsAll(Triangular):
    def _draw(self, arms: Any, t: int) -> Any:
        out = super()._draw(arms, t)
        self._pulls += 1
        return out


class Biased(Triangular):
    def _draw(self, arms: Any, t: int) -> Any:
        return super()._draw(arms, t) + 0.05


class Drifting(Triangular):
    def _draw(self, arms: Any, t: int) -> Any:
        return super()._draw(arms, t) + 0.01 * (t % 2)


class Deaf(Triangular):
    """Takes no new seed."""

    def reset(self, seed: Any = None) -> None:
        super().reset()


class Forgetful(Triangular):
    """Starts over with a new seed only."""

    def reset(self, seed: Any = None) -> None:
        if seed is not None or not self.pulls.any():
            super().reset(seed)


class SharedCounters(Triangular):
    def clone(self, seed: Any = None) -> Any:
        twin = super().clone(seed)
        twin._pulls = self._pulls
        twin.reset()
        return twin


class Pessimist(Triangular):
    def regret(self, arms: Any) -> float:
        return super().regret(arms) + 1.0


@pytest.mark.parametrize(
    "fault, message",
    [
        (OneGenerator, "drawn before it"),
        (NotCounting, "count the pulls"),
        (CountsAll, "count the pulls"),
        (Biased, "averages"),
        (Drifting, "round_dependent"),
        (Deaf, "new seed"),
        (Forgetful, "reset must clear"),
        (SharedCounters, "original|start with no pulls|share"),
        (Pessimist, "regret of the optimal base"),
    ],
)
def test_the_check_notices(fault: type[Triangular], message: str) -> None:
    env = fault(M, OK)
    env.reset(seed=1)
    env.draw([0])
    with pytest.raises(AssertionError, match=message):
        check_environment(env)
