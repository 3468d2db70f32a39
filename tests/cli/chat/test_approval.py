from __future__ import annotations

import io
from collections.abc import Callable

import pytest

from evercontext.access.permissions import Permissions, StoredRules
from evercontext.cli.chat.approval import ChatApproval
from evercontext.cli.chat.keyboard import T
from evercontext.cli.chat.view import ChatView
from evercontext.cli.terminal import Screen
from evercontext.domain.tool import Caller, Door, Effect, Tool, ToolResult
from evercontext.testing import memory_store
from evercontext.tools.approval_gate import ApprovalQuestion


async def _never(arguments: object, caller: object) -> ToolResult:
    raise AssertionError("asking never runs a tool")


class Person:
    """A keyboard at which somebody says yes, once."""

    interactive = True
    echoes = True

    async def read(self) -> str | None:
        return None

    async def answer(self, prompt: str, keys: str = "") -> str | None:
        return "1"

    async def lend(self, work: Callable[[], T]) -> T:
        return work()

    def show(self, line: str) -> None:
        pass

    def draw(self, source: Callable[[], list[str]] | None) -> None:
        pass

    def waiting(self) -> int:
        return 0

    def notify(self, text: str) -> None:
        pass

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
        ask = ChatApproval(person, screen, view, Permissions(), StoredRules(store, "/p"))
        answer = await ask(ApprovalQuestion(tool, {"command": command}, (), Caller("t", Door.CHAT)))
    lines = [line.strip() for line in shown.getvalue().split("\n")]
    assert answer.allowed
    assert all(any(part in line for line in lines) for part in command.split("\n"))
    assert not any("greeting rm" in line for line in lines)


class Typist(Person):
    """A keyboard at which somebody gives one answer after the other."""

    def __init__(self, *answers: str) -> None:
        self.answers = list(answers)

    async def answer(self, prompt: str, keys: str = "") -> str | None:
        return self.answers.pop(0)


@pytest.mark.parametrize(
    ("answers", "access", "session", "stored"),
    [
        (("5", "1"), "network", [], []),
        (("5", "2"), "network", ["network(npm install *)"], []),
        (("6", "3"), "outside", [], ["outside(npm install *)"]),
        (("5", "4", "1"), "sandbox", [], []),
        (("1",), "sandbox", [], []),
    ],
)
async def test_the_network_is_opened_once_for_the_session_or_by_a_rule(
    answers: tuple[str, ...], access: str, session: list[str], stored: list[str]
) -> None:
    """A3: the answers a person has, and the rule that each stores."""
    shown = io.StringIO()
    screen, person, permissions = Screen(shown), Typist(*answers), Permissions()
    tool = Tool("run_command", "Runs.", {}, Effect.EXECUTE | Effect.WRITE, _never)
    async with memory_store() as store:
        rules = StoredRules(store, "/p")
        ask = ChatApproval(person, screen, ChatView(screen, person.show), permissions, rules)
        call = {"command": "npm install left-pad"}
        answer = await ask(ApprovalQuestion(tool, call, (), Caller("t", Door.CHAT)))
        texts = [rule.text for rule in await rules.all()]
    assert (answer.allowed, answer.access) == (True, access)
    assert [rule.text for rule in permissions.session] == session
    assert texts == stored
    assert "5  yes, with network" in shown.getvalue()


async def test_a_call_that_asks_for_the_network_says_what_that_means() -> None:
    shown = io.StringIO()
    screen, person = Screen(shown), Typist("3")
    tool = Tool("run_command", "Runs.", {}, Effect.EXECUTE | Effect.WRITE, _never)
    async with memory_store() as store:
        rules = StoredRules(store, "/p")
        ask = ChatApproval(person, screen, ChatView(screen, person.show), Permissions(), rules)
        call = {"command": "npm install left-pad", "access": "network"}
        answer = await ask(ApprovalQuestion(tool, call, (), Caller("t", Door.CHAT)))
        assert [rule.text for rule in await rules.all()] == ["network(npm install *)"]
    assert answer.allowed
    text = shown.getvalue()
    assert "with network: it can send what it reads" in text
    assert "5  yes" not in text
    assert "6  yes, outside the sandbox" in text
