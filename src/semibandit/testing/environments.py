"""Conformance check for environments, the built-in ones and a user's own."""

from __future__ import annotations

import math

import numpy as np

from semibandit.arms import FloatArray, IntArray
from semibandit.environments import Environment
from semibandit.errors import ArmError, ParameterError

# Chance that a correct environment fails the check of the means, over all arms looked at.
_FALSE_ALARM = 1e-6
_MOST_ARMS = 8


def check_environment(env: Environment, *, rounds: int = 4000, seed: int = 0) -> None:
    """Raise `AssertionError` with the reason when `env` breaks the contract. `env` is not changed.

    Checked: the description is consistent; regret is 0 for the optimal base and never negative; only the
    counters of drawn arms move; the same seed gives the same reward to the same pull however arms are
    interleaved; rewards lie in the range and average to `.means` (a band that a correct environment leaves
    with probability 1e-6); `reset` and `clone` start over; bad arms are refused without a trace. O(K +
    rounds).

    >>> from semibandit import Bernoulli, Uniform
    >>> check_environment(Bernoulli(Uniform(5, 2), [0.1, 0.2, 0.3, 0.4, 0.5]))
    """
    rng = np.random.default_rng(seed)
    pulls_before, round_before, seed_before = env.pulls.copy(), env.round, env.seed
    _check_description(env)
    _check_regret(env, rng)
    arms = np.sort(rng.choice(env.n_arms, size=min(env.n_arms, _MOST_ARMS), replace=False)).astype(np.int64)
    _check_counters(env, arms)
    _check_interleaving(env, arms, rng)
    rewards = _play(env.clone(), arms, rounds)
    _check_rewards(env, arms, rewards)
    _check_starting_over(env, arms, rewards)
    _check_refusals(env)
    _check_kernel_state(env)
    _require(
        np.array_equal(env.pulls, pulls_before) and env.round == round_before and env.seed == seed_before,
        "drawing from a clone must leave the original as it was",
    )


def _require(condition: object, message: str) -> None:
    if not condition:
        raise AssertionError(message)


def _check_description(env: Environment) -> None:
    low, high = env.reward_range
    _require(env.n_arms == env.matroid.n_arms, "n_arms must be the matroid's")
    _require(
        math.isfinite(low) and math.isfinite(high) and low < high, f"reward_range is wrong: {(low, high)}"
    )
    _require(
        env.means.shape == (env.n_arms,) and env.means.dtype == np.float64,
        "means must be float64, one per arm",
    )
    _require(not env.means.flags.writeable, "means must be read-only")
    _require(bool(((env.means >= low) & (env.means <= high)).all()), "means must lie in the reward range")
    best = env.matroid.max_weight_base(env.means.copy())
    _require(
        np.array_equal(env.optimal_base, best), "optimal_base must be the maximum-weight base of the means"
    )
    value = math.fsum(env.means[best].tolist())
    _require(
        abs(env.optimal_value - value) <= 1e-12 * max(1.0, abs(value)),
        f"optimal_value is {env.optimal_value}, but the optimal base has {value}",
    )


def _check_regret(env: Environment, rng: np.random.Generator) -> None:
    _require(env.regret(env.optimal_base) == 0.0, "regret of the optimal base must be 0")
    for _ in range(10):
        base = env.matroid.max_weight_base(rng.random(env.n_arms))
        regret = env.regret(base)
        lost = env.optimal_value - math.fsum(env.means[base].tolist())
        _require(regret >= 0.0, f"regret of the base {base.tolist()} is negative: {regret}")
        _require(abs(regret - lost) <= 1e-9, f"regret of the base {base.tolist()} is {regret}, not {lost}")


def _check_counters(env: Environment, arms: IntArray) -> None:
    twin = env.clone()
    _require(not twin.pulls.any() and twin.round == 0, "a clone must start with no pulls, at round 0")
    expected = np.zeros(env.n_arms, dtype=np.int64)
    for t in (1, 2, 3):
        drawn = arms[: max(1, arms.size - t)]
        got = twin.draw(drawn)
        expected[drawn] += 1
        _require(got.shape == drawn.shape and got.dtype == np.float64, "draw must return one float64 per arm")
        _require(
            np.array_equal(twin.pulls, expected), "draw must count the pulls of the drawn arms and no others"
        )
        _require(twin.round == t, "draw must move on by one round")
    _require(twin.draw([]).size == 0, "drawing no arms must give no rewards")


