"""Every line that the terminal says is in the catalogue (A10)."""

from __future__ import annotations

import ast
import itertools
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
from tests.written_texts import Source, has_words, is_sentence, sample

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
PRODUCT = SOURCE.parent
WRITERS = {
    *("line", "say", "wrapped", "_wrapped", "write", "answer", "read_answer", "show", "choice"),
    *("_agrees", "_more", "print"),
}
"""Methods and functions whose first argument a person reads."""
TRANSLATORS = frozenset({"translate", "translate_composed", "counted", "labelled", "confirm"})
NAMES = re.compile(
    r"evercontext( [a-z -]+)?|EverContext|utf-8|\[y/N\]|\x1b\[K|--root|\?ticket=|\bMB\b"
    r"|\bundo\b|ollama|null|_completion|nebula"
)
"""What is the same in every language."""
RAISED = {
    name
    for name, value in vars(errors).items()
    if isinstance(value, type) and issubclass(value, errors.EverContextError)
}


def modules(root: Path) -> list[Path]:
    return sorted(root.rglob("*.py"))


@pytest.mark.parametrize("path", modules(SOURCE), ids=lambda p: p.name)
def test_no_line_is_written_past_the_catalogue(path: Path) -> None:
    """A10: no command has a line that is always English."""
    source = Source(path, ending=TRANSLATORS)
    lines = {
        f"{path.name}:{number}: {text}"
        for call in source.calls(WRITERS)
        for argument in call.args[:1]
        for number, text in source.texts(argument)
        if has_words(NAMES.sub("", text)) and text not in catalogue("ja")
    }
    assert lines == set()


def test_a_line_that_is_always_english_is_seen(tmp_path: Path) -> None:
    """A10: also one that stands in a name, in a function, or in one of two branches."""
    module = tmp_path / "module.py"
    module.write_text(
        "def work(name, many):\n"
        "    text = f'removed {name}' if many else 'kept'\n"
        "    print(text)\n"
        "    print(translate('in the catalogue'))\n"
        "    print(ending())\n"
        "def ending():\n"
        "    return 'the end'\n"
    )
    source = Source(module, ending=TRANSLATORS)
    texts = {t for c in source.calls(WRITERS) for _, t in source.texts(c.args[0])}
    assert texts == {"removed {name}", "kept", "the end"}


def test_every_message_is_translated() -> None:
    """A10: what goes through ``translate`` is in the catalogue, and what is counted."""
    used = set()
    for path in modules(SOURCE):
        source = Source(path)
        for call in source.calls({"translate"}):
            used |= {text for _, text in source.texts(call.args[0]) if has_words(text)}
        for call in source.calls({"counted"}):
            match [a.value for a in call.args[1:] if isinstance(a, ast.Constant)]:
                case [str() as noun]:
                    used.add(f"{{count}} {noun}s")
                case [_, str() as plural]:
                    used.add(f"{{count}} {plural}")
    assert len(used) > 250
    # A word of few fills a place: `would be {word}`.
    chosen = {text for text in used if text.startswith("would be {")}
    assert used - chosen - catalogue("ja").keys() == set()


@pytest.mark.parametrize(
    "package", sorted({path.relative_to(PRODUCT).parts[0] for path in modules(PRODUCT)})
)
@pytest.mark.usefixtures("japanese")
def test_every_error_is_translated(package: str) -> None:
    """A10: what each package raises, and how it is fixed, is known to the catalogue."""
    missing = []
    for path in modules(PRODUCT / package) or [PRODUCT / package]:
        source = Source(path)
        for call in source.calls(RAISED):
            fixes = [keyword.value for keyword in call.keywords if keyword.arg == "fix"]
            for number, text in itertools.chain.from_iterable(
                source.texts(node) for node in [*call.args[:1], *fixes]
            ):
                shown = sample(text)
                if is_sentence(text) and messages.translate_composed(shown) == shown:
                    missing.append(f"{path.relative_to(PRODUCT)}:{number}: {text}")
    assert missing == []


@pytest.mark.usefixtures("japanese")
def test_a_name_stays_a_name() -> None:
    """A10: what fills a place is translated if it is a reason, not if it is called like a word."""
    assert messages.translate_composed("there is no project 'Search'") == (
        "プロジェクト 'Search' はありません"
    )
    assert messages.translate_composed("there is no skill Approvals. There are: Context") == (
        "スキル Approvals はありません。使えるもの: Context"
    )
    assert messages.translate_composed("the plan cannot be used: unknown; no key for openai") == (
        "計画は使えません: unknown; openai のキーがありません"
    )


@pytest.fixture
def japanese(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
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
