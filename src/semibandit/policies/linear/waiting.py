"""The rows of decisions whose feedback comes later: what was played with which features."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from semibandit.arms import FloatArray
from semibandit.errors import FileError
from semibandit.policies.state import array_of


class WaitingRows:
    """By number of the decision: one row for each of its arms, or None where they were not told. O(D d) each."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.of: dict[int, FloatArray | None] = {}

    def state(self) -> dict[str, Any]:
        """As it goes into a file."""
        known = [rows for rows in self.of.values() if rows is not None]
        return {
            "waiting_ids": np.array(list(self.of), dtype=np.int64),
            "waiting_sizes": np.array(
                [-1 if rows is None else len(rows) for rows in self.of.values()], dtype=np.int64
            ),
            "waiting_rows": np.concatenate([np.empty(0), *(rows.reshape(-1) for rows in known)]),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any], size: int) -> WaitingRows:
        """The inverse; anything malformed is a `FileError`."""
        ids, sizes = (array_of(state, name, np.int64) for name in ("waiting_ids", "waiting_sizes"))
        flat = array_of(state, "waiting_rows", np.float64)
        lengths = np.maximum(sizes, 0) * size
        if len(ids) != len(sizes) or (sizes < -1).any() or lengths.sum() != len(flat):
            raise FileError("the features of decisions that wait make no sense")
        if not np.isfinite(flat).all():
            raise FileError("the features of decisions that wait must be finite")
        made = cls(size)
        ends = np.cumsum(lengths)
        for number, n, length, end in zip(
            ids.tolist(), sizes.tolist(), lengths.tolist(), ends.tolist(), strict=True
        ):
            made.of[number] = None if n < 0 else flat[end - length : end].reshape(n, size).copy()
        return made

    def widened(self, size: int) -> WaitingRows:
        """The same with zeros at the end of each row. O(all rows)."""
        made = WaitingRows(size)
        for number, rows in self.of.items():
            made.of[number] = None if rows is None else np.pad(rows, ((0, 0), (0, size - self.size)))
        return made

    @property
    def n_rows(self) -> int:
        """How many rows wait."""
        return sum(len(rows) for rows in self.of.values() if rows is not None)
