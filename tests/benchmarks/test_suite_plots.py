"""Pictures of the suite: with and without cases and scalings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks.plots import plot_bench


def row(name: str, kind: str, way: str, us: float) -> dict[str, Any]:
    return {"name": name, "kind": kind, "way": way, "us_per_round": us, "ours": kind == "engine"}


def bench_result(cases: int, scalings: int) -> dict[str, Any]:
    rows = [row("kinetic", "engine", "compiled", 8.0), row("scan", "rival", "python", 900.0)]
    case = {
        "title": "uniform, K = 1,000, D = 10, explore",
        "rows": [*rows, row("bare loop", "bare", "compiled", 0.2)],
    }
    lines = [
        {
            "name": name,
            "kind": kind,
            "way": "compiled",
            "arms": [10, 100],
            "us_per_round": us,
            "exponent": slope,
        }
        for name, kind, us, slope in (
            ("auto", "auto", [1.0, 1.2], 0.08),
            ("kinetic", "engine", [1.0, 1.2], 0.08),
            ("scan", "rival", [1.0, 9.0], None),
            ("bare loop", "bare", [0.2, 0.2], 0.0),
        )
    ]
    scaling = {"matroid": "uniform", "rank": 10, "phase": "explore", "fit_from": 10, "lines": lines}
    return {"cases": [case] * cases, "scaling": [scaling] * scalings}


@pytest.mark.parametrize(("cases", "scalings"), [(1, 0), (0, 1), (3, 2)])
def test_bench_results(cases: int, scalings: int, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    plot_bench(bench_result(cases, scalings), tmp_path / "bench.png")
    picture = tmp_path / "bench.png"
    assert picture.read_bytes().startswith(b"\x89PNG") and picture.stat().st_size > 5_000
