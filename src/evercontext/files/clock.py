"""Read the clocks of the journal and the event log."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


class Clock:
    """Tells the time, and never the same time twice.

    What is ordered by it is in the order in which it happened: a clock that ticks slowly or is set
    back must not make a change as old as the checkpoint before it.
    """

    def __init__(self, now: Callable[[], int] = time.time_ns) -> None:
        self._now = now
        self._lock = threading.Lock()
        self._last = 0

    def follow(self, instant: int) -> None:
        """Tell only later instants than this one, which another process was told."""
        with self._lock:
            self._last = max(self._last, instant)

    def instant(self) -> int:
        """Nanoseconds since 1970, later than every instant that was told before."""
        with self._lock:
            self._last = max(self._now(), self._last + 1)
            return self._last


instant = Clock().instant
journal_clock = Clock()
"""Of every journal: it goes on from the last change, though the system's clock was set back."""
