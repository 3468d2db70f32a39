from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from evercontext.agent.plan import validate
from evercontext.agent.planner import MakePlan, Planned, Planner
from evercontext.agent.system_prompt import Surroundings
from evercontext.agent.task import TaskRun
from evercontext.agent.task_report import TaskReport
from evercontext.domain.event import Event, Plan, TaskEnded
from evercontext.domain.outcome import Outcome
from evercontext.domain.tool import Caller, Door, Effect, FileChange, Tool, ToolResult
from evercontext.errors import InvalidPlan, NotFound
from evercontext.events.log import EventLog
from evercontext.events.redaction import Redactor
from evercontext.models.scripted import ScriptedModel
from evercontext.storage.sqlite import SqliteStore
from evercontext.tools.tool_decorator import tool
from evercontext.tools.toolbox import Toolbox

PLACE = Surroundings("app", ("a.py",))


def script(tmp_path: Path, *turns: dict[str, Any]) -> ScriptedModel:
    path = tmp_path / "script.jsonl"
    path.write_text("".join(json.dumps(turn) + "\n" for turn in turns), encoding="utf-8")
    return ScriptedModel.from_file(path)


def planned(*ids: str) -> dict[str, Any]:
    tasks = [{"id": i, "title": f"do {i}"} for i in ids]
    return {"role": "planner", "text": json.dumps({"version": 1, "tasks": tasks})}


@pytest.fixture
async def store() -> AsyncIterator[SqliteStore]:
    store = await SqliteStore.in_memory()
    yield store
    await store.close()


@pytest.mark.contract("E45")
async def test_same_input_same_plan_without_asking_again(
    tmp_path: Path, store: SqliteStore
) -> None:
    planner = Planner(script(tmp_path, planned("one"), planned("two")), store)
    first = await planner.plan("t", PLACE, executor="m", tree_digest="d")
    again = await planner.plan("t", PLACE, executor="m", tree_digest="d")
    assert (again.plan, again.source) == (first.plan, "cache")
    changed = await planner.plan("t", PLACE, executor="m", tree_digest="other tree")
    assert changed.plan.tasks[0].id == "two"


async def test_another_users_plan_is_not_taken(tmp_path: Path, store: SqliteStore) -> None:
    # It was made with what that user remembers.
    model = script(tmp_path, planned("ann"), planned("bob"))
    for who in ("ann", "bob", "ann"):
        planner = Planner(model, store, user=who)
        made = await planner.plan("t", PLACE, executor="m", tree_digest="d")
        assert made.plan.tasks[0].id == who


@pytest.mark.case(135)
async def test_a_plan_with_a_secret_is_not_kept(tmp_path: Path, store: SqliteStore) -> None:
    turns = script(tmp_path, planned("canary-1234"), planned("canary-1234"), planned("plain"))
    planner = Planner(turns, store, Redactor(["canary-1234"]).masked)
    for _ in range(2):
        made = await planner.plan("t", PLACE, executor="m", tree_digest="d")
        assert (made.plan.tasks[0].id, made.source) == ("canary-1234", turns.info.name)
    assert await store.fetch_all("SELECT * FROM kept") == []
    await planner.plan("t", PLACE, executor="m", tree_digest="d")
    assert (await planner.plan("t", PLACE, executor="m", tree_digest="d")).source == "cache"


@pytest.mark.contract("E52", "E40")
async def test_an_invalid_plan_is_sent_back_once_with_the_reason(tmp_path: Path) -> None:
    wrong = {"text": '{"tasks": [{"id": "a", "title": "x", "depends_on": ["z"]}]}'}
    right = {**planned("a"), "when": "depends on 'z'"}
    made = await Planner(script(tmp_path, wrong, right)).make("t", PLACE)
    assert made.plan.tasks[0].id == "a"
    with pytest.raises(InvalidPlan):
        await Planner(script(tmp_path, wrong, wrong)).make("t", PLACE)


