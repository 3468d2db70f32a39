from __future__ import annotations

import asyncio
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from evercontext.domain.event import Event, Final, Notice, Task, TextPiece, Unknown
from evercontext.errors import AuditUnavailable
from evercontext.events import log_reader
from evercontext.events.log import EventLog
from evercontext.events.redaction import Redactor
from evercontext.events.retention import Retention, prune

TASK = Task(text="app に Hello World を作成", root="app", model="m", mode="agent", door="run")


def lines(directory: Path) -> list[dict[str, object]]:
    return [
        json.loads(x) for path in directory.glob("*.jsonl") for x in path.read_text().splitlines()
    ]


@pytest.mark.contract("E26", "E28")
def test_every_line_is_json_with_its_trace_id(tmp_path: Path) -> None:
    log = EventLog(tmp_path)
    first = log.emit(TASK, trace_id="t1")
    log.emit(Notice(level="info", text="line\nbreak \x1b[2J"), trace_id="t1", parent=first.id)
    log.close()
    written = lines(tmp_path)
    assert [line["type"] for line in written] == ["task", "notice"]
    assert {line["trace_id"] for line in written} == {"t1"}
    assert written[1]["parent"] == first.id
    assert log_reader.read_trace(tmp_path, "t1")[0].body == TASK


@pytest.mark.case(135)
def test_secrets_leave_before_writing(tmp_path: Path) -> None:
    log = EventLog(tmp_path, Redactor(["canary-value-123"]))
    log.emit(Notice(level="info", text="it is canary-value-123"), trace_id="t")
    log.close()
    assert b"canary-value-123" not in next(tmp_path.glob("*.jsonl")).read_bytes()


def test_subscribers_hear_everything_and_files_only_what_lasts(tmp_path: Path) -> None:
    log, heard = EventLog(tmp_path), list[Event]()
    stop = log.subscribe(heard.append)
    log.emit(TextPiece(text="hi"), trace_id="t")
    log.emit(TASK, trace_id="t")
    stop()
    log.emit(TASK, trace_id="t")
    log.close()
    assert [event.body.type for event in heard] == ["text", "task"]
    assert len(lines(tmp_path)) == 2


def test_segments_are_private(tmp_path: Path) -> None:
    log = EventLog(tmp_path / "traces")
    log.emit(TASK, trace_id="t")
    assert log.segment is not None
    assert log.segment.stat().st_mode & 0o777 == 0o600
    assert log.segment.parent.stat().st_mode & 0o777 == 0o700
    log.close()


async def test_durable_lines_are_there_when_the_call_returns(tmp_path: Path) -> None:
    log = EventLog(tmp_path)
    await asyncio.gather(*(log.emit_durable(TASK, trace_id=str(n)) for n in range(50)))
    log.close()
    assert len(lines(tmp_path)) == 50


@pytest.mark.contract("E25")
async def test_a_log_that_cannot_be_written_refuses_durable_lines(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    log = EventLog(tmp_path / "file" / "traces")
    with pytest.raises(AuditUnavailable):
        await log.emit_durable(TASK, trace_id="t")
    log.emit(TASK, trace_id="t")


@pytest.mark.case(51)
def test_a_killed_process_leaves_whole_lines(tmp_path: Path) -> None:
    script = (
        "import os, sys, pathlib\n"
        "from evercontext.events.log import EventLog\n"
        "from evercontext.domain.event import Notice\n"
        "log = EventLog(pathlib.Path(sys.argv[1]))\n"
        "for n in range(200): log.emit(Notice(level='info', text='x' * 500), trace_id='t')\n"
        "os.kill(os.getpid(), 9)\n"
    )
    ended = subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=False)
    assert ended.returncode == -9
    assert len(log_reader.read_trace(tmp_path, "t")) == 200


def test_a_cut_line_is_passed_over(tmp_path: Path) -> None:
    log = EventLog(tmp_path)
    log.emit(TASK, trace_id="t")
    assert log.segment is not None
    with log.segment.open("ab") as segment:
        segment.write(b'{"id": "x", "at')
    log.close()
    assert len(log_reader.read_trace(tmp_path, "t")) == 1


