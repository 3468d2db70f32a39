"""Bound the event log: how large a segment becomes, and how many segments are kept."""

from __future__ import annotations

import math
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from evercontext.events.log_reader import is_written, process_of, segments
from evercontext.files.retention import expired

_MARK = ".pruned"
_HOUR = 3600.0


@dataclass(frozen=True, slots=True)
class Retention:
    """Limits of the event log; infinite: no limit."""

    total_bytes: float = 1 << 30
    days: float = 60
    segment_bytes: int = 1 << 26

    @classmethod
    def of(cls, megabytes: int, days: int) -> Retention:
        """Return the limits that settings name; 0: no limit."""
        total = megabytes * 1_000_000 or math.inf
        # Many small segments, not two large ones: what is dropped is dropped whole.
        return cls(total, days or math.inf, int(min(1 << 26, max(1 << 20, total / 8))))


def prune(directory: Path, retention: Retention, current: Path | None = None) -> int:
    """Drop the oldest segments beyond what is kept; return how many."""
    every = segments(directory)
    newest = {process_of(path): path for path in every}
    # A process writes the newest of its segments; the others are finished.
    written = {path for path in newest.values() if path == current or is_written(path)}
    dropped = 0
    for path in expired(
        every,
        most_bytes=retention.total_bytes,
        most_days=retention.days,
        may_go=lambda path: path not in written,
    ):
        with suppress(OSError):
            path.unlink()
            dropped += 1
    return dropped


def prune_soon(directory: Path, retention: Retention, current: Path, *, at_once: bool) -> None:
    """Drop what is too much in a thread of its own, at most once an hour unless ``at_once``."""
    mark = directory / _MARK
    if not at_once and _is_fresh(mark):
        return

    def work() -> None:
        prune(directory, retention, current)
        with suppress(OSError):
            mark.touch(mode=0o600)

    # A daemon: what it leaves undone when the process ends, the next one does.
    threading.Thread(target=work, name="event log retention", daemon=True).start()


def _is_fresh(mark: Path) -> bool:
    try:
        return abs(time.time() - mark.stat().st_mtime) < _HOUR
    except OSError:
        return False
