"""Choose the oldest files of a log to drop: by size, and by the days on which it was written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path


def expired(
    segments: Sequence[Path], *, most_bytes: float, most_days: float, may_go: Callable[[Path], bool]
) -> list[Path]:
    """Return the segments beyond the limits, of ``segments`` in the order they were begun.

    Age is counted in days on which something was written, not by the clock: one start with a
    clock that is months ahead adds one day, and drops nothing else.
    """
    total, days, last_day, dropped = 0, 0, "", []
    for path in reversed(segments):
        with suppress(OSError, ValueError, OverflowError):
            status = path.stat()
            day = f"{datetime.fromtimestamp(status.st_mtime, UTC):%Y-%m-%d}"
            days += day != last_day
            last_day = day
            total += status.st_size
            if (total > most_bytes or days > most_days) and may_go(path):
                dropped.append(path)
    return dropped
