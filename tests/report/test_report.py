"""The report: its numbers, its text, that nothing is fetched and nothing injected; figures and single plots."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path
from shutil import copytree

import numpy as np
import pytest
from click.testing import CliRunner, Result

from semibandit.cli.main import main
from semibandit.errors import ExperimentError, ParameterError
from semibandit.experiments import parse_experiment, run_experiment
from semibandit.experiments.cells import cells_of
from semibandit.report import Sweep, load_sweep, report_html
from semibandit.report.data import difference
from semibandit.report.stats import half_width, paired, t_quantile
from semibandit.report.svg import Axis, short
from support.html_page import Page

pytest.importorskip("polars")

NASTY = "<script>alert(1)</script> & \\\"x' $a_b$"
TEXT = f"""
[experiment]
name = "trial"
rounds = 400
repeats = 4
checkpoints = 30

[[instance]]
label = "{NASTY}"
matroid = "uniform"
arms = 15
rank = 3

[[instance]]
matroid = "partition"
arms = 12
rank = 4
environment = "noise"

[[policy]]
name = "cucb"
label = "<b>plain</b>"

[[policy]]
name = "cucb"
exploration = 0.3

[[policy]]
name = "cucb"
label = "stairs"
clock = "staircase"
engine = "resolve"
"""
PNG = b"\x89PNG\r\n\x1a\n"


def call(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("report") / "trial"
    run_experiment(parse_experiment(TEXT, "trial.toml"), out)
    return out


@pytest.fixture(scope="module")
def trial(folder: Path) -> Sweep:
    return load_sweep(folder)


def test_t_quantiles_are_those_of_scipy() -> None:
    stats = pytest.importorskip("scipy.stats")
    for freedom in (1, 2, 3, 4, 9, 19, 100, 1001):
        assert t_quantile(freedom) == pytest.approx(stats.t.ppf(0.975, freedom), rel=1e-9)


def test_intervals_and_paired_differences() -> None:
    stats = pytest.importorskip("scipy.stats")
    rng = np.random.default_rng(0)
    first, second = rng.normal(5, 1, 12), rng.normal(4, 1, 12)
    wanted = stats.ttest_rel(first, second).confidence_interval(0.95)
    mean, half = paired(first, second)
    assert half is not None
    assert (mean - half, mean + half) == pytest.approx((wanted.low, wanted.high))
    assert half_width(np.ones((1, 3))) is None


def test_a_sweep_is_read_back_as_it_was_run(trial: Sweep, folder: Path) -> None:
    import polars

    assert trial.name == "trial" and len(trial.worlds) == 2
    world = trial.worlds[1]
    assert [one.label for one in world.entries] == ["<b>plain</b>", "cucb exploration=0.3", "stairs"]
    frame = polars.read_parquet(folder / "results.parquet")
    own = frame.filter(
        (polars.col("instance") == world.label)
        & (polars.col("policy") == "stairs")
        & (polars.col("repeat") == 2)
    )
    assert np.array_equal(own["regret"].to_numpy(), world.entries[2].regret[2])
    assert world.entries[2].engine == "resolve" and world.entries[2].clock == "staircase"
    x, y = world.entries[0].time_curve()
    assert len(x) == len(y) > 3 and (np.diff(x) > 0).all() and (y > 0).all()


def test_the_page_is_well_formed_and_loads_nothing(trial: Sweep) -> None:
    text = report_html(trial)
    page = Page(text)
    assert page.open == []
    assert page.addresses == ["data:,"]
    assert not re.search(r"https?://|@import|url\(", text)
    assert "default-src 'none'" in text and "prefers-color-scheme: dark" in text
    for svg in re.findall(r"<svg.*?</svg>", text, re.S):
        assert "nan" not in svg.lower().replace("nano", "") and "inf" not in re.sub(
            r"<(title|text).*?</\1>", "", svg
        )
        ET.fromstring(svg)


def test_text_of_the_experiment_is_escaped(trial: Sweep) -> None:
    text = report_html(trial)
    page = Page(text)
    assert page.seen.count("script") == 1 and "b" not in page.seen
    assert "alert(1)</script> & \"x' $a_b$" in page.words, "it is shown as it was written"


def test_the_page_tells_what_it_should(trial: Sweep) -> None:
    page = Page(report_html(trial))
    words = " ".join(page.words.split())
    for wanted in (
        "2 instances, 3 policies, 4 repeats, 400 rounds, seed 0",
        "Final regret",
        "95 % interval",
        "Differences in pairs",
        "Cost against regret",
        "The experiment",
        "cucb exploration=0.3",
        'name = "trial"',
        "numpy",
    ):
        assert wanted in words, wanted
    # two instances: regret on three scales, wide and narrow, and three small figures each
    assert page.seen.count("svg") == 2 * (6 + 3)
    entry = trial.worlds[0].entries[0]
    mean, half = entry.final
    assert half is not None and mean > half > 0
    from semibandit.text import number

    low, middle, high = np.quantile(entry.regret[:, -1], [0.1, 0.5, 0.9])
    assert f"{number(middle)} ({number(low)} \N{EN DASH} {number(high)})" in words
    assert number(mean, 4) in words and f"{number(mean - half, 4)} … {number(mean + half, 4)}" in words


def test_one_repeat_and_one_policy(tmp_path: Path) -> None:
    text = TEXT.split("[[policy]]")[0].replace("repeats = 4", "repeats = 1") + '[[policy]]\nname = "cucb"\n'
    run_experiment(parse_experiment(text), tmp_path / "one")
    page = Page(report_html(load_sweep(tmp_path / "one")))
    assert "there are no intervals" in page.words and "Differences in pairs" not in page.words
    assert page.open == []


def test_a_single_round(tmp_path: Path) -> None:
    text = TEXT.replace("rounds = 400", "rounds = 1").replace("repeats = 4", "repeats = 2")
    run_experiment(parse_experiment(text), tmp_path / "one")
    text = report_html(load_sweep(tmp_path / "one"))
    assert Page(text).open == [] and "nan" not in "".join(re.findall(r' d="[^"]*"', text))


# Runs that are not finished


def drop(folder: Path, world: int, policy: int, repeats: tuple[int, ...]) -> None:
    """Take some results away, as if they had not been computed yet."""
    for cell in cells_of(parse_experiment((folder / "experiment.toml").read_text())):
        if (cell.instance, cell.policy) == (world, policy) and cell.repeat in repeats:
            (folder / "cells" / f"{cell.key}.json").unlink()
    for name in ("results.parquet", "timings.parquet"):
        (folder / name).unlink(missing_ok=True)


def test_an_unfinished_run_shows_what_there_is(trial: Sweep, folder: Path, tmp_path: Path) -> None:
    part = copytree(folder, tmp_path / "part")
    drop(part, 0, 1, (1, 3))
    drop(part, 1, 2, (0, 1, 2, 3))
    found = load_sweep(part)
    label = trial.worlds[1].label
    assert found.missing == ((NASTY.replace('\\"', '"'), "cucb exploration=0.3", 2), (label, "stairs", 4))
    whole, half = trial.worlds[0].entries[1], found.worlds[0].entries[1]
    assert half.repeats == (0, 2) and np.array_equal(half.regret, whole.regret[[0, 2]])
    assert [one.label for one in found.worlds[1].entries] == ["<b>plain</b>", "cucb exploration=0.3"]
    same = trial.worlds[0].entries[0]
    assert np.array_equal(found.worlds[0].entries[0].update_seconds, same.update_seconds)
    mean, _ = difference(half, same) or (0.0, None)
    assert mean == pytest.approx((whole.regret[[0, 2], -1] - same.regret[[0, 2], -1]).mean())
    page = Page(report_html(found))
    assert page.open == [] and "Not finished: 6 of 24 runs are missing" in page.words
    assert "stairs: 4 of 4 repeats" in page.words


def test_policies_that_share_no_repeat(folder: Path, tmp_path: Path) -> None:
    part = copytree(folder, tmp_path / "part")
    drop(part, 0, 0, (0, 1))
    drop(part, 0, 1, (2, 3))
    drop(part, 0, 2, (0, 1, 2, 3))
    first = load_sweep(part).worlds[0]
    assert difference(first.entries[0], first.entries[1]) is None
    page = Page(report_html(load_sweep(part)))
    assert page.open == [] and "none shared" in page.words and "may be luck" in page.words
    done = call("report", str(part), "--out", str(tmp_path / "r.html"))
    assert done.exit_code == 0 and "stairs: 4 of 4 repeats" in done.output
    pytest.importorskip("matplotlib")
    drawn = call("plot", str(part), "--out", str(tmp_path / "r.png"))
    assert drawn.exit_code == 0 and "stairs: 4 of 4 repeats" in drawn.output


def test_the_winner_comes_first_and_paths_are_told(trial: Sweep) -> None:
    page = Page(report_html(trial))
    for world in trial.worlds:
        finals = [world.entries[i].final[0] for i in world.ranking()]
        assert finals == sorted(finals)
    words = page.words
    table = words[words.index("Final regret") : words.index("Differences in pairs")]
    order = [trial.worlds[0].entries[i].label for i in trial.worlds[0].ranking()]
    assert sorted(order, key=table.index) == order
    assert words.count("Least regret:") == 2 and "All runs were compiled." in words
    mixed = replace(trial.worlds[0].entries[0], path="stepwise")
    world = replace(trial.worlds[0], entries=[mixed, *trial.worlds[0].entries[1:]])
    told = Page(report_html(replace(trial, worlds=[world]))).words
    assert "Compiled and stepwise runs are timed differently" in told


# Commands


def test_report_and_figures(folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    first, _, rest = TEXT.partition("[[instance]]\nmatroid")
    small = first + rest[rest.index("[[policy]]") :]
    run_experiment(parse_experiment(small), tmp_path / "small")
    out = tmp_path / "r.html"
    done = call("report", str(tmp_path / "small"), "--out", str(out), "--figures", str(tmp_path / "figures"))
    assert done.exit_code == 0, done.output
    assert out.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    made = sorted((tmp_path / "figures").iterdir())
    assert len(made) == 5 * 2, "five figures of one instance, twice"
    assert all(one.read_bytes().startswith(PNG) for one in made if one.suffix == ".png")
    assert all("<svg" in one.read_text() for one in made if one.suffix == ".svg")
    assert call("report", str(folder)).exit_code == 0 and (folder / "report.html").is_file()
    (folder / "report.html").unlink()


@pytest.mark.parametrize("kind", ["regret", "time", "cost"])
def test_plot_draws_one_figure(folder: Path, tmp_path: Path, kind: str) -> None:
    pytest.importorskip("matplotlib")
    out = tmp_path / "x.png"
    done = call("plot", str(folder), "--kind", kind, "--out", str(out), "--scale", "log")
    assert done.exit_code == 0, done.output
    assert out.read_bytes().startswith(PNG)


def test_mistakes(folder: Path, tmp_path: Path) -> None:
    for arguments, says in (
        (["report", str(tmp_path)], "not a folder written by `semibandit run`"),
        (["report", str(tmp_path / "nowhere")], "not a folder written by `semibandit run`"),
        (["report", str(folder), "--out", "x.pdf"], "the name should end in .html"),
        (["plot", str(folder), "--out", "x.txt"], "the name should end in .png"),
        (
            ["plot", str(folder), "--out", str(tmp_path / "x.png"), "--instance", "moon"],
            "instance = 'moon' is not in",
        ),
    ):
        done = call(*arguments)
        assert done.exit_code == 2 and says in done.output, done.output


def test_folders_that_do_not_fit_together(folder: Path, tmp_path: Path) -> None:
    from semibandit.report.figures import plot_sweep

    other = copytree(folder, tmp_path / "other")
    told = json.loads((other / "experiment.json").read_text())
    told["policies"][0]["label"] = "somebody else"
    (other / "experiment.json").write_text(json.dumps(told))
    with pytest.raises(ExperimentError, match="do not belong together"):
        load_sweep(other)
    (other / "experiment.json").write_text("{")
    with pytest.raises(ExperimentError, match="not valid JSON"):
        load_sweep(other)
    copytree(folder, tmp_path / "bad")
    (tmp_path / "bad" / "results.parquet").write_bytes(b"PAR1 no")
    with pytest.raises(ExperimentError, match="cannot be read"):
        load_sweep(tmp_path / "bad")
    (tmp_path / "bad" / "results.parquet").unlink()
    assert load_sweep(tmp_path / "bad").missing == (), "all cells are there"
    for cell in (tmp_path / "bad" / "cells").iterdir():
        cell.unlink()
    with pytest.raises(ExperimentError, match="the run is not finished, and no cell of it is"):
        load_sweep(tmp_path / "bad")
    with pytest.raises(ParameterError, match="kind = 'pie'"):
        plot_sweep(load_sweep(folder), "pie", tmp_path / "x.png")


# Axes


def test_ticks_are_round_numbers_inside_the_range() -> None:
    assert Axis(0, 97, 0, 100).ticks() == [0, 20, 40, 60, 80]
    assert Axis(1, 1e6, 0, 100, log=True).ticks() == [1.0, 10.0, 100.0, 1e3, 1e4, 1e5, 1e6]
    assert Axis(3, 20, 0, 100, log=True).ticks() == [5.0, 10.0, 20.0]
    assert [short(v) for v in (0.5, 300, 5000, 20_000, 1e6, 2.5e9)] == [
        "0.5",
        "300",
        "5k",
        "20k",
        "1M",
        "2.5G",
    ]
