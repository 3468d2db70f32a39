"""Habits of other agents' users (A2): what they type does what they expect."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evercontext.cli.main import ALIASES, COMMANDS
from evercontext.cli.shorthand import expand, is_task
from tests.cli.command import evercontext
from tests.journeys.story import call, script


@pytest.mark.parametrize(
    ("typed", "meaning"),
    [
        ([], []),
        (["do this"], ["chat", "do this"]),
        (["修正して"], ["chat", "修正して"]),
        (["-p", "what is it"], ["chat", "-p", "what is it"]),
        (["-c"], ["chat", "-c"]),
        (["-r", "abc"], ["chat", "-r", "abc"]),
        (["-m", "openai:x", "do this"], ["chat", "-m", "openai:x", "do this"]),
        (["help"], ["--help"]),
        (["help", "run"], ["run", "--help"]),
        (["version"], ["--version"]),
        (["--version"], ["--version"]),
        (["run", "do this"], ["run", "do this"]),
        (["hook", "status"], ["hook", "status"]),
        (["serach"], ["serach"]),
    ],
)
def test_a_command_line_is_written_out(typed: list[str], meaning: list[str]) -> None:
    """A2: tasks and options open the chat, one unknown word never does."""
    assert expand(typed, COMMANDS.keys() | ALIASES.keys()) == meaning


def test_one_word_is_no_task() -> None:
    assert not is_task("serach")
    assert not is_task("  ")
    assert is_task("fix it")


def test_a_mistyped_command_names_the_near_ones() -> None:
    """A2: a single unknown word is a mistyped command."""
    ended = evercontext("serach")
    assert ended.code == 64
    assert "'search'" in ended.err


def test_help_and_version_are_words() -> None:
    """A2."""
    assert evercontext("help").out == evercontext("--help").out
    assert evercontext("version").out == evercontext("--version").out


@pytest.mark.slow
def test_print_answers_once_with_what_is_piped_in(tmp_path: Path) -> None:
    """A2: -p prints the answer alone; -c goes on with that session."""
    model = script(tmp_path / "s.jsonl", {"when": "<stdin>\nabc", "text": "It says **abc**."})
    ended = evercontext("-m", model, "-p", "what is this", cwd=tmp_path, stdin="abc\n")
    assert (ended.code, ended.out) == (0, "It says **abc**.\n")
    more = script(tmp_path / "t.jsonl", {"when": "It says", "text": "As before."})
    again = evercontext("-c", "-m", more, "-p", "and now", "--output-format", "json", cwd=tmp_path)
    assert again.code == 0
    result = json.loads(again.out)
    assert result["result"] == "As before."
    assert result["session_id"] != result["trace_id"]
    first = evercontext("sessions", "list", "--json", cwd=tmp_path)
    assert [row["id"] for row in json.loads(first.out)] == [result["session_id"]]


@pytest.mark.slow
def test_print_has_no_keyboard_to_offer_something_at(tmp_path: Path) -> None:
    """A2: the end of a plan, and of a long answer, was told to a keyboard that -p has not."""
    model = script(tmp_path / "s.jsonl", {"text": "A plan."})
    ended = evercontext("-m", model, "--plan", "-p", "plan it", cwd=tmp_path)
    assert (ended.code, ended.out) == (0, "A plan.\n")
    assert "unexpected" not in ended.err


@pytest.mark.slow
@pytest.mark.parametrize(("mode", "code"), [("default", 5), ("acceptEdits", 0), ("plan", 0)])
def test_the_permission_mode_decides(tmp_path: Path, mode: str, code: int) -> None:
    """A2: nobody is asked in print mode."""
    write = {"tool_calls": [call("write_file", path="a.txt", content="x\n", mode="create")]}
    model = script(tmp_path / "s.jsonl", write, {"text": "Tried."})
    project = tmp_path / "project"
    project.mkdir()
    options = ("--permission-mode", mode, "-m", model)
    ended = evercontext("write a file", *options, cwd=project)
    assert (project / "a.txt").exists() == (mode == "acceptEdits"), ended
    assert ended.code == code, ended


@pytest.mark.slow
def test_run_takes_its_task_as_an_argument(tmp_path: Path) -> None:
    """A2: `run "do this"` without --task."""
    model = script(tmp_path / "s.jsonl", {"when": "say hello", "text": "Hello."})
    ended = evercontext("run", "say hello", "-m", model, cwd=tmp_path)
    assert (ended.code, ended.out) == (0, "Hello.\n")
    twice = evercontext("run", "say hello", "--task", "x", cwd=tmp_path)
    assert twice.code == 64


def test_an_output_format_needs_print() -> None:
    ended = evercontext("chat", "--output-format", "json")
    assert ended.code == 64
    assert "-p" in ended.err
