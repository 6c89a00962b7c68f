"""Which cases are slow ones, and in what order files are tested.

Files that take longest come first, so that no worker is left alone with one of them at the end.
"""

from __future__ import annotations

from typing import Any

import pytest

#: By the time they take, longest first; all others follow in the order in which they are found.
LONGEST = (
    "serve/test_failover.py",
    "docs/test_docs.py",
    "distributed/test_ray.py",
    "paper/test_structure.py",
    "serve/test_crashes.py",
    "experiments/test_experiment_resume.py",
    "compiled/test_jit.py",
    "paper/test_dynamic_graphic.py",
    "engines/test_graphic_engines.py",
    "report/test_report.py",
    "engines/test_laminar_engine.py",
    "engines/test_lockstep.py",
    "paper/test_faster_cucb.py",
    "house/test_threads.py",
    "serve/test_durability.py",
    "policies/test_cts.py",
    "engines/test_engines.py",
    "policies/test_cts_staged.py",
    "matroids/test_matroids_oracles.py",
    "benchmarks/test_published.py",
)


def pytest_configure(config: Any) -> None:
    config.option.loadscopereorder = False  # xdist would begin with the files of most tests


class Board:
    """The cases of one test that is marked ``thin``: every other one of a list is slow.

    Of several lists it is every other field, as on a chessboard: the fast run meets everything in each list, with half
    of the others. ``thin(1)`` takes the other colour.
    """

    def __init__(self) -> None:
        self._places: dict[tuple[str, ...], dict[tuple[int, ...], int]] = {}

    def is_slow(self, item: Any, first: int) -> bool:
        """Whether a case is behind ``slow``; asked of all cases in the order in which they are found."""
        place = first
        for lists in item.iter_markers("parametrize"):
            names = lists.args[0]
            columns = (
                tuple(name.strip() for name in names.split(",")) if isinstance(names, str) else tuple(names)
            )
            seen = self._places.setdefault(columns, {})
            place += seen.setdefault(tuple(id(item.callspec.params[name]) for name in columns), len(seen))
        return bool(place % 2)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[Any]) -> None:
    boards: dict[Any, Board] = {}
    for item in items:
        thin = item.get_closest_marker("thin")
        if thin is not None and boards.setdefault(item.function, Board()).is_slow(item, sum(thin.args)):
            item.add_marker("slow")
    places = {name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get("/".join(item.path.parts[-2:]), len(places)))
