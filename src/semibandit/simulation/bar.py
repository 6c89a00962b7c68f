"""A progress bar for runs that last."""

from __future__ import annotations

import sys
import time
from typing import Any


class Bar:
    """A progress bar that appears only when a run has lasted two seconds."""

    def __init__(self, total: int, name: str, wanted: bool | None, unit: str = "round") -> None:
        self._wanted = sys.stderr.isatty() if wanted is None else wanted
        self._total, self._name, self._unit = total, name, unit
        self._begin = time.perf_counter()
        self._bar: Any = None
        self._shown = 0

    def at(self, done: int) -> None:
        if not self._wanted:
            return
        if self._bar is None:
            if time.perf_counter() - self._begin < 2.0:
                return
            from tqdm import tqdm

            self._bar = tqdm(
                total=self._total, desc=self._name, unit=self._unit, unit_scale=True, leave=False
            )
        self._bar.update(done - self._shown)
        self._shown = done

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
