"""The columns of a log, wherever they are: a CSV or Parquet file, a pandas or polars frame, plain arrays.

Cells are read one column at a time. What is wrong with a cell is noted for its row, so that all malformed rows of a log
can be told at once.
"""

from __future__ import annotations

import csv
import difflib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from semibandit.arms import FloatArray, IntArray
from semibandit.errors import FileError, MissingExtraError, ParameterError

#: What a column can be, and its name unless a mapping gives another one.
ROLES = {
    "round": ("round",),
    "arm": ("arm",),
    "reward": ("reward",),
    "propensity": ("propensity", "probability"),
    "base_propensity": ("base_propensity",),
}
NEEDED = ("round", "arm", "reward")

_TEXT = (".csv", ".tsv", ".txt")
_PARQUET = (".parquet", ".pq")
_NAMES_SHOWN = 12

Objects = npt.NDArray[np.object_]


@dataclass
class Columns:
    """The columns of a log by role. `why` says for each row what is wrong with it, "" for nothing so far.

    `lines` gives the line of each row where the source is a text file.
    """

    name: str
    cells: dict[str, Any]
    why: Objects
    lines: list[int] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.why)

    def blame(self, bad: npt.NDArray[np.bool_], text: str) -> None:
        """Note `text` for the bad rows that have no reason yet. O(rows)."""
        self.why[bad & (self.why == "")] = text

    def place(self, row: int) -> str:
        """Where a row stands, for messages: counted from 1, without the header."""
        return f"row {row + 1} (line {self.lines[row]})" if self.lines else f"row {row + 1}"


def read_columns(source: Any, columns: Mapping[str, str] | None) -> Columns:
    """The columns of `source`, named by `columns` (role -> name) or by their role. O(cells).

    Raises
    ------
    FileError
        When the source cannot be read, or a column is not there.
    ParameterError
        When `columns` names a role that logs do not have, or the source is of no known kind.
    """
    wanted = _wanted(columns)
    if isinstance(source, (str, PathLike)):
        path = Path(source)
        suffix = path.suffix.lower()
        if suffix in _TEXT:
            return _read_text(path, wanted)
        if suffix in _PARQUET:
            return _from_frame(str(path), _read_parquet(path), wanted)
        raise FileError(f"{path}: the name of a log ends in .csv or .parquet")
    if hasattr(source, "collect"):  # a lazy frame of polars
        source = source.collect()
    if isinstance(source, Mapping) or (hasattr(source, "columns") and hasattr(source, "__getitem__")):
        return _from_frame("the log", source, wanted)
    raise ParameterError(
        "source must be the path of a CSV or Parquet file, a pandas or polars data frame, or a dictionary of arrays, "
        f"got {type(source).__name__}"
    )


def import_polars(purpose: str) -> Any:
    """The polars module, or an error that says what to install."""
    try:
        import polars
    except ImportError:
        raise MissingExtraError(f"{purpose} needs polars: pip install 'semibandit[results]'") from None
    return polars


def _wanted(columns: Mapping[str, str] | None) -> dict[str, tuple[str, ...]]:
    """The names under which each role is looked for."""
    if columns is not None and not isinstance(columns, Mapping):
        raise ParameterError(f"columns must map roles to names of columns, got {columns!r}")
    given = dict(columns or {})
    for role, name in given.items():
        if role not in ROLES:
            near = difflib.get_close_matches(str(role), ROLES, 1)
            hint = f" (did you mean {near[0]!r}?)" if near else ""
            raise ParameterError(f"columns: {role!r} is not known{hint}: one of {', '.join(ROLES)}")
        if not isinstance(name, str):
            raise ParameterError(f"columns[{role!r}] must be the name of a column, got {name!r}")
    return {role: (given[role],) if role in given else names for role, names in ROLES.items()}


