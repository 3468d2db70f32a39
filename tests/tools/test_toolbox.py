from __future__ import annotations

import ast
import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import pytest
from pydantic import Field

import evercontext
from evercontext.domain.event import Approval, Diff, Event, Step, StepResult
from evercontext.domain.tool import (
    Arguments,
    Caller,
    Door,
    Effect,
    FileChange,
    Mode,
    Tool,
    ToolResult,
)
from evercontext.errors import (
    ApprovalDenied,
    AuditUnavailable,
    InvalidArguments,
    ModeRefused,
    NobodyToAsk,
    NotFound,
    ToolCrashed,
    ToolTimeout,
    UnknownTool,
)
from evercontext.events.log import EventLog
from evercontext.tools.approval_gate import ApprovalAnswer, ApprovalQuestion, Gate, ask_for_writes
from evercontext.tools.tool_decorator import tool
from evercontext.tools.toolbox import Toolbox

CALLER = Caller("trace", Door.RUN)
PLAN = Caller("trace", Door.CHAT, Mode.PLAN)
DRY = Caller("trace", Door.RUN, Mode.DRY_RUN)


class Notes:
    """A tiny real room: it keeps notes in memory and has tools over them."""

    def __init__(self) -> None:
        self.kept: dict[str, str] = {}

    def tools(self) -> list[Tool]:
        async def would(arguments: Arguments, caller: Caller) -> tuple[FileChange, ...]:
            name = str(arguments["name"])
            return (FileChange(name, self.kept.get(name), str(arguments["text"])),)

        @tool(Effect.WRITE, preview=would, aliases=("writeNote",))
        async def write_note(
            name: Annotated[str, Field(description="Its name")], text: str
        ) -> ToolResult:
            """Keep a note."""
            before, self.kept[name] = self.kept.get(name), text
            return ToolResult("kept", changes=(FileChange(name, before, text),))

        @tool(Effect.READ, name="note.read")
        async def read(name: str, times: int = 1) -> ToolResult:
            """Read a note."""
            if name not in self.kept:
                raise NotFound(f"no note {name}")
            return ToolResult(self.kept[name] * times)

        @tool(Effect.READ)
        async def break_down() -> ToolResult:
            """Break."""
            raise ZeroDivisionError("oops")

        @tool(Effect.READ, timeout=0.02)
        async def sleep() -> ToolResult:
            """Take too long."""
            await asyncio.sleep(30)
            return ToolResult("never")

        @tool(Effect.READ)
        async def who(caller: Caller) -> ToolResult:
            """Say who calls."""
            return ToolResult(f"{caller.door}/{caller.parent}")

        return [write_note, read, break_down, sleep, who]


@pytest.fixture
def notes() -> Notes:
    return Notes()


@pytest.fixture
def log(tmp_path: Path) -> Iterator[EventLog]:
    log = EventLog(tmp_path / "traces")
    yield log
    log.close()


@pytest.fixture
def heard(log: EventLog) -> list[Event]:
    events: list[Event] = []
    log.subscribe(events.append)
    return events


@pytest.fixture
def box(notes: Notes, log: EventLog) -> Toolbox:
    return Toolbox(notes.tools(), log)


@pytest.mark.contract("E26", "E27")
async def test_a_call_leaves_step_result_and_diff(box: Toolbox, heard: list[Event]) -> None:
    result = await box.call("write_note", {"name": "a", "text": "x\n"}, CALLER)
    assert result.ok
    step, ended, diff = heard
    assert isinstance(step.body, Step)
    assert step.body.effects == ("write",)
    assert isinstance(ended.body, StepResult)
    assert isinstance(diff.body, Diff)
    assert (diff.body.kind, diff.body.added, diff.parent) == ("created", 1, step.id)
    assert {event.trace_id for event in heard} == {"trace"}


@pytest.mark.parametrize("name", ["write_note", "writeNote"])
async def test_aliases_reach_the_same_tool(box: Toolbox, notes: Notes, name: str) -> None:
    assert (await box.call(name, {"name": "a", "text": "x"}, CALLER)).ok
    assert notes.kept == {"a": "x"}


@pytest.mark.parametrize("name", ["note.read", "note__read"])
async def test_vendors_that_refuse_dots_are_understood(
    box: Toolbox, notes: Notes, name: str
) -> None:
    notes.kept["a"] = "x"
    assert (await box.call(name, {"name": "a", "times": "2"}, CALLER)).text == "xx"


@pytest.mark.case(76)
async def test_an_unknown_tool_is_an_error_that_names_near_ones(
    box: Toolbox, heard: list[Event]
) -> None:
    result = await box.call("write_notes", {}, CALLER)
    assert isinstance(result.error, UnknownTool)
    assert "write_note" in str(result.error)
    assert [event.body.type for event in heard] == ["step", "tool_result"]


@pytest.mark.parametrize(
    "arguments",
    [{}, {"name": "a"}, {"name": "a", "text": "b", "extra": 1}, {"name": 5, "text": []}, []],
)
async def test_wrong_arguments_run_nothing(box: Toolbox, notes: Notes, arguments: object) -> None:
    result = await box.call("write_note", arguments, CALLER)  # type: ignore[arg-type]
    assert isinstance(result.error, InvalidArguments)
    assert notes.kept == {}


@pytest.mark.contract("N7")
async def test_plan_mode_neither_shows_nor_runs_what_writes(box: Toolbox, notes: Notes) -> None:
    assert "write_note" not in {tool.name for tool in box.offered(Mode.PLAN)}
    result = await box.call("writeNote", {"name": "a", "text": "x"}, PLAN)
    assert isinstance(result.error, ModeRefused)
    assert notes.kept == {}


