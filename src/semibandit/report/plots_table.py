"""The figure of the paper's Table 1: time per round over K, one panel a matroid class."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from semibandit.report.plots import BARE, OURS, RIVAL, _figure, _save, _title

_COLOUR = {"CUCB (resolve)": RIVAL, "FasterCUCB": OURS}


def plot_table(found: dict[str, Any], path: str | Path) -> None:
    """Draw what `semibandit.bench.paper.measure_table` found (.png, .svg)."""
    classes = found["classes"]
    figure, axes = _figure(3.4 * len(classes), 3.6, columns=len(classes), sharey=True)
    for axis, entry in zip(axes, classes):
        arms = entry["arms"]
        for line in entry["lines"]:
            colour = _COLOUR.get(line["name"], BARE)
            axis.loglog(arms, line["us_per_round"], "o-", color=colour, lw=2, ms=4)
            above = line["name"] != "FasterCUCB"
            axis.annotate(
                f"{line['name']}, K^{line['exponent']:.2f}",
                (arms[-1], line["us_per_round"][-1]),
                xytext=(0, 9 if above else -14),
                textcoords="offset points",
                ha="right",
                color=colour,
                fontsize=8.5,
            )
        axis.loglog(arms, entry["update_us"], "o:", color=BARE, lw=1.2, ms=3)
        axis.annotate(
            f"one update, K^{entry['update_exponent']:.2f}",
            (arms[-1], entry["update_us"][-1]),
            xytext=(0, -12),
            textcoords="offset points",
            ha="right",
            color=BARE,
            fontsize=8.5,
        )
        _title(axis, f"{entry['matroid']}, D = {entry['rank']}")
        axis.set_xlabel("arms K")
        axis.margins(y=0.18)
    axes[0].set_ylabel("microseconds a round")
    _save(figure, path)
