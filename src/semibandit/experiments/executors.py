"""Who runs the cells of an experiment: this process, several on this machine, or a cluster.

An executor is given cells and a folder. It tells of each cell when its result is on the disk, or what went wrong with
it; and in between, that nothing happened. What the results are does not depend on who ran them.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import queue
import signal
import threading
import time
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any, Protocol

from semibandit.errors import ExperimentError
from semibandit.experiments.cells import Cell, run_cell
from semibandit.experiments.store import Store

# How long an executor may be silent.
LOOK_SECONDS = 0.5

# How often Ray runs a cell again whose worker, or whole node, was lost.
_RETRIES = 5

#: A cell that has ended and what went wrong with it, if anything did; None: nothing happened for a while.
Ended = tuple[Cell, Exception | None] | None


class Executor(Protocol):
    """Runs cells. Whoever stops listening ends it."""

    def run(self, store: Store, cells: Sequence[Cell]) -> Generator[Ended, None, None]:
        """Run all of `cells`, in any order, and tell of each as it ends."""
        ...


def _run_and_save(folder: str, key: str, content: dict[str, Any]) -> None:
    """What a worker on this machine does: the result is on the disk before anybody is told."""
    Store(folder).save_cell(key, run_cell(content))


class InTurn:
    """One cell after the other, in this process."""

    def run(self, store: Store, cells: Sequence[Cell]) -> Generator[Ended, None, None]:
        """Tells of each cell."""
        for cell in cells:
            try:
                _run_and_save(str(store.path), cell.key, cell.content)
            except Exception as error:
                yield cell, error
            else:
                yield cell, None


class Processes:
    """So many processes of this machine, which are started anew and import this package."""

    def __init__(self, workers: int) -> None:
        self._workers = workers

    def run(self, store: Store, cells: Sequence[Cell]) -> Generator[Ended, None, None]:
        """Tells of cells as they end."""
        context = get_context("spawn")
        ended: queue.SimpleQueue[Future[None]] = queue.SimpleQueue()
        hear, tell = context.Pipe(duplex=False)
        pool = ProcessPoolExecutor(
            min(self._workers, len(cells)), mp_context=context, initializer=_start_worker, initargs=(hear,)
        )
        try:
            with _no_interrupts():
                futures: dict[Future[None], Cell] = {}
                for cell in cells:
                    future = pool.submit(_run_and_save, str(store.path), cell.key, cell.content)
                    future.add_done_callback(ended.put)
                    futures[future] = cell
            while futures:
                try:
                    future = ended.get(timeout=LOOK_SECONDS)
                except queue.Empty:
                    yield None
                    continue
                error: Any = future.exception()
                if isinstance(error, BrokenProcessPool):
                    raise error
                yield futures.pop(future), error
            pool.shutdown(wait=True)
        except BrokenProcessPool:
            raise ExperimentError(
                "a worker process died (out of memory?). What is finished is kept: run again, with fewer --workers"
            ) from None
        finally:
            tell.close()  # if something went wrong: workers still at it end at once
            pool.shutdown(wait=True, cancel_futures=True)
            hear.close()


def _start_worker(hear: Connection) -> None:
    """In a new worker: leave Ctrl-C to the parent, and end when the parent closes its side or dies."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def end_with_parent() -> None:
        with contextlib.suppress(EOFError, OSError):
            hear.recv_bytes()
        os._exit(1)

    threading.Thread(target=end_with_parent, daemon=True).start()


@contextlib.contextmanager
def _no_interrupts() -> Iterator[None]:
    """Ctrl-C waits until the end of this block; processes started in it never see it, even while they start."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _run_far_away(content: dict[str, Any], version: str) -> str:
    """What a worker of a cluster does: it may not see the folder, so the result is sent home."""
    from semibandit import __version__

    if version != __version__:
        raise ExperimentError(
            f"the cluster has semibandit {__version__}, this process {version}: install one version everywhere"
        )
    return json.dumps(run_cell(content), allow_nan=False)


class Cluster:
    """Tasks of Ray, each on one core of the cluster that `on` names (`semibandit.distributed.cluster`).

    Cells whose worker or node is lost are run again. `workers`: how many at a time at most; None: all cores, however
    many there are by then.
    """

    def __init__(self, on: str, workers: int | None = None) -> None:
        self._on, self._workers = on, workers

    def run(self, store: Store, cells: Sequence[Cell]) -> Generator[Ended, None, None]:
        """Tells of cells as they end."""
        from semibandit import __version__
        from semibandit.distributed.cluster import connect

        ray = connect(self._on)
        task = ray.remote(_run_far_away).options(num_cpus=1, max_retries=_RETRIES, retry_exceptions=False)
        waiting = list(reversed(cells))
        running: dict[Any, Cell] = {}
        limit, looked = self._workers or 0, -math.inf
        try:
            while waiting or running:
                # Nodes come and go; to ask for them is a message, too dear for every cell.
                if self._workers is None and time.monotonic() - looked > LOOK_SECONDS:
                    # Twice the cores, so that none waits for its next cell.
                    limit = 2 * max(1, int(ray.cluster_resources().get("CPU", 1)))
                    looked = time.monotonic()
                while waiting and len(running) < limit:
                    cell = waiting.pop()
                    running[task.remote(cell.content, __version__)] = cell
                ended, _ = ray.wait(list(running), num_returns=1, timeout=LOOK_SECONDS)
                if not ended:
                    yield None
                for one in ended:
                    cell = running.pop(one)
                    error = self._keep(ray, store, cell, one)
                    yield cell, error
        finally:
            for one in running:
                ray.cancel(one, force=True)

    def _keep(self, ray: Any, store: Store, cell: Cell, ended: Any) -> Exception | None:
        """Put the result of a cell on the disk; what went wrong, if something did."""
        try:
            store.save_cell(cell.key, json.loads(ray.get(ended)))
        except ray.exceptions.RayTaskError as error:
            return error.cause if isinstance(error.cause, Exception) else error
        except ray.exceptions.RayError as error:
            return ExperimentError(
                f"its worker was lost {_RETRIES + 1} times (no memory?). What is finished is kept: run again ({error})"
            )
        return None


def executor_for(on: str | None, workers: int | None, cells: int) -> Executor:
    """The executor for so many cells: of a cluster if `on` names one, else on this machine."""
    if on is not None:
        return Cluster(on, workers)
    if workers is None or workers == 1 or cells <= 1:
        return InTurn()
    return Processes(workers)
