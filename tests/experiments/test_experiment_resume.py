"""Runs that are stopped with Ctrl-C and killed, then continued, end in the same bytes, with one worker and with two."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from semibandit.cli.main import main
from semibandit.experiments import load_experiment, run_experiment

pytest.importorskip("polars")
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")

HEAD = "[experiment]\nrounds = {rounds}\nrepeats = {repeats}\nseed = 3\ncheckpoints = 20\n"
INSTANCES = (
    'matroid = "uniform"\narms = 400\nrank = 5',
    'matroid = "partition"\narms = 300\nrank = 6',
    'matroid = "laminar"\narms = 120\nrank = 6',
    'matroid = "graphic"\narms = 60\nrank = 20',
    'matroid = "uniform"\narms = 200\nrank = 4\nenvironment = "gaussian"',
)
POLICIES = (
    'name = "cucb"',
    'name = "cucb"\nlabel = "bold"\nexploration = 0.3',
    'name = "cucb"\nlabel = "stairs"\nclock = "staircase"',
    'name = "cucb"\nlabel = "anew"\nengine = "resolve"',
)


def sweep(path: Path, rounds: int, repeats: int, instances: int, policies: int) -> Path:
    tables = [f"[[instance]]\n{one}" for one in INSTANCES[:instances]]
    tables += [f"[[policy]]\n{one}" for one in POLICIES[:policies]]
    path.write_text(HEAD.format(rounds=rounds, repeats=repeats) + "\n" + "\n".join(tables) + "\n")
    return path


def start(file: Path, out: Path, workers: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "semibandit.cli.main", "run", str(file), "--out", str(out)]
    return subprocess.Popen(
        [*command, "--workers", str(workers)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,  # a process group of its own, as the shell gives a command
    )


def finished(out: Path) -> int:
    return len(list((out / "cells").glob("*.json"))) if (out / "cells").is_dir() else 0


def wait_for_cells(run: subprocess.Popen[str], out: Path, n: int) -> None:
    limit = time.monotonic() + 120
    while finished(out) < n:
        assert run.poll() is None, f"ended too early: {run.communicate()}"
        assert time.monotonic() < limit
        time.sleep(0.005)


def nobody_left(group: int) -> bool:
    limit = time.monotonic() + 20
    while time.monotonic() < limit:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.05)
    return False


def interrupted_run(file: Path, out: Path, workers: int, total: int, steps: str) -> None:
    """Ctrl-C ("c") and kill -9 ("k") as `steps` tell, after a few more cells each time, then to the end."""
    for step in steps:
        before = finished(out)
        run = start(file, out, workers)
        wait_for_cells(run, out, before + 2)
        if step == "c":
            os.killpg(run.pid, signal.SIGINT)
            _, told = run.communicate(timeout=60)
            assert run.returncode == 130, told
            assert f"of {total} cells are finished and kept" in told
            assert "Run the same command again to go on" in told
            assert "Traceback" not in told
        else:
            run.kill()
            run.communicate(timeout=60)
        assert nobody_left(run.pid), "workers end with their parent"
        assert before + 2 <= finished(out) < total
        assert not (out / "results.parquet").exists()
    last = CliRunner().invoke(main, ["run", str(file), "--out", str(out), "--workers", "1"])
    assert last.exit_code == 0, last.output
    assert "cells were there already" in last.output and "bold" in last.output


@pytest.mark.parametrize(("workers", "steps"), [(2, "kc"), pytest.param(1, "c", marks=pytest.mark.slow)])
def test_interrupted_and_killed_runs_end_in_the_same_bytes(tmp_path: Path, workers: int, steps: str) -> None:
    file = sweep(tmp_path / "sweep.toml", rounds=30_000, repeats=8, instances=2, policies=2)
    run_experiment(load_experiment(file), tmp_path / "straight")
    straight = (tmp_path / "straight" / "results.parquet").read_bytes()
    interrupted_run(file, tmp_path / "bent", workers, total=32, steps=steps)
    assert (tmp_path / "bent" / "results.parquet").read_bytes() == straight


@pytest.mark.slow
def test_the_sweep_of_four_by_five_by_twenty(tmp_path: Path) -> None:
    file = sweep(tmp_path / "sweep.toml", rounds=20_000, repeats=20, instances=5, policies=4)
    run_experiment(load_experiment(file), tmp_path / "straight")
    straight = (tmp_path / "straight" / "results.parquet").read_bytes()
    for workers in (1, 2):
        out = tmp_path / f"bent-{workers}"
        interrupted_run(file, out, workers, total=400, steps="ckck")
        assert (out / "results.parquet").read_bytes() == straight


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="children are looked up in /proc")
def test_a_worker_that_dies_is_reported_and_what_is_finished_is_kept(tmp_path: Path) -> None:
    file = sweep(tmp_path / "sweep.toml", rounds=60_000, repeats=8, instances=2, policies=2)
    run = start(file, tmp_path / "out", 2)
    wait_for_cells(run, tmp_path / "out", 2)
    children = Path(f"/proc/{run.pid}/task/{run.pid}/children").read_text().split()
    workers = [int(one) for one in children if b"spawn_main" in Path(f"/proc/{one}/cmdline").read_bytes()]
    os.kill(workers[0], signal.SIGKILL)
    _, told = run.communicate(timeout=60)
    assert run.returncode == 2, told
    assert "a worker process died" in told and "Traceback" not in told
    assert nobody_left(run.pid)
    assert finished(tmp_path / "out") >= 2
