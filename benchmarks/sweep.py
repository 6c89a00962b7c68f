"""``python -m benchmarks sweep``: an experiment in one process and on a cluster of local nodes, in turns."""

from __future__ import annotations

import json
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import click

from semibandit.experiments.definition import Experiment, parse_experiment
from semibandit.experiments.runner import run_experiment

_SWEEP = """
[experiment]
name = "sweep"
rounds = {rounds}
repeats = {repeats}
checkpoints = 5

[[instance]]
matroid = "uniform"
arms = 30
rank = 3

[[instance]]
matroid = "graphic"
arms = 40
rank = 10

[[policy]]
name = "cucb"

[[policy]]
name = "kl-osm"
"""


def _results(folder: Path) -> bytes:
    """The table of a run; times of its cells stand in other files."""
    return (folder / "results.parquet").read_bytes()


def measure_sweep(cells: int, rounds: int, nodes: int, turns: int) -> dict[str, Any]:
    """Seconds of each turn, here and on `nodes` nodes of one core each; the first one there also starts the workers."""
    import ray
    from ray.cluster_utils import Cluster

    experiment: Experiment = parse_experiment(
        _SWEEP.format(rounds=rounds, repeats=max(1, cells // 4)), "sweep.toml"
    )
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    seconds: dict[str, list[float]] = {"one_process": [], "cluster": []}
    try:
        for _ in range(nodes - 1):
            cluster.add_node(num_cpus=1)
        ray.init(address=cluster.address, log_to_driver=False, logging_level=40)
        with tempfile.TemporaryDirectory() as folder:
            first = b""
            for turn in range(turns + 1):
                for name, on in (("one_process", None), ("cluster", "ray")):
                    place = Path(folder) / f"{name}-{turn}"
                    began = time.perf_counter()
                    run_experiment(experiment, place, on=on)
                    seconds[name].append(round(time.perf_counter() - began, 3))
                    found = _results(place)
                    first = first or found
                    if found != first:
                        raise click.ClickException(f"{name}, turn {turn}: other bytes than in the first run")
    finally:
        ray.shutdown()
        cluster.shutdown()
    warm = {name: statistics.median(times[1:]) for name, times in seconds.items()}
    return {
        "cells": experiment.n_cells,
        "rounds": rounds,
        "nodes": nodes,
        "seconds": seconds,
        "median_without_first": warm,
        "times_as_fast": round(warm["one_process"] / warm["cluster"], 2),
        "times_as_fast_first": round(seconds["one_process"][0] / seconds["cluster"][0], 2),
    }


@click.command("sweep")
@click.option("--cells", type=click.IntRange(4), default=200, show_default=True)
@click.option("--rounds", type=click.IntRange(1), default=100_000, show_default=True, help="Of each cell.")
@click.option("--nodes", type=click.IntRange(1), default=2, show_default=True, help="Of one core each.")
@click.option("--turns", type=click.IntRange(1), default=3, show_default=True, help="After a first one.")
def command(cells: int, rounds: int, nodes: int, turns: int) -> None:
    """Time of a sweep in one process and on local nodes of Ray, with equal bytes."""
    click.echo(json.dumps(measure_sweep(cells, rounds, nodes, turns), indent=1))
