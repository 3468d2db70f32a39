from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from evercontext.agent.system_prompt import Surroundings
from evercontext.agent.task import TaskRun
from evercontext.agent.task_limits import TaskLimits
from evercontext.agent.task_report import TaskReport
from evercontext.domain.event import Event, Final, Limit
from evercontext.domain.model import Delta, ModelInfo, Request, TextDelta, Usage
from evercontext.domain.outcome import Outcome
from evercontext.domain.tool import Caller, Door, Effect, FileChange, Mode, Tool, ToolResult
from evercontext.errors import AlreadyExists, NotFound, PathEscape
from evercontext.events.log import EventLog
from evercontext.models.scripted import ScriptedModel
from evercontext.tools.approval_gate import ApprovalAnswer, ApprovalQuestion, Gate, ask_for_writes
from evercontext.tools.tool_decorator import tool
from evercontext.tools.toolbox import Toolbox

Turn = dict[str, object]


def write(path: str, content: str = "x\n") -> Turn:
    return {"tool_calls": [{"name": "write_file", "arguments": {"path": path, "content": content}}]}


def read(path: str) -> Turn:
    return {"tool_calls": [{"name": "read_file", "arguments": {"path": path}}]}


DONE: Turn = {"text": "done"}


async def price(model: str, usage: Usage) -> float:
    return usage.output_tokens / 1000


class House:
    """A dictionary for a tree, real tools over it, and a scripted model."""

    def __init__(self, tmp_path: Path) -> None:
        self.tmp_path = tmp_path
        self.tree: dict[str, str] = {}
        self.log = EventLog(tmp_path / "traces")
        self.heard: list[Event] = []
        self.log.subscribe(self.heard.append)

    def tools(self) -> list[Tool]:
        @tool(Effect.WRITE)
        async def write_file(path: str, content: str, fresh: bool = False) -> ToolResult:
            """Write."""
            if path.startswith(".."):
                raise PathEscape("path escapes root")
            if fresh and path in self.tree:
                raise AlreadyExists(f"{path} exists")
            before, self.tree[path] = self.tree.get(path), content
            return ToolResult("ok", changes=(FileChange(path, before, content),))

        @tool(Effect.READ)
        async def read_file(path: str) -> ToolResult:
            """Read."""
            if path not in self.tree:
                raise NotFound(f"no file {path}")
            return ToolResult(self.tree[path])

        return [write_file, read_file]

    async def run(
        self,
        *turns: Turn,
        limits: TaskLimits | None = None,
        gate: Gate | None = None,
        mode: Mode = Mode.AGENT,
    ) -> TaskReport:
        script = self.tmp_path / "script.jsonl"
        script.write_text("".join(json.dumps(turn) + "\n" for turn in turns), encoding="utf-8")
        task = TaskRun(
            model=ScriptedModel.from_file(script),
            toolbox=Toolbox(self.tools(), self.log, gate),
            events=self.log,
            caller=Caller("trace", Door.RUN, mode),
            surroundings=Surroundings("app"),
            root="app",
            limits=limits or TaskLimits(),
            price=price,
        )
        return await task.run("write a file")

    def types(self) -> list[str]:
        return [event.body.type for event in self.heard if not event.body.transient]


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    house = House(tmp_path)
    yield house
    house.log.close()


@pytest.mark.contract("E3", "E7", "E26", "E27")
async def test_a_task_leaves_a_whole_trace(house: House) -> None:
    report = await house.run(write("main.py"), DONE)
    assert (report.outcome, report.text) == (Outcome.DONE, "done")
    assert house.tree == {"main.py": "x\n"}
    assert house.types() == [
        "task",
        "plan",
        "model_reply",
        "step",
        "tool_result",
        "diff",
        "model_reply",
        "final",
    ]
    assert {event.trace_id for event in house.heard} == {"trace"}
    assert report.final.changed == ("main.py",)


@pytest.mark.contract("E35", "E44")
async def test_a_policy_refusal_ends_refused_whatever_the_model_says(house: House) -> None:
    report = await house.run(write("../evil.py"), DONE)
    assert report.outcome is Outcome.REFUSED
    assert report.final.exit_code == 2
    assert "path escapes root" in str(report.final.error)


@pytest.mark.contract("E35")
async def test_a_refusal_counts_even_when_the_script_ends_there(house: House) -> None:
    assert (await house.run(write("../evil.py"))).outcome is Outcome.REFUSED


@pytest.mark.contract("E35", "E44")
async def test_a_missing_file_is_feedback(house: House) -> None:
    report = await house.run(read("a.py"), write("a.py"), DONE)
    assert report.outcome is Outcome.DONE


@pytest.mark.contract("E35")
async def test_a_failure_never_made_good_leaves_the_task_undone(house: House) -> None:
    bad: Turn = {"tool_calls": [{"name": "edit_file", "arguments": {"path": "a.py"}}]}
    report = await house.run(bad, {"text": "all done, trust me"})
    assert report.outcome is Outcome.FAILED
    assert report.final.exit_code == 1


@pytest.mark.contract("E35")
async def test_what_was_only_looked_for_leaves_nothing_undone(house: House) -> None:
    report = await house.run(read("a.py"), {"text": "there is no a.py"})
    assert report.outcome is Outcome.DONE


@pytest.mark.contract("E13", "E35")
@pytest.mark.case(75)
async def test_invalid_json_twice_in_a_row_ends_invalid(house: House) -> None:
    report = await house.run({"raw": "no json"}, {"raw": "{{{{"})
    assert (report.outcome, report.final.exit_code) == (Outcome.INVALID, 3)
    assert house.tree == {}


