"""Compile most kernels before the tests, each once, on both cores.

Without this every test process compiles for itself what the others compile at the same moment. With kernels on disk
it takes a few seconds.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context

import numpy as np

import semibandit as sb
from semibandit.engines import ENGINES
from semibandit.instances import random_matroid


def engines(kind: str) -> None:
    """All engines of a class: rounds from Python, rounds in the compiled loop, arms that come and go."""
    matroid = random_matroid(kind, 40, 12, 0)
    for name, spec in ENGINES.items():
        if not spec.fits(matroid, "staircase"):
            continue
        policy = sb.CUCB(matroid, clock="staircase", engine=name)
        env = sb.Bernoulli(matroid, np.linspace(0.1, 0.9, matroid.n_arms), seed=1)
        for _ in range(3):
            arms = policy.select(exclude=[1])
            policy.update(arms, env.draw(arms))
            policy.update(arms[:1], env.draw(arms[:1]))
        policy.delete([2])
        policy.insert([2])
        sb.simulate(policy, env, 100, progress=False)


def bases(kind: str) -> None:
    """FasterCUCB and what it stands on."""
    matroid = random_matroid(kind, 40, 12, 0)
    env = sb.Bernoulli(matroid, np.linspace(0.1, 0.9, matroid.n_arms), seed=1)
    sb.simulate(sb.FasterCUCB(matroid, horizon=1000), env, 20, progress=False)


JOBS: list[tuple[Callable[[str], None], str]] = [
    (engines, "graphic"),
    (engines, "transversal"),
    (engines, "uniform"),
    (engines, "laminar"),
    (bases, "graphic"),
    (bases, "transversal"),
    (engines, "partition"),
    (bases, "laminar"),
    (bases, "uniform"),
    (engines, "linear"),
]


def main() -> None:
    workers = min(os.cpu_count() or 1, 2)
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        for job in as_completed([pool.submit(work, kind) for work, kind in JOBS]):
            job.result()


if __name__ == "__main__":
    main()
