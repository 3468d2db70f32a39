from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from evercontext.access.console_links import Consoles
from evercontext.access.pending_approvals import BY_CONSOLE_FOR_RUN, Approvals, PendingQuestion
from evercontext.app import EverContext
from evercontext.domain.tool import Caller, Door, Effect, FileChange, Tool, ToolResult
from evercontext.tools.approval_gate import ApprovalAnswer, ApprovalQuestion, nobody
from evercontext.tools.console_approval import ask_everywhere
from tests.app.test_application import configured


async def _never(arguments: object, caller: object) -> ToolResult:
    raise AssertionError("asking never runs a tool")


WRITE = Tool("write_file", "Writes.", {}, Effect.WRITE, _never)
QUESTION = ApprovalQuestion(
    WRITE, {"path": "a.py"}, (FileChange("a.py", "old\n", "new\n"),), Caller("t", Door.RUN)
)


async def _at_the_terminal(question: ApprovalQuestion) -> ApprovalAnswer:
    return ApprovalAnswer(True, "you")


async def _silent(question: ApprovalQuestion) -> ApprovalAnswer:
    await asyncio.Event().wait()
    raise AssertionError


async def _first(app: EverContext) -> PendingQuestion:
    while not (found := await Approvals(app.store).pending(app.memory.project)):
        await asyncio.sleep(0.01)
    return found[0]


@pytest.mark.contract("N20")
async def test_the_console_answers_while_the_terminal_is_silent(tmp_path: Path) -> None:
    told: list[str] = []
    async with EverContext.open(configured(tmp_path)) as app:
        ask = await ask_everywhere(app.asking_place, _silent, told.append)
        waiting = asyncio.ensure_future(ask(QUESTION))
        asked = await _first(app)
        assert asked.question["changes"][0]["added"] == 1
        given = {"by": "console", "feedback": "use b.py"}
        assert await Approvals(app.store).answer(asked.id, asked.nonce, allowed=False, **given)
        assert await waiting == ApprovalAnswer(False, "console", "use b.py")
    assert told == ["answered in the console: no"]


async def test_an_answer_at_the_terminal_settles_the_question_everywhere(tmp_path: Path) -> None:
    async with EverContext.open(configured(tmp_path)) as app:
        approvals = Approvals(app.store)
        ask = await ask_everywhere(app.asking_place, _at_the_terminal)
        assert await ask(QUESTION) == ApprovalAnswer(True, "you")
        assert await approvals.pending(app.memory.project) == []
        [row] = await approvals.settled(app.memory.project)
        assert (row.state, row.answered_by) == ("allowed", "you")


async def test_without_terminal_and_console_there_is_nobody(tmp_path: Path) -> None:
    async with EverContext.open(configured(tmp_path)) as app:
        assert await ask_everywhere(app.asking_place, nobody) is nobody
        await Consoles(app.store).announce("http://127.0.0.1:1/console/", app.memory.project)
        assert await ask_everywhere(app.asking_place, nobody) is not nobody


async def test_a_question_that_is_given_up_is_withdrawn(tmp_path: Path) -> None:
    async with EverContext.open(configured(tmp_path)) as app:
        waiting = asyncio.ensure_future((await ask_everywhere(app.asking_place, _silent))(QUESTION))
        asked = await _first(app)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        approvals = Approvals(app.store)
        assert not await approvals.answer(asked.id, asked.nonce, allowed=True, by="late")
        assert [row.state for row in await approvals.settled(app.memory.project)] == ["withdrawn"]


async def test_no_secret_is_shown_in_a_question(tmp_path: Path) -> None:
    key = "ghp_" + "a1B2" * 9
    question = ApprovalQuestion(WRITE, {"path": "a.py", "content": key}, (), Caller("t", Door.RUN))
    async with EverContext.open(configured(tmp_path)) as app:
        await (await ask_everywhere(app.asking_place, _at_the_terminal))(question)
        [row] = await Approvals(app.store).settled(app.memory.project)
    assert key not in str(row.question)


async def test_a_tool_allowed_for_the_run_is_asked_for_again_only_below_the_floor(
    tmp_path: Path,
) -> None:
    shell = Tool("run_command", "Runs.", {}, Effect.EXECUTE, _never)
    async with EverContext.open(configured(tmp_path)) as app:
        ask, approvals = await ask_everywhere(app.asking_place, _silent), Approvals(app.store)
        harmless = ApprovalQuestion(shell, {"command": "ls"}, (), Caller("t", Door.RUN))
        waiting = asyncio.ensure_future(ask(harmless))
        asked = await _first(app)
        assert await approvals.answer(asked.id, asked.nonce, allowed=True, by=BY_CONSOLE_FOR_RUN)
        assert (await waiting).allowed
        assert (await ask(harmless)).by == BY_CONSOLE_FOR_RUN
        harmful = ApprovalQuestion(shell, {"command": "rm -rf /"}, (), Caller("t", Door.RUN))
        waiting = asyncio.ensure_future(ask(harmful))
        again = await _first(app)
        assert again.question["reason"]
        assert await approvals.answer(again.id, again.nonce, allowed=False, by="you")
        assert not (await waiting).allowed
