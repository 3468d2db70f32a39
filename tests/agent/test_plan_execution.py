from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from evercontext.agent.plan import validate
from evercontext.agent.plan_execution import PlanExecution, PlanPart
from evercontext.agent.planner import Planned
from evercontext.agent.system_prompt import Surroundings
from evercontext.agent.task import TaskRun
from evercontext.agent.task_report import TaskReport
from evercontext.domain.event import Event, ModelReply, TaskBegan, TaskEnded
from evercontext.domain.outcome import Outcome
from evercontext.domain.tool import Caller, Door, Effect, FileChange, Tool, ToolResult
from evercontext.events.log import EventLog
from evercontext.models.scripted import ScriptedModel
from evercontext.tools.tool_decorator import tool
from evercontext.tools.toolbox import Toolbox


class Parallel:
    """Tasks that only get on if they run beside each other."""

    def __init__(self, tmp_path: Path, *turns: dict[str, Any]) -> None:
        self.tree: dict[str, str] = {}
        self.writing = 0
        self.meeting = asyncio.Barrier(2)
        self.checking = asyncio.Event()
        self.heard: list[Event] = []
        self.log = EventLog(tmp_path / "traces")
        self.log.subscribe(self.heard.append)
        script = tmp_path / "script.jsonl"
        script.write_text("".join(json.dumps(turn) + "\n" for turn in turns))
        self.model = ScriptedModel.from_file(script)

    def tools(self) -> list[Tool]:
        @tool(Effect.READ)
        async def meet() -> ToolResult:
            """Wait until the other task is here too."""
            async with asyncio.timeout(20):
                await self.meeting.wait()
            return ToolResult("met")

        @tool(Effect.WRITE)
        async def put(path: str) -> ToolResult:
            """Write; never while another call does."""
            self.writing += 1
            assert self.writing == 1
            await asyncio.sleep(0.01)
            self.tree[path] = "x"
            self.writing -= 1
            return ToolResult("ok", changes=(FileChange(path, None, "x"),))

        @tool(Effect.EXECUTE)
        async def run_command(command: str) -> ToolResult:
            """A check that never ends."""
            self.checking.set()
            await asyncio.Event().wait()
            return ToolResult(command)

        return [meet, put, run_command]

    async def run(self, plan: dict[str, Any], width: int = 2) -> TaskReport:
        async def make_plan(text: str, failure: str, caller: Caller) -> Planned:
            return Planned(validate(plan), "test")

        run = TaskRun(
            self.model,
            Toolbox(self.tools(), self.log),
            self.log,
            Caller("t", Door.RUN),
            Surroundings("app"),
            "app",
            make_plan=make_plan,
            width=width,
        )
        report = await run.run("all")
        self.log.close()
        return report


def task(id: str, *files: str, **more: Any) -> dict[str, Any]:
    return {"id": id, "title": f"do {id}", "files": list(files), **more}


def turns(id: str, *calls: tuple[str, str]) -> list[dict[str, Any]]:
    when = f"Your part of it now: do {id}\\b"
    made: list[dict[str, Any]] = [
        {"tool_calls": [{"name": name, "arguments": {"path": path} if path else {}}]}
        for name, path in calls
    ]
    return [{"when": when, **turn} for turn in (*made, {"text": f"{id} done"})]


@pytest.mark.contract("E52")
async def test_tasks_of_different_files_run_at_the_same_time_and_end_in_order(
    tmp_path: Path,
) -> None:
    house = Parallel(
        tmp_path,
        *turns("a", ("meet", ""), ("put", "a.py"), ("put", "a.py")),
        *turns("b", ("meet", ""), ("put", "b.py")),
    )
    report = await house.run({"tasks": [task("a", "a.py"), task("b", "b.py")]})
    assert report.outcome is Outcome.DONE, report.error
    assert report.text == "a done\n\nb done"
    assert report.final.changed == ("a.py", "b.py")
    began = [e for e in house.heard if isinstance(e.body, TaskBegan)]
    assert [e.body.id for e in began if isinstance(e.body, TaskBegan)] == ["a", "b"]
    replies = [(e.parent, e.body.text) for e in house.heard if isinstance(e.body, ModelReply)]
    own = [[text for parent, text in replies if parent == e.id] for e in began]
    assert [texts[-1] for texts in own] == ["a done", "b done"]


async def test_a_file_of_a_running_task_is_not_written_by_another(tmp_path: Path) -> None:
    house = Parallel(
        tmp_path,
        *turns("a", ("meet", ""), ("meet", ""), ("put", "a.py")),
        *turns("b", ("meet", ""), ("put", "./a.py"), ("meet", ""), ("put", "b.py")),
    )
    report = await house.run({"tasks": [task("a", "a.py"), task("b", "b.py")]})
    assert report.outcome is Outcome.DONE
    assert house.tree == {"a.py": "x", "b.py": "x"}


async def test_a_failure_lets_what_runs_end_and_begins_nothing_more(tmp_path: Path) -> None:
    house = Parallel(
        tmp_path,
        *turns("a", ("meet", ""), ("nonsense", "")),
        *turns("b", ("meet", ""), ("put", "b.py")),
    )
    plan = {"tasks": [task("a", "a.py"), task("b", "b.py"), task("c", "c.py")]}
    report = await house.run(plan)
    assert report.outcome is Outcome.FAILED
    ended = {e.body.id: e.body.status for e in house.heard if isinstance(e.body, TaskEnded)}
    assert ended == {"a": "failed", "b": "done", "c": "skipped"}
    assert (report.final.tasks_done, report.final.tasks) == (1, 3)


async def test_a_task_that_is_stopped_among_its_checks_is_not_done(tmp_path: Path) -> None:
    house = Parallel(tmp_path, *turns("a", ("put", "a.py")), *turns("b"))
    plan = {"tasks": [task("a", "a.py", checks=["test"]), task("b", depends_on=["a"])]}
    work = asyncio.create_task(house.run(plan))
    async with asyncio.timeout(20):
        await house.checking.wait()
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    house.log.close()
    ended = {e.body.id: e.body.status for e in house.heard if isinstance(e.body, TaskEnded)}
    assert ended == {"a": "cancelled"}


async def test_cancelling_ends_every_part_and_keeps_what_each_had_done() -> None:
    begun: list[str] = []

    async def do(part: PlanPart, following: PlanExecution) -> None:
        begun.append(part.task.id)
        part.progress.changed[f"{part.task.id}.py"] = True
        await asyncio.Event().wait()

    plan = validate({"tasks": [task("a", "a.py"), task("b", "b.py")]})
    following = PlanExecution(plan, do, 2)
    work = asyncio.create_task(following.run())
    while len(begun) < 2:
        await asyncio.sleep(0)
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert [part.outcome for part in following.in_order()] == [Outcome.CANCELLED] * 2
    assert [list(part.progress.changed) for part in following.in_order()] == [["a.py"], ["b.py"]]
