"""The service's own time: it never goes back, and a clock that is set while the service runs does not touch it.

Time to live is counted in it, and it stands in every event, so replay does not ask what time it is now. Within a
process it follows the monotonic clock; at a start it begins at the machine's date, or at the last event's time if that
is later.
"""

from __future__ import annotations

import time
from collections.abc import Callable


class ServiceClock:
    """Microseconds since 1970, from `date` (nanoseconds, asked once) and `steady` (nanoseconds)."""

    def __init__(
        self, date: Callable[[], int] = time.time_ns, steady: Callable[[], int] = time.monotonic_ns
    ) -> None:
        self._date, self._steady = date, steady
        self.begin(0)

    def begin(self, least: int) -> None:
        """Look at the date again; time goes on from there, but not before `least`."""
        self._base = max(self._date() // 1000, least) - self._steady() // 1000

    def now(self) -> int:
        """Microseconds."""
        return self._base + self._steady() // 1000
