from __future__ import annotations

import asyncio
from pathlib import Path

from evercontext.app import EverContext
from evercontext.domain.event import Audit, Notice, Task
from evercontext.events.log import EventLog
from evercontext.server.console.event_feed import EventFeed
from evercontext.server.console.kpi_history import KpiHistory
from evercontext.server.console.request import ConsoleRoute
from evercontext.server.console.stream import StreamReader, frame
from tests.app.test_application import configured


async def test_whoever_waits_is_woken_by_another_process_line(tmp_path: Path) -> None:
    log, watch = EventLog(tmp_path), EventFeed(tmp_path)
    async with watch.watching():
        waiting = asyncio.create_task(watch.wait(0, 20))
        await asyncio.sleep(0)
        log.emit(Notice(level="info", text="x"), trace_id="t1")
        await waiting
        assert watch.touched_since(0) == ["t1"]
        assert watch.touched_since(watch.number) == []
    await watch.close()
    log.close()


async def test_closing_lets_everybody_go(tmp_path: Path) -> None:
    watch = EventFeed(tmp_path)
    async with watch.watching():
        waiting = asyncio.create_task(watch.wait(0, 600))
        await asyncio.sleep(0)
        await watch.close()
        async with asyncio.timeout(60):
            await waiting


async def test_what_was_missed_too_long_ago_is_not_known(tmp_path: Path) -> None:
    log, watch = EventLog(tmp_path), EventFeed(tmp_path)
    watch._touched = type(watch._touched)(maxlen=2)
    for name in ("a", "b", "c"):
        log.emit(Notice(level="info", text="x"), trace_id=name)
    await watch.look(lambda ledger: None)
    assert watch.touched_since(0) is None
    assert watch.touched_since(1) == ["b", "c"]
    log.close()


def test_a_frame_cannot_be_broken_out_of() -> None:
    made = frame("run", {"text": "a\n\nevent: evil\r\ndata: x"}, "0" * 24)
    assert made.count(b"\n\n") == 1
    assert b"\r" not in made


def test_routes_match_whole_paths() -> None:
    async def nobody(ask: object) -> None:
        return None

    route = ConsoleRoute("GET", "runs/*/events", nobody)
    assert route.match("GET", ("runs", "a", "events")) == ("a",)
    assert route.match("POST", ("runs", "a", "events")) is None
    assert route.match("GET", ("runs", "a")) is None


def test_a_segment_is_read_again_only_when_it_has_grown(tmp_path: Path) -> None:
    log, history = EventLog(tmp_path), KpiHistory(tmp_path)
    log.emit(Task(text="x", root="/p", model="m", mode="agent", door="run"), trace_id="t")
    log.emit(Notice(level="info", text="not telling"), trace_id="t")
    first = history.since("2000-01-01")
    assert [event.body.type for event in first] == ["task"]
    assert history.since("2000-01-01")[0] is first[0]
    log.emit(Audit(method="x", path="", size=0, status=401, door="mcp"), trace_id="t")
    assert [event.body.type for event in history.since("2000-01-01")] == ["task", "audit"]
    assert history.since("9999-01-01") == []
    log.close()


async def test_a_silent_stream_says_that_it_is_there(tmp_path: Path) -> None:
    async with EverContext.open(configured(tmp_path)) as app:
        watch = EventFeed(app.settings.traces)
        frames = StreamReader(app, watch, None, "", beat=0.5).frames()
        said = [await anext(frames) for _ in range(3)]
        await frames.aclose()
        await watch.close()
    assert said[0].startswith(b"retry: ")
    assert b"event: approvals" in said[1]
    assert said[2] == b": still here\n\n"