@pytest.mark.contract("E13", "E16", "E40")
async def test_invalid_json_once_is_forgiven(house: House) -> None:
    call = {"name": "write_file", "parameters": {"path": "a", "content": "b"}}
    good = json.dumps({"tool_calls": [call]})
    report = await house.run({"raw": "oops"}, {"raw": good}, {"raw": '{"final_answer": "ok"}'})
    assert (report.outcome, report.text) == (Outcome.DONE, "ok")
    assert house.tree == {"a": "b"}


async def test_results_reach_the_model_as_ok_result_error(house: House) -> None:
    report = await house.run(
        read("a.py"),
        {"when": r'"ok": false, "result": null, "error": "not_found: no file a\.py"', **write("b")},
        {"when": r'"ok": true, "result": "ok", "error": null', "text": "seen"},
    )
    assert report.text == "seen"


@pytest.mark.case(76)
async def test_the_same_call_for_ever_is_stopped(house: House) -> None:
    house.tree["a"] = "x"
    report = await house.run(*[read("a")] * 20)
    assert report.outcome is Outcome.LIMIT
    assert report.final.turns == 5


@pytest.mark.case(76)
async def test_the_same_failure_is_stopped_at_three(house: House) -> None:
    report = await house.run(*[read("nowhere")] * 20)
    assert report.final.turns == 3


@pytest.mark.case(76)
async def test_a_huge_list_of_calls_is_not_made(house: House) -> None:
    call = {"name": "write_file", "arguments": {"path": "a", "content": "b"}}
    report = await house.run({"tool_calls": [call] * 10_000}, {"text": "sorry"})
    assert house.tree == {}
    assert report.text == "sorry"


@pytest.mark.parametrize(
    ("limits", "kind"),
    [
        (TaskLimits(turns=2), "turns"),
        (TaskLimits(tokens=100), "tokens"),
        (TaskLimits(usd=0.05), "money"),
    ],
)
async def test_limits_end_the_task_and_say_so(house: House, limits: TaskLimits, kind: str) -> None:
    used = {"usage": {"input_tokens": 60, "output_tokens": 40}}
    turns: list[Turn] = [{**write(str(n)), **used} for n in range(20)]
    report = await house.run(*turns, limits=limits)
    assert (report.outcome, report.final.exit_code) == (Outcome.LIMIT, 6)
    said = [event.body for event in house.heard if isinstance(event.body, Limit)]
    assert [body.kind for body in said] == [kind]


@pytest.mark.contract("E35")
async def test_nobody_to_ask_ends_denied_at_once(house: House) -> None:
    report = await house.run(write("a"), DONE, gate=Gate(ask_for_writes))
    assert (report.outcome, report.final.turns) == (Outcome.DENIED, 1)
    assert house.tree == {}


async def test_a_denied_call_is_feedback_and_ends_denied(house: House) -> None:
    async def no(question: ApprovalQuestion) -> ApprovalAnswer:
        return ApprovalAnswer(False, "user", "not this file")

    turn: Turn = {"when": "not this file", "text": "I understand"}
    report = await house.run(write("a"), turn, gate=Gate(ask_for_writes, no))
    assert (report.outcome, report.text) == (Outcome.DENIED, "I understand")


@pytest.mark.contract("E34")
async def test_a_dry_run_changes_nothing(house: House) -> None:
    report = await house.run(write("a"), DONE, mode=Mode.DRY_RUN)
    assert report.outcome is Outcome.DONE
    assert house.tree == {}


@pytest.mark.contract("E35", "E40")
async def test_a_provider_that_stays_away_is_unreachable(house: House) -> None:
    report = await house.run({"error": "model_unavailable"}, {"error": "model_unavailable"})
    assert (report.outcome, report.final.exit_code) == (Outcome.UNREACHABLE, 75)
    assert report.final.turns == 0


async def test_three_unreadable_calls_in_a_row_end_invalid(house: House) -> None:
    bad: Turn = {"tool_calls": [{"name": "write_file", "arguments": "{broken"}]}
    report = await house.run(bad, bad, bad, bad)
    assert report.outcome is Outcome.INVALID


async def test_an_empty_answer_is_asked_about(house: House) -> None:
    report = await house.run({"text": ""}, {"when": "answered with nothing", "text": "here"})
    assert report.text == "here"


class Stuck:
    """A model that never answers."""

    info = ModelInfo("test:stuck", 1000)

    def __init__(self) -> None:
        self.asked = asyncio.Event()

    async def stream(self, request: Request) -> AsyncIterator[Delta]:
        yield TextDelta("wait")
        self.asked.set()
        await asyncio.Event().wait()

    async def aclose(self) -> None:
        """Nothing to close."""


def stuck(house: House, limits: TaskLimits, model: Stuck | None = None) -> TaskRun:
    return TaskRun(
        model or Stuck(),
        Toolbox([], house.log),
        house.log,
        Caller("t", Door.RUN),
        Surroundings("a"),
        "a",
        limits,
    )


async def test_the_clock_ends_a_turn_that_hangs(house: House) -> None:
    report = await stuck(house, TaskLimits(seconds=0.05)).run("x")
    assert report.outcome is Outcome.LIMIT


@pytest.mark.case(136)
async def test_a_cancelled_task_still_ends_its_trace(house: House) -> None:
    model = Stuck()
    task = asyncio.create_task(stuck(house, TaskLimits(), model).run("x"))
    await model.asked.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    final = house.heard[-1].body
    assert isinstance(final, Final)
    assert (final.status, final.exit_code) == ("cancelled", 130)


def test_usage_adds_up() -> None:
    assert Usage(1, 2, 3) + Usage(10, 20, 30) == Usage(11, 22, 33)
