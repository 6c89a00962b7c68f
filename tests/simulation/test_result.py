"""Results as people meet them: in a console, a notebook, a data frame, a picture."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import semibandit as sb
from semibandit.simulation import Comparison, SimulationResult
from support.html_page import Page


def run(policy: str, final: float, path: str = "compiled", seconds: float = 2e-6) -> SimulationResult:
    """Ten rounds made by hand."""
    rounds = np.arange(1, 11)
    return SimulationResult(
        policy=policy,
        rounds=rounds,
        regret=final * rounds / 10,
        reward=50.0 * rounds / 10,
        select_seconds=rounds * seconds,
        update_seconds=rounds * seconds,
        path=path,
        about={"engine": "kinetic"},
    )


@pytest.fixture
def runs() -> Comparison:
    worse = [run("slow & <b>", 30.0, "stepwise"), run("slow & <b>", 34.0, "stepwise")]
    return Comparison({"slow & <b>": worse, "quick": [run("quick", 7.0), run("quick", 9.0)]})


def test_short_in_a_console(runs: Comparison) -> None:
    assert repr(runs) == "Comparison(2 policies, 10 rounds, 2 repeats; least regret: quick 8.000)"
    assert repr(run("quick", 7.0)) == (
        "SimulationResult(quick: 10 rounds, regret 7.000, reward 50.00, 4.00 us per round, compiled)"
    )


def test_ranked_by_regret_and_equals_in_their_order(runs: Comparison) -> None:
    assert runs.ranking == ["quick", "slow & <b>"] and runs.best == "quick"
    assert [row["policy"] for row in runs.summary()] == ["slow & <b>", "quick"], "as they were given"
    same = Comparison({"b": [run("b", 1.0)], "a": [run("a", 1.0)]})
    assert same.ranking == ["b", "a"]


def test_quantiles_beside_means() -> None:
    """Ten runs of regret 1 .. 10: numpy's definition is that of linear interpolation between neighbours."""
    runs = Comparison({"some": [run("some", float(k)) for k in range(1, 11)]})
    found = runs.quantiles("some", [0.0, 0.25, 0.5, 1.0])
    assert found.shape == (4, 10)
    assert found[:, -1] == pytest.approx([1.0, 3.25, 5.5, 10.0]) and found[:, 4] == pytest.approx(
        found[:, -1] / 2
    )
    assert runs.quantiles("some")[:, -1] == pytest.approx([1.9, 5.5, 9.1])
    row = runs.summary()[0]
    assert [row[f"regret_{n}"] for n in (10, 50, 90)] == pytest.approx([1.9, 5.5, 9.1])
    assert "5.50 (1.90 \N{EN DASH} 9.10)" in Page(runs._repr_html_()).words
    for wrong in ([-0.1], [1.5], [[0.5]], [np.nan]):
        with pytest.raises(sb.ParameterError, match="levels must be numbers between 0 and 1"):
            runs.quantiles("some", wrong)
    with pytest.raises(sb.ParameterError, match="was not compared"):
        runs.quantiles("other")


def test_a_table_in_a_notebook(runs: Comparison) -> None:
    text = runs._repr_html_()
    page = Page(text)
    assert page.open == [] and page.seen.count("tr") == 3 and page.seen.count("b") == 1
    assert text.index("quick") < text.index("slow"), "the best first"
    for words in ("8.000 ± 1.00", "32.00 ± 2.00", "stepwise", "compiled", "slow & <b>"):
        assert words in page.words
    one = Page(run("quick", 7.0)._repr_html_())
    assert "mean of 1 run;" in one.words and "±" not in one.words


@pytest.mark.parametrize("library", ["polars", "pandas"])
def test_frames(runs: Comparison, library: str) -> None:
    module = pytest.importorskip(library)
    frame = runs.to_frame(library)
    assert isinstance(frame, module.DataFrame) and frame.shape == (40, 7)
    assert list(frame["repeat"])[:20] == [0] * 10 + [1] * 10
    assert list(frame["regret"])[-1] == 9.0
    single = run("quick", 7.0).to_frame(library)
    assert list(single.columns) == ["policy", "round", "regret", "reward", "select_seconds", "update_seconds"]
    assert list(single["round"]) == list(range(1, 11))


def test_frames_that_cannot_be_made(runs: Comparison, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(sb.ParameterError, match=r"library = 'panda' is not known, did you mean 'pandas'\?"):
        runs.to_frame("panda")
    for library, extra in (("polars", "results"), ("pandas", "pandas")):
        monkeypatch.setitem(sys.modules, library, None)
        with pytest.raises(sb.MissingExtraError, match=rf"needs {library}.*'semibandit\[{extra}\]'"):
            runs.to_frame(library)


def test_an_unknown_policy_is_guessed(runs: Comparison) -> None:
    with pytest.raises(sb.ParameterError, match=r"policy = 'quik' was not compared, did you mean 'quick'\?"):
        runs.regret("quik")


@pytest.mark.parametrize("scale", ["linear", "semi", "log"])
def test_plot_gives_a_figure_that_a_notebook_shows(runs: Comparison, scale: str, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    figure = runs.plot(tmp_path / "regret.png", title="costs in $", scale=scale)
    (axis,) = figure.axes
    assert (axis.get_xscale(), axis.get_yscale()) == {
        "linear": ("linear", "linear"),
        "semi": ("log", "linear"),
        "log": ("log", "log"),
    }[scale]
    assert [line.get_ydata()[-1] for line in axis.lines] == [32.0, 8.0]
    png: Any = b"\x89PNG"
    assert figure._repr_png_().startswith(png) and (tmp_path / "regret.png").read_bytes().startswith(png)


def test_a_run_plots_itself_and_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    figure = run("quick", 7.0).plot()
    assert figure.axes[0].get_xscale() == "linear", "where learning shows as a bend"
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(sb.ParameterError, match="scale = 'loglog' is not known"):
        run("quick", 7.0).plot(scale="loglog")
