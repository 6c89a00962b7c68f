"""Ray: sharded policies and sweeps on a real cluster of several nodes on this machine, some of which die.

One cluster serves the whole file. Without Ray, an optional dependency, only this file is skipped.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import semibandit as sb
from semibandit.cli.main import main
from semibandit.distributed import Sharded
from semibandit.distributed.kinds import KINDS
from semibandit.errors import MatroidError, ParameterError, ShardError
from semibandit.experiments import parse_experiment, run_experiment
from semibandit.experiments.store import Store
from semibandit.testing import check_policy
from support.random_matroids import RANDOM
from support.sharded import Case, FeaturedCase, Life
from support.sharded_service import kill_a_sharded_service

ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'semibandit[ray]'")

from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy  # noqa: E402

from semibandit.distributed.cluster import OnRay, _Actor  # noqa: E402

NODE = {
    "num_cpus": 2,
    "object_store_memory": 100 * 2**20,
    "include_dashboard": False,
    "include_log_monitor": False,
    "no_monitor": True,
}
PATIENCE = 120.0


def patiently(make: Callable[[], Any]) -> Any:
    """Ray gives a node 15 seconds to find its ports, which a busy machine may not have: then once more."""
    for _ in range(5):
        try:
            return make()
        except Exception as error:  # of several classes, and what is left of the node ends with this process
            wrong = error
    raise wrong


class Machines:
    """A cluster whose head stays and whose other nodes may go."""

    def __init__(self) -> None:
        from ray.cluster_utils import Cluster

        self.cluster = patiently(lambda: Cluster(initialize_head=True, head_node_args=NODE))
        self.others: list[Any] = []
        ray.init(address=self.cluster.address, log_to_driver=False, logging_level=40)
        self.pool: dict[int, Any] = {}

    def several(self) -> None:
        """Let there be another node: it takes a while, so that short tests do with one."""
        if not self.others:
            self.others.append(patiently(lambda: self.cluster.add_node(**NODE)))

    def lose(self) -> None:
        """A node dies with all that runs on it, and another one comes."""
        self.die()
        self.several()

    def die(self) -> None:
        """A node dies at once: raylet and workers are killed, and nobody is told."""
        self.several()
        self.cluster.remove_node(self.others.pop(0), allow_graceful=False)

    def transport(self) -> Pooled:
        return Pooled(self)


class Pooled(OnRay):
    """Actors that serve one policy after the other: a new process for each shard of hundreds would take minutes."""

    def __init__(self, machines: Machines) -> None:
        super().__init__("ray", PATIENCE)
        self.machines = machines

    def start(self, shard: int, spec: Any, snapshot: Any) -> None:
        known = self.machines.pool.get(shard)
        if shard in self.actors or known is None:
            there: Any = "SPREAD"
            if self.machines.others and shard % 2:
                # On the node that is going to die, as long as it is there.
                there = NodeAffinitySchedulingStrategy(self.machines.others[0].node_id, soft=True)
            self._make = ray.remote(_Actor).options(
                max_restarts=0, max_task_retries=0, scheduling_strategy=there
            )
            super().start(shard, spec, snapshot)
            self.machines.pool[shard] = self.actors[shard]
        else:
            self.actors[shard] = known
            known.begin.remote(spec, snapshot, sb.__version__)

    def close(self) -> None:
        self.actors.clear()


@pytest.fixture(scope="module")
def machines() -> Iterator[Machines]:
    os.environ.pop("RAY_ADDRESS", None)
    made = Machines()
    yield made
    ray.shutdown()
    made.cluster.shutdown()


def process_of(actor: Any) -> int:
    return ray.get(actor.__ray_call__.remote(lambda self: os.getpid()))


def lockstep(machines: Machines, seed: int, rounds: int, fault: Any = None, kind: type[Case] = Case) -> Life:
    case = kind(seed)
    many = Sharded(case.matroid, on=machines.transport(), **case.arguments())
    life = Life(case, case.one(), many)
    life.live(rounds, lambda t: fault(many) if fault is not None and t == rounds // 2 else None)
    return life


def kill_a_shard(policy: Sharded) -> None:
    actors = policy._crew._transport.actors
    os.kill(process_of(actors[len(actors) - 1]), signal.SIGKILL)


@pytest.mark.parametrize("kind", [Case, FeaturedCase])
def test_actors_decide_what_one_process_decides(machines: Machines, kind: type[Case]) -> None:
    # Two shards at most: every one more is a process that has to start.
    for seed in (0, 1, 11, 16, 21):
        lockstep(machines, seed, rounds=6, kind=kind)


def test_a_shard_that_is_killed_changes_nothing(machines: Machines) -> None:
    life = lockstep(machines, 36, rounds=10, fault=kill_a_shard)
    assert life.case.shards == 2 and life.many.describe()["revived"] == 1


@pytest.mark.slow
def test_a_node_that_dies_changes_nothing(machines: Machines) -> None:
    machines.several()
    life = lockstep(machines, 24, rounds=10, fault=lambda policy: machines.lose())
    assert life.case.shards == 5 and life.many.describe()["revived"] >= 1


@pytest.mark.slow
def test_files_and_copies_of_actors_go_on_as_they_would(machines: Machines, tmp_path: Path) -> None:
    matroid = sb.Partition(np.arange(12) % 4)
    policy = Sharded(matroid, shards=2, on="ray", timeout=PATIENCE)
    policy.update(policy.select(), np.ones(4))
    policy.save(tmp_path / "p")
    # What was saved by actors goes on in this process, and a copy in actors of its own.
    here, twin = Sharded.load(tmp_path / "p"), policy.clone()
    assert (
        here.describe()["on"] == "this process" and policy.describe()["on"] == twin.describe()["on"] == "ray"
    )
    for _ in range(5):
        arms = policy.select()
        assert np.array_equal(arms, here.select()) and np.array_equal(arms, twin.select())
        for each in (policy, here, twin):
            each.update(arms, arms % 2)
    policy.close()
    twin.close()


def test_parts_are_made_where_the_shards_are(machines: Machines) -> None:
    here = os.getpid()

    def part() -> dict[str, Any]:
        assert os.getpid() != here
        return {"n_arms": 1000, "rank": 4}

    many = Sharded.from_parts("uniform", [part] * 2, on=machines.transport())
    one = sb.CUCB(sb.Uniform(2000, 4))
    for _ in range(5):
        arms = many.select()
        assert np.array_equal(arms, one.select())
        for each in (many, one):
            each.update(arms, arms % 2)

    def wrong() -> dict[str, Any]:
        return {"groups": [0, 1], "capacities": [0, 0]}

    with pytest.raises(MatroidError, match="every arm is a loop"):
        Sharded.from_parts("partition", [wrong], on=machines.transport())


def test_no_answer_in_time_is_an_error(machines: Machines) -> None:
    on = machines.transport()
    policy = Sharded(sb.Uniform(n_arms=20, rank=2), shards=2, on=on)
    policy.select()
    on._timeout = 0.3
    pid = process_of(on.actors[1])
    os.kill(pid, signal.SIGSTOP)
    try:
        began = time.monotonic()
        with pytest.raises(ShardError, match="shard 1 of 2 did not answer in time"):
            policy.select()
        assert time.monotonic() - began < 20.0 and policy.t == 1
    finally:
        os.kill(pid, signal.SIGCONT)
    on._timeout = PATIENCE
    policy.update([1, 15], [1.0, 0.0])
    assert policy.select().tolist() == [0, 2] and policy.t == 2 and policy.counts.sum() == 2


def test_a_cluster_that_is_not_there_is_an_error() -> None:
    from semibandit.distributed.cluster import connect

    with pytest.raises(ParameterError, match="on = 'moon' is not known"):
        connect("moon")


def test_messages_can_be_packed_without_loss() -> None:
    from semibandit.distributed.packing import pack, unpack

    table = np.arange(12, dtype=np.int64).reshape(4, 3)
    value = (
        3,
        "play",
        None,
        True,
        2**64 - 1,
        -0.0,
        np.inf,
        b"\x00",
        {"a": table, "b": np.zeros(0)},
        [np.float64(0.1)],
    )
    again = unpack(pack(value))
    assert again[:8] == value[:8] and again[9] == (0.1,)
    assert (
        np.array_equal(again[8]["a"], table)
        and again[8]["a"].dtype == np.int64
        and again[8]["b"].shape == (0,)
    )
    flags = unpack(pack(np.array([True, False])))
    assert flags.dtype == np.bool_ and flags.tolist() == [True, False]
    with pytest.raises(TypeError, match="no place in a message"):
        pack(object())


def test_the_figures_of_a_round_add_up() -> None:
    from benchmarks.shards import measure_shards

    found = measure_shards(60, 4, 3, "cucb", None, 10)
    assert found["messages_per_round"] == 3 and found["on"] == "this process"
    # Arms and weights of the bases of three shards, and rewards there, and little besides.
    assert 3 * 4 * 16 < found["bytes_back"] < 3 * 4 * 16 + 3 * 80
    assert 4 * 16 < found["bytes_there"] < 4 * 16 + 3 * 190
    assert 0 < found["us_per_round"]["p0"] <= found["us_per_round"]["p50"] <= found["us_per_round"]["p99"]
    assert found["bytes_per_arm"] >= 32 and found["build_seconds"] >= 0


# -- sweeps --------------------------------------------------------------------------------------------------------

SWEEP = """
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
name = "cucb"
label = "bold"
exploration = 0.3
"""


def results(folder: Path) -> bytes:
    return (folder / "results.parquet").read_bytes()


def test_a_sweep_on_a_cluster_gives_the_same_bytes(machines: Machines, tmp_path: Path) -> None:
    experiment = parse_experiment(SWEEP.format(rounds=200, repeats=2), "sweep.toml")
    run_experiment(experiment, tmp_path / "here")
    run_experiment(experiment, tmp_path / "there", on="ray", workers=2)
    assert results(tmp_path / "here") == results(tmp_path / "there")
    # What is finished is kept, and only what is missing is run.
    gone = next((tmp_path / "there" / "cells").iterdir())
    gone.unlink()
    outcome = run_experiment(experiment, tmp_path / "there", on="ray")
    assert (outcome.found, outcome.total) == (7, 8) and results(tmp_path / "here") == results(
        tmp_path / "there"
    )


def test_the_command_runs_on_a_cluster(machines: Machines, tmp_path: Path) -> None:
    file = tmp_path / "sweep.toml"
    file.write_text(SWEEP.format(rounds=50, repeats=1))
    found = CliRunner().invoke(main, ["run", str(file), "--on", "ray", "--out", str(tmp_path / "out")])
    assert found.exit_code == 0, found.output
    assert "results:" in found.output and len(list((tmp_path / "out" / "cells").iterdir())) == 4
    for args, told in (
        (["run", str(file), "--on", "moon"], "--on moon: a cluster is ray, ray://host:port or host:port"),
        (["run", "--on", "ray"], "--on goes with an experiment file"),
    ):
        found = CliRunner().invoke(main, args)
        assert found.exit_code != 0 and told in str(found.output) + str(found.exception)


def test_an_error_in_a_cell_says_which_one(machines: Machines, tmp_path: Path) -> None:
    from semibandit.experiments.cells import build_all, list_cells
    from semibandit.experiments.executors import Cluster

    experiment = parse_experiment(SWEEP.format(rounds=50, repeats=1), "sweep.toml")
    cells = list_cells(experiment, build_all(experiment))[:2]
    cells[1].content["policy"]["options"] = {"exploration": -1.0}
    store = Store(tmp_path / "store")
    store.prepare()
    ended = [one for one in Cluster("ray").run(store, cells) if one is not None]
    wrong = {cell.key: error for cell, error in ended}
    assert wrong[cells[0].key] is None and store.load_cell(cells[0]) is not None
    assert isinstance(wrong[cells[1].key], ParameterError) and "exploration" in str(wrong[cells[1].key])


# -- long ----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("policy", KINDS)
def test_keeps_the_contract_on_a_cluster(machines: Machines, policy: str) -> None:
    matroid = sb.Partition(np.arange(12) % 4)
    check_policy(lambda: Sharded(matroid, policy=policy, shards=2, on="ray", timeout=PATIENCE), rounds=20)


@pytest.mark.slow
def test_actors_decide_what_one_process_decides_in_many_instances(machines: Machines) -> None:
    """300 instances of all classes, 1 to 5 shards, a third of them with features.

    A node dies in the middle of 20 of them, a shard in 20 more.
    """
    machines.several()
    nodes = shards = revived = 0
    known = set()
    for seed in range(300):
        fault = None
        if seed % 15 == 14:
            fault = lambda policy: machines.lose()  # noqa: E731
            nodes += 1
        elif seed % 10 == 9:
            fault = kill_a_shard
            shards += 1
        life = lockstep(machines, seed, 12, fault, FeaturedCase if seed // 21 % 3 == 1 else Case)
        revived += life.many.describe()["revived"]
        known.add((life.case.kind, life.case.policy))
    print(
        f"300 instances: {nodes} nodes and {shards} shards died, {revived} shards made anew, {len(known)} classes"
    )
    assert nodes == 20 and shards == 20 and revived >= 40
    assert known == {(kind, policy) for kind in RANDOM for policy in KINDS}


@pytest.mark.slow
def test_a_service_that_is_killed_goes_on_with_shards_on_the_cluster(
    machines: Machines, tmp_path: Path
) -> None:
    env = {"RAY_ADDRESS": machines.cluster.address}
    kill_a_sharded_service(tmp_path, "ray", kills=3, spell=20, env=env).close()


@pytest.mark.slow
def test_a_sweep_of_many_cells_survives_the_death_of_a_node(machines: Machines, tmp_path: Path) -> None:
    from threading import Timer

    machines.several()
    experiment = parse_experiment(SWEEP.format(rounds=100_000, repeats=50), "sweep.toml")
    assert experiment.n_cells == 200
    seconds = []
    for folder, on in (("here", None), ("there", "ray"), ("dying", "ray")):
        death = Timer(3.0, machines.die)
        if folder == "dying":
            death.start()
        began = time.monotonic()
        run_experiment(experiment, tmp_path / folder, on=on)
        seconds.append(time.monotonic() - began)
        assert results(tmp_path / "here") == results(tmp_path / folder)
    death.join()
    print("200 cells: {:.1f} s in one process, {:.1f} s on two nodes, {:.1f} s if one dies".format(*seconds))


@pytest.mark.slow
def test_the_benchmark_of_sweeps_starts_nodes_of_its_own() -> None:
    import json
    import subprocess
    import sys

    command = [sys.executable, "-m", "benchmarks", "sweep", "--cells", "4", "--rounds", "50", "--turns", "1"]
    env = {name: value for name, value in os.environ.items() if name != "RAY_ADDRESS"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=env)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["cells"] == 4 and [len(times) for times in found["seconds"].values()] == [2, 2]
