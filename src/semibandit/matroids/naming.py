"""Names for arms: what constructors from graphs, tables and columns share.

A matroid made by one of them (`Graphic.from_networkx`, `Graphic.from_edges`, `Partition.from_column`,
`Laminar.from_nested`, `Transversal.from_frame`, `Transversal.from_sparse`, `Linear.from_sparse`) has the label of each
arm in `labels`, so that ``matroid.labels[policy.select()]`` tells what was chosen, and the names of its vertices, right
nodes, groups or families in `names`.

A table is a pandas or polars frame, a dictionary of columns, the path of a CSV file, or a sequence of rows that are
dictionaries. None of these libraries is imported: a frame is asked for its columns.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from semibandit.arms import IntArray
from semibandit.errors import FileError, MatroidError

if TYPE_CHECKING:
    from semibandit.matroids.base import Matroid

M = TypeVar("M", bound="Matroid")

#: The path of a CSV file, a dictionary of columns, a pandas or polars frame, or rows.
Table = str | os.PathLike[str] | Mapping[str, Any] | Iterable[Any]


def as_objects(values: Sequence[Any]) -> np.ndarray[Any, Any]:
    """`values` as a read-only vector of Python objects, tuples among them. O(n)."""
    made = np.fromiter(values, dtype=object, count=len(values))
    made.setflags(write=False)
    return made


def label_arms(matroid: M, labels: Any, names: Any = None, quotas: Any = None) -> M:
    """The same matroid with `labels` (None: the ids of the arms) and `names` written on it. O(K).

    Raises
    ------
    MatroidError
        When there is not one label per arm, or two arms have the same one.
    """
    given: list[Any] = list(range(matroid.n_arms)) if labels is None else column(labels, "labels")
    if len(given) != matroid.n_arms:
        raise MatroidError(f"labels: need one per arm ({matroid.n_arms}), got {len(given)}")
    distinct(given, "labels")
    notes = vars(matroid)
    notes["labels"] = as_objects(given)
    if names is not None:
        notes["names"] = as_objects(list(names))
    if quotas is not None:
        notes["quotas"] = tuple(quotas)
    return matroid


def distinct(labels: Sequence[Any], argument: str) -> dict[Any, int]:
    """The place of each label, or a `MatroidError` for one that comes twice or cannot be a label. O(n)."""
    place: dict[Any, int] = {}
    for at, label in enumerate(labels):
        if is_missing(label) or not isinstance(label, Hashable):
            raise MatroidError(f"{argument}[{at}] = {label!r}: a label must be hashable and not missing")
        if place.setdefault(label, at) != at:
            raise MatroidError(
                f"{argument}[{at}] = {label!r} is that of arm {place[label]} too: labels must be distinct"
            )
    return place


def numbered(values: Iterable[Any], argument: str, known: Iterable[Any] = ()) -> tuple[IntArray, list[Any]]:
    """Each value as a number, counted by first appearance after those in `known`; and the values. O(n)."""
    number: dict[Any, int] = {value: i for i, value in enumerate(known)}
    ids = []
    for at, value in enumerate(values):
        if is_missing(value) or not isinstance(value, Hashable):
            raise MatroidError(f"{argument}[{at}] = {value!r}: need a name in every row")
        ids.append(number.setdefault(value, len(number)))
    return np.array(ids, dtype=np.int64), list(number)


def is_missing(value: Any) -> bool:
    """Whether a cell of a table is empty: None, NaN or an empty text."""
    return value is None or value == "" or (isinstance(value, (float, np.floating)) and value != value)


# -- tables ------------------------------------------------------------------------------------------------------


def column(values: Any, argument: str) -> list[Any]:
    """A sequence, an array, or a column of pandas or polars as a list of Python objects. O(n)."""
    if isinstance(values, (str, bytes, Mapping)) or not isinstance(values, Iterable):
        raise MatroidError(f"{argument} = {values!r}: need a sequence with one value per arm")
    for method in ("to_list", "tolist"):
        if hasattr(values, method):
            made = getattr(values, method)()
            return made if isinstance(made, list) else [made]
    return list(values)


def columns_of(table: Any, wanted: Sequence[str]) -> list[list[Any]]:
    """The columns of a table by name, each as a list. O(size).

    Raises
    ------
    FileError
        When a CSV file cannot be read or has rows of another length than its header.
    MatroidError
        When a column is missing, columns differ in length, or this is no table.
    """
    if isinstance(table, (str, os.PathLike)):
        return _from_csv(Path(table), wanted)
    if isinstance(table, Mapping) or (hasattr(table, "columns") and hasattr(table, "__getitem__")):
        there = list(table) if isinstance(table, Mapping) else list(table.columns)
        _require(wanted, there, "the table")
        found = [column(table[name], f"column {name!r}") for name in wanted]
        if len(set(map(len, found))) > 1:
            sizes = ", ".join(f"{name!r} has {len(one)}" for name, one in zip(wanted, found, strict=True))
            raise MatroidError(f"columns must be equally long: {sizes}")
        return found
    rows = list(table) if isinstance(table, Iterable) else None
    if rows is None or not all(isinstance(row, Mapping) for row in rows):
        raise MatroidError(
            f"a table must be a pandas or polars frame, a dictionary of columns, the path of a CSV file, or rows that "
            f"are dictionaries, got {type(table).__name__}"
        )
    for at, row in enumerate(rows):
        _require(wanted, list(row), f"row {at}")
    return [[row[name] for row in rows] for name in wanted]


def _from_csv(path: Path, wanted: Sequence[str]) -> list[list[Any]]:
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.reader(file)
            header = next(reader, [])
            rows = [(reader.line_num, row) for row in reader if row]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise FileError(f"{path} cannot be read as CSV: {error}") from None
    _require(wanted, header, str(path))
    for line, row in rows:
        if len(row) != len(header):
            raise FileError(f"{path}, line {line}: {len(row)} cells, but the header has {len(header)}")
    return [[row[header.index(name)] for _, row in rows] for name in wanted]


def _require(wanted: Sequence[str], there: Sequence[Any], where: str) -> None:
    for name in wanted:
        if name not in there:
            shown = ", ".join(map(repr, there[:10])) or "none"
            raise MatroidError(f"{where} has no column {name!r}; its columns are {shown}")


def sparse_rows(matrix: Any, argument: str) -> Any:
    """A scipy.sparse matrix in CSR form without stored zeros and repetitions, a copy. O(stored entries)."""
    if not hasattr(matrix, "tocsr") or len(getattr(matrix, "shape", ())) != 2:
        raise MatroidError(
            f"{argument} must be a scipy.sparse matrix with a row per arm, got {type(matrix).__name__}"
        )
    rows = matrix.tocsr(copy=True)
    rows.sum_duplicates()
    rows.eliminate_zeros()
    return rows
