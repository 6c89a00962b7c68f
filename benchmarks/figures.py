"""The figures the project set itself, computed from measured cases, and the exponent over K."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from semibandit.bench.table import CaseData, rows_of


def fit_exponent(arms: Sequence[float], us: Sequence[float]) -> float | None:
    """Slope of log(us) over log(arms) by least squares; None with fewer than two points."""
    if len(arms) < 2:
        return None
    x = [math.log(a) for a in arms]
    y = [math.log(u) for u in us]
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    spread = sum((a - mean_x) ** 2 for a in x)
    return sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True)) / spread


def ours(case: CaseData, way: str = "compiled") -> dict[str, Any]:
    """Our row in this way, or from Python where there is no compiled one."""
    return next(iter(rows_of(case, ours=True, way=way) or rows_of(case, ours=True)))


def fastest(case: CaseData, name: str | None = None) -> dict[str, Any] | None:
    """The fastest rival, or the fastest way of the rival `name`."""
    rows = rows_of(case, kind="rival") if name is None else rows_of(case, name=name)
    return min(rows, key=lambda row: float(row["us_per_round"]), default=None)


def _over(name: str | None, way: str) -> Callable[[CaseData], float | None]:
    """How many times faster we are, in this way, than a rival (None: than the best) in its fastest way.

    From Python a round is select and update. A compiled round also draws D rewards, which no engine can save: with D in
    the hundreds that is most of it.
    """

    def ratio(case: CaseData) -> float | None:
        rival = fastest(case, name)
        return None if rival is None else rival["us_per_round"] / ours(case, way)["us_per_round"]

    return ratio


def _over_bare(case: CaseData) -> float | None:
    value = ours(case)["times_bare"]
    return None if value is None else float(value)


def _memory(case: CaseData) -> float:
    return float(ours(case)["bytes_per_arm"])


def _tail(case: CaseData) -> float | None:
    latency = ours(case)["latency_us"]
    return None if latency is None else latency["p99_9"] / latency["p50"]


@dataclass(frozen=True)
class Figure:
    """`value` of the case `key` should be at least (or, with `at_most`, at most) `wanted`."""

    key: str
    what: str
    wanted: float
    value: Callable[[CaseData], float | None]
    at_most: bool = False

    def judge(self, case: CaseData) -> dict[str, Any]:
        """The figure as plain data."""
        return _judged(case["title"], self.what, self.wanted, self.value(case), self.at_most)


def _judged(where: str, what: str, wanted: float, reached: float | None, at_most: bool) -> dict[str, Any]:
    met = None if reached is None else (reached <= wanted if at_most else reached >= wanted)
    sense = "at most" if at_most else "at least"
    return {"case": where, "figure": what, "sense": sense, "wanted": wanted, "reached": reached, "met": met}


_SORTED_TREE = "argsort + union-find"

FIGURES: tuple[Figure, ...] = (
    Figure(
        "uniform-explore", "x numpy argpartition, from Python", 200, _over("numpy argpartition", "python")
    ),
    Figure("uniform-explore", "x numpy argpartition, compiled", 300, _over("numpy argpartition", "compiled")),
    Figure("uniform-explore", "x one-pass scan, compiled", 100, _over("one-pass scan", "compiled")),
    Figure("uniform-explore", "bytes per arm", 96, _memory, at_most=True),
    Figure("uniform-explore", "p99.9 of a round over its median", 50, _tail, at_most=True),
    Figure("uniform-wide", "x numpy argpartition, from Python", 60, _over("numpy argpartition", "python")),
    Figure("uniform-wide", "x numpy argpartition, compiled", 60, _over("numpy argpartition", "compiled")),
    Figure("uniform-late", "x numpy argpartition, compiled", 1000, _over("numpy argpartition", "compiled")),
    Figure("uniform-late", "x the bare loop", 8, _over_bare, at_most=True),
    Figure("partition-late", "x the best rival, from Python", 20, _over(None, "python")),
    Figure("partition-late", "x the best rival, compiled with draws", 20, _over(None, "compiled")),
    Figure("graphic-explore", "x the best rival, from Python", 1.5, _over(None, "python")),
    Figure("graphic-explore", "x the best rival, compiled with draws", 1.5, _over(None, "compiled")),
    Figure("graphic-explore", "x argsort + union-find", 30, _over(_SORTED_TREE, "compiled")),
    Figure("graphic-middle", "x the best rival, from Python", 8, _over(None, "python")),
    Figure("complete-explore", "x argsort + union-find, from Python", 40, _over(_SORTED_TREE, "python")),
    Figure("complete-middle", "x argsort + union-find, from Python", 25, _over(_SORTED_TREE, "python")),
    Figure("graphic-late", "x the best rival, from Python", 10, _over(None, "python")),
    Figure("graphic-late", "x the best rival, compiled with draws", 10, _over(None, "compiled")),
    Figure("graphic-late", "x the bare loop", 3, _over_bare, at_most=True),
    Figure("transversal-middle", "x the best rival, from Python", 8, _over(None, "python")),
    Figure("transversal-late", "x the best rival, from Python", 10, _over(None, "python")),
    Figure("transversal-late", "x the best rival, compiled with draws", 10, _over(None, "compiled")),
)

MOST_EXPONENT = 0.2
AUTO_SLACK = 1.2


def judge(cases: Sequence[CaseData], scalings: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Every figure whose case was measured."""
    by_key = {case["key"]: case for case in cases}
    found = [figure.judge(by_key[figure.key]) for figure in FIGURES if figure.key in by_key]
    for scaling in scalings:
        where = f"{scaling['matroid']}, D = {scaling['rank']:,}, {scaling['phase']}, scaling"
        for line in scaling["lines"]:
            if line["ours"] and line["way"] == "compiled":
                what = f"exponent over K from {scaling['fit_from']:,} arms"
                found.append(_judged(where, what, MOST_EXPONENT, line["exponent"], True))
        found.append(
            _judged(where, "auto over the best engine, worst K", AUTO_SLACK, worst_auto(cases), True)
        )
    return found


