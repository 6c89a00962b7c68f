"""The table of matroid classes: every row, rows from outside, and all that reads the table."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import semibandit as sb
from semibandit.cli.main import main
from semibandit.compiled.jit import KERNELS
from semibandit.data.instances import random_matroid
from semibandit.engines import ENGINES
from semibandit.errors import ExperimentError, FileError, ParameterError
from semibandit.experiments import parse_experiment
from semibandit.experiments.cells import build_all
from semibandit.matroids import Graphic, Laminar, Linear, Matroid, Partition, Transversal, Uniform, codec
from semibandit.policies.catalogue import POLICIES, make_policy
from semibandit.testing import check_engine, check_environment, check_matroid, check_policy

OUTSIDE = Path(__file__).parent.parent / "support" / "outside_matroid.py"


@pytest.fixture
def deadlines():
    """The class `Deadlines` from outside, registered for the time of a test."""
    sys.modules.pop("support.outside_matroid", None)
    yield importlib.import_module("support.outside_matroid").Deadlines
    codec._rows.pop("deadlines", None)


def check_row(row):
    """What a row promises, whoever wrote it."""
    for arms, rank, seed in ((1, 1, 0), (6, 4, 1), (10, 4, 2)):
        made = row.random(arms, rank, seed)
        assert type(made) is row.cls and (made.n_arms, made.rank) == (arms, rank)
        assert made == row.random(arms, rank, seed)
        parts = row.to_parts(made)
        assert all(isinstance(value, (int, np.ndarray, type(None))) for value in parts.values())
        assert row.from_parts(**parts) == made
        check_matroid(made)
        for spec in ENGINES.values():
            if spec.way(made) is not None:
                check_engine(spec.make, made, operations=25, moving_clock="exact" in spec.clocks)
    needed = list(row.keys.values())
    assert needed == sorted(needed, reverse=True) and (not needed or needed[0])


@pytest.mark.thin
@pytest.mark.parametrize("name", codec.BUILT_IN)
def test_every_built_in_row(name):
    row = codec.row(name)
    assert row.name == row.cls.name == name and codec.row_of(row.cls) is row
    assert codec.row_of_saved(row.cls.__name__) is row
    check_row(row)


def test_the_table_lists_every_class_of_the_room():
    import semibandit.matroids as room

    assert {codec.row(name).cls.__name__ for name in codec.BUILT_IN} == set(room.__all__) - {"Matroid"}
    assert codec.names() == codec.BUILT_IN
    with pytest.raises(AttributeError, match="Graph"):
        room.Graph  # noqa: B018
    with pytest.raises(ParameterError, match="matroid = 'matching' is not known: one of uniform, partition"):
        codec.row("matching")
    assert codec.row_of(Matroid) is None and codec.row_of_saved("Matching") is None


# Parts as files of version 1 hold them: they must stay readable.
SAVED = {
    "Uniform": (Uniform(4, 2), {"n_arms": 4, "rank": 2}),
    "Partition": (Partition([0, 0, 1], [1, 1]), {"groups": [0, 0, 1], "capacities": [1, 1]}),
    "Laminar": (
        Laminar(5, [([0, 1, 2, 3], 2), ([0, 1], 1)]),
        {"leaf": [2, 2, 1, 1, 0], "parent": [-1, 0, 1], "capacities": [3, 2, 1]},
    ),
    "Graphic": (Graphic([(0, 1), (1, 2)]), {"edges": [[0, 1], [1, 2]], "n_vertices": 3}),
    "Transversal": (Transversal([[0], [0, 1]]), {"indptr": [0, 1, 3], "indices": [0, 0, 1], "n_right": 2}),
    "Linear": (Linear([[2**40, 1]]), {"limbs": [[0, 2**9, 1, 0]], "dimension": 2, "field": None}),
}


@pytest.mark.parametrize("class_name", SAVED)
def test_parts_of_old_files_are_read_and_still_written(class_name):
    matroid, told = SAVED[class_name]
    row = codec.row_of_saved(class_name)
    parts = {key: np.array(value) if isinstance(value, list) else value for key, value in told.items()}
    assert row is codec.row_of(type(matroid)) and row.from_parts(**parts) == matroid
    written = row.to_parts(matroid)
    assert list(written) == list(told)
    for key, value in told.items():
        assert np.array_equal(written[key], value) if isinstance(value, list) else written[key] == value


def test_a_subclass_without_a_row_is_not_saved(tmp_path):
    class Roads(Graphic):
        pass

    policy = sb.CUCB(Roads([(0, 1), (1, 2)]))
    with pytest.raises(
        ParameterError, match="a policy over a Roads cannot be saved: only Uniform, Partition"
    ):
        policy.save(tmp_path / "policy")


# From outside


def test_a_class_from_outside_passes_all_conformance_checks(deadlines):
    assert codec.names() == (*codec.BUILT_IN, "deadlines")
    check_row(codec.row("deadlines"))
    matroid = random_matroid("deadlines", 9, 4, seed=3)
    means = np.linspace(0.1, 0.9, 9)
    check_environment(sb.Bernoulli(matroid, means), rounds=300)
    served = []
    for name in POLICIES:
        context = {"horizon": 100, "means": means}
        try:
            make_policy(name, matroid, seed=1, context=context)
        except ParameterError:
            continue
        check_policy(lambda name=name, context=context: make_policy(name, matroid, seed=1, context=context))
        served.append(name)
    assert {"cucb", "cts", "faster-cucb", "kl-osm"} <= set(served)


def test_a_class_from_outside_is_saved_and_loaded(deadlines, tmp_path):
    policy = sb.CUCB(deadlines([1, 1, 2, 2, 3, 0]))
    for _ in range(20):
        policy.update(policy.select(), [1.0, 0.5, 0.0])
    policy.save(tmp_path / "policy")
    again = sb.load(tmp_path / "policy")
    assert type(again.matroid) is deadlines and again.matroid == policy.matroid
    assert np.array_equal(again.select(), policy.select()) and again.t == policy.t
    codec._rows.pop("deadlines")
    with pytest.raises(FileError, match="holds a matroid 'Deadlines', which this version does not know"):
        sb.load(tmp_path / "policy")


EXPERIMENT = """
[experiment]
rounds = 30
repeats = 2
[[instance]]
matroid = "deadlines"
{instance}
[[policy]]
name = "cucb"
"""


def test_a_class_from_outside_is_named_in_an_experiment(deadlines):
    def built(instance):
        return build_all(parse_experiment(EXPERIMENT.format(instance=instance)))[0].matroid

    assert built("arms = 8\nrank = 3\nseed = 5") == random_matroid("deadlines", 8, 3, seed=5)
    assert built("due = [1, 2, 2]") == deadlines([1, 2, 2])
    assert built("due = [1, 2, 2]\nlate = 1") == deadlines([2, 3, 3])
    with pytest.raises(ExperimentError, match=r"line 7, instance\.1\.due: deadlines: hours are at least 0"):
        built("due = [1, -2]")
    with pytest.raises(ExperimentError, match=r"line 8.*vertices: not a known key here"):
        built("due = [1, 2]\nvertices = 3")
    with pytest.raises(ExperimentError, match="give arms and rank for a random deadlines matroid, or due"):
        built("late = 1")


def test_a_class_from_outside_is_named_on_the_command_line(deadlines):
    size = ("--arms", "12", "--rank", "4", "--rounds", "40", "--repeats", "1", "--json")
    done = CliRunner().invoke(main, ["run", "--matroid", "deadlines", *size])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["instance"]["matroid"] == "deadlines"
    assert "|linear|deadlines]" in CliRunner().invoke(main, ["run", "--help"]).output.replace("\n", "")


def test_an_unknown_class_on_the_command_line():
    done = CliRunner().invoke(main, ["run", "--matroid", "deadlines"])
    assert done.exit_code == 2 and "'deadlines' is not known: one of uniform, partition" in done.output


def test_a_class_of_an_installed_package_is_found_by_commands_and_their_workers(tmp_path):
    pytest.importorskip("polars")
    package = tmp_path / "site" / "outside-1.0.dist-info"
    package.mkdir(parents=True)
    shutil.copy(OUTSIDE, tmp_path / "site" / "outside_matroid.py")
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: outside\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text(
        "[semibandit.matroids]\nbroken = no_such_module\ndeadlines = outside_matroid\n"
    )
    (tmp_path / "trial.toml").write_text(EXPERIMENT.format(instance="arms = 8\nrank = 3"))
    paths = [str(tmp_path / "site"), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        [sys.executable, "-m", "semibandit.cli.main", "run", "trial.toml", "--workers", "2"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "deadlines K=8 D=3" in done.stdout
    assert "matroid 'broken' of no_such_module cannot be loaded" in done.stderr


def test_names_are_not_taken_twice(deadlines):
    row = codec.row("deadlines")
    parts = {"to_parts": row.to_parts, "from_parts": row.from_parts, "random": row.random}

    class Partition(Matroid):
        def _is_independent(self, arms):
            return len(arms) <= 1

    class Jobs(deadlines):
        pass

    with pytest.raises(ParameterError, match=r"as 'partition': semibandit.matroids.partition.Partition is"):
        codec.register(Partition, **parts)
    with pytest.raises(ParameterError, match=r"as 'mine': semibandit.matroids.partition.Partition is"):
        codec.register(Partition, name="mine", **parts)
    with pytest.raises(ParameterError, match=r"as 'deadlines': support.outside_matroid.Deadlines is"):
        codec.register(Jobs, name="deadlines", **parts)
    codec.register(deadlines, name="due-dates", **parts)
    assert codec.names() == (*codec.BUILT_IN, "due-dates") and codec.row("due-dates").keys == {}
    codec.register(deadlines, **parts)
    assert codec.names() == (*codec.BUILT_IN, "deadlines")


# Kernels


def test_kernels_of_matroids_allocate_nothing_and_have_one_signature():
    """So that they can be compiled ahead of time: whoever calls them, with whatever arrays."""
    for name in codec.BUILT_IN:
        row = codec.row(name)
        made = row.random(40, 9, 1)
        weights, order = np.linspace(0.0, 1.0, 40), np.arange(40)
        for matroid in (made, row.from_parts(**row.to_parts(made))):
            for one in (
                weights,
                weights.astype(np.float32),
                weights.tolist(),
                readonly(weights),
                weights[::-1],
            ):
                matroid.max_weight_base(one)
            for some in (order, readonly(order), order[::2], np.arange(5, dtype=np.int32)):
                matroid._greedy(some)
            assert matroid.is_independent([0]) and matroid.loops.size == 0
    weights = np.zeros(1 << 15)
    Partition(np.arange(1 << 15) % 3).max_weight_base(weights)
    Graphic([(k, k + 1) for k in range(1 << 15)]).max_weight_base(weights)
    Laminar.from_tree([1, 1, 0], [-1, 0], [2, 1])
    ours = {name: made for name, made in KERNELS.items() if name.startswith("matroids.")}
    assert len(ours) > 10 and not any(made.allocates for made in ours.values())
    used = [made.dispatcher for made in ours.values() if "dispatcher" in vars(made)]
    assert all(len(one.overloads) <= 1 for one in used), {one: one.signatures for one in used}


def readonly(array):
    array = array.copy()
    array.setflags(write=False)
    return array
