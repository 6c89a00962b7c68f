"""A log of decisions, read and checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from semibandit.arms import FloatArray, IntArray
from semibandit.checks import as_range, one_of
from semibandit.data.replay.columns import Columns, labels, numbers, read_columns, whole_numbers
from semibandit.errors import FileError, ParameterError
from semibandit.matroids import Matroid
from semibandit.matroids.naming import Table

_SHOWN = 5


@dataclass(frozen=True, repr=False)
class Log:
    """Logged decisions, round by round: those of round i are ``arms[starts[i]:starts[i + 1]]``, ascending.

    Made by `read_log`. `rounds` holds the numbers or names of the rounds, `propensities` the logged probability of each
    row's arm and `base_propensities` that of each round's base (None where the log gives none), `rows` the row of the
    source from which each entry comes, counted from 1. `skipped` lists (row, why) of rows that were left out.
    """

    matroid: Matroid
    reward_range: tuple[float, float]
    rounds: Any
    starts: IntArray
    arms: IntArray
    rewards: FloatArray
    rows: IntArray
    propensities: FloatArray | None = None
    base_propensities: FloatArray | None = None
    skipped: list[tuple[int, str]] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.rounds)

    def __repr__(self) -> str:
        kinds = (("arm", self.propensities), ("base", self.base_propensities))
        given = " and ".join(f"per {kind}" for kind, values in kinds if values is not None)
        return (
            f"<log of {len(self):,} rounds and {len(self.arms):,} rewards, {self.matroid!r}, "
            f"propensities: {given or 'none'}>"
        )


def read_log(
    source: Table,
    matroid: Matroid,
    reward_range: tuple[float, float] = (0.0, 1.0),
    *,
    columns: Mapping[str, str] | None = None,
    bad: str = "reject",
) -> Log:
    """Read and check a log of decisions: a row for each played arm.

    O(rows log rows), and one independence test per round.

    Parameters
    ----------
    source
        The path of a CSV file (with a header; commas, semicolons or tabs) or of a Parquet file (extra ``results``), a
        pandas or polars data frame, or a dictionary of arrays.
    matroid
        What the logging policy could play. The arms of every round must be independent in it.
    reward_range
        Where rewards lie.
    columns
        Names of the columns where they are not those of the table above, such as
        ``{"round": "page", "arm": "item", "reward": "click", "propensity": "p"}``.
    bad
        Malformed rows: ``"reject"`` names the first of them, ``"skip"`` leaves out the rounds they belong to.

    Raises
    ------
    FileError
        When the source cannot be read, lacks a column, has malformed rows, or nothing is left of it.

    Examples
    --------
    >>> import semibandit as sb
    >>> from semibandit.data.replay import read_log
    >>> pages = {"page": [1, 1, 2, 2], "item": [0, 3, 3, 2], "click": [0, 1, 1, 0], "p": [0.2, 0.8, 0.8, 0.3]}
    >>> names = {"round": "page", "arm": "item", "reward": "click", "propensity": "p"}
    >>> read_log(pages, sb.Uniform(n_arms=4, rank=2), columns=names)
    <log of 2 rounds and 4 rewards, Uniform(n_arms=4, rank=2), propensities: per arm>
    """
    one_of(bad, "bad", ("reject", "skip"))
    if not isinstance(matroid, Matroid):
        raise ParameterError(f"matroid must be a semibandit Matroid, got {type(matroid).__name__}")
    low, high = as_range(reward_range)
    table = read_columns(source, columns)
    n = len(table)
    names, rounds = labels(table, "round")
    arms = whole_numbers(table, "arm")
    table.blame((arms < 0) | (arms >= matroid.n_arms), f"arm is not one of 0 .. {matroid.n_arms - 1}")
    rewards = numbers(table, "reward")
    table.blame(~((rewards >= low) & (rewards <= high)), f"reward is outside ({low:g}, {high:g})")
    chances = {}
    for role in ("propensity", "base_propensity"):
        if role in table.cells:
            chances[role] = numbers(table, role)
            table.blame(~((chances[role] > 0.0) & (chances[role] <= 1.0)), f"{role} is not in (0, 1]")
    order = np.lexsort((arms, rounds))
    again = np.zeros(n, dtype=np.bool_)
    same_round = rounds[order][1:] == rounds[order][:-1]
    again[order[1:][same_round & (arms[order][1:] == arms[order][:-1])]] = True
    table.blame(again, "arm occurs twice in its round")
    good = order[table.why[order] == ""]
    places, starts = _rounds_of(rounds[good])
    if "base_propensity" in chances:
        given = chances["base_propensity"][good]
        other = np.zeros(n, dtype=np.bool_)
        other[good] = given != np.repeat(given[starts[:-1]], np.diff(starts))
        table.blame(other, "base_propensity differs within the round; it belongs to the whole base")
    for i, place in enumerate(places.tolist()):
        rows = good[starts[i] : starts[i + 1]]
        if not matroid.is_independent(arms[rows]):
            told = f"the {len(rows)} arms of round {names[place]} are not independent in {matroid!r}"
            table.why[rows.min()] = told
    skipped = _sort_out(table, rounds, bad)
    good = order[table.why[order] == ""]
    if good.size == 0:
        raise FileError(f"{table.name}: no row is left" if n else f"{table.name}: the log is empty")
    places, starts = _rounds_of(rounds[good])
    base = chances.get("base_propensity")
    return Log(
        matroid=matroid,
        reward_range=(low, high),
        rounds=names[places],
        starts=starts,
        arms=arms[good],
        rewards=rewards[good],
        rows=good + 1,
        propensities=chances["propensity"][good] if "propensity" in chances else None,
        base_propensities=None if base is None else base[good][starts[:-1]],
        skipped=skipped,
    )


def _rounds_of(rounds: IntArray) -> tuple[IntArray, IntArray]:
    """The distinct ones of ascending rounds, and where each begins, the end last."""
    distinct, first = np.unique(rounds, return_index=True)
    return distinct, np.append(first, len(rounds)).astype(np.int64)


def _sort_out(table: Columns, rounds: IntArray, bad: str) -> list[tuple[int, str]]:
    """Refuse malformed rows, or mark the whole rounds they belong to: a part of a base tells nothing of the base."""
    wrong = np.flatnonzero(table.why != "")
    if wrong.size and bad == "reject":
        told = "; ".join(f"{table.place(row)}: {table.why[row]}" for row in wrong[:_SHOWN].tolist())
        more = f"; and {len(wrong) - _SHOWN:,} more" if len(wrong) > _SHOWN else ""
        raise FileError(f"{table.name}: {told}{more}. Mend them, or skip their rounds with bad='skip'")
    lost = [row for row in wrong.tolist() if table.why[row] != "round is missing"]
    table.blame(np.isin(rounds, rounds[lost]), "another row of its round is malformed")
    return [(int(row) + 1, str(table.why[row])) for row in np.flatnonzero(table.why != "")]
