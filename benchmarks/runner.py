"""Running cases, scalings and the suite, and keeping the results as one JSON document."""

from __future__ import annotations

import gc
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.cases import Scaling, SuiteCase, suite
from benchmarks.figures import judge, lines_over_arms
from benchmarks.large import LARGE, large_figures, measure_large
from benchmarks.measure import measure_case
from benchmarks.policies import measure_policies, policy_figures
from benchmarks.real import measure_real
from benchmarks.table1 import measure_table
from benchmarks.whole import measure_whole, whole_figures
from semibandit.bench.measure import SCHEMA, Say, silent
from semibandit.checks import one_of
from semibandit.errors import ParameterError
from semibandit.machine import describe_machine


def run_bench(
    cases: Sequence[SuiteCase],
    scalings: Sequence[Scaling] = (),
    say: Say = silent,
    progress: bool | None = None,
) -> dict[str, Any]:
    """Measure everything named, one case after the other, in this process."""
    measured: list[dict[str, Any]] = []
    over_arms: list[dict[str, Any]] = []
    for case in cases:
        measured.append(measure_case(case, say, progress))
        gc.collect()
    for scaling in scalings:
        parts = []
        for case in scaling.cases():
            parts.append({**measure_case(case, say, progress), "part_of_scaling": True})
            gc.collect()
        measured.extend(parts)
        over_arms.append(
            {
                "matroid": scaling.case.matroid,
                "rank": scaling.case.rank,
                "phase": scaling.case.phase,
                "fit_from": scaling.fit_from,
                "lines": lines_over_arms(parts, scaling.fit_from),
            }
        )
    return {
        "schema": SCHEMA,
        "machine": describe_machine(),
        "cases": measured,
        "scaling": over_arms,
        "figures": judge(measured, over_arms),
    }


#: The parts of the suite besides its cases.
PARTS = ("scaling", "policies", "large", "real", "whole", "table1")


def run_suite(
    quick: bool = False, say: Say = silent, progress: bool | None = None, only: Sequence[str] = ()
) -> dict[str, Any]:
    """The whole suite behind docs/performance.md; `quick` takes small instances instead.

    `only` names cases and parts to be measured; the result is then marked as partial, and no page is made of it.
    """
    cases, scaling = suite(quick)
    keys = [case.key for case in cases]
    for name in only:
        one_of(name, "only", (*keys, *PARTS))
    wanted = only or (*keys, *PARTS)
    chosen = [case for case in cases if case.key in wanted]
    result = run_bench(chosen, (scaling,) if "scaling" in wanted else (), say, progress)
    if "policies" in wanted:
        result["policies"] = measure_policies(say, 0.01, 3, (20, 100)) if quick else measure_policies(say)
        result["figures"] += policy_figures(result["policies"])
    if "large" in wanted:
        small = [entry.small() for entry in LARGE]
        result["large"] = measure_large(say, 0.02, 2, small) if quick else measure_large(say)
        result["figures"] += large_figures(result["large"])
    if "real" in wanted:
        result["real"] = measure_real(say, 0.01, 2, most_rounds=200) if quick else measure_real(say)
    if "whole" in wanted:
        result["whole"] = measure_whole(say, quick)
        result["figures"] += whole_figures(result["whole"])
    if "table1" in wanted:
        result["table1"] = measure_table(say, 0.05, 3, scale=100) if quick else measure_table(say)
    if quick:
        result["figures"] = []  # they are about large instances
    return {**result, "quick": quick, "partial": bool(only)}


def save(result: dict[str, Any], path: Path) -> None:
    """Write a result as JSON."""
    path.write_text(json.dumps(result, indent=1, allow_nan=False) + "\n", encoding="utf-8")


def load(path: Path) -> dict[str, Any]:
    """Read a result back; anything else is refused with a `ParameterError`."""
    try:
        result = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ParameterError(f"{path} is not a benchmark result: {error}") from None
    if not isinstance(result, dict) or result.get("schema") != SCHEMA or "cases" not in result:
        raise ParameterError(f"{path} is not a benchmark result of schema {SCHEMA}: make one with --json")
    return result