class Plans:
    """A trail of the tasks done, by real calls of a real tool."""

    def __init__(self, tmp_path: Path, *turns: dict[str, Any]) -> None:
        self.trail: list[str] = []
        self.heard: list[Event] = []
        self.log = EventLog(tmp_path / "traces")
        self.log.subscribe(self.heard.append)
        self.model = script(tmp_path, *turns)

    def tools(self) -> list[Tool]:
        @tool(Effect.WRITE)
        async def mark(name: str) -> ToolResult:
            """Mark."""
            if name == "bad":
                raise NotFound("nothing there")
            self.trail.append(name)
            return ToolResult("ok", changes=(FileChange(name, None, "x"),))

        return [mark]

    async def run(self, *plans: dict[str, Any]) -> TaskReport:
        left = [validate(plan) for plan in plans]

        async def make_plan(text: str, failure: str, caller: Caller) -> Planned:
            return Planned(left.pop(0), "test")

        chosen: MakePlan = make_plan
        run = TaskRun(
            self.model,
            Toolbox(self.tools(), self.log),
            self.log,
            Caller("t", Door.RUN),
            PLACE,
            "app",
            make_plan=chosen,
        )
        report = await run.run("the whole task")
        self.log.close()
        return report


def does(id: str, name: str) -> list[dict[str, Any]]:
    when = f"Your part of it now: do {id}"
    call = {"name": "mark", "arguments": {"name": name}}
    return [{"when": when, "tool_calls": [call]}, {"when": when, "text": f"{id} done"}]


def a_plan(**on_error: str) -> dict[str, Any]:
    needs = {"b": ["a"], "c": [], "d": ["b"]}
    return {
        "tasks": [
            {
                "id": i,
                "title": f"do {i}",
                "depends_on": needs.get(i, []),
                "on_error": on_error.get(i, "stop"),
            }
            for i in ("d", "b", "a", "c")
        ]
    }


@pytest.mark.contract("E45", "E52")
async def test_tasks_run_in_dependency_order(tmp_path: Path) -> None:
    turns = [turn for i in "abcd" for turn in does(i, i)]
    house = Plans(tmp_path, *turns)
    report = await house.run(a_plan())
    assert report.outcome is Outcome.DONE
    assert house.trail == ["a", "b", "d", "c"]
    assert (report.final.tasks_done, report.final.tasks) == (4, 4)


@pytest.mark.contract("E42", "E45")
async def test_a_failure_half_way_stops_and_says_what_was_done(tmp_path: Path) -> None:
    house = Plans(tmp_path, *does("a", "a"), *does("b", "bad"))
    report = await house.run(a_plan())
    assert report.outcome is Outcome.FAILED
    assert house.trail == ["a"]
    ended = [e.body for e in house.heard if isinstance(e.body, TaskEnded)]
    told = [(body.id, body.status) for body in ended]
    assert told == [("a", "done"), ("b", "failed"), ("d", "skipped"), ("c", "skipped")]
    assert (report.final.tasks_done, report.final.tasks) == (1, 4)


@pytest.mark.contract("E42", "E52")
async def test_continue_goes_on_with_what_does_not_depend_on_it(tmp_path: Path) -> None:
    house = Plans(tmp_path, *does("a", "a"), *does("b", "bad"), *does("c", "c"))
    report = await house.run(a_plan(b="continue"))
    assert house.trail == ["a", "c"]
    assert report.outcome is Outcome.FAILED


@pytest.mark.contract("E52")
async def test_replan_asks_again_with_the_failure(tmp_path: Path) -> None:
    house = Plans(tmp_path, *does("a", "a"), *does("b", "bad"), *does("e", "e"), *does("f", "f"))
    second = {"tasks": [{"id": "e", "title": "do e"}, {"id": "f", "title": "do f"}]}
    report = await house.run(a_plan(b="replan"), second)
    assert house.trail == ["a", "e", "f"]
    assert report.outcome is Outcome.DONE
    assert sum(isinstance(e.body, Plan) for e in house.heard) == 2