def test_a_lone_surrogate_does_not_break_the_line(tmp_path: Path) -> None:
    log = EventLog(tmp_path)
    log.emit(Notice(level="info", text="bad \ud800 end"), trace_id="t")
    log.close()
    assert len(lines(tmp_path)) == 1


def test_bodies_of_a_newer_version_are_kept_as_they_are() -> None:
    line = {"id": "1", "at": "now", "trace_id": "t", "type": "hologram", "data": {"a": 1}, "v": 9}
    event = Event.from_json(line)
    assert event.body == Unknown(name="hologram", data={"a": 1})
    assert event.to_json()["data"] == {"a": 1}
    grown = Event.from_json(
        {
            **line,
            "type": "final",
            "data": {"status": "done", "text": "", "exit_code": 0, "new_field": 1},
        }
    )
    assert isinstance(grown.body, Final)


async def test_follow_sees_what_another_process_writes(tmp_path: Path) -> None:
    followed = log_reader.follow(tmp_path)
    waiting = asyncio.ensure_future(anext(followed))
    await asyncio.sleep(0.05)
    script = (
        "import sys, pathlib\n"
        "from evercontext.events.log import EventLog\n"
        "from evercontext.domain.event import Notice\n"
        "EventLog(pathlib.Path(sys.argv[1])).emit(Notice(level='info', text='x'), trace_id='far')\n"
    )
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-c", script, str(tmp_path), env={**os.environ}
    )
    event = await asyncio.wait_for(waiting, 30)
    await child.wait()
    assert event.trace_id == "far"


async def test_half_a_line_on_a_full_disk_is_taken_back(tmp_path: Path) -> None:
    log = EventLog(tmp_path)
    log.emit(Notice(level="info", text="first"), trace_id="t")
    assert log.segment is not None
    size = log.segment.stat().st_size
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 50, before[1]))
    try:
        with pytest.raises(AuditUnavailable):
            await log.emit_durable(Notice(level="info", text="x" * 200), trace_id="t")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)
    assert log.segment.stat().st_size == size
    log.emit(Notice(level="info", text="last"), trace_id="t")
    assert [event.body.text for event in log_reader.read(log.segment)] == ["first", "last"]  # type: ignore[attr-defined]
    log.close()


async def test_a_log_removed_while_it_is_written_goes_on_in_another_file(tmp_path: Path) -> None:
    """X13: requests were acknowledged whose lines were nowhere."""
    log = EventLog(tmp_path / "traces")
    await log.emit_durable(TASK, trace_id="t1")
    shutil.rmtree(tmp_path / "traces")
    await log.emit_durable(TASK, trace_id="t2")
    log.emit(TASK, trace_id="t3")
    written = lines(tmp_path / "traces")
    assert [(line["type"], line["trace_id"]) for line in written] == [
        ("notice", "t2"),
        ("task", "t2"),
        ("task", "t3"),
    ]
    assert (tmp_path / "traces").stat().st_mode & 0o777 == 0o700
    log.close()


@pytest.mark.parametrize("left", [0, 40])
async def test_a_segment_that_was_cut_off_gets_no_more_lines(tmp_path: Path, left: int) -> None:
    """X13: the next line would follow half a line, and nobody could read it."""
    log = EventLog(tmp_path)
    await log.emit_durable(TASK, trace_id="t1")
    assert log.segment
    os.truncate(log.segment, left)
    log.emit_audited(TASK, trace_id="t2")
    await log.emit_durable(TASK, trace_id="t3")
    assert log.segment
    written = [json.loads(line) for line in log.segment.read_text().splitlines()]
    assert [(line["type"], line["trace_id"]) for line in written] == [
        ("notice", "t2"),
        ("task", "t2"),
        ("task", "t3"),
    ]
    log.close()


async def test_a_replaced_segment_gets_no_more_lines(tmp_path: Path) -> None:
    """X13: an editor saves a copy under the same name."""
    log = EventLog(tmp_path)
    await log.emit_durable(TASK, trace_id="t1")
    assert log.segment
    (tmp_path / "copy").write_bytes(log.segment.read_bytes())
    (tmp_path / "copy").rename(log.segment)
    log.emit_audited(TASK, trace_id="t2")
    await log.emit_durable(TASK, trace_id="t3")
    log.close()
    assert [line["trace_id"] for line in lines(tmp_path)].count("t2") == 2
    assert {line["trace_id"] for line in lines(tmp_path)} == {"t1", "t2", "t3"}


