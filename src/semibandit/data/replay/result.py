"""What a replay gives back."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Any, NamedTuple

from semibandit.data.replay.columns import import_polars
from semibandit.errors import MissingExtraError, ParameterError
from semibandit.text import number, table

#: Heads of the table, and the fields of an estimate below them.
HEADER = ("estimator", "value per round", "95 % interval", "+-", "eff. rounds")


class Estimate(NamedTuple):
    """One estimate of the reward per round: its 95 % interval (`low`, `high`), the standard error, and how many rounds
    of its own it is worth, (sum of weights)^2 / (sum of squared weights)."""

    estimator: str
    value: float
    low: float
    high: float
    standard_error: float
    effective_samples: float


@dataclass(frozen=True, repr=False)
class ReplayResult:
    """What a policy would have earned per round, by several estimators: ``result["snips"].value``.

    Printed, it is a table; notebooks show it as one. `match` says what was matched, `propensities` where the
    probabilities come from: ``"logged"``, ``"uniform"`` or ``"frequencies"``. `matched_arms` counts arms shared with
    the log, `matched_rounds` rounds in which the whole base was, `chosen_arms` all arms chosen, `unseen_arms` those of
    them that occur nowhere in the log: of these it can tell nothing.
    """

    policy: str
    match: str
    propensities: str
    rounds: int
    matched_rounds: int
    matched_arms: int
    chosen_arms: int
    unseen_arms: int
    estimates: tuple[Estimate, ...]

    def __getitem__(self, estimator: str) -> Estimate:
        for one in self.estimates:
            if one.estimator == estimator:
                return one
        known = ", ".join(one.estimator for one in self.estimates)
        raise ParameterError(f"estimator = {estimator!r} was not asked for: {known}")

    def to_frame(self, kind: str = "polars") -> Any:
        """A row per estimator, as a data frame of ``"polars"`` (extra ``results``) or ``"pandas"`` (extra ``pandas``).

        O(estimators).
        """
        columns: dict[str, list[Any]] = {"policy": [self.policy] * len(self.estimates)}
        for field in Estimate._fields:
            columns[field] = [getattr(one, field) for one in self.estimates]
        if kind == "polars":
            return import_polars("to_frame").DataFrame(columns)
        if kind == "pandas":
            try:
                import pandas
            except ImportError:
                raise MissingExtraError(
                    "to_frame('pandas') needs pandas: pip install 'semibandit[pandas]'"
                ) from None
            return pandas.DataFrame(columns)
        raise ParameterError(f"kind = {kind!r} is not known: 'polars' or 'pandas'")

    def to_dict(self) -> dict[str, Any]:
        """All of it as JSON can hold it: None for NaN. O(estimators)."""
        told = {name: value for name, value in vars(self).items() if name != "estimates"}
        rows = [
            {name: None if value != value else value for name, value in one._asdict().items()}
            for one in self.estimates
        ]
        return {**told, "estimates": rows}

    def lines(self) -> list[tuple[str, ...]]:
        """The cells of the table below `HEADER`. O(estimators)."""
        return [
            (
                one.estimator,
                number(one.value),
                "-" if one.low != one.low else f"{number(one.low)} to {number(one.high)}",
                number(one.standard_error, 2),
                f"{one.effective_samples:,.0f}",
            )
            for one in self.estimates
        ]

    def notes(self) -> list[str]:
        """What a reader of the numbers should know. O(1)."""
        what = "arms" if self.match == "arms" else "whole bases"
        told = [
            f"{self.policy}: {self.rounds:,} rounds, {self.matched_arms:,} of {self.chosen_arms:,} arms and "
            f"{self.matched_rounds:,} bases as logged; by {what}, propensities: {self.propensities}"
        ]
        if not (self.matched_rounds if self.match == "base" else self.matched_arms):
            told.append(
                f"none of the chosen {what} was logged in its round: the log tells nothing of this policy"
            )
        elif self.unseen_arms:
            told.append(
                f"{self.unseen_arms:,} chosen arms occur nowhere in the log: they count as 0 (dr: by the model)"
            )
        return told

    def __str__(self) -> str:
        first, *rest = self.notes()
        return "\n".join([first, "", table(HEADER, self.lines()), *rest])

    def __repr__(self) -> str:
        told = ", ".join(
            f"{line[0]} {line[1]}" + ("" if line[2] == "-" else f" ({line[2]})") for line in self.lines()
        )
        return f"<replay of {self.policy}, {self.rounds:,} rounds: {told}>"

    def _repr_html_(self) -> str:
        first, *rest = self.notes()
        head = "".join(f"<th>{escape(cell)}</th>" for cell in HEADER)
        body = "".join(
            "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in line) + "</tr>" for line in self.lines()
        )
        told = "".join(f"<p>{escape(text)}</p>" for text in rest)
        return (
            f"<p>{escape(first)}</p><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{told}"
        )
