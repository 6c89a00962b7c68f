"""What the suite measures: cases, and a scaling over the number of arms."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from semibandit.bench.measure import Case


@dataclass(frozen=True)
class SuiteCase(Case):
    """A case beside the rivals named, or all of them; () means none. Without `engines` all that fit are measured."""

    rivals: tuple[str, ...] | None = None

    def describe(self) -> dict[str, Any]:
        """The settings as plain data."""
        return {**super().describe(), "rivals": None if self.rivals is None else list(self.rivals)}

    def small(self) -> SuiteCase:
        """The same in a few seconds: a hundredth of the arms, short repeats. For `--quick` and for tests."""
        rank = min(self.rank, max(5, self.rank // 10))
        arms = max(self.arms // 100, 4 * rank)
        if self.matroid == "graphic":
            arms = min(arms, rank * (rank + 1) // 2)
        late = None if self.late_rounds is None else max(200, self.late_rounds // 100)
        return replace(
            self,
            arms=arms,
            rank=rank,
            late_rounds=late,
            rounds=500,
            repeats=3,
            seconds=0.02,
            latency_rounds=500,
        )


@dataclass(frozen=True)
class Scaling:
    """The same case over many K; the exponent is fitted from `fit_from` arms on."""

    case: SuiteCase
    arms: tuple[int, ...]
    fit_from: int = 10_000

    def cases(self) -> list[SuiteCase]:
        """A case for each K, with a rank that fits."""
        return [
            replace(
                self.case,
                key=f"{self.case.key}-{arms}",
                arms=arms,
                rank=min(self.case.rank, max(1, arms // 2)),
            )
            for arms in self.arms
        ]

    def small(self) -> Scaling:
        """Three small K."""
        case = replace(self.case, rounds=500, repeats=3, seconds=0.02, latency_rounds=0)
        return Scaling(case, (100, 1_000, 10_000), fit_from=100)


# Those who need results soon explore less than the theorem asks for; the middle of a run is then reached in minutes.
_PRACTICAL = 0.1

SUITE: tuple[SuiteCase, ...] = (
    SuiteCase("uniform-explore", "uniform", 1_000_000, 10),
    SuiteCase("uniform-wide", "uniform", 1_000_000, 100),
    SuiteCase(
        "uniform-middle", "uniform", 100_000, 10, "middle", late_rounds=300_000, exploration=_PRACTICAL
    ),
    SuiteCase("uniform-late", "uniform", 100_000, 10, "late", rounds=400_000, late_rounds=4_000_000),
    SuiteCase(
        "partition-middle", "partition", 100_000, 100, "middle", late_rounds=100_000, exploration=_PRACTICAL
    ),
    SuiteCase("partition-late", "partition", 1_000_000, 1_000, "late", late_rounds=1_000_000),
    SuiteCase("laminar-explore", "laminar", 100_000, 30),
    SuiteCase(
        "laminar-middle", "laminar", 100_000, 30, "middle", late_rounds=100_000, exploration=_PRACTICAL
    ),
    SuiteCase("laminar-late", "laminar", 100_000, 30, "late", late_rounds=300_000),
    SuiteCase("graphic-explore", "graphic", 499_500, 999, seconds=1.0),
    SuiteCase("graphic-middle", "graphic", 20_000, 999, "middle", late_rounds=15_000, exploration=_PRACTICAL),
    SuiteCase("complete-explore", "graphic", 119_805, 489),
    SuiteCase(
        "complete-middle", "graphic", 119_805, 489, "middle", late_rounds=6_000, exploration=_PRACTICAL
    ),
    SuiteCase("graphic-late", "graphic", 20_000, 999, "late", late_rounds=300_000),
    SuiteCase("transversal-explore", "transversal", 10_000, 100),
    SuiteCase("transversal-middle", "transversal", 10_000, 100, "middle", late_rounds=100_000),
    SuiteCase("transversal-late", "transversal", 10_000, 100, "late", late_rounds=400_000),
    SuiteCase("linear-explore", "linear", 2_000, 10),
)

SUITE_SCALING = Scaling(
    SuiteCase("uniform-scaling", "uniform", 10_000_000, 10, latency_rounds=0, repeats=5),
    (10, 30, 100, 300, 1_000, 10_000, 100_000, 1_000_000, 10_000_000),
)


def suite(quick: bool = False) -> tuple[tuple[SuiteCase, ...], Scaling]:
    """All cases and the scaling of the suite, or their small versions."""
    if quick:
        return tuple(case.small() for case in SUITE), SUITE_SCALING.small()
    return SUITE, SUITE_SCALING
