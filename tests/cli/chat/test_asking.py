from __future__ import annotations

import io

import pytest

from evercontext.access.permissions import Permissions, StoredRules
from evercontext.cli.chat.asking import ChatAsk
from evercontext.cli.chat.view import ChatView
from evercontext.cli.terminal import Screen
from evercontext.domain.tool import Caller, Door, Effect, Tool, ToolResult
from evercontext.testing import memory_store
from evercontext.tools.approval_gate import Question


async def _never(arguments: object, caller: object) -> ToolResult:
    raise AssertionError("asking never runs a tool")


class Person:
    """A keyboard at which somebody says yes, once."""

    interactive = True

    async def read(self) -> str | None:
        return None

    async def answer(self, prompt: str, keys: str = "") -> str | None:
        return "1"

    def show(self, line: str) -> None:
        pass

    def waiting(self) -> int:
        return 0

    async def close(self) -> None:
        pass


@pytest.mark.contract("N20")
@pytest.mark.parametrize(
    "command", ["echo hello # a greeting\nrm -f a.py", f"echo {'a' * 400}; rm -f a.py"]
)
async def test_a_command_is_asked_for_in_full(command: str) -> None:
    person, shown = Person(), io.StringIO()
    screen = Screen(shown)
    view = ChatView(screen, person.show)
    tool = Tool("run_command", "Runs.", {}, Effect.EXECUTE, _never)
    async with memory_store() as store:
        ask = ChatAsk(person, screen, view, Permissions(), StoredRules(store, "/p"))
        answer = await ask(Question(tool, {"command": command}, (), Caller("t", Door.CHAT)))
    lines = [line.strip() for line in shown.getvalue().split("\n")]
    assert answer.allowed
    assert all(any(part in line for line in lines) for part in command.split("\n"))
    assert not any("greeting rm" in line for line in lines)
