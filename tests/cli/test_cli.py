"""The command line: what it prints, writes, refuses, and how little `--help` loads."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from semibandit.cli.main import main
from semibandit.errors import ParameterError
from semibandit.policies.catalogue import POLICIES, build_policy, make_policy, parse_policy

PNG = b"\x89PNG\r\n\x1a\n"


def call(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments))


def fits(text: str, width: int = 100) -> bool:
    return all(len(line) <= width for line in text.splitlines())


@pytest.fixture(autouse=True)
def _own_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


# Help


@pytest.mark.parametrize(
    "command", [(), ("run",), ("report",), ("plot",), ("watch",), ("bench",), ("demo",), ("info",)]
)
def test_help_of_every_command(command: tuple[str, ...]) -> None:
    result = call(*command, "--help")
    assert result.exit_code == 0
    assert result.output.startswith("Usage:")


def test_the_main_help_lists_the_commands() -> None:
    output = call("--help").output
    assert [
        name
        for name in ("demo", "run", "report", "plot", "watch", "bench", "info")
        if f"\n  {name} " not in output
    ] == []


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["run", "--help"],
        ["report", "--help"],
        ["watch", "--help"],
        ["bench", "--help"],
        ["--version"],
    ],
)
def test_help_loads_nothing_heavy(arguments: list[str]) -> None:
    script = (
        "import sys\n"
        "from semibandit.cli.main import main\n"
        f"try:\n    main({arguments!r})\n"
        "except SystemExit as done:\n    assert not done.code\n"
        "heavy = [m for m in ('numba', 'numpy', 'matplotlib', 'polars') if m in sys.modules]\n"
        "assert not heavy, heavy\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env=dict(os.environ)
    )
    assert done.returncode == 0, done.stderr


# run

SMALL = ("--arms", "30", "--rank", "3", "--rounds", "200", "--repeats", "2")


@pytest.mark.parametrize("matroid", ["uniform", "partition", "laminar", "graphic", "transversal", "linear"])
def test_run_prints_a_table(matroid: str) -> None:
    size = ("--arms", "12", "--rank", "5", "--rounds", "60", "--repeats", "2")
    result = call("run", "--matroid", matroid, *size)
    assert result.exit_code == 0, result.output
    assert "regret" in result.output and "cucb" in result.output
    assert fits(result.output)


def test_run_compares_policies_on_the_same_rewards() -> None:
    result = call("run", *SMALL, "--policy", "cucb", "--policy", "cucb:engine=resolve,clock=exact", "--json")
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert told["instance"] == {"matroid": "uniform", "arms": 30, "rank": 3, "env": "bernoulli", "seed": 0}
    first, second = told["policies"]
    assert first["policy"] == "cucb" and second["engine"] == "resolve"
    assert first["regret"] == second["regret"], "engines make the same decisions"
    assert first["rounds"] == 200 and first["repeats"] == 2


def test_run_sorts_by_regret_and_names_the_winner() -> None:
    asked = ("--policy", "random", "--policy", "oracle", "--policy", "cucb")
    output = call("run", *SMALL, *asked).output
    rows = [line.split()[0] for line in output.splitlines() if line.split()[:1] and line.split()[0] in asked]
    assert rows == ["oracle", "cucb", "random"]
    assert "least regret: oracle; cucb lost" in output and "(95 %)" in output
    alone = call("run", *SMALL[:-2], "--repeats", "1", *asked).output
    assert "in one run (--repeats 10" in alone
    assert "least regret" not in call("run", *SMALL).output


def test_run_is_reproducible_and_one_repeat_has_no_error() -> None:
    def told(seed: str) -> Any:
        output = call("run", *SMALL[:-2], "--repeats", "1", "--json", "--seed", seed).stdout
        return json.loads(output)["policies"][0]

    assert told("4")["regret"] == told("4")["regret"] != told("5")["regret"]
    assert told("4")["standard_error"] is None


def test_run_writes_parquet_and_a_picture() -> None:
    polars = pytest.importorskip("polars")
    pytest.importorskip("matplotlib")
    result = call("run", *SMALL, "--out", "runs.parquet", "--plot", "regret.png")
    assert result.exit_code == 0, result.output
    frame = polars.read_parquet("runs.parquet")
    assert {"policy", "repeat", "round", "regret", "reward"} <= set(frame.columns)
    assert frame["round"].max() == 200 and frame["repeat"].n_unique() == 2
    assert Path("regret.png").read_bytes().startswith(PNG)
    assert "written: runs.parquet" in result.output


# Mistakes: one line, exit code 2, no traceback


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["run", "--policy", "moon"], "policy = 'moon' is not known: one of "),
        (["run", "--policy", "ucb9"], "policy = 'ucb9' is not known, did you mean 'cucb'? It is one of "),
        (["run", "--policy", "FasterCUCB"], "did you mean 'faster-cucb'?"),
        (["policies", "kl_osm"], "did you mean 'kl-osm'?"),
        (["run", "--policy", "cucb:engine=kinetc"], "did you mean 'kinetic'?"),
        (["run", "--policy", "cucb:clock"], "'clock' has no value; write clock=VALUE"),
        (["replay", "log.parquet", "--warm", "nowhere/p.semibandit"], "there is no directory nowhere"),
        (
            ["run", "--policy", "cucb:exploration=abc"],
            "exploration must be a number, 'theorem' or 'practical', got 'abc'",
        ),
        (
            ["run", "--policy", "cucb:engin=resolve"],
            "'engin=resolve' is not an option of cucb, did you mean 'engine'?",
        ),
        (["run", "--policy", "cucb:engine=warp"], "engine = 'warp' is not known"),
        (["run", "--policy", "cucb:exploration=much"], "policy 'cucb:exploration=much'"),
        (["run", "--arms", "3", "--rank", "4"], "rank = 4 is larger than arms = 3"),
        (["run", "--matroid", "graphic", "--arms", "100", "--rank", "5"], "has 5 to 15 edges"),
        (["run", "--out", "runs.csv"], "--out runs.csv: the name should end in .parquet"),
        (["run", "--plot", "nowhere/regret.png"], "there is no directory nowhere"),
        (["bench", "--engine", "warp", "--arms", "50"], "engine = 'warp' is not known: one of auto"),
        (["bench", "--json", "b.txt"], "the name should end in .json"),
        (["demo", "--out", "picture.txt"], "the name should end in .png"),
    ],
)
def test_mistakes_are_one_clear_line(arguments: list[str], says: str) -> None:
    result = call(*arguments)
    assert result.exit_code == 2
    assert says in result.output
    assert "Traceback" not in result.output
    assert len(result.output.strip().splitlines()) <= 2


def test_a_missing_extra_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    from semibandit.cli import files

    monkeypatch.setattr(files, "find_spec", lambda name: None)
    for option, name, extra in (("--out", "r.parquet", "results"), ("--plot", "r.png", "plot")):
        result = call("run", *SMALL, option, name)
        assert result.exit_code == 2
        assert f"`pip install 'semibandit[{extra}]'`" in result.output


def test_unknown_command_and_option() -> None:
    assert call("run", "--wings", "2").exit_code == 2
    for name, says in (("fly", "no command 'fly': one of demo, run"), ("reprot", "did you mean 'report'?")):
        result = call(name)
        assert result.exit_code == 2 and says in result.output


@pytest.mark.parametrize(
    ("option", "value", "meant"), [("--matroid", "Grafic", "graphic"), ("--env", "bernouli", "bernoulli")]
)
def test_names_after_options_are_guessed(option: str, value: str, meant: str) -> None:
    result = call("run", option, value)
    assert result.exit_code == 2
    assert f"did you mean '{meant}'?" in " ".join(result.output.split())


def test_no_option_of_a_policy_takes_words_for_numbers() -> None:
    from semibandit import Uniform

    context = {"horizon": 50, "means": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]}
    goes_with = {
        ("cts", "sigma"): ",posterior=gaussian",
        ("one-seed", "epsilon"): ",variant=cl-sg",
        ("ossb", "sigma"): ",rewards=gaussian",
    }
    for name, entry in POLICIES.items():
        for option in entry.options:
            spec = f"{name}:{option}=abc{goes_with.get((name, option), '')}"
            with pytest.raises(ParameterError, match=rf"': {option} .*'abc'"):
                make_policy(spec, Uniform(6, 2), context=context)


def test_ctrl_c_is_exit_code_130(monkeypatch: pytest.MonkeyPatch) -> None:
    from semibandit.data import instances

    def interrupted(*given: Any, **options: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(instances, "random_environment", interrupted)
    result = call("run", *SMALL)
    assert result.exit_code == 130 and result.output.strip() == "stopped"


def test_a_file_that_cannot_be_written_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Path, *given: Any, **options: Any) -> None:
        raise OSError(28, "No space left on device", str(self))

    monkeypatch.setattr(Path, "write_text", full)
    result = call("bench", *TINY, "--json", "b.json")
    assert result.exit_code == 2 and result.output.strip().endswith("b.json: No space left on device")


def test_python_dash_m() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "semibandit", "--version"],
        capture_output=True,
        text=True,
        env=dict(os.environ),
    )
    assert done.returncode == 0 and done.stdout.startswith("semibandit, version")
    asked = subprocess.run(
        [sys.executable, "-m", "semibandit", "--help"], capture_output=True, text=True, env=dict(os.environ)
    )
    assert asked.stdout.startswith("Usage: python -m semibandit")


# Policies by name


def test_policy_options_are_read_as_what_they_look_like() -> None:
    entry, options = parse_policy("cucb: clock=staircase, step=0.02,exploration=2")
    assert entry is POLICIES["cucb"]
    assert options == {"clock": "staircase", "step": 0.02, "exploration": 2}
    for spec in ("cucb:clock", "cucb:clock=exact,clock=exact", "cucb:seed=3"):
        with pytest.raises(ParameterError, match="policy 'cucb:"):
            parse_policy(spec)


def test_every_policy_of_the_catalogue_plays_and_is_described() -> None:
    from semibandit import Uniform

    context = {"horizon": 50, "means": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]}
    for name, entry in POLICIES.items():
        policy = make_policy(name, Uniform(6, 2), seed=1, context=context)
        assert len(policy.select()) == 2
        assert entry.name == name and entry.cost and entry.guarantee and entry.reference


def test_what_a_policy_needs_comes_from_the_spec_or_the_context() -> None:
    from semibandit import Uniform

    with pytest.raises(ParameterError, match="faster-cucb:horizon="):
        make_policy("faster-cucb", Uniform(6, 2))
    told = make_policy("faster-cucb:horizon=70", Uniform(6, 2), context={"horizon": 50})
    assert told.describe()["horizon"] == 70
    with pytest.raises(ParameterError, match="no option 'wings'"):
        build_policy("cucb", {"wings": 2}, Uniform(6, 2))
    with pytest.raises(ParameterError, match="policy = 'crow'"):
        build_policy("crow", {}, Uniform(6, 2))


# bench, demo, info

TINY = ("--arms", "80", "--rank", "4", "--rounds", "20", "--repeats", "2", "--seconds", "0.002")


def test_bench_prints_a_table_and_writes_json_and_a_picture() -> None:
    pytest.importorskip("matplotlib")
    result = call("bench", *TINY, "--json", "b.json", "--plot", "b.png")
    assert result.exit_code == 0, result.output
    for words in ("kinetic (auto)", "resolve", "numpy argpartition", "/ ours compiled", "p99.9"):
        assert words in result.stdout
    assert fits(result.stdout)
    told = json.loads(Path("b.json").read_text())
    assert told["schema"] == 1 and told["cases"][0]["agree"] is True
    assert set(told["machine"]) == {"cores", "system", "architecture", "python", "packages"}
    assert Path("b.png").read_bytes().startswith(PNG)


def test_bench_late_with_an_engine_asked_for() -> None:
    late = call(
        "bench",
        *TINY,
        "--phase",
        "late",
        "--late-rounds",
        "50",
        "--matroid",
        "partition",
        "--engine",
        "resolve",
    )
    assert late.exit_code == 0, late.output
    assert "after 50 rounds" in late.stdout and "kinetic" not in late.stdout


def test_bench_ends_badly_when_decisions_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    import numpy as np

    from semibandit.bench.numpy_rivals import Argpartition

    monkeypatch.setattr(Argpartition, "_base", lambda self, lam: np.arange(self.rank, dtype=np.int64))
    result = call("bench", *TINY)
    assert result.exit_code == 1
    assert "DIFFERS" in result.stdout


def test_demo_shows_a_table_and_writes_the_picture() -> None:
    pytest.importorskip("matplotlib")
    result = call("demo", "--quick")
    assert result.exit_code == 0, result.output
    for name in ("uniform", "partition", "laminar", "graphic", "transversal", "linear"):
        assert f"\n{name} " in result.stdout
    assert "WARNING" not in result.stdout, "numpy and we decide alike"
    assert fits(result.stdout)
    assert Path("demo.png").read_bytes().startswith(PNG)


def test_demo_without_matplotlib_is_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    from semibandit.cli import demo_runs, files

    monkeypatch.setattr(files, "find_spec", lambda name: None)
    monkeypatch.setattr(demo_runs, "SHOWS", demo_runs.SHOWS[:1])
    result = call("demo", "--quick")
    assert result.exit_code == 0, result.output
    assert "\nuniform " in result.stdout and not Path("demo.png").exists()
    assert "`pip install 'semibandit[plot]'`" in result.stdout
    asked = call("demo", "--quick", "--out", "mine.png")
    assert asked.exit_code == 2 and "--out needs matplotlib" in asked.output


def test_info_as_json() -> None:
    from semibandit import __version__
    from semibandit.engines import ENGINES

    told = json.loads(call("info", "--json").stdout)
    assert told["policies"] == list(POLICIES)
    assert [one["name"] for one in told["engines"]] == list(ENGINES)
    assert set(told["extras"]) == {"plot", "results", "pandas", "data", "serve", "postgres", "ray"}
    assert set(told["kernels"]) == {"ahead_of_time", "compiled_here"}
    assert told["semibandit"] in (__version__, "not installed as a package")
    assert isinstance(json.loads(call("info", "--kernels", "--json").stdout), list)


def test_info_names_what_there_is() -> None:
    result = call("info")
    assert result.exit_code == 0
    for word in ("semibandit", "numba", "kernels", "resolve", "kinetic", "cucb", "matplotlib", "polars"):
        assert word in result.output


def test_info_needs_no_compiler() -> None:
    script = (
        "import sys\n"
        "from semibandit.cli.main import main\n"
        "try:\n    main(['info'])\n"
        "except SystemExit as done:\n    assert not done.code\n"
        "assert 'numba' not in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
