from __future__ import annotations

import asyncio
import io
import os
import pty
from collections.abc import Iterator

import pytest

from evercontext.cli.run_approval import RunApproval, asking_gate, read_line
from evercontext.cli.terminal import Screen
from evercontext.domain.tool import Caller, Door, Effect, FileChange, Tool, ToolResult
from evercontext.errors import NobodyToAsk
from evercontext.tools.approval_gate import ApprovalQuestion


async def _never(arguments: object, caller: object) -> ToolResult:
    raise AssertionError("asking never runs a tool")


WRITE = Tool("write_file", "Writes.", {}, Effect.WRITE, _never)
QUESTION = ApprovalQuestion(
    WRITE,
    {"path": "a.py"},
    (FileChange("a.py", "old\n", "new \x1b[2J\n"),),
    Caller("t", Door.RUN),
)


class Person(io.StringIO):
    """A screen, and somebody who types once something is shown: earlier lines are dropped."""

    def __init__(self, keyboard: int, typed: str) -> None:
        super().__init__()
        self._keyboard, self._typed = keyboard, typed

    def write(self, text: str, /) -> int:
        typed, self._typed = self._typed, ""
        for line in typed.splitlines(keepends=True):
            os.write(self._keyboard, line.encode())
        return super().write(text)


@pytest.fixture
def keyboard() -> Iterator[tuple[int, int]]:
    person, terminal = pty.openpty()
    yield person, terminal
    os.close(person)
    os.close(terminal)


@pytest.mark.contract("N20")
@pytest.mark.parametrize(
    ("typed", "allowed", "feedback"),
    [
        ("1\n", True, None),
        ("huh\n1\n", True, None),
        ("4\nuse a list\n", False, "use a list"),
        ("4\n\n", False, None),
        ("\x04", False, None),
    ],
)
async def test_the_answer_counts(
    typed: str, allowed: bool, feedback: str | None, keyboard: tuple[int, int]
) -> None:
    person, terminal = keyboard
    shown = Person(person, typed)
    ask = RunApproval(Screen(shown), terminal, lambda: None)
    answer = await ask(QUESTION)
    assert (answer.allowed, answer.feedback) == (allowed, feedback)
    assert "a.py would be changed +1 -1" in shown.getvalue()
    assert "+new \\x1b[2J" in shown.getvalue()


async def test_yes_for_this_run_is_asked_once(keyboard: tuple[int, int]) -> None:
    person, terminal = keyboard
    ask = RunApproval(Screen(Person(person, "2\n")), terminal, lambda: None)
    assert (await ask(QUESTION)).allowed
    assert (await ask(QUESTION)).by == "you, for this run"


async def test_waiting_for_an_answer_can_be_cancelled(keyboard: tuple[int, int]) -> None:
    waiting = asyncio.create_task(read_line(keyboard[1]))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting


async def test_without_a_terminal_nobody_says_yes() -> None:
    gate = asking_gate(Screen(io.StringIO()), lambda: None)
    assert gate.policy(WRITE, {}, QUESTION.caller) == "ask"
    with pytest.raises(NobodyToAsk):
        await gate.ask(QUESTION)


@pytest.mark.contract("N20")
@pytest.mark.parametrize(
    "command", ["echo hello # a greeting\nrm -f a.py", f"echo {'a' * 400}; rm -f a.py"]
)
async def test_a_command_is_asked_for_in_full(command: str, keyboard: tuple[int, int]) -> None:
    person, terminal = keyboard
    shown = Person(person, "1\n")
    tool = Tool("run_command", "Runs.", {}, Effect.EXECUTE, _never)
    question = ApprovalQuestion(tool, {"command": command}, (), QUESTION.caller)
    await RunApproval(Screen(shown), terminal, lambda: None)(question)
    lines = [line.strip() for line in shown.getvalue().split("\n")]
    assert all(any(part in line for line in lines) for part in command.split("\n"))
    assert not any("greeting rm" in line for line in lines)


@pytest.mark.parametrize(("typed", "access"), [("5\n", "network"), ("6\n", "outside")])
async def test_a_command_can_be_allowed_more_than_the_sandbox(
    typed: str, access: str, keyboard: tuple[int, int]
) -> None:
    """A3: and "yes to every command" is no yes to one that asks for the network."""
    person, terminal = keyboard
    tool = Tool("run_command", "Runs.", {}, Effect.EXECUTE | Effect.WRITE, _never)
    question = ApprovalQuestion(tool, {"command": "npm i"}, (), QUESTION.caller)
    ask = RunApproval(Screen(Person(person, typed)), terminal, lambda: None)
    answer = await ask(question)
    assert (answer.allowed, answer.access) == (True, access)


async def test_yes_to_every_command_opens_nothing(keyboard: tuple[int, int]) -> None:
    person, terminal = keyboard
    tool = Tool("run_command", "Runs.", {}, Effect.EXECUTE | Effect.WRITE, _never)
    plain = ApprovalQuestion(tool, {"command": "ls"}, (), QUESTION.caller)
    wide = ApprovalQuestion(tool, {"command": "ls", "access": "network"}, (), QUESTION.caller)
    shown = Person(person, "2\n")
    ask = RunApproval(Screen(shown), terminal, lambda: None)
    assert (await ask(plain)).allowed
    shown._typed = "4\n\n"
    assert not (await ask(wide)).allowed
