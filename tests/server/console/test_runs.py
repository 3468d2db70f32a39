from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evercontext.app import EverContext
from evercontext.domain.event import Notice
from evercontext.events.log import EventLog
from tests.server.console.visit import Visit
from tests.server.console.world import DISCOUNT, HOSTILE, World, write


def _run(visit: Visit, words: str) -> dict[str, Any]:
    found: list[dict[str, Any]] = visit.get("runs", q=words)["runs"]
    assert len(found) == 1, found
    return found[0]


def _task(world: World, text: str, *turns: dict[str, Any], root: Path | None = None) -> str:
    async def work() -> str:
        settings = replace(world.settings, root=root or world.root)
        async with EverContext.open(settings) as app:
            report = await app.run_task(text, model_name=world.script(*turns))
            return report.trace_id

    return asyncio.run(work())


@pytest.mark.contract("E27")
def test_a_run_is_told_from_task_to_final(visit: Visit) -> None:
    run = _run(visit, "slower")
    assert (run["status"], run["steps"], run["changed"]) == ("done", 3, ["shop/accounts.py"])
    assert (run["input_tokens"], run["output_tokens"]) == (13_700, 540)
    told = visit.get(f"runs/{run['trace_id']}")
    kinds = [event["type"] for event in told["frame"]]
    assert kinds[0] == "task"
    assert kinds[-1] == "final"
    assert "evidence" in kinds
    window = visit.get(f"runs/{run['trace_id']}/events", start=2, limit=3)
    assert (len(window["events"]), window["total"]) == (3, run["events"])
    [diff] = visit.get(f"runs/{run['trace_id']}/diffs")["diffs"]
    assert diff["path"] == "shop/accounts.py"
    assert "+    return hashlib.scrypt" in diff["diff"]


@pytest.mark.contract("E52")
def test_a_plan_and_what_was_remembered_are_told(visit: Visit) -> None:
    run = _run(visit, "which day we deploy")
    told = visit.get(f"runs/{run['trace_id']}")
    plan = next(event for event in told["frame"] if event["type"] == "plan")
    assert [task["id"] for task in plan["data"]["tasks"]] == ["tax", "docs"]
    ended = [event["data"]["id"] for event in told["frame"] if event["type"] == "task_ended"]
    assert ended == ["tax", "docs"]
    assert run["plan"] == 2
    assert any("Tuesdays" in words for words in told["memories"].values())


def test_runs_are_found_by_words_and_by_how_they_ended(visit: Visit, world: World) -> None:
    link, other = world.folder / "link", world.folder / "other"
    link.symlink_to(world.root)
    other.mkdir()
    _task(world, "through a link", {"text": "done"}, root=link)
    _task(world, "in another project", {"text": "done"}, root=other)
    assert visit.get("runs", q="through a link")["total"] == 1
    assert visit.get("runs", q="in another project")["total"] == 0
    assert visit.get("runs", q="一割引")["total"] == 1
    failed = visit.get("runs", status="failed")["runs"]
    assert {run["status"] for run in failed} == {"refused"}
    page = visit.get("runs", start=1, limit=2)
    assert [run["trace_id"] for run in page["runs"]] == [
        run["trace_id"] for run in visit.get("runs")["runs"][1:3]
    ]
    assert visit.get("runs", project="all")["total"] == visit.get("runs")["total"] + 1


def test_long_texts_are_cut_in_the_list_and_whole_alone(visit: Visit, world: World) -> None:
    trace = _task(world, "long", write("long.txt", "x" * 5_000), {"text": "y" * 60_000})
    events = visit.get(f"runs/{trace}/events")["events"]
    last = len(events) - 1
    assert len(events[last]["data"]["text"]) < 41_000
    assert len(visit.get(f"runs/{trace}/events/{last}")["data"]["text"]) == 60_000


@pytest.mark.contract("E54")
def test_a_run_is_undone_once_and_says_what_it_would_do(visit: Visit, world: World) -> None:
    trace = _task(world, "undo me", write("made.py", DISCOUNT), {"text": "done"})
    assert visit.get(f"runs/{trace}")["undo"]["possible"]
    would = visit.post(f"runs/{trace}/undo", {"dry_run": True}).json()
    assert would["removed"] == ["made.py"]
    assert (world.root / "made.py").exists()
    assert visit.post(f"runs/{trace}/undo", {}).status_code == 422
    assert visit.post(f"runs/{trace}/undo", {"dry_run": False}).json()["removed"] == ["made.py"]
    assert not (world.root / "made.py").exists()
    told = visit.get(f"runs/{trace}")["undo"]
    assert (told["possible"], told["undone"]) == (False, True)


def test_a_stream_goes_on_after_the_last_event_that_was_seen(visit: Visit) -> None:
    run = _run(visit, "slower")
    whole = visit.get(f"runs/{run['trace_id']}/events", limit=500)["events"]
    with visit.stream(trace=run["trace_id"]) as messages:
        first = [next(messages) for _ in range(len(whole))]
    assert [one.id for one in first] == [event["id"] for event in whole]
    assert [one.data["position"] for one in first] == list(range(len(whole)))
    with visit.stream(last=first[5].id, trace=run["trace_id"]) as messages:
        rest = [next(messages) for _ in range(len(whole) - 6)]
    assert [one.id for one in rest] == [event["id"] for event in whole[6:]]


def test_runs_of_other_processes_are_heard_live(visit: Visit, world: World) -> None:
    with visit.stream() as messages:
        assert next(messages).event == "approvals"
        trace = _task(world, "heard live", {"text": "done"})
        heard = next(one for one in messages if one.event == "run" and one.data["exit_code"] == 0)
    assert heard.data["trace_id"] == trace
    last = heard.id
    later = _task(world, "while away", {"text": "done"})
    with visit.stream(last=last) as messages:
        missed = next(one for one in messages if one.event == "run")
    assert missed.data["trace_id"] == later


def test_a_reader_that_missed_too_much_loads_again(visit: Visit, world: World) -> None:
    log = EventLog(world.home / "traces")
    for number in range(3_000):
        log.emit(Notice(level="info", text=str(number)), trace_id="b" * 8)
    log.close()
    first = visit.get(f"runs/{'b' * 8}/events", limit=1)["events"][0]
    with visit.stream(last=first["id"], trace="b" * 8) as messages:
        assert next(messages).event == "reset"
    window = visit.get(f"runs/{'b' * 8}/events", start=2_990, limit=100)
    assert [event["data"]["text"] for event in window["events"]] == [
        str(number) for number in range(2_990, 3_000)
    ]


@pytest.mark.case(95)
def test_hostile_text_stays_data(visit: Visit) -> None:
    run = _run(visit, "onerror")
    assert run["text"].startswith(f"Write {HOSTILE[:40]}")
