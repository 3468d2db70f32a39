from __future__ import annotations

import math
import os
from pathlib import Path

from evercontext.events.retention import Retention, prune, prune_soon

GONE = 999_999_999
"""The number of a process that never was."""


def segment(folder: Path, day: str, process: int, number: int, size: int = 100) -> Path:
    path = folder / f"{day}-{process}-{number:x}.jsonl"
    path.write_bytes(b"x" * size)
    os.utime(path, (number * 86_400, number * 86_400))
    return path


def test_settings_become_limits() -> None:
    """X14."""
    assert Retention.of(0, 0).total_bytes == math.inf
    assert Retention.of(0, 0).days == math.inf
    assert Retention.of(100, 7) == Retention(100_000_000, 7, 12_500_000)


def test_old_segments_go_and_those_being_written_stay(tmp_path: Path) -> None:
    """X14: a full log loses its beginning; a process that lives keeps the file it writes."""
    old = segment(tmp_path, "2020-01-01", GONE, 1)
    full = segment(tmp_path, "2020-01-02", os.getpid(), 2)
    mine = segment(tmp_path, "2020-01-03", os.getpid(), 3)
    theirs = segment(tmp_path, "2020-01-04", os.getppid(), 4)
    newest = segment(tmp_path, "2020-01-05", GONE, 5)
    (tmp_path / "notes.txt").write_text("not a segment")
    assert prune(tmp_path, Retention(total_bytes=150), mine) == 2
    assert sorted(tmp_path.glob("*.jsonl")) == [mine, theirs, newest]
    assert not old.exists()
    assert not full.exists()
    assert (tmp_path / "notes.txt").exists()


def test_it_is_looked_at_once_an_hour(tmp_path: Path) -> None:
    """X14: thousands of short commands a day do not read the folder thousands of times."""
    (tmp_path / ".pruned").touch()
    old = segment(tmp_path, "2020-01-01", GONE, 1)
    mine = segment(tmp_path, "2020-01-03", os.getpid(), 3)
    prune_soon(tmp_path, Retention(total_bytes=1), mine, at_once=False)
    assert old.exists()
