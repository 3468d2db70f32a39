"""Every line that the terminal says is in the catalogue (A10)."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import click
import pytest

from evercontext import cli, errors
from evercontext.cli import messages
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


SOURCE = Path(cli.__file__).parent
WRITERS = {
    *("line", "say", "wrapped", "_wrapped", "write", "answer", "read_answer", "show", "choice"),
    *("_agrees", "_more", "print"),
}
"""Methods and functions whose first argument a person reads."""
TRANSLATORS = {"translate", "translate_composed", "counted", "labelled"}
NAMES = re.compile(r"evercontext [a-z -]+|EverContext|utf-8|\[y/N\]|\x1b\[K")
"""What is the same in every language."""
NOT_YET = {
    "agent_hooks.py": 3,
    "config.py": 5,
    "console.py": 1,
    "context.py": 3,
    "db.py": 6,
    "evaluate.py": 3,
    "evaluation_history.py": 3,
    "git_hooks.py": 5,
    "improve.py": 10,
    "index.py": 7,
    "mcp.py": 3,
    "memory.py": 5,
    "model.py": 7,
    "plan_file.py": 2,
    "router_projects.py": 4,
    "router_tokens.py": 4,
    "search.py": 5,
    "serve.py": 3,
    "servers.py": 12,
    "sessions.py": 3,
    "setup.py": 5,
    "skills.py": 4,
    "tools.py": 2,
    "trace.py": 2,
}
"""Lines that are still English, by the module of their command. A number may only shrink; chat,
run, approvals and the first run are not here."""


def name_of(call: ast.Call) -> str:
    return call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")


def english(node: ast.AST) -> Iterator[str]:
    """Texts in an expression that are written as they are, not through the catalogue."""
    match node:
        case ast.Call():
            if name_of(node) not in TRANSLATORS | {"paint"}:
                for argument in node.args:
                    yield from english(argument)
            elif name_of(node) == "paint":
                yield from english(node.args[0])
        case ast.Constant(value=str() as text):
            yield text
        case ast.JoinedStr(values=parts):
            # Together: a word may be cut by a place.
            yield " ".join(str(part.value) for part in parts if isinstance(part, ast.Constant))
            for part in parts:
                if isinstance(part, ast.FormattedValue):
                    yield from english(part.value)
        case ast.BinOp(left=left, right=right):
            yield from (*english(left), *english(right))
        case ast.IfExp(body=body, orelse=otherwise):
            yield from (*english(body), *english(otherwise))


def untranslated(path: Path) -> list[str]:
    """Lines that a person reads and that are always English."""
    lines = []
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Call) and name_of(node) in WRITERS and node.args:
            for text in english(node.args[0]):
                if re.search(r"[A-Za-z]{2}", NAMES.sub("", text)):
                    lines.append(f"{path.name}:{node.lineno}: {text!r}")
    return list(dict.fromkeys(lines))


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda p: p.name)
def test_no_line_is_written_past_the_catalogue(path: Path) -> None:
    """A10: chat, approvals, runs and the first run have no line that is always English."""
    lines = untranslated(path)
    allowed = NOT_YET.get(path.name, 0) if path.parent == SOURCE else 0
    assert len(lines) == allowed, lines


def constants(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Constant(value=str() as text):
            yield text
        case ast.IfExp(body=body, orelse=otherwise):
            yield from (*constants(body), *constants(otherwise))


def test_every_message_is_translated() -> None:
    """A10: what goes through ``translate`` is in the catalogue, and what is counted."""
    used = set()
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and name_of(node) == "translate" and node.args:
                used |= set(constants(node.args[0]))
            if isinstance(node, ast.Call) and name_of(node) == "counted":
                match [a.value for a in node.args[1:] if isinstance(a, ast.Constant)]:
                    case [str() as noun]:
                        used.add(f"{{count}} {noun}s")
                    case [_, str() as plural]:
                        used.add(f"{{count}} {plural}")
    assert len(used) > 100
    assert used - catalogue("ja").keys() == set()


CHAT_ERRORS = ("cli/chat", "agent/loop.py", "agent/compaction.py", "agent/repetition.py")
"""Where the errors come from that somebody in a chat meets most."""


@pytest.mark.parametrize("place", CHAT_ERRORS)
def test_errors_of_a_chat_are_translated(place: str) -> None:
    """A10: the patterns of composed texts fit what is really raised there."""
    root = SOURCE.parent / place
    missing = []
    for path in [root] if root.is_file() else sorted(root.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not (isinstance(node, ast.Call) and name_of(node) in RAISED and node.args):
                continue
            texts = [node.args[0], *(k.value for k in node.keywords if k.arg == "fix")]
            for text in map(sample, texts):
                bare = re.sub("x7|[^A-Za-z]", "", text)
                if bare and messages.translate_composed(text) == text:
                    missing.append(f"{path.name}:{node.lineno}: {text}")
    assert missing == []


RAISED = {
    name
    for name, value in vars(errors).items()
    if isinstance(value, type) and issubclass(value, errors.EverContextError)
}


def sample(node: ast.AST) -> str:
    """An error's text with something in its places."""
    if isinstance(node, ast.JoinedStr):
        return "".join(str(p.value) if isinstance(p, ast.Constant) else "x7" for p in node.values)
    return str(node.value) if isinstance(node, ast.Constant) else ""


@pytest.fixture(autouse=True)
def _language(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    if "place" in request.fixturenames:
        monkeypatch.setenv("LC_ALL", "ja_JP.UTF-8")
    messages.language.cache_clear()
    yield
    messages.language.cache_clear()


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
