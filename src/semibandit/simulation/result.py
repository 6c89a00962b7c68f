"""What a simulation gives back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from semibandit.arms import FloatArray, IntArray
from semibandit.errors import MissingExtraError, ParameterError


def checkpoints(rounds: int, record_every: int | Sequence[int] | None) -> IntArray:
    """Rounds at which a run is recorded; the last one is the last round. O(number of checkpoints).

    Log-spaced by default (about 40 a decade: a curve over 10^6 rounds needs no more); every
    `record_every` rounds, or at the rounds that it lists, otherwise.
    """
    if record_every is None:
        n = 1 + int(40 * np.log10(rounds)) if rounds > 1 else 1
        marks = np.unique(np.round(np.geomspace(1, rounds, n)).astype(np.int64))
    elif isinstance(record_every, (int, np.integer)):
        marks = np.arange(record_every, rounds + 1, record_every, dtype=np.int64)
    else:
        marks = np.unique(np.asarray(record_every, dtype=np.int64))
    if len(marks) == 0 or marks[-1] != rounds:
        marks = np.append(marks, rounds)
    return marks


@dataclass
class SimulationResult:
    """One run. All arrays have one entry per checkpoint and are cumulative up to that round.

    `select_seconds` and `update_seconds` are the policy's own time; drawing rewards is in neither. `path` is
    ``"compiled"`` when policy and environment ran in one kernel, else ``"stepwise"``.
    """

    policy: str
    rounds: IntArray
    regret: FloatArray
    reward: FloatArray
    select_seconds: FloatArray
    update_seconds: FloatArray
    path: str
    arms: IntArray | None = None
    about: dict[str, Any] = field(default_factory=dict)

    @property
    def microseconds_per_round(self) -> float:
        """The policy's time per round, select and update together, averaged over the run."""
        total = float(self.select_seconds[-1] + self.update_seconds[-1])
        return 1e6 * total / float(self.rounds[-1])

    def to_frame(self) -> Any:
        """The run as a polars data frame (extra ``results``), a row per checkpoint."""
        return _frame(self._columns())

    def _columns(self) -> dict[str, Any]:
        n = len(self.rounds)
        return {
            "policy": [self.policy] * n,
            "round": self.rounds,
            "regret": self.regret,
            "reward": self.reward,
            "select_seconds": self.select_seconds,
            "update_seconds": self.update_seconds,
        }


@dataclass
class Comparison:
    """Several policies on the same reward streams. `runs[name]` lists one `SimulationResult` per repeat."""

    runs: dict[str, list[SimulationResult]]

    @property
    def rounds(self) -> IntArray:
        """The checkpoints, the same for every run."""
        return next(iter(self.runs.values()))[0].rounds

    def regret(self, policy: str) -> FloatArray:
        """Cumulative regret of `policy`, repeats x checkpoints."""
        if policy not in self.runs:
            raise ParameterError(f"policy = {policy!r} was not compared: {', '.join(self.runs)}")
        return np.array([run.regret for run in self.runs[policy]])

    def mean_regret(self, policy: str) -> FloatArray:
        """Mean over repeats at each checkpoint."""
        return np.asarray(self.regret(policy).mean(axis=0))

    def standard_error(self, policy: str) -> FloatArray:
        """Standard error of the mean at each checkpoint (NaN for a single repeat)."""
        regret = self.regret(policy)
        if len(regret) < 2:
            return np.full(regret.shape[1], np.nan)
        return np.asarray(regret.std(axis=0, ddof=1) / np.sqrt(len(regret)))

    def summary(self) -> list[dict[str, Any]]:
        """A row per policy: final regret, its standard error, microseconds a round, path."""
        rows: list[dict[str, Any]] = []
        for name, runs in self.runs.items():
            about: dict[str, Any] = {k: runs[0].about[k] for k in ("engine", "clock") if k in runs[0].about}
            rows.append(
                {
                    "policy": name,
                    "rounds": int(self.rounds[-1]),
                    "repeats": len(runs),
                    "regret": float(self.mean_regret(name)[-1]),
                    "standard_error": float(self.standard_error(name)[-1]),
                    "reward": float(np.mean([run.reward[-1] for run in runs])),
                    "select_us": float(np.median([1e6 * r.select_seconds[-1] / r.rounds[-1] for r in runs])),
                    "update_us": float(np.median([1e6 * r.update_seconds[-1] / r.rounds[-1] for r in runs])),
                    "path": runs[0].path,
                    **about,
                }
            )
        return rows

    def to_frame(self) -> Any:
        """All runs as one polars data frame (extra ``results``), a row per policy, repeat and checkpoint."""
        columns: dict[str, list[Any]] = {}
        for runs in self.runs.values():
            for repeat, run in enumerate(runs):
                part = {**run._columns(), "repeat": [repeat] * len(run.rounds)}
                for key, value in part.items():
                    columns.setdefault(key, []).extend(np.asarray(value).tolist())
        return _frame(columns)


def _frame(columns: dict[str, Any]) -> Any:
    try:
        import polars
    except ImportError:
        raise MissingExtraError(
            "to_frame needs polars: install it with `pip install semibandit[results]`"
        ) from None
    return polars.DataFrame(columns)
