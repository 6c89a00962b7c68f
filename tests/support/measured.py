"""A measured case made by hand."""

from __future__ import annotations


def case_made_up(key: str, **us: float) -> dict[str, object]:
    """A measured case made by hand: ours, a rival, the bare loop, both ways."""
    rows: list[dict[str, object]] = []
    for way in ("python", "compiled"):
        for name, kind in (("kinetic", "engine"), ("numpy argpartition", "rival"), ("bare loop", "bare")):
            if name == "numpy argpartition" and way == "compiled":
                continue
            value = us[kind] * (3.0 if way == "python" and kind == "engine" else 1.0)
            mine = us["engine"]
            rows.append(
                {
                    "name": name,
                    "kind": kind,
                    "way": way,
                    "us_per_round": value,
                    "repeats_us": [value],
                    "rounds": 5,
                    "times_ours": {"python": value / (3 * mine), "compiled": value / mine},
                    "times_bare": value / us["bare"],
                    "latency_us": {"p50": 1.0, "p99": 2.0, "p99_9": 3.0, "max": 4.0, "n": 5},
                    "bytes_per_arm": 50.0,
                    "agrees": True,
                    "ours": kind == "engine",
                    "auto": kind == "engine",
                }
            )
    return {
        "key": key,
        "title": key,
        "phase": "explore",
        "matroid": "uniform",
        "arms": 1000,
        "rank": 10,
        "env": "noise",
        "clock": "exact",
        "late_rounds": None,
        "agree": True,
        "rows": rows,
    }
