"""`simulate` and `compare`: policies against environments."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from semibandit.arms import IntArray
from semibandit.checks import as_whole
from semibandit.compiled.handle import by_handle, make_handle
from semibandit.environments import Environment
from semibandit.environments.base import EnvironmentState
from semibandit.environments.linear_rewards import context_of
from semibandit.errors import ParameterError, RewardError
from semibandit.machine import cores
from semibandit.policies.base import Policy
from semibandit.policies.costs import mirror_at, mirrored_range
from semibandit.policies.rounds import CompiledRounds, address_of_select, address_of_update
from semibandit.simulation.bar import Bar
from semibandit.simulation.loop import MOVED, REGRET, REWARD, SELECT, STRICT, UPDATE, run_rounds
from semibandit.simulation.result import Comparison, SimulationResult, checkpoints
from semibandit.simulation.side_by_side import play_side_by_side

PATHS = ("auto", "compiled", "stepwise")
_SLICE_SECONDS = 0.25


def simulate(
    policy: Policy,
    env: Environment,
    rounds: int,
    record_every: int | Sequence[int] | None = None,
    progress: bool | None = None,
    *,
    path: str = "auto",
    record_arms: bool = False,
) -> SimulationResult:
    """Let `policy` play `rounds` rounds in `env` and record regret, reward and time at checkpoints.

    Goes on from the state that policy and environment are in. Where both are built in, everything runs in
    one kernel (``path="compiled"``), with the same decisions as round by round in Python
    (``path="stepwise"``); ``"auto"`` takes the kernel where it can. `progress` shows a bar on stderr: by default
    when stderr is a terminal and the run takes more than two seconds. `record_every`: so many rounds, or a list of
    rounds to record at; log-spaced by default. O(D) a round besides the policy; `record_arms`
    keeps the played arms (rounds x rank, -1 where a base was smaller).

    >>> import semibandit as sb
    >>> m = sb.Uniform(n_arms=5, rank=2)
    >>> result = sb.simulate(sb.CUCB(m), sb.Bernoulli(m, [0.1, 0.2, 0.3, 0.4, 0.5], seed=1), rounds=100)
    >>> int(result.rounds[-1]), bool(result.regret[-1] >= 0)
    (100, True)
    """
    _check_run(policy, env, rounds, record_every, path)
    marks = checkpoints(rounds, record_every)
    compiled = None if path == "stepwise" else compiled_run(policy, env)
    if path == "compiled" and compiled is None:
        raise ParameterError(
            "path = 'compiled' needs a policy and an environment that offer compiled rounds, as built-in ones do"
        )
    log = np.full((rounds if record_arms else 0, policy.matroid.rank), -1, dtype=np.int64)
    bar = Bar(rounds, policy.name, progress)
    try:
        if compiled is not None:
            result = _compiled(compiled, marks, log, bar)
        else:
            result = _stepwise(policy, env, marks, log, bar)
    finally:
        bar.close()
    if record_arms:
        result.arms = log
    result.about = policy.describe()
    return result


def compare(
    policies: Mapping[str, Policy] | Sequence[Policy],
    env: Environment,
    rounds: int,
    repeats: int = 10,
    seed: int = 0,
    record_every: int | Sequence[int] | None = None,
    progress: bool | None = None,
    *,
    path: str = "auto",
    workers: int | None = 1,
) -> Comparison:
    """Run every policy `repeats` times, each repeat on one reward stream that all policies share.

    Repeat r of every policy faces the environment seeded by (seed, r): the n-th reward of an arm is the same for
    all, so differences between policies are paired. Policies are cloned, so the ones given stay as they are.

    `workers`: so many runs at a time, in threads, which kernels let run side by side; None for as many as there are
    cores. Regret and reward are the same for any number of them. Times per round then are those of a machine that is
    busy, which is why it is one unless more are asked for. A policy that plays round by round in Python gains nothing.

    >>> import semibandit as sb
    >>> m = sb.Uniform(n_arms=5, rank=2)
    >>> env = sb.Bernoulli(m, [0.1, 0.2, 0.3, 0.4, 0.5], seed=1)
    >>> found = sb.compare([sb.CUCB(m), sb.CTS(m)], env, rounds=2000, repeats=4, workers=2)
    >>> found.best
    'cts'
    """
    named = _named(policies)
    repeats = as_whole(repeats, "repeats", 1, "a number of runs")
    workers = cores() if workers is None else as_whole(workers, "workers", 1, "a number of threads")
    for policy in named.values():
        _check_run(policy, env, rounds, record_every, path)
    seeds = np.random.SeedSequence(seed).generate_state(2 * repeats, dtype=np.uint64) >> np.uint64(1)
    tasks = [(name, repeat) for repeat in range(repeats) for name in named]
    alone = workers == 1 or len(tasks) == 1

    def play(task: tuple[str, int]) -> SimulationResult:
        name, repeat = task
        own = named[name].clone()
        own.reseed(int(seeds[2 * repeat + 1]))
        world = env.clone(seed=int(seeds[2 * repeat]))
        run = simulate(own, world, rounds, record_every, progress if alone else False, path=path)
        run.policy = name
        return run

    runs: dict[str, list[SimulationResult]] = {name: [] for name in named}
    if alone:
        for task in tasks:
            runs[task[0]].append(play(task))
        return Comparison(runs)
    for (name, _), run in zip(tasks, play_side_by_side(tasks, play, workers, progress), strict=True):
        runs[name].append(run)
    return Comparison(runs)


def _named(policies: Mapping[str, Policy] | Sequence[Policy]) -> dict[str, Policy]:
    if isinstance(policies, Mapping):
        named = dict(policies)
    else:
        named = {}
        for policy in policies:
            base = name = getattr(policy, "name", type(policy).__name__)
            i = 2
            while name in named:
                name = f"{base}-{i}"
                i += 1
            named[name] = policy
    if not named:
        raise ParameterError("policies is empty: nothing to compare")
    return named


def _check_run(
    policy: Policy, env: Environment, rounds: int, record_every: int | Sequence[int] | None, path: str
) -> None:
    if not isinstance(rounds, (int, np.integer)) or isinstance(rounds, bool) or rounds < 1:
        raise ParameterError(f"rounds must be a positive integer, got {rounds!r}")
    if record_every is not None and not _marks_fit(record_every, rounds):
        raise ParameterError(
            f"record_every must be a positive integer, a list of rounds in 1 .. {rounds}, or None, "
            f"got {record_every!r}"
        )
    if path not in PATHS:
        raise ParameterError(f"path = {path!r} is not known: one of {', '.join(map(repr, PATHS))}")
    if policy.n_arms != env.n_arms:
        raise ParameterError(f"policy has {policy.n_arms} arms but env has {env.n_arms}")
    if policy.contextual and context_of(env) is None:
        raise ParameterError(
            "policy needs the features of each round (dimension=...), and env has none: LinearContexts and "
            "LinearRewards have"
        )
    if policy.objective != env.objective:
        one, other = ("policy", "env") if env.objective == "min" else ("env", "policy")
        raise ParameterError(
            f"{other} is about costs and {one} about rewards: take semibandit.minimize({one})"
        )
    (low, high), (env_low, env_high) = policy.reward_range, env.reward_range
    if policy.outside == "error" and (env_low < low or env_high > high):
        raise ParameterError(
            f"env draws rewards in ({env_low}, {env_high}), outside the policy's reward_range = ({low}, {high}); "
            f"a policy with outside='clip' would take them"
        )


def _marks_fit(record_every: Any, rounds: int) -> bool:
    listed = isinstance(record_every, (list, tuple, np.ndarray)) and len(record_every) > 0
    every = record_every if listed else [record_every]
    most = rounds if listed else np.inf
    return all(isinstance(n, (int, np.integer)) and not isinstance(n, bool) and 1 <= n <= most for n in every)


class CompiledRun:
    """A policy and an environment that play whole rounds in one kernel. Made by `compiled_run`."""

    def __init__(self, policy: Policy, env: Environment, world: EnvironmentState) -> None:
        self.policy, self.env = policy, env
        rank = policy.matroid.rank
        self.totals, self.ticks = np.zeros(2), np.zeros(3, dtype=np.int64)
        self._world = world, make_handle(world)
        ends = [mirror_at(policy.reward_range), *mirrored_range(policy.reward_range)]
        self._mirror = np.array(ends if policy.objective == "min" else [])
        lows, highs = policy._range_ends()
        inside = lows.max() <= env.reward_range[0] and env.reward_range[1] <= highs.min()
        self._bounds = np.array([]) if inside else np.concatenate((lows, highs))
        self._outside = np.zeros(2, dtype=np.int64)
        self._outside[STRICT] = policy.outside == "error"
        self._out, self._rewards = np.zeros(rank, dtype=np.int64), np.zeros(rank)
        self._no_log = np.zeros((0, rank), dtype=np.int64)
        self._rounds: CompiledRounds | None = None

    def _open(self, rounds: CompiledRounds | None) -> None:
        if rounds is None:
            raise RuntimeError(f"{self.policy!r} offers compiled rounds no longer")
        self._rounds = rounds
        calls = address_of_select(*rounds.kinds), address_of_update(*rounds.kinds)
        self._player = calls, rounds.own_handle, rounds.engine_handle
        self._run = by_handle(run_rounds, type(self._world[0])).entry

    def play(self, n: int, log: IntArray | None = None) -> None:
        """Play `n` rounds; rows of `log`, if there are any, become the arms played. Other threads wait."""
        with self.policy._lock, self.env._lock:
            self._play(n, log)

    def _settle_outside(self, t: int) -> None:
        """Let the policy count the rewards that were moved into their ranges, or refuse the one of round t."""
        moved, self._outside[MOVED] = int(self._outside[MOVED]), 0
        if moved and self._outside[STRICT]:
            raise RewardError(
                f"env drew a reward outside the range of its arm in round {t}: "
                f"give the policy wider ranges, or outside='clip'"
            )
        self.policy._clipped[0] += moved

    def _play(self, n: int, log: IntArray | None) -> None:
        policy, log = self.policy, self._no_log if log is None else log
        done = stuck = 0
        while True:
            part = policy._ask(n - done)
            rounds = policy.compiled_rounds()
            if rounds is not self._rounds:
                self._open(rounds)
            t = policy.t
            played = (
                int(
                    self._run(
                        self._world[1],
                        *self._player,
                        self.env.means,
                        self.env.optimal_value,
                        self._mirror,
                        self._bounds,
                        self._outside,
                        t,
                        part,
                        self._out,
                        self._rewards,
                        self.totals,
                        self.ticks,
                        log[done : done + part],
                    )
                )
                - t
            )
            policy._played_until(t + played)
            self.env._played_until(t + played)
            self._settle_outside(t + played)
            done += played
            stuck = 0 if played else stuck + 1
            if done >= n:
                return
            if stuck == 3:
                raise RuntimeError(f"{policy!r} asks to be asked and then asks again")


def compiled_run(policy: Policy, env: Environment) -> CompiledRun | None:
    """Policy and environment as one kernel, or None where one of them offers none."""
    world = env.kernel_state()
    if world is None or policy.compiled_rounds() is None:
        return None
    return CompiledRun(policy, env, world)


def _compiled(run: CompiledRun, marks: IntArray, log: IntArray, bar: Bar) -> SimulationResult:
    totals, ticks = run.totals, run.ticks
    run.play(0)  # compiles or loads the kernel before any clock runs
    regret, reward, select_seconds, update_seconds = (np.zeros(len(marks)) for _ in range(4))
    done, chunk = 0, 64
    spent_select = spent_update = 0.0
    for i, mark in enumerate(marks):
        while done < mark:
            n = int(min(chunk, mark - done))
            before = ticks.copy()
            begin = time.perf_counter_ns()
            run.play(n, log[done : done + n])
            seconds = (time.perf_counter_ns() - begin) * 1e-9
            used = ticks - before
            if used.sum() > 0:
                spent_select += seconds * used[SELECT] / used.sum()
                spent_update += seconds * used[UPDATE] / used.sum()
            else:  # a processor without a cycle counter: count everything as select
                spent_select += seconds
            done += n
            if seconds < _SLICE_SECONDS / 2:
                chunk = min(2 * chunk, 1 << 24)
            elif seconds > 2 * _SLICE_SECONDS:
                chunk = max(chunk // 2, 1)
            bar.at(done)
        regret[i], reward[i] = totals[REGRET], totals[REWARD]
        select_seconds[i], update_seconds[i] = spent_select, spent_update
    return SimulationResult(
        run.policy.name, marks, regret, reward, select_seconds, update_seconds, path="compiled"
    )


def _stepwise(policy: Policy, env: Environment, marks: IntArray, log: IntArray, bar: Bar) -> SimulationResult:
    _warm_up(policy, env)
    regret, reward, select_seconds, update_seconds = (np.zeros(len(marks)) for _ in range(4))
    clock = time.perf_counter_ns
    lost = gained = 0.0
    in_select = in_update = 0
    i, rounds = 0, int(marks[-1])
    player, context = _player(policy, env)
    for done in range(1, rounds + 1):
        now = context(policy.t + 1)
        a = clock()
        arms = player.select(**now)
        b = clock()
        rewards = env.draw(arms, policy.t)
        lost += env.regret(arms)
        gained += float(rewards.sum())
        now = {name: rows[arms] for name, rows in now.items()}
        c = clock()
        player.update(arms, rewards, **now)
        d = clock()
        in_select += b - a
        in_update += d - c
        if done <= len(log):
            log[done - 1, : len(arms)] = arms
        if done == marks[i]:
            regret[i], reward[i] = lost, gained
            select_seconds[i], update_seconds[i] = in_select * 1e-9, in_update * 1e-9
            i += 1
        if done & 255 == 0:
            bar.at(done)
    return SimulationResult(
        policy.name, marks, regret, reward, select_seconds, update_seconds, path="stepwise"
    )


def _warm_up(policy: Policy, env: Environment) -> None:
    """Compile what a round needs on copies, so that the first recorded round is like the others. O(K)."""
    other, world = policy.clone(), env.clone()
    player, context = _player(other, world)
    for _ in range(2):
        now = context(other.t + 1)
        arms = player.select(**now)
        player.update(arms, world.draw(arms, other.t), **{name: rows[arms] for name, rows in now.items()})


def _player(policy: Policy, env: Environment) -> tuple[Any, Any]:
    """The policy, and what it must be told in round t: the features of all arms where they come with each call."""
    if not policy.contextual:
        nothing: dict[str, Any] = {}
        return policy, lambda t: nothing
    found = context_of(env)
    return policy, lambda t: {"features": found(t)}
