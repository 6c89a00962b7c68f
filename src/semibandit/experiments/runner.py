"""Running an experiment: what is missing, in one process or several, until done or stopped."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from semibandit.errors import ExperimentError, ParameterError, SemibanditError
from semibandit.experiments.cells import Cell, build_all, check_policies, list_cells
from semibandit.experiments.definition import Experiment
from semibandit.experiments.executors import Ended, executor_for
from semibandit.experiments.store import Store, need_polars

if TYPE_CHECKING:
    from semibandit.environments import Environment


class Stopped(KeyboardInterrupt):
    """Ctrl-C during a run; what was finished is kept."""

    def __init__(self, done: int, total: int) -> None:
        super().__init__(f"stopped with {done} of {total} cells finished")
        self.done, self.total = done, total


@dataclass(frozen=True)
class Outcome:
    """Where the results are, the number of cells, and how many of them were there already."""

    folder: Path
    total: int
    found: int


def run_experiment(
    experiment: Experiment,
    folder: str | Path,
    workers: int | None = None,
    progress: bool | None = None,
    on: str | None = None,
) -> Outcome:
    """Run every cell of `experiment` that `folder` does not hold yet, then write its Parquet files.

    The results do not depend on `workers`, on `on`, nor on how often the run was stopped. With one worker, or none
    named, everything runs in this process. Several are started anew and import this package, so a script that asks for
    them needs the usual ``if __name__ == "__main__":``. `on`: a cluster of Ray instead, ``"ray"``, ``"ray://host:port"``
    or ``"host:port"`` (extra ``ray``); `workers` then says how many cells at a time, by default as many as it has
    cores. Cells on a node that dies are run again. `progress` shows a bar on stderr, by default if that is a terminal.
    Ctrl-C raises `Stopped` (a KeyboardInterrupt).
    """
    if workers is not None and (not isinstance(workers, int) or isinstance(workers, bool) or workers < 1):
        raise ParameterError(f"workers must be a positive integer, got {workers!r}")
    need_polars()
    worlds = build_all(experiment)
    cells = list_cells(experiment, worlds)
    store = Store(folder)
    store.prepare()
    with store.locked():
        missing = _missing(store, cells)
        if missing:
            check_policies(experiment, worlds)
            store.drop_results()
        store.begin(experiment, [_facts(env) for env in worlds], _versions())
        found = len(cells) - sum(cell.key in missing for cell in cells)
        waiting = [missing[key] for key in missing]
        try:
            with _Bar(experiment.name, len(waiting), len({cell.key for cell in cells}), progress) as bar:
                if waiting:
                    with contextlib.closing(
                        executor_for(on, workers, len(waiting)).run(store, waiting)
                    ) as told:
                        _listen(told, experiment, bar)
            store.collect(experiment, cells)
        except KeyboardInterrupt:
            left = _missing(store, cells)
            raise Stopped(sum(cell.key not in left for cell in cells), len(cells)) from None
    return Outcome(store.path, len(cells), found)


def _missing(store: Store, cells: list[Cell]) -> dict[str, Cell]:
    """Cells without a result, each content once: all policies of a repeat together, so that they share a world."""
    order = sorted(cells, key=lambda cell: (cell.instance, cell.repeat, cell.policy))
    return {cell.key: cell for cell in order if store.load_cell(cell) is None}


def _listen(told: Iterator[Ended], experiment: Experiment, bar: _Bar) -> None:
    """Show what an executor tells; an error of a cell ends it."""
    for ended in told:
        if ended is not None:
            cell, error = ended
            with _about(cell, experiment):
                if error is not None:
                    raise error
            bar.step()
        bar.refresh()


@contextlib.contextmanager
def _about(cell: Cell, experiment: Experiment) -> Iterator[None]:
    """Errors in this block tell which cell they are about."""
    try:
        yield
    except SemibanditError as error:
        where = f"{experiment.instances[cell.instance].label}, {experiment.policies[cell.policy].label}"
        raise ExperimentError(f"{where}, repeat {cell.repeat}: {error}") from None


def _facts(env: Environment) -> dict[str, Any]:
    from semibandit.environments import Drifting, Switching

    inner = getattr(env, "inner", env)
    return {
        "matroid": repr(env.matroid),
        "arms": env.n_arms,
        "rank": env.matroid.rank,
        "objective": env.objective,
        "best": env.optimal_value,
        "changes": isinstance(inner, (Switching, Drifting)),
        "reward_range": [float(bound) for bound in env.reward_range],
    }


def _versions() -> dict[str, Any]:
    from semibandit.machine import describe_machine

    return describe_machine()


class _Bar:
    """Cells finished and time left, on stderr."""

    def __init__(self, name: str, left: int, total: int, wanted: bool | None) -> None:
        shown = (sys.stderr.isatty() if wanted is None else wanted) and left > 0
        self._make: Callable[[], Any] | None = None
        if shown:
            from tqdm import tqdm

            self._make = lambda: tqdm(
                total=total, initial=total - left, desc=name, unit="cell", smoothing=0.05, dynamic_ncols=True
            )
        self._bar: Any = None

    def __enter__(self) -> _Bar:
        if self._make is not None:
            self._bar = self._make()
        return self

    def __exit__(self, *about: object) -> None:
        if self._bar is not None:
            self._bar.close()

    def step(self) -> None:
        """One cell more."""
        if self._bar is not None:
            self._bar.update(1)

    def refresh(self) -> None:
        """Draw it anew: time goes on while no cell ends."""
        if self._bar is not None:
            self._bar.refresh()
