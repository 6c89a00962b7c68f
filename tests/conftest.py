"""Which cases are slow ones, and in what order files are tested.

Files that take longest come first, so that no worker is left alone with one of them at the end.
"""

from __future__ import annotations

from typing import Any

import pytest

#: By processor time, longest first; all others follow in the order in which they are found.
LONGEST = (
    "serve/test_failover.py",
    "compiled/test_jit.py",
    "distributed/test_ray.py",
    "docs/test_docs.py",
    "serve/test_crashes.py",
    "experiments/test_experiment_resume.py",
    "serve/test_fuzz.py",
    "house/test_threads.py",
    "serve/test_full_disk.py",
    "serve/test_shards.py",
    "benchmarks/test_textbook.py",
    "benchmarks/test_published.py",
    "benchmarks/test_rivals.py",
    "distributed/test_featured.py",
    "paper/test_structure.py",
    "policies/test_cucb.py",
)


def pytest_configure(config: Any) -> None:
    config.option.loadscopereorder = False  # xdist would begin with the files of most tests


def in_slow_half(item: Any) -> bool:
    """Whether a case of a test that is marked ``thin`` is one of those behind ``slow``: every other one of a list.

    Of several lists it is every other field, as on a chessboard: the fast run meets everything in each list, with half
    of the others. ``thin(1)`` takes the other colour.
    """
    thin = item.get_closest_marker("thin")
    if thin is None or not hasattr(item, "callspec"):
        return False
    place = sum(thin.args)
    for lists in item.iter_markers("parametrize"):
        names = lists.args[0]
        first = names.split(",")[0].strip() if isinstance(names, str) else names[0]
        place += item.callspec.indices[first]
    return bool(place % 2)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[Any]) -> None:
    for item in items:
        if in_slow_half(item):
            item.add_marker("slow")
    places = {name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get("/".join(item.path.parts[-2:]), len(places)))
