from __future__ import annotations

import io
import os
import time
from pathlib import Path

import pytest

from evercontext.cli.resume import latest
from evercontext.cli.terminal import Screen
from evercontext.cli.trace_lookup import newest
from evercontext.domain.event import Final, RolledBack, Task
from evercontext.errors import NotFound
from evercontext.events.log import EventLog
from evercontext.settings import load
from tests.cli.command import home


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    return root


def emit(day: str, trace_id: str, *bodies: Task | Final | RolledBack) -> Path:
    """Write a segment of its own, as every process has one."""
    log = EventLog(home() / "traces")
    for body in bodies:
        log.emit(body, trace_id=trace_id)
    assert log.segment
    place = log.segment.rename(log.segment.with_name(f"{day}-4194305-{trace_id[:4]}.jsonl"))
    log.close()
    return place


def record(root: Path, number: int, ended: str, *, mode: str = "agent", back: bool = False) -> Path:
    bodies: list[Task | Final | RolledBack] = [
        Task(text=f"課題 {number}", root=str(root), model="m", mode=mode, door="run")
    ]
    bodies += [RolledBack(restored=("a.txt",))] if back else []
    code = {"done": 0, "cancelled": 130}.get(ended, 1)
    bodies += [Final(status=ended, text="", exit_code=code, turns=1)] if ended else []
    return emit("2026-11-01", f"{number}" * 8 + "-aaaa-4aaa-8aaa-000000000000", *bodies)


def take_up(project: Path) -> tuple[str, list[str]]:
    """Which task is taken up, and what is said about it."""
    said = io.StringIO()
    found = latest(load({"root": str(project)}), Screen(said))
    return found.task.text, said.getvalue().splitlines()


def test_last_is_the_newest_that_can_be_taken_up_and_is_named(
    project: Path, tmp_path: Path
) -> None:
    record(project, 1, "failed")
    record(project, 2, "cancelled")
    record(project, 3, "", mode="dry-run")
    record(project, 4, "failed", mode="plan")
    record(tmp_path, 5, "failed")
    text, told = take_up(project)
    assert text == "課題 2"
    assert told[0].startswith("going on with 22222222 (cancelled, ")
    assert told[0].endswith("): 課題 2")


def test_what_cannot_be_taken_up_is_passed_over_and_said(project: Path) -> None:
    record(project, 1, "failed")
    record(project, 2, "failed", back=True)
    text, told = take_up(project)
    assert text == "課題 1"
    assert told[0] == (
        "note: what the task 22222222 did was rolled back, so an older one is taken up"
    )


def test_where_everything_is_finished_the_newest_is_named(project: Path) -> None:
    with pytest.raises(NotFound, match=r"^no task was cut off here\. See"):
        take_up(project)
    record(project, 1, "done")
    record(project, 2, "done")
    with pytest.raises(NotFound, match="cut off here: the task 22222222 is done, the newest here"):
        take_up(project)


def test_the_newest_is_the_one_begun_last_not_the_one_in_the_file_written_last(
    project: Path,
) -> None:
    old = record(project, 1, "failed")
    record(project, 2, "failed")
    # A process that lives long goes on writing into the segment of an old task.
    later = time.time() + 60
    os.utime(old, (later, later))
    assert newest(home() / "traces", 1)[0].text == "課題 2"
    assert take_up(project)[0] == "課題 2"


def test_an_ending_after_midnight_is_found(project: Path) -> None:
    record(project, 1, "")
    assert newest(home() / "traces", 1)[0].status == "cut off"
    ending = Final(status="done", text="", exit_code=0, turns=1)
    emit("2026-11-02", "1" * 8 + "-aaaa-4aaa-8aaa-000000000000", ending)
    assert newest(home() / "traces", 1)[0].status == "done"
    with pytest.raises(NotFound):
        take_up(project)