@pytest.mark.contract("E34")
async def test_a_dry_run_shows_the_diff_and_writes_nothing(
    box: Toolbox, notes: Notes, heard: list[Event]
) -> None:
    result = await box.call("write_note", {"name": "a", "text": "x"}, DRY)
    assert result.ok
    assert notes.kept == {}
    diff = heard[-1].body
    assert isinstance(diff, Diff)
    assert not diff.applied


@pytest.mark.contract("N20")
async def test_a_gate_asks_with_the_diff_before_it_takes_effect(
    box: Toolbox, notes: Notes, heard: list[Event]
) -> None:
    asked: list[ApprovalQuestion] = []

    async def say_no(question: ApprovalQuestion) -> ApprovalAnswer:
        asked.append(question)
        return ApprovalAnswer(False, "user", "use another name")

    guarded = box.behind(Gate(ask_for_writes, say_no))
    result = await guarded.call("write_note", {"name": "a", "text": "x"}, CALLER)
    assert isinstance(result.error, ApprovalDenied)
    assert "use another name" in result.text
    assert asked[0].changes == (FileChange("a", None, "x"),)
    assert notes.kept == {}
    assert isinstance(heard[0].body, Approval)


async def test_what_runs_is_what_was_approved(
    log: EventLog, notes: Notes, heard: list[Event]
) -> None:
    """X1: a call that changes while somebody is asked is refused."""
    given = {"name": "a", "text": "shown"}

    async def swaps(question: ApprovalQuestion) -> ApprovalAnswer:
        question.arguments["text"] = "not shown"  # type: ignore[index]
        return ApprovalAnswer(True, "you")

    async def waits(question: ApprovalQuestion) -> ApprovalAnswer:
        notes.kept["a"] = "changed meanwhile"
        return ApprovalAnswer(True, "you")

    async def honest(question: ApprovalQuestion) -> ApprovalAnswer:
        return ApprovalAnswer(True, "you")

    for ask in (swaps, waits):
        box = Toolbox(notes.tools(), log, Gate(ask_for_writes, ask))
        result = await box.call("write_note", dict(given), CALLER)
        assert isinstance(result.error, ApprovalDenied), result.text
        assert "not what was approved" in result.text
        assert notes.kept.get("a") in (None, "changed meanwhile")
    box = Toolbox(notes.tools(), log, Gate(ask_for_writes, honest), root="/p")
    assert (await box.call("write_note", given, CALLER)).ok
    approvals = [event.body for event in heard if isinstance(event.body, Approval)]
    assert len({approval.digest for approval in approvals}) == 2
    assert all(approval.digest for approval in approvals)


@pytest.mark.contract("N20")
async def test_nobody_to_ask_means_no(box: Toolbox, notes: Notes) -> None:
    result = await box.behind(Gate(ask_for_writes)).call(
        "write_note", {"name": "a", "text": "x"}, CALLER
    )
    assert isinstance(result.error, NobodyToAsk)
    assert notes.kept == {}


@pytest.mark.contract("E25")
async def test_no_write_without_its_line_in_the_log(tmp_path: Path, notes: Notes) -> None:
    (tmp_path / "blocked").write_text("a file where the folder should be")
    box = Toolbox(notes.tools(), EventLog(tmp_path / "blocked" / "traces"))
    result = await box.call("write_note", {"name": "a", "text": "x"}, CALLER)
    assert isinstance(result.error, AuditUnavailable)
    assert notes.kept == {}


async def test_failures_come_back_as_results(box: Toolbox) -> None:
    missing = await box.call("note.read", {"name": "zzz"}, CALLER)
    assert isinstance(missing.error, NotFound)
    broken = await box.call("break_down", {}, CALLER)
    assert isinstance(broken.error, ToolCrashed)
    late = await box.call("sleep", {}, CALLER)
    assert isinstance(late.error, ToolTimeout)


async def test_a_cancelled_call_is_cancelled(box: Toolbox) -> None:
    task = asyncio.create_task(box.call("sleep", {}, CALLER))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_long_result_keeps_both_ends(box: Toolbox, notes: Notes) -> None:
    notes.kept["a"] = "A" * 40_000 + "Z"
    text = (await box.call("note.read", {"name": "a"}, CALLER)).text
    assert len(text) < 31_000
    assert text.startswith("A")
    assert text.endswith("Z")
    assert "left out" in text


async def test_the_caller_is_passed_with_the_step_as_parent(
    box: Toolbox, heard: list[Event]
) -> None:
    result = await box.call("who", {}, CALLER)
    assert result.text == f"run/{heard[0].id}"


@pytest.mark.contract("N21")
def test_schemas_say_what_is_required_and_what_it_means(box: Toolbox) -> None:
    schema = box.find("write_note").arguments
    assert schema["required"] == ["name", "text"]
    assert schema["properties"]["name"]["description"] == "Its name"
    assert schema["additionalProperties"] is False


async def test_a_foreign_schema_is_applied_as_it_stands(log: EventLog) -> None:
    async def run(arguments: Arguments, caller: Caller) -> ToolResult:
        return ToolResult("ran")

    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    box = Toolbox([Tool("far", "A far tool", schema, Effect.READ, run)], log)
    assert (await box.call("far", {"n": 1}, CALLER)).ok
    wrong = await box.call("far", {"n": "one"}, CALLER)
    assert isinstance(wrong.error, InvalidArguments)


def test_nothing_else_ever_calls_a_tools_run() -> None:
    package = Path(evercontext.__file__).parent
    callers = [
        f"{path.relative_to(package)}:{node.lineno}"
        for path in package.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "run"
        and isinstance(node.func.value, ast.Name)
        and "tool" in node.func.value.id.lower()
    ]
    assert [place.split(":")[0] for place in callers] == ["tools/toolbox.py"]
