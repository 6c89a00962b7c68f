"""Measuring one case: warm-up, agreement of all decisions, interleaved repeats, medians, latencies."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from semibandit.arms import FloatArray, IntArray
from semibandit.bench.contenders import WAYS, Contender, check_engines, gather
from semibandit.bench.start import PHASES, Start, explore_start, late_start
from semibandit.checks import one_of
from semibandit.data.instances import random_environment
from semibandit.errors import ParameterError
from semibandit.machine import describe_machine

_CHECKED_ROUNDS = 50
_LEAST_ROUNDS = 3
_COUNTED_ROUNDS = 200
# Single rounds are measured for as many repeats' worth of time, so that p99.9 has something to go by.
_LATENCY_SHARE = 5.0

SCHEMA = 1

Say = Callable[[str], None]


def silent(message: str) -> None:
    """Say nothing."""


@dataclass(frozen=True)
class Case:
    """One instance in one phase.

    `rounds` is the most that a repeat plays and `seconds` about what it may take; slower contenders play fewer
    rounds. `engines` are those to be measured, the one that the ratios are about first; who else plays is the
    caller's affair.
    """

    key: str
    matroid: str
    arms: int
    rank: int
    phase: str = "explore"
    env: str = "noise"
    clock: str = "auto"
    exploration: float = 1.5
    seed: int = 0
    rounds: int = 20_000
    repeats: int = 5
    seconds: float = 0.3
    late_rounds: int | None = None
    engines: tuple[str, ...] = ()
    latency_rounds: int = 20_000

    def __post_init__(self) -> None:
        one_of(self.phase, "phase", PHASES)
        for name in ("arms", "rank", "rounds", "repeats"):
            if getattr(self, name) < 1:
                raise ParameterError(f"{name} must be at least 1, got {getattr(self, name)}")
        if not 0.0 < self.exploration < np.inf:
            raise ParameterError(f"exploration must be positive and finite, got {self.exploration}")
        if not self.seconds > 0.0:
            raise ParameterError(f"seconds must be positive, got {self.seconds}")

    @property
    def title(self) -> str:
        """The case in a few words."""
        return f"{self.matroid}, K = {self.arms:,}, D = {self.rank:,}, {self.phase}"

    def describe(self) -> dict[str, Any]:
        """The settings as plain data."""
        listed = {f.name: getattr(self, f.name) for f in fields(self)}
        return {**listed, "engines": list(self.engines), "title": self.title}


class BareLoop(Protocol):
    """Replays rounds without deciding anything."""

    def replay(self, played: IntArray) -> None: ...

    def update(self, arms: IntArray, rewards: FloatArray) -> None: ...


@contextmanager
def _no_collector() -> Iterator[None]:
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def prepare(case: Case, progress: bool | None = None) -> Start:
    """The state in which the case is measured: means with a gap in the late phase, independent ones otherwise."""
    settled = case.phase == "late"
    env = random_environment(case.env, case.matroid, case.arms, case.rank, seed=case.seed, settled=settled)
    if case.phase == "explore":
        return explore_start(env, case.clock, case.exploration)
    rounds = case.late_rounds or default_rounds_before(case.phase, case.arms, case.rank)
    return late_start(env, rounds, case.clock, progress, case.exploration)


def default_rounds_before(phase: str, arms: int, rank: int) -> int:
    """Rounds in which every arm could have been played 40 times (middle) or 400 times (late)."""
    return max(1000, (40 if phase == "middle" else 400) * arms // rank)


class _Row:
    """What is known of one contender played one way."""

    def __init__(self, name: str, kind: str, way: str, owner: Contender | None) -> None:
        self.name, self.kind, self.way, self.owner = name, kind, way, owner
        self.rounds = 0
        self.us: list[float] = []
        self.spikes: list[FloatArray] = []

    @property
    def median(self) -> float:
        return float(np.median(self.us))


class Measurement:
    """All contenders of a case, ours first, and what was measured of them. `run` does everything.

    `bare`, if given, replays what ours plays: the least that any contender could take.
    """

    def __init__(
        self,
        case: Case,
        start: Start,
        contenders: Sequence[Contender],
        bare: BareLoop | None = None,
        say: Say = silent,
    ) -> None:
        self.case, self.start, self.contenders, self.bare, self.say = case, start, contenders, bare, say
        self.rows: list[_Row] = []
        self.checks: dict[str, dict[str, Any]] = {}
        self.exchanges: list[float] = []

    def run(self) -> dict[str, Any]:
        """Measure and describe the case as plain data."""
        case = self.case
        with _no_collector():
            self._warm_up()
            for repeat in range(case.repeats):
                self.say(f"{case.title}: repeat {repeat + 1} of {case.repeats}")
                for way in WAYS:
                    self._repeat(way)
            latency = self._latency()
        return self._describe(latency)

    # -- warm-up: compile, settle, agree, and choose how many rounds each can afford ---------------------------

    def _warm_up(self) -> None:
        reference: list[IntArray] = []
        for contender in self.contenders:
            self.say(f"{self.case.title}: warming up {contender.name}")
            played = self._settle(contender)
            if contender.ours:
                reference = played
            comparable = contender.exact_ties or self.case.env != "bernoulli"
            n = min(len(reference), len(played))
            same = all(np.array_equal(a, b) for a, b in zip(reference[:n], played[:n], strict=True))
            self.checks[contender.name] = {"agrees": same if comparable else None, "checked_rounds": n}
        if self.bare is not None:
            self.bare.replay(np.full((1, self.case.rank), -1, dtype=np.int64))

    def _settle(self, contender: Contender) -> list[IntArray]:
        """Play until a repeat's time is used up; a row for each way, with the rounds it can afford."""
        budget = self.case.seconds
        took, played = contender.play(1)
        spent, n, each = 0.0, 4, 0.0
        while True:
            took, more = contender.play(n)
            each = float(took.mean()) * 1e-9
            spent += each * n
            if len(played) < _CHECKED_ROUNDS:
                played += more
            if spent >= budget or n >= self._cap():
                break
            n = min(2 * n, self._cap())
        self._add_row(contender, "python", each)
        if "compiled" in contender.ways:
            contender.play_compiled(1)
            n = min(8, self._cap())
            seconds = contender.play_compiled(n)
            while seconds < budget / 4 and n < self._cap():
                n = min(2 * n, self._cap())
                seconds = contender.play_compiled(n)
            self._add_row(contender, "compiled", seconds / n)
        return played[:_CHECKED_ROUNDS]

    def _cap(self) -> int:
        """Rounds a repeat may have: exploring ends when every arm was played a few times more, the middle moves on."""
        cap = self.case.rounds
        if self.case.phase == "middle":
            cap = min(cap, max(200, self.start.t // (4 * self.case.repeats)))
        if self.case.phase == "explore":
            # With few arms exploring lasts for many plays of each, so that a repeat need not be short.
            cap = min(cap, max(2000, 2 * self.case.arms // (self.case.rank * self.case.repeats)))
        return max(cap, _LEAST_ROUNDS)

    def _add_row(self, contender: Contender, way: str, seconds_each: float) -> None:
        row = _Row(contender.name, contender.kind, way, contender)
        row.rounds = int(np.clip(self.case.seconds / max(seconds_each, 1e-9), _LEAST_ROUNDS, self._cap()))
        self.rows.append(row)

    # -- one repeat ----------------------------------------------------------------------------------------

    def _repeat(self, way: str) -> None:
        log: IntArray | list[IntArray] | None = None
        for row in [row for row in self.rows if row.way == way and row.owner is not None]:
            contender = row.owner
            assert contender is not None
            if way == "python":
                took, played = contender.play(row.rounds)
                row.us.append(float(took.mean()) * 1e-3)
                if contender.kind == "engine":
                    row.spikes.append(took.astype(np.float64))
                if contender.ours:
                    log = played
                    self.exchanges.append(exchanges(played))
            else:
                rows = np.full((row.rounds if contender.ours else 0, self.case.rank), -1, dtype=np.int64)
                row.us.append(1e6 * contender.play_compiled(row.rounds, rows) / row.rounds)
                if contender.ours:
                    log = rows
        if self.bare is not None and log is not None:
            self._repeat_bare(way, log)

    def _repeat_bare(self, way: str, log: IntArray | list[IntArray]) -> None:
        """Replay what the first contender just played, on other memory, so that it is just as cold."""
        bare = self.bare
        assert bare is not None
        row = next((r for r in self.rows if r.owner is None and r.way == way), None)
        if row is None:
            row = _Row("bare loop", "bare", way, None)
            self.rows.append(row)
        row.rounds = len(log)
        if way == "compiled":
            assert isinstance(log, np.ndarray)
            begin = time.perf_counter_ns()
            bare.replay(log)
            spent = time.perf_counter_ns() - begin
        else:
            spent = 0
            for arms in log:
                rewards = np.full(len(arms), 0.5)
                begin = time.perf_counter_ns()
                bare.update(arms, rewards)
                spent += time.perf_counter_ns() - begin
        row.us.append(spent * 1e-3 / len(log))

    def _latency(self) -> dict[str, FloatArray]:
        """Time of single compiled rounds of the engine the case is about."""
        ours = self.contenders[0]
        if "compiled" not in ours.ways or self.case.latency_rounds == 0:
            return {}
        self.say(f"{self.case.title}: single rounds of {ours.name}")
        row = next(row for row in self.rows if row.owner is ours and row.way == "compiled")
        affordable = int(_LATENCY_SHARE * self.case.seconds / (row.median * 1e-6))
        n = min(self.case.latency_rounds, self._cap() * self.case.repeats, max(affordable, 20))
        return {ours.name: ours.latencies(n)}

    # -- plain data ----------------------------------------------------------------------------------------

    def _describe(self, latency: dict[str, FloatArray]) -> dict[str, Any]:
        ours = {row.way: row.median for row in self.rows if row.owner is not None and row.owner.ours}
        bare = {row.way: row.median for row in self.rows if row.owner is None}
        rows = []
        for row in self.rows:
            entry: dict[str, Any] = {
                "name": row.name,
                "kind": row.kind,
                "way": row.way,
                "us_per_round": row.median,
                "repeats_us": row.us,
                "rounds": row.rounds,
                "times_ours": {way: row.median / ours[way] for way in ours},
                "times_bare": row.median / bare[row.way] if row.way in bare else None,
                "latency_us": None,
            }
            if row.owner is None:
                entry["bytes_per_arm"] = 32.0
            else:
                entry["bytes_per_arm"] = row.owner.memory
                entry["auto"] = row.owner.auto
                entry["ours"] = row.owner.ours
                entry |= self.checks[row.name]
            if row.spikes:
                entry["latency_us"] = percentiles(np.concatenate(row.spikes) * 1e-3)
            if row.way == "compiled" and row.name in latency:
                entry["latency_us"] = percentiles(latency[row.name] * 1e-3)
            rows.append(entry)
        return {
            **self.case.describe(),
            "clock": self.start.clock_name,
            "late_rounds": None if self.case.phase == "explore" else self.start.t,
            "exchanges": float(np.median(self.exchanges)),
            "agree": all(check["agrees"] is not False for check in self.checks.values()),
            "rows": rows,
        }


def exchanges(played: Sequence[IntArray]) -> float:
    """How many arms of a round were not in the round before, on average; some hundred rounds are looked at."""
    some = played[:_COUNTED_ROUNDS]
    new = [np.setdiff1d(now, before).size for before, now in pairwise(some)]
    return float(np.mean(new)) if new else 0.0


def percentiles(took: FloatArray) -> dict[str, float]:
    """Median, tail and worst of single rounds."""
    p50, p99, p999 = np.percentile(took, [50, 99, 99.9])
    return {
        "p50": float(p50),
        "p99": float(p99),
        "p99_9": float(p999),
        "max": float(took.max()),
        "n": len(took),
    }


def measure_instance(case: Case, say: Say = silent, progress: bool | None = None) -> dict[str, Any]:
    """Our engines, numpy and a scan on one instance; plain data, ready for JSON.

    >>> told = measure_instance(Case("mine", "uniform", 30, 3, rounds=5, repeats=1, seconds=0.001))
    >>> told["cases"][0]["agree"]
    True
    """
    check_engines(case.engines)
    say(f"{case.title}: preparing")
    start = prepare(case, progress)
    measured = Measurement(case, start, gather(start, case.engines), None, say).run()
    return {"schema": SCHEMA, "machine": describe_machine(), "cases": [measured]}