async def test_a_line_whose_file_goes_before_it_is_on_disk_is_not_acknowledged(
    tmp_path: Path,
) -> None:
    """X13: removed between the write and the flush."""
    log = EventLog(tmp_path)
    waiting = asyncio.ensure_future(log.emit_durable(TASK, trace_id="t"))
    # One turn of the loop: the line is written, and the flush is yet to begin.
    await asyncio.sleep(0)
    assert log.segment
    log.segment.unlink()
    with pytest.raises(AuditUnavailable):
        await waiting
    await log.emit_durable(TASK, trace_id="t")
    log.close()


def test_a_full_segment_is_followed_by_another_and_the_oldest_go(tmp_path: Path) -> None:
    """X14: 533 MB in five minutes, without end."""
    log = EventLog(tmp_path, retention=Retention(total_bytes=30_000, segment_bytes=5_000))
    for number in range(200):
        log.emit(Notice(level="info", text=f"{number:04d}" * 100), trace_id="t")
    last = log.segment
    log.close()
    prune(tmp_path, Retention(total_bytes=30_000), last)
    sizes = [path.stat().st_size for path in log_reader.segments(tmp_path)]
    assert max(sizes) < 6_000
    assert 20_000 < sum(sizes) <= 30_000
    assert log_reader.read_trace(tmp_path, "t")[-1].body == Notice(level="info", text="0199" * 100)


def test_a_trace_is_read_from_all_segments_of_its_process(tmp_path: Path) -> None:
    """X14: the index knows only where it began."""
    log = EventLog(tmp_path, retention=Retention(segment_bytes=300))
    log.emit(TASK, trace_id="t")
    first = log.segment
    for _ in range(5):
        log.emit(TASK, trace_id="t")
    log.close()
    assert len(log_reader.segments(tmp_path)) > 1
    assert len(log_reader.read_trace(tmp_path, "t", first)) == 6


async def test_events_of_a_request_are_written_with_its_next_line(tmp_path: Path) -> None:
    log = EventLog(tmp_path)
    first = log.emit_soon(TASK, trace_id="t1")
    log.emit_soon(TASK, trace_id="t2")
    assert log.segment is None
    log.emit_audited(TASK, trace_id="t3")
    written = lines(tmp_path)
    assert [line["trace_id"] for line in written] == ["t1", "t2", "t3"]
    assert written[0]["id"] == first.id
    log.close()


async def test_events_that_nothing_follows_are_written_when_the_loop_turns(tmp_path: Path) -> None:
    log = EventLog(tmp_path)
    shown: list[str] = []
    log.subscribe(lambda event: shown.append(event.trace_id))
    log.emit_soon(TASK, trace_id="t1")
    assert shown == ["t1"]
    await asyncio.sleep(0)
    assert [line["trace_id"] for line in lines(tmp_path)] == ["t1"]
    log.emit_soon(TASK, trace_id="t2")
    log.close()
    assert [line["trace_id"] for line in lines(tmp_path)] == ["t1", "t2"]


async def test_gathered_events_do_not_hide_that_a_log_cannot_be_written(tmp_path: Path) -> None:
    log = EventLog(tmp_path / "traces")
    (tmp_path / "traces").write_text("in the way")
    log.emit_soon(TASK, trace_id="t1")
    with pytest.raises(AuditUnavailable):
        log.emit_audited(TASK, trace_id="t2")
    (tmp_path / "traces").unlink()
    log.emit_audited(TASK, trace_id="t3")
    assert [line["trace_id"] for line in lines(tmp_path / "traces")] == ["t3"]
    log.close()


def test_without_an_event_loop_they_are_written_at_once(tmp_path: Path) -> None:
    log = EventLog(tmp_path)
    log.emit_soon(TASK, trace_id="t1")
    assert [line["trace_id"] for line in lines(tmp_path)] == ["t1"]
    log.close()
