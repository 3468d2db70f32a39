"""The line editor in a real terminal: Enter sends, whatever happens when it is pressed."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.journeys.person import Person

CHAT = """
import asyncio, pathlib, sys, time
from prompt_toolkit.application import run_in_terminal
from prompt_toolkit.completion import DummyCompleter
from evercontext.cli.chat.line_editor import Editor, EditorState

def editor():
    state = EditorState(lambda: "", lambda: [], lambda: False, lambda: False, lambda: 80)
    return Editor(
        state, DummyCompleter(), pathlib.Path("history"), lambda: False, lambda: None, print, str
    )

def wait(text):
    print(text, file=sys.__stdout__, flush=True)
    while not pathlib.Path("typed").exists():
        time.sleep(0.01)

async def running(keys):
    while not keys._session.app.is_running:
        await asyncio.sleep(0)

async def chat():
"""
END = """
asyncio.run(chat())
"""


def chatting(project: Path, *lines: str) -> Person:
    body = "\n".join(f"    {line}" for line in lines)
    return Person(project, "-c", CHAT + body + END, command=sys.executable)


def test_enter_pressed_while_something_is_printed_sends(tmp_path: Path) -> None:
    """It became a new line in the message, and nothing was sent."""
    lines = (
        "keys = editor(); keys.open()",
        "await running(keys)",
        "await run_in_terminal(lambda: wait('printing'), in_executor=True)",
        "print('sent', [await keys.read()]); await keys.close()",
    )
    with chatting(tmp_path, *lines) as person:
        person.sees("printing")
        person.says("hello")
        (tmp_path / "typed").touch()
        person.sees("sent ['hello']")


def test_what_was_typed_before_the_prompt_is_sent_by_its_enter(tmp_path: Path) -> None:
    """Typed while the chat starts, two messages became one with a new line in it."""
    lines = (
        "wait('starting')",
        "keys = editor(); keys.open()",
        "print('sent', [await keys.read(), await keys.read()]); await keys.close()",
    )
    with chatting(tmp_path, *lines) as person:
        person.sees("starting")
        person.says("first")
        person.says("第二")
        person.sees("第二")
        (tmp_path / "typed").touch()
        person.sees("sent ['first', '第二']")


def test_a_program_that_is_lent_the_terminal_has_it_as_programs_expect(tmp_path: Path) -> None:
    lines = (
        "keys = editor(); keys.open()",
        "await running(keys)",
        "said = await keys.lend(lambda: input('your name: '))",
        "print('hello', said); await keys.close()",
        "print('and', input('your town: '))",
    )
    with chatting(tmp_path, *lines) as person:
        person.sees("your name:")
        person.says("Ann")
        person.sees("hello Ann", "your town:")
        person.says("Oita")
        person.sees("and Oita")
