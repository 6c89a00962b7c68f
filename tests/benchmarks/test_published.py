"""Curves of the literature: order and size of the regrets (the long versions are slow)."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner

from benchmarks.__main__ import main
from benchmarks.jin import PUBLISHED, jin, jin_instance, tails
from benchmarks.jin import curves as jin_curves
from benchmarks.published import (
    CLASSES,
    WANG_CHEN,
    ZIMMERT,
    class_curves,
    wang_chen,
    wang_chen_instance,
    zimmert,
)


def near(values, wanted, share):
    """Whether the mean is within `share` of what is wanted, give or take two standard errors of its own."""
    error = values.std(ddof=1) / np.sqrt(len(values))
    return abs(values.mean() - wanted) <= share * wanted + 2.0 * error


def test_the_instance_is_the_papers():
    env = wang_chen_instance(3)
    assert env.matroid.n_vertices == 30 and env.matroid.rank == 29
    assert abs(env.n_arms - 0.6 * 435) < 4 * np.sqrt(435 * 0.24)
    assert 0.4 < env.means.mean() < 0.6


def test_order_of_wang_and_chens_policies_in_a_short_run():
    found = wang_chen(repeats=2, rounds=2_500, seed=1)
    means = [found[curve.label].mean() for curve in WANG_CHEN]
    assert means == sorted(means, reverse=True), dict(zip([c.label for c in WANG_CHEN], means))


def test_zimmerts_regrets_in_a_short_run():
    found = zimmert(repeats=4, rounds=10_000, seed=2)
    for curve in ZIMMERT:
        assert near(found[curve.label], curve.reference or curve.published, 0.15), curve


@pytest.mark.slow
def test_wang_and_chens_figure(capsys):
    found = wang_chen(repeats=10, rounds=10_000, seed=0)
    means = [found[curve.label].mean() for curve in WANG_CHEN]
    with capsys.disabled():
        print("\n" + "\n".join(f"{c.label}: {m:,.0f}" for c, m in zip(WANG_CHEN, means)))
    assert means == sorted(means, reverse=True)
    for curve in WANG_CHEN:
        assert near(found[curve.label], curve.reference or curve.published, 0.15), curve


@pytest.mark.slow
def test_zimmerts_figure():
    found = zimmert(repeats=50, rounds=10_000, seed=0)
    for curve in ZIMMERT:
        assert near(found[curve.label], curve.reference or curve.published, 0.1), curve


def test_the_instance_of_jin_and_others():
    env = jin_instance(3, 20)
    assert env.matroid.rank == 19 and abs(env.n_arms - 0.6 * 190) < 4 * np.sqrt(190 * 0.24)
    assert np.allclose(env.means, env.locations, atol=1e-12), "nothing is clipped"
    assert [curve.label for curve in jin_curves(20)] == ["CUCB", "CTS", "CTS3"]


def test_jins_regrets_in_a_short_run():
    """The smallest graphs; CTS3 varies most from run to run."""
    found = jin(20, repeats=4, seed=100)
    for curve in jin_curves(20):
        assert near(found[curve.label], curve.published, 0.15), curve


@pytest.mark.slow
@pytest.mark.parametrize("vertices", PUBLISHED)
def test_jins_figure(vertices, capsys):
    """Plots were read to 5 %, and their graphs are not ours: a tenth, and two standard errors of our own runs."""
    found = jin(vertices, repeats=20, seed=0)
    with capsys.disabled():
        print("\n" + "\n".join(f"{vertices} {label}: {value.mean():,.0f}" for label, value in found.items()))
    for curve in jin_curves(vertices):
        assert near(found[curve.label], curve.published, 0.1), curve
    assert found["CUCB"].mean() > found["CTS"].mean() > found["CTS3"].mean()


@pytest.mark.slow
def test_tails_of_one_seed_are_heavier_in_a_short_run():
    found = tails("5 of 10, gap 1/8", repeats=60)
    spread = {
        label: np.subtract(*np.quantile(found[label], [0.9, 0.1])) for label in ("CTS, Gaussian", "CTS3")
    }
    assert spread["CTS3"] > 1.3 * spread["CTS, Gaussian"]


@pytest.mark.slow
def test_tails_of_one_seed_are_heavier():
    """The median is lower than that of CTS, nine runs of ten are not, and the worst ones are far worse."""
    found = tails("5 of 10, gap 1/8", repeats=400)
    low, middle, high, rare = np.quantile(found["CTS3"], [0.1, 0.5, 0.9, 0.99])
    others = np.quantile(found["CTS, Gaussian"], [0.1, 0.5, 0.9, 0.99])
    assert low < others[0] and middle < others[1]
    assert high > 1.2 * others[2] and rare > 1.5 * others[3]


@pytest.mark.parametrize("name", CLASSES)
def test_bounds_hold_on_every_class(name):
    found = class_curves(name, ("cucb", "faster-cucb", "kl-osm"), repeats=2, rounds=800)
    for spec in ("cucb", "faster-cucb", "kl-osm"):
        assert found.comparison.mean_regret(spec)[-1] < found.bound[-1]
    assert 0.0 < found.lower[-1] < found.bound[-1] and len(found.bound) == len(found.comparison.rounds)


def test_command_line(tmp_path):
    call = CliRunner()
    short = ["--repeats", "2", "--rounds", "100"]
    result = call.invoke(main, ["curves", "zimmert", *short, "--json", str(tmp_path / "z.json")])
    assert result.exit_code == 0 and (tmp_path / "z.json").exists()
    assert "reference run" not in result.output and "--rounds 10000 compares" in result.output
    shown = call.invoke(
        main, ["curves", "jin", "--repeats", "2", "--rounds", "40", "--json", str(tmp_path / "j.json")]
    )
    assert shown.exit_code == 0 and shown.output.count("CTS3") == 3 and "99 %" in shown.output
    kept = json.loads((tmp_path / "j.json").read_text())["final_regret"]
    assert (
        list(kept) == ["20 vertices", "30 vertices", "50 vertices"] and len(kept["20 vertices"]["CTS3"]) == 2
    )
    pytest.importorskip("matplotlib")
    arguments = [
        "curves",
        "classes",
        *short,
        "--out",
        str(tmp_path / "new" / "folder"),
        "--policy",
        "cucb",
        "--policy",
        "random",
    ]
    result = call.invoke(main, arguments)
    assert result.exit_code == 0, result.output
    for name in CLASSES:
        assert (tmp_path / "new" / "folder" / f"regret-{name}.png").read_bytes().startswith(b"\x89PNG")
    assert "lower bound" in result.output


def test_published_figures_stand_beside_their_own_horizon_only(monkeypatch):
    from benchmarks import published

    def instead(repeats, rounds, seed, say):
        return {curve.label: np.array([100.0, 101.0]) for curve in ZIMMERT}

    monkeypatch.setitem(published.FIGURES, "zimmert", (ZIMMERT, instead))
    told = {
        rounds: CliRunner().invoke(main, ["curves", "zimmert", "--rounds", str(rounds)]).output
        for rounds in (9_999, 10_000)
    }
    assert "published" in told[10_000] and "343" in told[10_000]
    assert "343" not in told[9_999]
    mistaken = CliRunner().invoke(main, ["curves", "classes", "--matroid", "grafic"])
    assert mistaken.exit_code == 2 and "did you mean 'graphic'?" in mistaken.output
