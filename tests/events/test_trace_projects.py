from __future__ import annotations

from pathlib import Path

from evercontext.domain.event import Body, Event, Final, Notice, Task
from evercontext.events.log import EventLog
from evercontext.events.trace_projects import Foreign


def event(trace: str, body: Body) -> Event:
    return Event("0", "2026-01-01", trace, body)


def begun(root: Path) -> Task:
    return Task(text="t", root=str(root), model="m", mode="agent", door="run")


FINAL = Final(status="done", text="", exit_code=0)


def test_a_trace_belongs_where_it_began(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "here")
    foreign = Foreign(tmp_path / "here")
    assert not foreign.holds(event("a", begun(tmp_path / "link")))
    assert not foreign.holds(event("a", FINAL))
    assert foreign.holds(event("b", begun(tmp_path / "elsewhere")))
    assert foreign.holds(event("b", FINAL))
    assert not foreign.holds(event("c", Notice(level="info", text="nobody's")))


def test_who_comes_later_finds_the_beginning_in_the_log(tmp_path: Path) -> None:
    log = EventLog(tmp_path / "traces")
    log.emit(begun(tmp_path / "elsewhere"), trace_id="b")
    log.close()
    assert Foreign(tmp_path, tmp_path / "traces").holds(event("b", FINAL))
    assert not Foreign(tmp_path).holds(event("b", FINAL))
