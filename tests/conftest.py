"""Files that take longest come first, so that no worker is left alone with one of them at the end."""

from __future__ import annotations

from typing import Any

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


def pytest_collection_modifyitems(items: list[Any]) -> None:
    places = {name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get("/".join(item.path.parts[-2:]), len(places)))
