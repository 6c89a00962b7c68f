"""Pictures: drawn without a display, for every kind of result, and a clear word when matplotlib is missing."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import semibandit as sb
from semibandit.errors import MissingExtraError
from semibandit.report.canvas import apart
from semibandit.report.demo import plot_demo
from semibandit.report.plots import plot_case, plot_comparison

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture
def comparison() -> Any:
    matroid = sb.Uniform(8, 2)
    env = sb.Bernoulli(matroid, np.linspace(0.1, 0.9, 8), seed=1)
    policies = {"one": sb.CUCB(matroid), "two": sb.CUCB(matroid, exploration=0.5)}
    return sb.compare(policies, env, rounds=300, repeats=2)


def row(name: str, kind: str, way: str, us: float) -> dict[str, Any]:
    return {"name": name, "kind": kind, "way": way, "us_per_round": us, "ours": kind == "engine"}


def demo_class(name: str, us: float, rival_us: float) -> dict[str, Any]:
    marks = [100, 1000, 1100, 5000, 20000]
    return {
        "name": name,
        "arms": 10000,
        "rank": 10,
        "rounds": 20000,
        "us": us,
        "rival": "numpy argpartition",
        "rival_us": rival_us,
        "covered": 1000,
        "marks": marks,
        "seconds": [m * us * 1e-6 for m in marks],
        "lost": [44.0, 44.0, 40.0, 20.0, 9.0],
    }


def is_picture(path: Path) -> bool:
    return path.read_bytes().startswith(PNG) and path.stat().st_size > 5_000


def test_regret_of_compared_policies(comparison: Any, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    plot_comparison(comparison, tmp_path / "regret.png", title="two policies")
    assert is_picture(tmp_path / "regret.png")
    plot_comparison(comparison, tmp_path / "regret.svg")
    assert b"<svg" in (tmp_path / "regret.svg").read_bytes()


def test_a_measured_case(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    rows = [row("kinetic", "engine", "compiled", 8.0), row("numpy", "rival", "python", 900.0)]
    plot_case({"title": "uniform, K = 1,000, D = 10, explore", "rows": rows}, tmp_path / "case.png")
    assert is_picture(tmp_path / "case.png")


def test_the_demo_picture(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    classes = [demo_class("uniform", 8.0, 4000.0), demo_class("linear", 60.0, 50.0)]
    theirs = [m * 0.004 for m in classes[0]["marks"]]
    million = {**classes[0], "rival_seconds": theirs, "rival_measured": theirs[1] + 0.1}
    plot_demo(million, classes, tmp_path / "demo.png")
    assert is_picture(tmp_path / "demo.png")


def test_labels_are_moved_apart_in_order_and_stay_inside() -> None:
    rng = np.random.default_rng(3)
    for n in (1, 2, 5, 12):
        for _ in range(20):
            wanted = rng.random(n) ** 3
            placed = np.array(apart(wanted.tolist(), 0.05))
            order = np.argsort(wanted, kind="stable")
            assert (np.diff(placed[order]) >= 0.049).all()
            assert placed.min() > -0.02 and placed.max() < 1.02
    assert apart([0.2, 0.8], 0.1) == [0.2, 0.8]


def test_without_matplotlib_the_error_says_what_to_install(
    comparison: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.backends.backend_agg", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'semibandit\[plot\]'"):
        plot_comparison(comparison, tmp_path / "regret.png")
    assert not (tmp_path / "regret.png").exists()
