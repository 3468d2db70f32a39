from __future__ import annotations

from pathlib import Path

from evercontext.domain.event import Task, Verification
from evercontext.domain.tool import Caller, Door
from evercontext.events.earlier_tests import EarlierTestCounts
from evercontext.events.log import EventLog
from evercontext.workspace.check_counts import ran

COMMAND = ("pytest", "-q")


def record(
    traces: Path, root: Path, trace_id: str, *passed: int, command: tuple[str, ...] = COMMAND
) -> None:
    """One task with its checks, in a segment of its own."""
    log = EventLog(traces)
    log.emit(Task(text="x", root=str(root), model="m", mode="agent", door="run"), trace_id=trace_id)
    for number in passed:
        counts = {"passed": number, "skipped": 9}
        check = Verification(kind="test", command=command, exit_code=0, summary="", counts=counts)
        log.emit(check, trace_id=trace_id)
    assert log.segment
    log.segment.rename(traces / f"2026-11-{len(list(traces.iterdir())):02}-{trace_id}.jsonl")
    log.close()


async def test_the_last_task_counts_and_the_most_of_this_one(tmp_path: Path) -> None:
    traces, root = tmp_path / "traces", tmp_path / "日本"
    root.mkdir()
    before = EarlierTestCounts(traces, root, ran)
    assert await before(COMMAND, Caller("now", Door.RUN)) == 0
    record(traces, root, "oldest", 99)
    record(traces, root, "older", 14)
    record(traces, root, "without-counts")
    record(traces, tmp_path, "elsewhere", 50)
    record(traces, root, "other-command", 40, command=("pytest",))
    assert await before(COMMAND, Caller("now", Door.RUN)) == 14
    record(traces, root, "now", 20, 3)
    assert await before(COMMAND, Caller("now", Door.RUN)) == 20