def _play(env: Environment, arms: IntArray, rounds: int) -> FloatArray:
    """Rewards (rounds x arms) when all of `arms` are drawn in each round."""
    out = np.empty((rounds, arms.size), dtype=np.float64)
    for t in range(rounds):
        out[t] = env.draw(arms, t + 1)
    return out


def _check_interleaving(env: Environment, arms: IntArray, rng: np.random.Generator) -> None:
    rounds = 20
    expected = _play(env.clone(), arms, rounds)

    one_by_one = env.clone()
    for t in range(rounds):
        for i in rng.permutation(arms.size):
            got = one_by_one.draw(arms[i : i + 1], t + 1)[0]
            _require(got == expected[t, i], f"the reward of arm {arms[i]} depends on what is drawn before it")

    # Half of the arms go their own way in between; the others must not notice.
    kept = np.arange(0, arms.size, 2)
    others = arms[1::2]
    disturbed = env.clone()
    for t in range(rounds):
        disturbed.draw(others[: t % (others.size + 1)], t + 1)
        got_kept = disturbed.draw(arms[kept], t + 1)
        _require(
            np.array_equal(got_kept, expected[t, kept]), "the reward of an arm depends on pulls of other arms"
        )

    if not env.round_dependent:
        late = env.clone()
        for t in range(rounds):
            _require(
                np.array_equal(late.draw(arms, 1000 + 7 * t), expected[t]),
                "rewards depend on the round although round_dependent is False",
            )


def _check_rewards(env: Environment, arms: IntArray, rewards: FloatArray) -> None:
    low, high = env.reward_range
    _require(bool(np.isfinite(rewards).all()), "rewards must be finite")
    _require(bool(((rewards >= low) & (rewards <= high)).all()), f"rewards must lie in [{low}, {high}]")
    n = len(rewards)
    span = high - low
    # The narrower of Hoeffding's and the empirical Bernstein band, each at half of the false alarms allowed.
    log_term = math.log(6.0 * arms.size / _FALSE_ALARM)
    hoeffding = span * math.sqrt(log_term / (2.0 * n))
    for i, arm in enumerate(arms):
        x = rewards[:, i]
        bernstein = math.sqrt(2.0 * float(x.var()) * log_term / n) + 3.0 * span * log_term / n
        gap = abs(float(x.mean()) - float(env.means[arm]))
        _require(
            gap <= min(hoeffding, bernstein),
            f"arm {arm} averages {x.mean()} over {n} draws, but its mean is said to be {env.means[arm]}",
        )


def _check_starting_over(env: Environment, arms: IntArray, rewards: FloatArray) -> None:
    some = min(50, len(rewards))
    twin = env.clone()
    _require(np.array_equal(_play(twin, arms, some), rewards[:some]), "a clone must repeat the reward stream")
    twin.reset()
    _require(not twin.pulls.any() and twin.round == 0, "reset must clear the pulls and the round")
    _require(np.array_equal(_play(twin, arms, some), rewards[:some]), "reset must restart the reward stream")
    other_seed = (env.seed + 1) % 2**64
    other = env.clone(seed=other_seed)
    _require(other.seed == other_seed, "clone(seed) must take the new seed")
    stream = _play(other, arms, len(rewards))
    if bool((rewards != rewards[0]).any()):
        _require(not np.array_equal(stream, rewards), "another seed must give another reward stream")
    twin.reset(seed=other_seed)
    _require(np.array_equal(_play(twin, arms, some), stream[:some]), "reset(seed) must equal clone(seed)")


def _check_refusals(env: Environment) -> None:
    twin = env.clone()
    for bad in ([-1], [env.n_arms], [0.5], [True], [[0]], ["a"]):
        for call in (twin.draw, twin.regret):
            try:
                call(bad)
            except ArmError:
                continue
            raise AssertionError(f"{call.__name__}({bad!r}) must raise ArmError")
    try:
        twin.draw([0], 0)
    except ParameterError:
        pass
    else:
        raise AssertionError("draw(arms, t=0) must raise ParameterError: rounds are counted from 1")
    _require(not twin.pulls.any() and twin.round == 0, "a refused call must change nothing")


def _check_kernel_state(env: Environment) -> None:
    twin = env.clone()
    state = twin.kernel_state()
    if state is None:
        return
    twin.draw([0])
    _require(int(state.pulls[0]) == 1, "kernel_state().pulls must be the environment's own counters")
    _require(
        not np.shares_memory(state.pulls, env.pulls), "a clone must not share counters with the original"
    )
