from __future__ import annotations

import os
from pathlib import Path

from evercontext.files.retention import expired


def log(folder: Path, days: list[int]) -> list[Path]:
    segments = []
    for number, day in enumerate(days):
        segment = folder / f"{number}"
        segment.write_bytes(b"x" * 10)
        os.utime(segment, (day * 86_400, day * 86_400))
        segments.append(segment)
    return segments


def names(segments: list[Path], **limits: float) -> list[str]:
    limits = {"most_bytes": 1e9, "most_days": 1e9, **limits}
    chosen = expired(segments, may_go=lambda path: path.name != "0", **limits)
    return [path.name for path in chosen]


def test_the_oldest_go_by_size(tmp_path: Path) -> None:
    assert names(log(tmp_path, [1, 1, 1, 1]), most_bytes=20) == ["1"]


def test_days_with_something_count_and_a_jump_of_the_clock_is_one_day(tmp_path: Path) -> None:
    """X12, X14."""
    segments = log(tmp_path, [1, 2, 3, 3, 9_000])
    assert names(segments, most_days=4) == []
    assert names(segments, most_days=2) == ["1"]
    assert names(segments, most_days=1) == ["3", "2", "1"]


def test_what_somebody_removed_meanwhile_is_passed_over(tmp_path: Path) -> None:
    segments = log(tmp_path, [1, 2, 3])
    segments[1].unlink()
    assert names(segments, most_days=1) == []
