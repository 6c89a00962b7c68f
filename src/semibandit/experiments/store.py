"""The folder of an experiment: a file per finished cell, and at the end everything in two Parquet files.

Every file is written beside its place and moved there in one step, so whatever is there is whole, even after the
power went off. Times differ between runs, so they have a file of their own: ``results.parquet`` is the same bytes
however often the run was interrupted, and for any number of workers.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from semibandit.errors import ExperimentError, MissingExtraError
from semibandit.experiments.cells import FORMAT, Cell
from semibandit.experiments.definition import Experiment
from semibandit.text import needs

RESULTS, TIMINGS = "results.parquet", "timings.parquet"
_RESOLVED, _SOURCE, _VERSIONS, _LOCK, _CELLS = (
    "experiment.json",
    "experiment.toml",
    "versions.json",
    ".lock",
    "cells",
)
_SERIES = ("regret", "reward", "select_seconds", "update_seconds")


def write_whole(path: Path, data: bytes) -> None:
    """Put `data` at `path` in one step: a reader sees the old file or the new one, never a part."""
    waiting = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with open(waiting, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.replace(waiting, path)


def _json(value: Any) -> bytes:
    return (json.dumps(value, indent=1, allow_nan=False) + "\n").encode()


class Store:
    """The folder at `path`. Opening one reads nothing and writes nothing."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def prepare(self) -> None:
        """Make the folder; refuse one that holds other things."""
        if self.path.exists() and not self.path.is_dir():
            raise ExperimentError(f"{self.path}: a file is in the way; choose another --out")
        if self.path.is_dir() and not (self.path / _RESOLVED).exists():
            others = sorted(one.name for one in self.path.iterdir() if one.name not in (_LOCK, _CELLS))
            if others:
                raise ExperimentError(
                    f"{self.path}: holds {others[0]} but no {_RESOLVED}, so it is not a folder of results; "
                    "choose another --out"
                )
        (self.path / _CELLS).mkdir(parents=True, exist_ok=True)

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Only one run writes here at a time. The lock goes with the process, however it ends."""
        try:
            import fcntl
        except ImportError:  # Windows: nothing to lock with; writes are still whole
            yield
            return
        with open(self.path / _LOCK, "ab") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise ExperimentError(
                    f"{self.path}: another run is writing here; wait for it or stop it"
                ) from None
            yield

    def begin(self, experiment: Experiment, facts: list[dict[str, Any]], versions: dict[str, Any]) -> None:
        """Write down what is going to be run, and clear away what an interrupted run left half done."""
        for left in (self.path / _CELLS).glob(".*.tmp"):
            left.unlink(missing_ok=True)
        for left in self.path.glob(".*.tmp"):
            left.unlink(missing_ok=True)
        resolved = experiment.resolved()
        for instance, fact in zip(resolved["instances"], facts, strict=True):
            instance["facts"] = fact
        write_whole(self.path / _SOURCE, experiment.source.text.encode())
        write_whole(self.path / _VERSIONS, _json(versions))
        write_whole(self.path / _RESOLVED, _json({"format": FORMAT, **resolved}))

    def cell_path(self, key: str) -> Path:
        """Where the result of a cell is kept."""
        return self.path / _CELLS / f"{key}.json"

    def save_cell(self, key: str, result: dict[str, Any]) -> None:
        """Keep the result of a finished cell."""
        write_whole(self.cell_path(key), json.dumps(result, allow_nan=False).encode())

    def load_cell(self, cell: Cell) -> dict[str, Any] | None:
        """The result of a cell, None when it is not there or not whole."""
        try:
            result = json.loads(self.cell_path(cell.key).read_bytes())
        except (OSError, ValueError):
            return None
        marks = cell.content["checkpoints"]
        good = isinstance(result, dict) and result.get("format") == FORMAT and result.get("rounds") == marks
        if not good or any(len(result.get(name, ())) != len(marks) for name in _SERIES):
            return None
        return result  # type: ignore[no-any-return]

    def drop_results(self) -> None:
        """Take away the Parquet files of an earlier run: they no longer say what the folder holds."""
        for name in (RESULTS, TIMINGS):
            (self.path / name).unlink(missing_ok=True)

    def collect(self, experiment: Experiment, cells: list[Cell]) -> None:
        """Write the Parquet files from the files of all `cells`, in their order."""
        columns: dict[str, list[Any]] = {
            name: []
            for name in ("instance", "policy", "repeat", "round", *_SERIES, "engine", "clock", "path")
        }
        for cell in cells:
            result = self.load_cell(cell)
            if result is None:
                raise ExperimentError(f"{self.cell_path(cell.key)}: gone while the run went on; run it again")
            marks = result["rounds"]
            columns["instance"] += [experiment.instances[cell.instance].label] * len(marks)
            columns["policy"] += [experiment.policies[cell.policy].label] * len(marks)
            columns["repeat"] += [cell.repeat] * len(marks)
            columns["round"] += marks
            for name in _SERIES:
                columns[name] += result[name]
            for name in ("engine", "clock", "path"):
                columns[name] += [result[name]] * len(marks)
        where = ("instance", "policy", "repeat", "round")
        for name, own in ((TIMINGS, (*_SERIES[2:], "engine", "clock", "path")), (RESULTS, _SERIES[:2])):
            write_whole(self.path / name, _parquet({key: columns[key] for key in (*where, *own)}))

    def definition(self) -> dict[str, Any]:
        """The resolved experiment, as `begin` wrote it."""
        return self._read_json(_RESOLVED)

    def versions(self) -> dict[str, Any]:
        """Versions at the latest run."""
        return self._read_json(_VERSIONS)

    def source(self) -> str:
        """The experiment file as it was."""
        try:
            return (self.path / _SOURCE).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            return ""

    @property
    def finished(self) -> bool:
        """Whether the Parquet files of a whole run are there."""
        return all((self.path / name).is_file() for name in (RESULTS, TIMINGS))

    def frames(self) -> tuple[Any, Any]:
        """Results and timings as polars data frames."""
        polars = need_polars()
        for name in (RESULTS, TIMINGS):
            if not (self.path / name).is_file():
                raise ExperimentError(
                    f"{self.path}: no {name}: the run is not finished. Go on with the same `semibandit run`"
                )
        try:
            return polars.read_parquet(self.path / RESULTS), polars.read_parquet(self.path / TIMINGS)
        except Exception as error:
            raise ExperimentError(f"{self.path}: the Parquet files cannot be read ({error})") from None

    def _read_json(self, name: str) -> dict[str, Any]:
        try:
            value = json.loads((self.path / name).read_bytes())
        except OSError:
            raise ExperimentError(
                f"{self.path}: no {name}, so this is not a folder written by `semibandit run`"
            ) from None
        except ValueError:
            raise ExperimentError(f"{self.path / name}: not valid JSON") from None
        if not isinstance(value, dict):
            raise ExperimentError(f"{self.path / name}: must be an object, got {type(value).__name__}")
        return value


def need_polars() -> Any:
    """The polars module, or an error that says what to install."""
    try:
        import polars
    except ImportError:
        raise MissingExtraError(needs("a folder of results", "polars")) from None
    return polars


def _parquet(columns: dict[str, list[Any]]) -> bytes:
    polars = need_polars()
    kinds = {"repeat": polars.Int32, "round": polars.Int64}
    kinds |= {name: polars.String for name in ("instance", "policy", "engine", "clock", "path")}
    schema = {name: kinds.get(name, polars.Float64) for name in columns}
    out = io.BytesIO()
    polars.DataFrame(columns, schema=schema).write_parquet(out, compression="zstd")
    return out.getvalue()
