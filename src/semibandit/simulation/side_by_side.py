"""Runs side by side in threads, those that take longest first."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed

from semibandit.simulation.bar import Bar
from semibandit.simulation.result import SimulationResult

#: A policy's name, and the number of its run.
Task = tuple[str, int]


class Agenda:
    """Tasks to be done. Those of policies that took longest come first, so that workers end at about the same time.

    How long a policy takes is known from its first run, so one of each comes before all others.
    """

    def __init__(self, tasks: list[Task]) -> None:
        self._left: dict[str, list[Task]] = {}
        for task in reversed(tasks):
            self._left.setdefault(task[0], []).append(task)
        self._seconds = dict.fromkeys((name for name, _ in tasks), float("inf"))
        self._lock = threading.Lock()

    def next(self) -> Task:
        """A task that nobody has taken yet. O(policies)."""
        with self._lock:
            name = max((name for name in self._seconds if self._left[name]), key=self._seconds.__getitem__)
            task = self._left[name].pop()
            if self._seconds[name] == float("inf"):
                # Begun: another of its runs comes when nothing else is to be tried.
                self._seconds[name] = -1.0
            return task

    def took(self, task: Task, seconds: float) -> None:
        """A run is over. O(1)."""
        with self._lock:
            self._seconds[task[0]] = seconds


def play_side_by_side(
    tasks: list[Task], play: Callable[[Task], SimulationResult], workers: int, progress: bool | None
) -> list[SimulationResult]:
    """What `play` makes of each task, in the order of `tasks`, by so many threads. The first error ends it."""
    agenda = Agenda(tasks)
    found: dict[Task, SimulationResult] = {}

    def play_next() -> None:
        task = agenda.next()
        begin = time.perf_counter()
        found[task] = play(task)
        agenda.took(task, time.perf_counter() - begin)

    bar = Bar(len(tasks), "compare", progress, "run")
    pool = ThreadPoolExecutor(workers, thread_name_prefix="compare")
    try:
        for done, future in enumerate(as_completed([pool.submit(play_next) for _ in tasks]), start=1):
            future.result()
            bar.at(done)
    finally:
        pool.shutdown(cancel_futures=True)
        bar.close()
    return [found[task] for task in tasks]