def _find(source: str, present: list[str], wanted: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    """The column of each role that is there; an error for one that must be there and is not."""
    found = {}
    for role, names in wanted.items():
        here = [name for name in names if name in present]
        if here:
            if present.count(here[0]) > 1:
                raise FileError(f"{source} has two columns {here[0]!r}: rename one of them")
            found[role] = here[0]
        elif role in NEEDED or names != ROLES[role]:
            more = f" and {len(present) - _NAMES_SHOWN} more" if len(present) > _NAMES_SHOWN else ""
            raise FileError(
                f"{source} has no column {names[0]!r}; it has {', '.join(present[:_NAMES_SHOWN]) or 'none'}{more}. "
                f"Say which one it is: columns={{{role!r}: ...}}"
            )
    return found


# -- sources -----------------------------------------------------------------------------------------------------


def _read_text(path: Path, wanted: Mapping[str, tuple[str, ...]]) -> Columns:
    """A text file with a header, separated by commas, semicolons or tabs: whichever its header has most of."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            header = file.readline()
            mark = max(",;\t", key=header.count)
            names = [name.strip() for name in next(csv.reader([header], delimiter=mark), [])]
            if not any(names):
                raise FileError(f"{path} has no header: its first line must name the columns")
            found = _find(str(path), names, wanted)
            reader = csv.reader(file, delimiter=mark)
            records, lines = [], []
            for record in reader:
                if record:
                    records.append(record)
                    lines.append(reader.line_num + 1)
    except UnicodeDecodeError as error:
        raise FileError(f"{path} is not UTF-8 text (byte {error.start})") from None
    except csv.Error as error:
        raise FileError(f"{path} cannot be read as CSV: {error}") from None
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror or error}") from None
    why = np.full(len(records), "", dtype=object)
    width = len(names)
    for i, record in enumerate(records):
        if len(record) != width:
            why[i] = f"it has {len(record)} field{'s' * (len(record) != 1)}, the header has {width}"
            records[i] = [""] * width
    cells = {
        role: np.array([record[names.index(name)].strip() for record in records], dtype=str)
        for role, name in found.items()
    }
    return Columns(str(path), cells, why, lines)


def _read_parquet(path: Path) -> Any:
    polars = import_polars("a Parquet file")
    try:
        return polars.read_parquet(path, glob=False)
    except Exception as error:  # whatever polars raises for a file it cannot read
        text = str(error).splitlines()[0][:150] if str(error) else type(error).__name__
        raise FileError(f"{path} cannot be read as Parquet: {text}") from None


def _from_frame(name: str, frame: Any, wanted: Mapping[str, tuple[str, ...]]) -> Columns:
    """A mapping of arrays, or a data frame: something with names and a column for each."""
    names = list(frame) if isinstance(frame, Mapping) else list(frame.columns)
    found = _find(name, [one for one in names if isinstance(one, str)], wanted)
    cells = {role: _as_array(frame[column], column) for role, column in found.items()}
    lengths = {role: len(column) for role, column in cells.items()}
    if len(set(lengths.values())) > 1:
        told = ", ".join(f"{found[role]} has {n:,}" for role, n in lengths.items())
        raise FileError(f"{name}: columns must have one length, but {told} rows")
    return Columns(name, cells, np.full(len(cells["arm"]), "", dtype=object))


def _as_array(column: Any, name: str) -> Any:
    """A vector of numbers, or of objects with None where a cell is missing."""
    if hasattr(column, "null_count"):  # polars
        values = np.array(column.to_list(), dtype=object) if column.null_count() else column.to_numpy()
    elif hasattr(column, "isna"):  # pandas
        missing = np.asarray(column.isna())
        values = column.to_numpy(dtype=object) if missing.any() else column.to_numpy()
        if missing.any():
            values = values.copy()
            values[missing] = None
    else:
        values = np.asarray(column)
    if values.ndim != 1:
        raise FileError(f"column {name!r} must be a vector, got an array of shape {values.shape}")
    return values if values.dtype.kind in "iufbU" else values.astype(object)


# -- cells -------------------------------------------------------------------------------------------------------


def whole_numbers(table: Columns, role: str) -> IntArray:
    """A column of integers; a cell that is none is noted, and -1 stands in its place. O(rows)."""
    return np.asarray(_read_cells(table, role, np.int64, _to_int, "a whole number"), dtype=np.int64)


def numbers(table: Columns, role: str) -> FloatArray:
    """A column of finite numbers; a cell that is none is noted, and NaN stands in its place. O(rows)."""
    values = np.asarray(_read_cells(table, role, np.float64, _to_float, "a number"), dtype=np.float64)
    table.blame(~np.isfinite(values), f"{role} is not finite")
    return values


def labels(table: Columns, role: str) -> tuple[Any, IntArray]:
    """A column of names or numbers of rounds: the distinct ones in order, and the place of each row's among them.

    Integers are ordered by value. Names (the first of them is no integer) are ordered by their first row.
    O(rows log rows).
    """
    cells = table.cells[role]
    first = next((cell for cell in cells.tolist() if cell is not None and cell != ""), None)
    if cells.dtype.kind in "iuf" or first is None or _to_int(first) is not None:
        distinct, place = np.unique(whole_numbers(table, role), return_inverse=True)
        return distinct, np.asarray(place, dtype=np.int64)
    seen: dict[str, int] = {}
    missing = np.array([cell is None or cell == "" for cell in cells.tolist()], dtype=np.bool_)
    table.blame(missing, f"{role} is missing")
    places = [seen.setdefault(str(cell), len(seen)) for cell in cells.tolist()]
    return np.array(list(seen), dtype=object), np.array(places, dtype=np.int64)


def _read_cells(
    table: Columns, role: str, dtype: Any, convert: Callable[[Any], float | None], what: str
) -> Any:
    cells = table.cells[role]
    kind = cells.dtype.kind
    if kind == "i" or (kind in "ufb" and dtype is np.float64):
        return cells.astype(dtype)
    if kind == "U":
        try:
            return cells.astype(dtype)
        except (ValueError, OverflowError):
            pass  # some cell is at fault: find it
    values = np.full(len(cells), -1 if dtype is np.int64 else math.nan, dtype=dtype)
    for i, cell in enumerate(cells.tolist()):
        value = convert(cell)
        if value is not None:
            values[i] = value
        elif table.why[i] == "":
            missing = cell is None or cell == "" or (isinstance(cell, float) and math.isnan(cell))
            shown = repr(cell) if len(repr(cell)) <= 40 else repr(cell)[:37] + "..."
            table.why[i] = f"{role} is missing" if missing else f"{role} {shown} is not {what}"
    return values


def _to_int(cell: Any) -> int | None:
    """A cell as an integer that fits 64 bits; None if it is none."""
    if isinstance(cell, bool) or cell is None:
        return None
    try:
        value = (int(cell) if cell.lstrip("+-").isdigit() else float(cell)) if isinstance(cell, str) else cell
        number = int(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if number == value and -(2**63) <= number < 2**63 else None


def _to_float(cell: Any) -> float | None:
    """A cell as a number, infinite ones among them; None if it is none, or NaN where an object stands for missing."""
    if cell is None:
        return None
    try:
        return float(cell)
    except (TypeError, ValueError):
        return None
