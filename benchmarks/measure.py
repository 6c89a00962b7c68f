"""One case of the suite: every engine that fits, every rival, and the bare loop."""

from __future__ import annotations

from typing import Any

from benchmarks.bare import Bare
from benchmarks.cases import SuiteCase
from benchmarks.rivals.registry import rivals_for, start_rival
from semibandit.bench.contenders import Contender, check_engines, our_engines
from semibandit.bench.measure import Measurement, Say, prepare, silent
from semibandit.bench.start import Start
from semibandit.errors import ParameterError


def gather(
    start: Start, engines: tuple[str, ...] = (), rivals: tuple[str, ...] | None = None
) -> list[Contender]:
    """Our engines (all that fit, or those named; the one the ratios are about first) and the rivals. O(K) each."""
    contenders = our_engines(start, engines)
    specs = rivals_for(start.env.matroid)
    if rivals is not None:
        unknown = set(rivals) - {spec.name for spec in specs}
        if unknown:
            fitting = ", ".join(repr(spec.name) for spec in specs)
            raise ParameterError(f"rival = {sorted(unknown)[0]!r} does not play here: one of {fitting}")
        specs = [spec for spec in specs if spec.name in rivals]
    for spec in specs:
        player = start_rival(spec, start)
        contenders.append(Contender(spec.name, "rival", player, start.world(), exact_ties=spec.exact_ties))
    return contenders


def measure_case(case: SuiteCase, say: Say = silent, progress: bool | None = None) -> dict[str, Any]:
    """Measure one case; plain data, ready for JSON."""
    check_engines(case.engines)
    say(f"{case.title}: preparing")
    start = prepare(case, progress)
    contenders = gather(start, case.engines, case.rivals)
    bare = Bare(start) if start.env.kernel_state() is not None else None
    return Measurement(case, start, contenders, bare, say).run()
