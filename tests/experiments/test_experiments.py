"""Experiment files: what they say, what is refused and how, and that cells are what `compare` would have run."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

import semibandit as sb
from semibandit.cli.main import main
from semibandit.data.instances import random_environment
from semibandit.errors import ExperimentError, MissingExtraError
from semibandit.experiments import Store, load_experiment, parse_experiment, run_experiment
from semibandit.experiments.cells import (
    build_all,
    check_policies,
    content_key,
    list_cells,
    run_cell,
    seeds_of,
)
from semibandit.experiments.instance_table import build_environment
from semibandit.experiments.toml_lines import line_numbers
from semibandit.policies.catalogue import POLICIES, build_policy

polars = pytest.importorskip("polars")

ROOT = Path(__file__).resolve().parents[2]

SMALL = """\
[experiment]
rounds = 120
repeats = 2
checkpoints = [10, 50, 120]

[[instance]]
matroid = "uniform"
arms = 12
rank = 3

[[instance]]
label = "groups"
matroid = "partition"
groups = [0, 0, 0, 1, 1, 1]
capacities = [1, 2]
means = [0.1, 0.5, 0.9, 0.2, 0.4, 0.8]
environment = "beta"

[[policy]]
name = "cucb"

[[policy]]
name = "cucb"
label = "bold"
exploration = 0.3
"""


def call(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments))


# What a file says


def test_a_file_is_read_with_all_defaults_filled_in() -> None:
    found = parse_experiment(SMALL, "small.toml")
    assert (found.name, found.rounds, found.repeats, found.seed) == ("small", 120, 2, 0)
    assert found.checkpoints == (10, 50, 120) and found.n_cells == 8
    assert [one.label for one in found.instances] == ["uniform K=12 D=3", "groups"]
    assert [one.label for one in found.policies] == ["cucb", "bold"]
    first, second = (one.content for one in found.instances)
    assert first == {
        "matroid": "uniform",
        "arms": 12,
        "rank": 3,
        "environment": "bernoulli",
        "means": "random",
        "reward_range": [0.0, 1.0],
        "seed": 0,
    }
    assert second["concentration"] == 10.0 and "seed" not in second, "nothing in it is random"
    assert json.loads(json.dumps(found.resolved())) == found.resolved()


def test_random_instances_are_those_of_the_command_line() -> None:
    content = parse_experiment(SMALL).instances[0].content
    assert np.array_equal(
        build_environment(content).means, random_environment("bernoulli", "uniform", 12, 3, seed=0).means
    )


IN_FULL: dict[str, tuple[str, int, int]] = {
    "uniform": ("arms = 4\nrank = 2", 4, 2),
    "partition": ("groups = [0, 0, 1, 1]", 4, 2),
    "laminar": ("arms = 4\nfamilies = [[[0, 1, 2, 3], 2], { arms = [0, 1], capacity = 1 }]", 4, 2),
    "graphic": ("edges = [[0, 1], [1, 2],\n  [0, 2], # a comment ] \n  [2, 3]]\nvertices = 4", 4, 3),
    "transversal": ("neighbours = [[0], [0, 1], [1], [1]]\nslots = 2", 4, 2),
    "linear": ("vectors = [[1, 0], [0, 1], [1, 1], [0, 0]]", 4, 2),
}


@pytest.mark.parametrize("matroid", IN_FULL)
def test_every_class_can_be_given_in_full(matroid: str) -> None:
    said, arms, rank = IN_FULL[matroid]
    text = (
        f'[experiment]\nrounds = 5\n[[instance]]\nmatroid = "{matroid}"\n{said}\n[[policy]]\nname = "cucb"\n'
    )
    env = build_all(parse_experiment(text))[0]
    assert (env.n_arms, env.matroid.rank) == (arms, rank)


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ('environment = "bernoulli"', sb.Bernoulli),
        ('environment = "beta"\nconcentration = 3', sb.Beta),
        ('environment = "gaussian"\nsigma = [0.1, 0.2, 0.3, 0.4]', sb.Gaussian),
        ('environment = "heavy-tailed"\nsigma = 0.3\noutliers = 0.1\nstart = 0.9', sb.HeavyTailed),
        ('environment = "noise"\nwidth = 0.1', sb.UniformNoise),
        ('environment = "correlated"\ncorrelation = 0.9', sb.Correlated),
        ('environment = "noise"\nreward_range = [-1, 1]\nmeans = "settled"', sb.UniformNoise),
        ('environment = "drifting"\namplitude = 0.05\nperiod = 50\nevery = 5', sb.Drifting),
        ('environment = "noise"\nchanges = [3, 5]', sb.Switching),
        ('environment = "table"\nobservations = [[0, 1], [1], [0.5], [0]]', sb.Table),
        ('environment = "trace"\nrewards = [[0, 1, 1, 0], [1, 1, 0, 0]]\norder = "random"', sb.Trace),
    ],
)
def test_every_environment_can_be_asked_for(said: str, kind: type) -> None:
    text = f'[experiment]\nrounds = 5\n[[instance]]\nmatroid = "uniform"\narms = 4\nrank = 2\n{said}\n'
    env = build_all(parse_experiment(text + '[[policy]]\nname = "cucb"\n'))[0]
    assert type(env) is kind
    if "reward_range" in said:
        assert env.reward_range == (-1.0, 1.0) and env.means.min() < 0 < env.means.max()


# What is refused: file, line, key


@pytest.mark.parametrize(
    ("old", "new", "line", "says"),
    [
        ("rounds = 120", "rounds = 'many'", 2, "experiment.rounds: must be a whole number of at least 1"),
        ("rounds = 120", "rounds = 0", 2, "experiment.rounds: must be a whole number of at least 1, got 0"),
        ("rounds = 120", "rounds = true", 2, "experiment.rounds"),
        ("rounds = 120", "round = 120", 2, "experiment.round: not a known key here, did you mean 'rounds'?"),
        ("rounds = 120\n", "", 1, "experiment: the key rounds is missing"),
        ("repeats = 2", "repeat = 2", 3, "experiment.repeat: not a known key here, did you mean 'repeats'?"),
        ("repeats = 2", "name = 'a/b'", 3, "experiment.name: must be letters, digits"),
        ("[10, 50, 120]", "[10, 500]", 4, "experiment.checkpoints: must be rounds in 1 .. 120, got 500"),
        ("[10, 50, 120]", "-3", 4, "experiment.checkpoints: must be a whole number"),
        ("[experiment]", "[experimnt]", 1, "experimnt: not a known key here, did you mean 'experiment'?"),
        ('"uniform"', '"unifrom"', 7, "instance.1.matroid: 'unifrom' is not known, did you mean 'uniform'?"),
        ("rank = 3", "rank = 13", 9, "instance.1.rank: "),
        ("rank = 3", "rnk = 3", 9, "instance.1.rnk: not a known key here, did you mean 'rank'?"),
        ("arms = 12\n", "", 6, "instance.1: the key arms is missing"),
        ("rank = 3", "rank = 3\nedges = [[0, 1]]", 10, "instance.1.edges: not a known key here: one of"),
        ("rank = 3", "rank = 3\nwidth = 0.1", 10, "instance.1.width: not a known key here: one of"),
        (
            "rank = 3",
            "rank = 3\nenvironment = 'beta'\nconcentration = 'x'",
            11,
            "concentration: must be a number",
        ),
        ("rank = 3", "rank = 3\nenvironment = 'noise'\nwidth = 3.0", 11, "instance.1.width: "),
        (
            "rank = 3",
            "rank = 3\nmeans = 'good'",
            10,
            'instance.1.means: must be "random", "settled" or a list',
        ),
        ("rank = 3", "rank = 3\nmeans = [0.1, 0.2]", 10, "instance.1.means: "),
        ("rank = 3", "rank = 3\nreward_range = [1, 0]", 10, "instance.1.reward_range: must be two numbers"),
        ("rank = 3", "rank = 3\nchanges = [5, 4]", 10, "instance.1.changes: must be rounds after the first"),
        ("rank = 3", "rank = 3\nchanges = 7", 10, "instance.1.changes: must be rounds after the first"),
        ("0.4, 0.8]", "0.4, 0.8]\nchanges = [5]", 17, "instance.2.changes: draws the means anew"),
        ("rank = 3", "rank = 3\nseed = -1", 10, "instance.1.seed: must be a whole number"),
        ("rank = 3", "rank = 3\nseed = 9223372036854775807000", 10, "instance.1.seed: must be below 2^63"),
        ("rank = 3", "rank = 3\nlabel = ''", 10, "instance.1.label: must be a line of text"),
        ("rank = 3", 'rank = 3\nlabel = "groups"', 13, "instance.2.label: 'groups' is also the label"),
        ("[0, 0, 0, 1, 1, 1]", "[0, 0, 0, 1, 1, 7]", 14, "instance.2.groups: "),
        ("[0, 0, 0, 1, 1, 1]", "1979-05-27", 14, "instance.2.groups: must be made of text, finite numbers"),
        ("[1, 2]", "[1, inf]", 15, "instance.2.capacities: must be made of"),
        ("0.4, 0.8]", "0.4, 8.0]", 16, "instance.2.means: "),
        (
            "rank = 3",
            "rank = 3\nenvironment = 'trace'\nrewards = [[0, 1]]",
            11,
            "instance.1.rewards: rewards must be a matrix",
        ),
        ("rank = 3", "rank = 3\nenvironment = 'trace'", 6, "instance.1: the key rewards is missing"),
        ('"beta"', '"bta"', 17, "instance.2.environment: 'bta' is not known, did you mean 'beta'?"),
        (
            '[[policy]]\nname = "cucb"\n\n',
            '[[policy]]\nname = "ucb"\n\n',
            20,
            "policy.1.name: 'ucb' is not a policy",
        ),
        (
            "exploration = 0.3",
            "explor = 0.3",
            25,
            "policy.2.explor: not a known key here, did you mean 'exploration'?",
        ),
        ("exploration = 0.3", "exploration = -1", 25, "policy.2.exploration: "),
        ("exploration = 0.3", "engine = 'warp'", 25, "policy.2.engine: "),
        ("exploration = 0.3", "exploration = nan", 25, "policy.2.exploration: must be made of"),
        (
            'label = "bold"\nexploration = 0.3\n',
            "",
            22,
            "policy.2: 'cucb' is also the label of the one on line 19",
        ),
        ("exploration = 0.3", "exploration = 'abc'", 25, "policy.2.exploration: "),
        (
            '[[instance]]\nlabel = "groups"',
            '[[instnce]]\nlabel = "groups"',
            11,
            "instnce: not a known key here, did",
        ),
        (
            'name = "cucb"\nlabel',
            '[polcy.more]\nname = "cucb"\nlabel',
            23,
            "polcy: not a known key here, did you",
        ),
        ("[[policy]]", "[policy]", 22, "not valid TOML"),
        ("rounds = 120", "rounds = = 120", 2, "not valid TOML"),
        ("rank = 3", "arms = 3", 9, "not valid TOML"),
    ],
)
def test_a_mistake_names_the_line_and_the_key(
    old: str, new: str, line: int, says: str, tmp_path: Path
) -> None:
    file = tmp_path / "bad.toml"
    assert old in SMALL
    file.write_text(SMALL.replace(old, new))
    result = call("run", str(file), "--check")
    assert result.exit_code == 2, result.output
    assert f"{file}, line {line}" in result.output
    assert says in result.output
    assert len(result.output.strip().splitlines()) == 1, "one line, no traceback"
    assert not (tmp_path / "results").exists()


def test_other_files_that_are_none(tmp_path: Path) -> None:
    (tmp_path / "latin.toml").write_bytes(b'[experiment]\nname = "\xe9"\n')
    (tmp_path / "empty.toml").write_text("")
    (tmp_path / "half.toml").write_text('[experiment]\nrounds = 5\nname = "a')
    for name, says in (
        ("missing.toml", "cannot be read"),
        ("latin.toml", "not UTF-8"),
        ("empty.toml", "the key rounds is missing"),
        ("half.toml", "line 3"),
    ):
        with pytest.raises(ExperimentError, match=says):
            load_experiment(tmp_path / name)
    with pytest.raises(ExperimentError, match=r"there is no \[\[policy\]\]"):
        parse_experiment('[experiment]\nrounds = 5\n[[instance]]\nmatroid = "uniform"\narms = 4\nrank = 2\n')
    with pytest.raises(ExperimentError, match=r"there is no \[\[instance\]\]"):
        parse_experiment("[experiment]\nrounds = 5\n")


def test_lines_are_found_in_odd_but_valid_toml() -> None:
    text = (
        '# a [[policy]] in a comment\nexperiment.rounds = 5\n"quoted" = """\nx = 1\n[[policy]]\n"""\n'
        '[[instance]]\nedges = [\n  [0, 1], # ] \n  [1, 2],\n]\n  means = \'a # b\'\n[[policy]]\nname = "\\"]"\n'
        "[policy.options]\nkey = {a = 1, b = 2}\n[[policy]]\nlabel = 'z'"
    )
    lines = line_numbers(text)
    assert lines[("experiment", "rounds")] == 2
    assert lines[("instance", 0, "means")] == 12
    assert lines[("policy", 0)] == 13 and lines[("policy", 0, "name")] == 14
    assert lines[("policy", 0, "options", "key")] == 16
    assert lines[("policy", 1, "label")] == 18


def test_a_data_set_that_is_not_there_is_a_clear_message(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    text = '[experiment]\nrounds = 5\n[[instance]]\ndataset = "isp"\noptions = { name = "x" }\n'
    text += '[[policy]]\nname = "cucb"\n'
    found = parse_experiment(text)
    assert found.instances[0].content == {"dataset": "isp", "options": {"name": "x"}}
    monkeypatch.delattr(sb, "data", raising=False)
    monkeypatch.setitem(sys.modules, "semibandit.data", None)
    with pytest.raises(MissingExtraError, match=r"dataset = 'isp'.*pip install 'semibandit\[data\]'"):
        build_all(found)


def test_a_data_set_is_loaded_by_name_and_its_content_is_part_of_the_cell(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import sys
    from types import ModuleType

    means = np.array([0.1, 0.5, 0.9])
    fake: Any = ModuleType("semibandit.data")
    fake.load = lambda name, rank: sb.Bernoulli(sb.Uniform(3, rank), means)
    monkeypatch.setitem(sys.modules, "semibandit.data", fake)
    monkeypatch.setattr(sb, "data", fake, raising=False)
    text = '[experiment]\nrounds = 5\n[[instance]]\ndataset = "x"\noptions = { rank = 2 }\n[[policy]]\nname = "cucb"\n'
    found = parse_experiment(text)
    before = list_cells(found, build_all(found))[0]
    assert run_cell(before.content)["rounds"] == [1, 2, 3, 4, 5]
    means = means[::-1].copy()
    assert list_cells(found, build_all(found))[0].key != before.key


# Cells


def test_a_cell_is_named_after_all_that_determines_it_and_nothing_else() -> None:
    def keys(text: str) -> set[str]:
        found = parse_experiment(text)
        return {cell.key for cell in list_cells(found, build_all(found))}

    base = keys(SMALL)
    assert len(base) == 8
    assert keys(SMALL.replace('"groups"', '"other"').replace('"bold"', '"brave"')) == base, (
        "labels do not count"
    )
    assert keys(SMALL.replace("repeats = 2", "repeats = 3")) > base, "more repeats keep the old ones"
    for old, new in (
        ("rounds = 120", "rounds = 121"),
        ("[10, 50, 120]", "3"),
        ("repeats", "seed = 1\nrepeats"),
    ):
        assert not keys(SMALL.replace(old, new)) & base
    assert len(keys(SMALL.replace("= 0.3", "= 0.4")) & base) == 4
    assert len(keys(SMALL.replace("0.4, 0.8", "0.4, 0.7")) & base) == 4
    assert content_key({"a": 1, "b": [2.5]}) == content_key({"b": [2.5], "a": 1})


def test_cells_are_what_compare_runs(tmp_path: Path) -> None:
    found = parse_experiment(SMALL.replace("repeats = 2", "repeats = 3\nseed = 5"))
    run_experiment(found, tmp_path / "out")
    frame = polars.read_parquet(tmp_path / "out" / "results.parquet")
    for spec, env in zip(found.instances, build_all(found), strict=True):
        players = {
            one.label: build_policy(one.name, one.options, env.matroid, env.reward_range)
            for one in found.policies
        }
        wanted = sb.compare(players, env, 120, repeats=3, seed=5, record_every=[10, 50, 120])
        for label in players:
            own = frame.filter((polars.col("instance") == spec.label) & (polars.col("policy") == label))
            assert own["round"].to_list() == [10, 50, 120] * 3
            assert np.array_equal(own["regret"].to_numpy().reshape(3, 3), wanted.regret(label))
    assert seeds_of(5, 2) != seeds_of(5, 1)


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("objective", ["max", "min"])
def test_every_policy_of_the_catalogue_gives_the_same_cell_twice(name: str, objective: str) -> None:
    text = SMALL.split("[[policy]]")[0].replace("rank = 3\n", f'rank = 3\nobjective = "{objective}"\n')
    found = parse_experiment(text + f'[[policy]]\nname = "{name}"\n')
    worlds = build_all(found)
    check_policies(found, worlds)
    for cell in list_cells(found, worlds)[:2]:
        first, second = run_cell(cell.content), run_cell(cell.content)
        assert first["regret"] == second["regret"] and first["reward"] == second["reward"]
        assert json.loads(json.dumps(first, allow_nan=False)) == first


def test_the_folder_holds_what_it_should(tmp_path: Path) -> None:
    file = tmp_path / "small.toml"
    file.write_text(SMALL)
    result = call("run", str(file), "--workers", "1")
    assert result.exit_code == 0, result.output
    folder = tmp_path / "results" / "small"
    names = {one.name for one in folder.iterdir()}
    assert names - {".lock"} == {
        "cells",
        "experiment.json",
        "experiment.toml",
        "results.parquet",
        "timings.parquet",
        "versions.json",
    }
    told = json.loads((folder / "experiment.json").read_text())
    assert told["instances"][1]["facts"]["rank"] == 3 and told["policies"][1]["options"] == {
        "exploration": 0.3
    }
    assert "numpy" in json.loads((folder / "versions.json").read_text())["packages"]
    assert (folder / "experiment.toml").read_text() == SMALL
    results, timings = Store(folder).frames()
    assert results.columns == ["instance", "policy", "repeat", "round", "regret", "reward"]
    assert timings.height == results.height == 8 * 3
    assert (timings["select_seconds"] > 0).all()
    assert "bold" in result.stdout and "next: semibandit report" in result.stdout
    again = call("run", str(file), "--workers", "1")
    assert "8 of 8 cells were there already" in again.output


def test_only_new_cells_run_and_damaged_ones_run_again(tmp_path: Path) -> None:
    first = parse_experiment(SMALL)
    run_experiment(first, tmp_path / "out")
    before = (tmp_path / "out" / "results.parquet").read_bytes()
    cells = sorted((tmp_path / "out" / "cells").iterdir())
    cells[0].write_text(cells[0].read_text()[:40])
    cells[1].write_text("[]")
    cells[2].unlink()
    (tmp_path / "out" / "cells" / ".left.json.1.tmp").write_text("half")
    assert run_experiment(first, tmp_path / "out").found == 5
    assert (tmp_path / "out" / "results.parquet").read_bytes() == before
    assert not list((tmp_path / "out" / "cells").glob(".*"))
    more = parse_experiment(SMALL + '\n[[policy]]\nname = "cucb"\nlabel = "third"\nexploration = 1.0\n')
    assert run_experiment(more, tmp_path / "out").found == 8


def test_folders_that_are_something_else_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("x")
    (tmp_path / "file").write_text("x")
    for name, says in (("mine", "holds thesis.tex"), ("file", "a file is in the way")):
        with pytest.raises(ExperimentError, match=says):
            run_experiment(parse_experiment(SMALL), tmp_path / name)
    assert [one.name for one in (tmp_path / "mine").iterdir()] == ["thesis.tex"]


def test_two_runs_do_not_write_to_one_folder(tmp_path: Path) -> None:
    pytest.importorskip("fcntl")
    store = Store(tmp_path / "out")
    store.prepare()
    with store.locked(), pytest.raises(ExperimentError, match="another run is writing here"):
        run_experiment(parse_experiment(SMALL), tmp_path / "out")
    assert run_experiment(parse_experiment(SMALL), tmp_path / "out").total == 8


def test_a_cell_that_fails_is_named_and_the_others_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from semibandit.errors import RewardError
    from semibandit.experiments import executors

    real = executors.run_cell
    calls = []

    def broken(content: dict[str, Any]) -> dict[str, Any]:
        calls.append(content)
        if len(calls) == 4:
            raise RewardError("rewards[0] = nan")
        return real(content)

    monkeypatch.setattr(executors, "run_cell", broken)
    with pytest.raises(ExperimentError, match=r"uniform K=12 D=3, bold, repeat 1: rewards\[0\] = nan"):
        run_experiment(parse_experiment(SMALL), tmp_path / "out")
    assert run_experiment(parse_experiment(SMALL), tmp_path / "out").found == 3


def test_costs_are_minimised(tmp_path: Path) -> None:
    text = SMALL.replace("rank = 3\n", 'rank = 3\nobjective = "min"\n')
    found = parse_experiment(text)
    env = build_all(found)[0]
    assert env.objective == "min" and found.instances[0].content["objective"] == "min"
    run_experiment(found, tmp_path / "out")
    frame = polars.read_parquet(tmp_path / "out" / "results.parquet")
    players = {"cucb": sb.minimize(sb.CUCB(env.matroid))}
    wanted = sb.compare(players, env, 120, repeats=2, record_every=[10, 50, 120])
    own = frame.filter((polars.col("instance") == "uniform K=12 D=3") & (polars.col("policy") == "cucb"))
    assert np.array_equal(own["regret"].to_numpy().reshape(2, 3), wanted.regret("cucb"))
    assert (own["regret"] >= 0).all()


def test_worlds_that_change_run(tmp_path: Path) -> None:
    text = SMALL.replace("rank = 3\n", "rank = 3\nchanges = [41, 81]\n")
    text = text.replace('environment = "beta"', 'environment = "drifting"')
    found = parse_experiment(text)
    env = build_all(found)[0]
    assert [np.array_equal(a.means, b.means) for a, b in zip(env._parts, env._parts[1:], strict=False)] == [
        False
    ] * 2
    run_experiment(found, tmp_path / "out")
    told = Store(tmp_path / "out").definition()["instances"]
    assert [one["facts"]["changes"] for one in told] == [True, True]
    frame = polars.read_parquet(tmp_path / "out" / "results.parquet")
    wanted = sb.compare({"cucb": sb.CUCB(env.matroid)}, env, 120, repeats=2, record_every=[10, 50, 120])
    own = frame.filter((polars.col("instance") == "uniform K=12 D=3") & (polars.col("policy") == "cucb"))
    assert np.array_equal(own["regret"].to_numpy().reshape(2, 3), wanted.regret("cucb"))


def test_real_data_runs(tmp_path: Path) -> None:
    pytest.importorskip("topohub")
    text = '[experiment]\nrounds = 50\nrepeats = 2\n[[instance]]\ndataset = "isp"\n'
    text += 'options = { network = "sndlib/germany50" }\n[[policy]]\nname = "cucb"\n'
    assert run_experiment(parse_experiment(text), tmp_path / "out").total == 2
    told = Store(tmp_path / "out").definition()["instances"][0]
    assert told["facts"]["objective"] == "min" and told["label"] == "isp sndlib/germany50"
    with pytest.raises(ExperimentError, match=r"line 6, instance.1.options.network: "):
        build_all(parse_experiment(text.replace("germany50", "atlantis")))


# The command


def test_check_says_what_would_run_and_runs_nothing(tmp_path: Path) -> None:
    file = tmp_path / "small.toml"
    file.write_text(SMALL)
    result = call("run", str(file), "--check")
    assert result.exit_code == 0
    assert "2 instances x 2 policies x 2 repeats = 8 cells of 120 rounds" in result.output
    assert "Partition(n_arms=6" in result.output
    assert [one.name for one in tmp_path.iterdir()] == ["small.toml"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["x.toml", "--arms", "5"], "--arms does not go with an experiment file"),
        (["x.toml", "--policy", "cucb"], "--policy does not go with"),
        (["x.toml", "--json"], "--json does not go with"),
        (["--check"], "--check goes with an experiment file"),
    ],
)
def test_options_that_do_not_go_together(arguments: list[str], says: str) -> None:
    result = call("run", *arguments)
    assert result.exit_code == 2 and says in result.output


def test_the_example_of_the_docs_is_right(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "experiments.md").read_text(encoding="utf-8")
    examples = re.findall(r"^```toml\n(.*?)^```$", page, re.M | re.S)
    assert examples
    for text in examples:
        if "dataset" in text:
            pytest.importorskip("topohub")
        (tmp_path / "sweep.toml").write_text(text)
        result = call("run", str(tmp_path / "sweep.toml"), "--check")
        assert result.exit_code == 0, result.output
