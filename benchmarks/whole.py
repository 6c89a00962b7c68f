"""Figures of whole programs: a settled round from Python, a fleet of learners in one kernel, runs on all cores."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.policies import figure_of
from semibandit import CTS, CUCB, Fleet, Uniform, compare, minimize, simulate
from semibandit.bench.measure import Say, silent
from semibandit.data.instances import random_environment


def _seconds(play: Callable[[], Any]) -> float:
    begin = time.perf_counter()
    play()
    return time.perf_counter() - begin


def settled_us(costs: bool = False, rounds: int = 20_000, repeats: int = 7) -> list[float]:
    """Microseconds per `select` and `update` from Python, uniform, K = 1,000, D = 10, after the base has settled."""
    env: Any = random_environment("noise", "uniform", 1_000, 10, settled=True)
    policy: Any = CUCB(env.matroid, reward_range=env.reward_range)
    if costs:
        env, policy = minimize(env), minimize(policy)
    simulate(policy, env, 20 * rounds, progress=False)
    rewards = env.draw(policy.select(), policy.t)
    select, update = policy.select, policy.update

    def play() -> None:
        for _ in range(rounds):
            update(select(), rewards)

    return [1e6 * _seconds(play) / rounds for _ in range(repeats)]


def fleet_rate(
    members: int = 1_000, arms: int = 1_000, rank: int = 5, rounds: int = 200, repeats: int = 5
) -> dict[str, Any]:
    """Decisions with feedback per second, all members in every call, in one thread; bytes per member and arm."""
    fleet = Fleet(Uniform(arms, rank), members)
    everyone = np.arange(members)
    means = np.random.default_rng(0).random(arms)
    rewards = np.random.default_rng(1)
    rates = []
    for _ in range(repeats):
        spent = 0.0
        for _ in range(rounds):
            begin = time.perf_counter()
            slates = fleet.select(everyone)
            spent += time.perf_counter() - begin
            told = (rewards.random(slates.shape) < means[slates]).astype(np.float64)
            begin = time.perf_counter()
            fleet.update(everyone, slates, told)
            spent += time.perf_counter() - begin
        rates.append(rounds * members / spent)
    return {"per_second": rates, "bytes": fleet.describe()["bytes_per_member_and_arm"]}


def _one_run(seed: int) -> None:
    env = random_environment("bernoulli", "uniform", 2_000, 10, seed=seed)
    simulate(CUCB(env.matroid), env, 500_000, progress=False)


def _child(barrier: Any, took: Any) -> None:
    _one_run(0)
    barrier.wait()
    took.put(_seconds(lambda: _one_run(1)))


def two_processes() -> float:
    """How many times the work of one process two of them do on this machine: what its second core is worth."""
    context = multiprocessing.get_context("spawn")
    took: dict[int, float] = {}
    for n in (1, 2):
        barrier, queue = context.Barrier(n), context.Queue()
        children = [context.Process(target=_child, args=(barrier, queue)) for _ in range(n)]
        for child in children:
            child.start()
        took[n] = max(queue.get() for _ in children)
        for child in children:
            child.join()
    return 2.0 * took[1] / took[2]


def compare_speed(rounds: int = 100_000, repeats: int = 8, turns: int = 3) -> dict[str, Any]:
    """`compare` with one worker and with one per core, in turns; their numbers must be the same."""
    env = random_environment("bernoulli", "uniform", 2_000, 10)
    cores = os.cpu_count() or 1
    took: dict[int, list[float]] = {1: [], cores: []}
    regrets = {}
    for _ in range(turns):
        for workers in took:
            policies = [CUCB(env.matroid), CTS(env.matroid)]
            begin = time.perf_counter()
            found = compare(policies, env, rounds, repeats=repeats, workers=workers, progress=False)
            took[workers].append(time.perf_counter() - begin)
            regrets[workers] = [found.regret(name).tolist() for name in found.runs]
    return {
        "cores": cores,
        "seconds": {str(workers): seconds for workers, seconds in took.items()},
        "same": all(one == regrets[1] for one in regrets.values()),
        "times": float(np.median(took[1]) / np.median(took[cores])),
    }


def measure_whole(say: Say = silent, quick: bool = False) -> dict[str, Any]:
    """All of them; `quick` for a look only."""
    say("whole programs: a settled round")
    rounds = 200 if quick else 20_000
    settled = {name: settled_us(costs, rounds) for name, costs in (("rewards", False), ("costs", True))}
    say("whole programs: a fleet")
    fleet = fleet_rate(50, 100, 5, 5, 2) if quick else fleet_rate()
    say("whole programs: runs on all cores")
    runs = compare_speed(500, 2, 1) if quick else compare_speed()
    second = None if quick else two_processes()
    return {"settled_us": settled, "fleet": fleet, "compare": runs, "two_processes": second}


def whole_figures(found: dict[str, Any]) -> list[dict[str, Any]]:
    """What the project wants of them, for the page's table of figures."""
    us = float(np.median(found["settled_us"]["rewards"]))
    settled = {**figure_of("settled round from Python, CUCB, K = 1,000, D = 10", "us", 3.0, us)}
    settled |= {"sense": "at most", "met": us <= 3.0}
    rate = float(np.median(found["fleet"]["per_second"]))
    return [
        settled,
        figure_of(
            "fleet of 1,000, K = 1,000, D = 5, one core", "decisions with feedback per second", 1e6, rate
        ),
        figure_of("compare, one worker per core", "x one worker", 1.8, found["compare"]["times"]),
    ]


def whole_lines(found: dict[str, Any]) -> list[str]:
    """For reading."""
    low = {name: (min(us), float(np.median(us))) for name, us in found["settled_us"].items()}
    rates = found["fleet"]["per_second"]
    runs = found["compare"]
    second = found["two_processes"]
    return [
        *(
            f"A settled round from Python, uniform, K = 1,000, D = 10, {name}: median {middle:.2f} us, best {best:.2f}."
            for name, (best, middle) in low.items()
        ),
        f"A fleet of 1,000 learners, K = 1,000, D = 5, one thread: {np.median(rates):,.0f} decisions with feedback per "
        f"second (median of {len(rates)}, best {max(rates):,.0f}), {found['fleet']['bytes']:.0f} bytes per member and "
        "arm.",
        f"`compare` of CUCB and CTS with {runs['cores']} workers: {runs['times']:.2f} times as fast as with one, "
        f"{'the same numbers' if runs['same'] else 'OTHER NUMBERS'}."
        + (
            "" if second is None else f" Two processes do {second:.2f} times the work of one on this machine."
        ),
    ]