def worst_auto(cases: Sequence[CaseData]) -> float | None:
    """How much slower the engine taken by ``auto`` is than the best single engine, at worst over all cases."""
    worst = None
    for case in cases:
        for way in ("compiled", "python"):
            engines = rows_of(case, kind="engine", way=way)
            auto = [row["us_per_round"] for row in engines if row.get("auto")]
            if len(engines) > 1 and auto:
                ratio = auto[0] / min(row["us_per_round"] for row in engines)
                worst = ratio if worst is None else max(worst, ratio)
    return worst


def lines_over_arms(cases: Sequence[CaseData], fit_from: int) -> list[dict[str, Any]]:
    """Time over K for every contender and way in the cases of a scaling, with the fitted exponent.

    What ``auto`` takes may change with K, so its choice is also a line of its own, named "auto".
    """
    points: dict[tuple[str, str, str], list[tuple[int, float]]] = {}
    for case in cases:
        for row in case["rows"]:
            at = (case["arms"], row["us_per_round"])
            points.setdefault((row["name"], row["kind"], row["way"]), []).append(at)
            if row.get("auto"):
                points.setdefault(("auto", "auto", row["way"]), []).append(at)
    lines = []
    for (name, kind, way), at_arms in points.items():
        at_arms.sort()
        fitted = [(k, us) for k, us in at_arms if k >= fit_from]
        lines.append(
            {
                "name": name,
                "kind": kind,
                "way": way,
                "ours": kind == "auto",
                "arms": [k for k, _ in at_arms],
                "us_per_round": [us for _, us in at_arms],
                "exponent": fit_exponent([k for k, _ in fitted], [us for _, us in fitted]),
            }
        )
    return lines
