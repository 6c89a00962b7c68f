"""What feedback is weighted by: the chance an arm had, and the loss predicted for it, when it was played."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from semibandit.arms import FloatArray, IntArray
from semibandit.errors import FileError
from semibandit.policies.ftrl.estimates import Estimates
from semibandit.policies.state import array_of

Play = tuple[IntArray, FloatArray, FloatArray]


class Plays:
    """Of each decision that waits: its arms, their chances then, and what was predicted. O(D) each."""

    def __init__(self) -> None:
        self._kept: dict[int, Play] = {}

    def __len__(self) -> int:
        return len(self._kept)

    def note(self, number: int, arms: IntArray, est: Estimates) -> None:
        """Decision `number` is what was just played. O(D)."""
        self._kept[number] = (arms.copy(), est.chance[arms], est.guess[arms])

    def forget(self, number: int) -> None:
        """Nothing more will be heard of it. O(1)."""
        self._kept.pop(number, None)

    @contextmanager
    def recalled(self, number: int, est: Estimates) -> Iterator[None]:
        """Let feedback of the arms of decision `number` be weighted as it was played; then as before. O(D)."""
        if number not in self._kept:
            yield
            return
        arms, chance, guess = self._kept[number]
        before = est.chance[arms], est.guess[arms]
        est.chance[arms], est.guess[arms] = chance, guess
        try:
            yield
        finally:
            est.chance[arms], est.guess[arms] = before

    def state(self) -> dict[str, Any]:
        """As it goes into a file."""
        kept = list(self._kept.values())
        none = np.empty(0)
        return {
            "ids": np.array(list(self._kept), dtype=np.int64),
            "sizes": np.array([len(arms) for arms, _, _ in kept], dtype=np.int64),
            "arms": np.concatenate([none.astype(np.int64), *(arms for arms, _, _ in kept)]),
            "chances": np.concatenate([none, *(chance for _, chance, _ in kept)]),
            "guesses": np.concatenate([none, *(guess for _, _, guess in kept)]),
        }

    @classmethod
    def from_state(cls, state: Any, n_arms: int) -> Plays:
        """The inverse; anything malformed is a `FileError`."""
        made = cls()
        ids, sizes = (array_of(state, name, np.int64) for name in ("ids", "sizes"))
        if len(ids) != len(sizes) or (sizes < 0).any():
            raise FileError("the plays that wait make no sense")
        total = int(sizes.sum())
        arms = array_of(state, "arms", np.int64, total)
        chances, guesses = (array_of(state, name, np.float64, total) for name in ("chances", "guesses"))
        fits = ((arms >= 0) & (arms < n_arms)).all() and are_chances(chances) and np.isfinite(guesses).all()
        if not fits:
            raise FileError("the plays that wait make no sense")
        ends = np.cumsum(sizes)
        for number, size, end in zip(ids.tolist(), sizes.tolist(), ends.tolist(), strict=True):
            part = slice(end - size, end)
            made._kept[number] = (arms[part].copy(), chances[part].copy(), guesses[part].copy())
        return made


def are_chances(values: FloatArray) -> bool:
    """Whether all are in (0, 1], a hair beyond allowed: sums of weights are rounded. O(n)."""
    return bool(((values > 0.0) & (values <= 1.0 + 1e-9)).all())
