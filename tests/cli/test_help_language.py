"""Every line that the terminal says is in the catalogue (A10)."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import click
import pytest

from evercontext import cli
from evercontext.cli.chat.slash_commands import SLASH_COMMANDS
from evercontext.cli.help_language import paragraphs
from evercontext.cli.main import COMMANDS
from evercontext.cli.main import command as root
from evercontext.domain.translation import catalogue
from tests.cli.command import evercontext

JAPANESE = {"LC_ALL": "ja_JP.UTF-8"}


def help_texts(command: click.Command) -> Iterator[str]:
    if command.help:
        yield from (part for part in paragraphs(command.help) if not part.startswith("\b"))
    for parameter in command.params:
        if isinstance(parameter, click.Option) and parameter.help:
            yield parameter.help
    if isinstance(command, click.Group) and command is not root:
        for inner in command.commands.values():
            yield from help_texts(inner)


@pytest.mark.parametrize("name", ["", *COMMANDS])
def test_every_help_text_is_translated(name: str) -> None:
    """A10: a new option without its Japanese text fails here."""
    command = root
    if name:
        command = import_module(f"evercontext.cli.{COMMANDS[name].module}").command
        assert {COMMANDS[name].help, COMMANDS[name].section} <= catalogue("ja").keys()
    assert set(help_texts(command)) - catalogue("ja").keys() == set()


def test_every_message_is_translated() -> None:
    """A10: what goes through ``translate`` is in the catalogue."""
    folder = Path(cli.__file__).parent
    used = set()
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                first = node.args[0] if node.func.id == "translate" and node.args else None
                if isinstance(first, ast.Constant):
                    used.add(first.value)
    assert len(used) > 20
    assert used - catalogue("ja").keys() == set()


def test_every_slash_command_is_translated() -> None:
    """A10."""
    assert {slash.help for slash in SLASH_COMMANDS.values()} - catalogue("ja").keys() == set()


def test_help_in_a_japanese_terminal() -> None:
    """A10: the same commands, in Japanese."""
    shown = evercontext("chat", "--help", env=JAPANESE)
    assert "最後のセッションを続けます" in shown.out
    listed = evercontext("--help", env=JAPANESE)
    assert "作業:" in listed.out
    assert [name for name in COMMANDS if not re.search(rf"^  {name} ", listed.out, re.M)] == []
