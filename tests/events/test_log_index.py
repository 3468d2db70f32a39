from __future__ import annotations

import json
import os
from pathlib import Path

from evercontext.domain.event import Audit, Final, ModelReply, Notice, Step, Task
from evercontext.events.log import EventLog
from evercontext.events.log_index import MOST_LOOSE, Ledger, moment_of
from evercontext.events.log_reader import read_trace

STEP = Step(tool="read_file", arguments={"path": "あ"}, effects=("read",), door="run", mode="agent")


def _task(log: EventLog, trace: str, root: str = "/p") -> None:
    log.emit(Task(text="する", root=root, model="m", mode="agent", door="run"), trace_id=trace)


def _final(log: EventLog, trace: str) -> None:
    body = Final(status="done", text="ok", exit_code=0, duration_ms=5, changed=("a.py",))
    log.emit(body, trace_id=trace)


def test_a_run_is_summed_up_as_it_grows(tmp_path: Path) -> None:
    log, ledger = EventLog(tmp_path), Ledger(tmp_path)
    assert ledger.refresh() == []
    _task(log, "t1")
    log.emit(ModelReply(model="m", turn=1, text="", input_tokens=7, cost_usd=0.5), trace_id="t1")
    log.emit(STEP, trace_id="t1")
    assert ledger.refresh() == ["t1"]
    run = ledger.runs["t1"]
    assert (run.text, run.status, run.input_tokens, run.cost_usd) == ("する", "running", 7, 0.5)
    assert ledger.status_of(run) == "running"
    _final(log, "t1")
    assert ledger.refresh() == ["t1"]
    assert (run.status, run.exit_code, run.changed, run.steps) == ("done", 0, ("a.py",), 1)
    assert ledger.calls == {"read_file": 1}
    assert ledger.refresh() == []
    log.close()


def test_events_are_read_back_by_place_and_after_an_id(tmp_path: Path) -> None:
    log, ledger = EventLog(tmp_path), Ledger(tmp_path)
    for number in range(500):
        log.emit(Notice(level="info", text=f"{number} " + "あ" * 50), trace_id=f"t{number % 2}")
    log.close()
    ledger.refresh()
    run = ledger.runs["t1"]
    truth = [event.to_json() for event in read_trace(tmp_path, "t1")]
    assert ledger.events(run, 0, 1_000) == json.loads(json.dumps(truth))
    assert ledger.events(run, 240, 5)[0]["data"]["text"].startswith("481 ")
    start, later = ledger.after(run, truth[247]["id"], 100)
    assert (start, [one["id"] for one in later]) == (248, [one["id"] for one in truth[248:]])
    assert ledger.after(run, "nonsense", 3)[0] == 0
    assert moment_of("g" * 24) == 0


def test_what_another_process_left_half_is_no_event_and_a_dead_one_was_cut_off(
    tmp_path: Path,
) -> None:
    log, ledger = EventLog(tmp_path), Ledger(tmp_path)
    _task(log, "t1")
    segment = log.segment
    assert segment
    log.close()
    dead = segment.rename(tmp_path / "2026-05-01-999999999-1.jsonl")
    with dead.open("ab") as lines:
        lines.write(b'{"id":"half')
    ledger.refresh()
    assert ledger.status_of(ledger.runs["t1"]) == "cut off"
    with dead.open("ab") as lines:
        lines.write(b' a line"}\nno json\n')
    assert ledger.refresh() == []


def test_tasks_newest_first_and_requests_at_the_doors(tmp_path: Path) -> None:
    log, ledger = EventLog(tmp_path), Ledger(tmp_path)
    for trace, root in (("a", "/p"), ("b", "/q"), ("c", "/p")):
        _task(log, trace, root)
    log.emit(Audit(method="POST /mcp", path="/mcp", size=0, status=401, door="rest"), trace_id="d")
    log.close()
    ledger.refresh()
    assert [run.trace_id for run in ledger.tasks()] == ["c", "b", "a"]
    assert [one["data"]["status"] for one in ledger.read(ledger.audits)] == [401]


def test_of_tasks_that_began_at_once_the_later_one_leads(tmp_path: Path) -> None:
    log, ledger = EventLog(tmp_path), Ledger(tmp_path)
    for trace in "abc":
        _task(log, trace)
    log.close()
    ledger.refresh()
    for run in ledger.runs.values():
        run.started = "2026-05-01T00:00:00.000000+00:00"
    assert [run.trace_id for run in ledger.tasks()] == ["c", "b", "a"]


def test_requests_without_a_task_do_not_fill_the_memory(tmp_path: Path) -> None:
    log, ledger = EventLog(tmp_path), Ledger(tmp_path)
    _task(log, "kept")
    for number in range(MOST_LOOSE + 100):
        body = Audit(method="POST /read_file", path="a", size=0, status=200, door="rest")
        log.emit(body, trace_id=f"request-{number}")
    log.close()
    ledger.refresh()
    assert len(ledger.runs) == MOST_LOOSE + 1
    assert [run.trace_id for run in ledger.tasks()] == ["kept"]
    assert "request-0" not in ledger.runs


def test_a_segment_that_came_later_is_found_though_old_ones_are_left_alone(tmp_path: Path) -> None:
    log, ledger = EventLog(tmp_path), Ledger(tmp_path)
    _task(log, "old")
    assert log.segment
    log.segment.rename(tmp_path / "2026-01-01-1-1.jsonl")
    log.close()
    long_ago = 1_767_225_600
    os.utime(tmp_path, (long_ago, long_ago))
    assert ledger.refresh() == ["old"]
    assert ledger.refresh() == []
    _task(log, "new")
    assert ledger.refresh() == ["new"]
    log.emit(STEP, trace_id="new")
    os.utime(tmp_path, (long_ago, long_ago))
    assert ledger.refresh() == ["new"]
    assert [run.trace_id for run in ledger.tasks()] == ["new", "old"]
    log.close()
