from __future__ import annotations

import pty
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from evercontext.cli.approval_pages import _pages, show_all
from evercontext.cli.terminal import Screen
from evercontext.domain.tool import Caller, Door, Effect, FileChange, Tool, ToolResult
from evercontext.tools.approval_gate import ApprovalQuestion
from evercontext.tools.approval_text import consent_of
from tests.journeys.person import Person
from tests.journeys.story import call, script


async def _never(arguments: object, caller: object) -> ToolResult:
    raise AssertionError("asking never runs a tool")


async def _preview(arguments: object, caller: object) -> tuple[FileChange, ...]:
    return ()


WRITE = Tool("write_file", "Writes.", {}, Effect.WRITE, _never, preview=_preview)
LONG = "".join(f"line {number}\n" for number in range(40))
QUESTION = ApprovalQuestion(
    WRITE, {"path": "a.py"}, (FileChange("a.py", None, LONG),), Caller("t", Door.RUN)
)


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Screen]:
    person, terminal = pty.openpty()
    monkeypatch.setenv("LINES", "24")
    monkeypatch.setenv("COLUMNS", "60")
    with open(terminal, "w", encoding="utf-8") as stream, open(person, "rb"):
        yield Screen(stream, no_color=True)


async def shown_until_the_end(screen: Screen, *typed: str | None) -> tuple[bool, list[str]]:
    answers, prompts = list(typed), []

    async def more(prompt: str) -> str | None:
        prompts.append(prompt)
        return answers.pop(0)

    return await show_all(screen, consent_of(QUESTION), more), prompts


async def test_yes_is_not_taken_before_the_last_page(screen: Screen) -> None:
    """X1: nothing is approved unseen."""
    whole, prompts = await shown_until_the_end(screen, "1", "y", "", "2", " ")
    assert whole
    assert ["page 1 of 3" in prompt for prompt in prompts] == [True, True, True, False, False]
    assert ["page 2 of 3" in prompt for prompt in prompts] == [False, False, False, True, True]
    for no in ("4", None):
        assert await shown_until_the_end(screen, "", no) == (False, prompts[:1] + prompts[-1:])


@pytest.mark.contract("N20")
def test_a_run_shows_method_body_and_every_page_before_it_asks(tmp_path: Path) -> None:
    """X1: method and body of run.http were hidden, and what was long scrolled away."""
    project = tmp_path / "project"
    project.mkdir()
    body = "\n".join(["first", *(f"b{number}" for number in range(30)), "evil\u202elast"])
    asked = call("run.http", url="http://127.0.0.1:1/x", method="POST", body=body)
    model = script(tmp_path / "s", {"tool_calls": [asked]}, {"text": "stopped"})
    with Person(project, "run", "--ask", "--task", "post it", "-m", model, rows=24) as person:
        person.sees("run.http http://127.0.0.1:1/x needs your approval", "method  POST", "first")
        person.sees("page 1 of 3: space or Enter for more")
        assert "1 yes" not in person.shown
        person.says("1")
        person.says("")
        person.sees("page 2 of 3")
        person.says(" ")
        person.sees("evil\\u202elast", "1 yes")
        person.says("4")
        person.sees("What should it do instead?")
        person.says("")
        person.sees("trace show")


@pytest.mark.contract("N20")
def test_the_chat_pages_with_the_space_bar(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    turn = {"tool_calls": [call("write_file", path="a.py", content=LONG, mode="overwrite")]}
    model = script(tmp_path / "s", turn, {"text": "written"})
    with Person(project, "chat", "-m", model, rows=24) as person:
        person.sees(">")
        person.says("write it")
        person.sees("page 1 of", "space or Enter for more")
        person.presses("1")
        person.presses(" ")
        person.sees("page 2 of")
        assert not (project / "a.py").exists()
        person.presses(" ")
        person.sees("1  yes, once")
        person.presses("1")
        person.sees("written")
    assert (project / "a.py").read_text() == LONG


def test_code_has_the_colours_of_its_language_and_stays_as_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A6: signs and numbers say what changes; a long line keeps its colours in every row."""
    person, terminal = pty.openpty()
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "40")
    code = "def add(left, right):\n    return left + right  # the sum of both, as a number\n"
    question = ApprovalQuestion(
        WRITE, {"path": "a.py"}, (FileChange("a.py", None, code),), Caller("t", Door.RUN)
    )
    with open(terminal, "w", encoding="utf-8") as stream, open(person, "rb"):
        (page,) = _pages(Screen(stream), list(consent_of(question).lines()))
    painted = "".join(text for text, _ in page)
    assert "\x1b[94mdef\x1b[0m" in painted
    assert "1 +\x1b[0m" in painted
    rows = [re.sub(r"\x1b\[[0-9;]*m", "", text) for text, _ in page]
    shown = [row for row in rows if re.match(r"\s+(\d+ [+]|$)", row) or row.startswith(" " * 11)]
    assert "".join(row[11:] for row in shown) == code.replace("\n", "")
