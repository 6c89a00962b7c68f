"""What is measured: one case, a scaling over the number of arms, and the suite behind docs/performance.md."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

from semibandit.errors import ParameterError

PHASES = ("explore", "late")


@dataclass(frozen=True)
class Case:
    """One instance in one phase.

    `rounds` is the most that a repeat plays and `seconds` about what it may take; slower contenders play fewer
    rounds. Without `engines` all that fit are measured, without `rivals` all of them; () means none.
    """

    key: str
    matroid: str
    arms: int
    rank: int
    phase: str = "explore"
    env: str = "noise"
    clock: str = "auto"
    seed: int = 0
    rounds: int = 20_000
    repeats: int = 5
    seconds: float = 0.3
    late_rounds: int | None = None
    engines: tuple[str, ...] = ()
    rivals: tuple[str, ...] | None = None
    latency_rounds: int = 20_000

    def __post_init__(self) -> None:
        if self.phase not in PHASES:
            raise ParameterError(f"phase = {self.phase!r} is not known: one of {', '.join(PHASES)}")
        for name in ("arms", "rank", "rounds", "repeats"):
            if getattr(self, name) < 1:
                raise ParameterError(f"{name} must be at least 1, got {getattr(self, name)}")
        if not self.seconds > 0.0:
            raise ParameterError(f"seconds must be positive, got {self.seconds}")

    @property
    def title(self) -> str:
        """The case in a few words."""
        return f"{self.matroid}, K = {self.arms:,}, D = {self.rank:,}, {self.phase}"

    def describe(self) -> dict[str, Any]:
        """The settings as plain data."""
        listed = {f.name: getattr(self, f.name) for f in fields(self)}
        listed["engines"] = list(self.engines)
        listed["rivals"] = None if self.rivals is None else list(self.rivals)
        return {**listed, "title": self.title}

    def small(self) -> Case:
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

    case: Case
    arms: tuple[int, ...]
    fit_from: int = 10_000

    def cases(self) -> list[Case]:
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


def decades(largest: int, rank: int, matroid: str) -> tuple[int, ...]:
    """Numbers of arms for `--scaling`: the largest and a tenth, hundredth, thousandth of it, where they make sense."""
    found = [arms for arms in (largest // 1000, largest // 100, largest // 10, largest) if arms >= 2 * rank]
    if len(found) < 2:
        raise ParameterError(
            f"arms = {largest} is too few to scale {matroid} of rank {rank}: take at least {20 * rank} arms"
        )
    return tuple(found)


SUITE: tuple[Case, ...] = (
    Case("uniform-explore", "uniform", 1_000_000, 10),
    Case("uniform-wide", "uniform", 1_000_000, 100),
    Case("uniform-late", "uniform", 100_000, 10, "late", rounds=400_000, late_rounds=4_000_000),
    Case("partition-late", "partition", 1_000_000, 1_000, "late", late_rounds=1_000_000),
    Case("laminar-explore", "laminar", 100_000, 30),
    Case("laminar-late", "laminar", 100_000, 30, "late", late_rounds=300_000),
    Case("graphic-explore", "graphic", 499_500, 999, seconds=1.0),
    Case("graphic-late", "graphic", 20_000, 999, "late", late_rounds=300_000),
    Case("transversal-explore", "transversal", 10_000, 100),
    Case("transversal-late", "transversal", 10_000, 100, "late", late_rounds=400_000),
    Case("linear-explore", "linear", 2_000, 10),
)

SUITE_SCALING = Scaling(
    Case("uniform-scaling", "uniform", 10_000_000, 10, latency_rounds=0, repeats=5),
    (10, 30, 100, 300, 1_000, 10_000, 100_000, 1_000_000, 10_000_000),
)


def suite(quick: bool = False) -> tuple[tuple[Case, ...], Scaling]:
    """All cases and the scaling of the suite, or their small versions."""
    if quick:
        return tuple(case.small() for case in SUITE), SUITE_SCALING.small()
    return SUITE, SUITE_SCALING
