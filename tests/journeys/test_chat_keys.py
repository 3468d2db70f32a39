"""What users of other agents press and type without thinking, in one chat (A7)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.command import home
from tests.journeys.person import ESCAPE, SHIFT_TAB, Person
from tests.journeys.story import call, script

CTRL_G = "\x07"


@pytest.mark.slow
def test_the_keys_and_commands_of_other_agents(tmp_path: Path) -> None:
    """A7: paste, editor, Esc Esc, effort, theme, review, init, custom commands, plan hand-over."""
    project = tmp_path / "project"
    commands = home() / "commands"
    for folder in (project, commands):
        folder.mkdir(parents=True)
    (commands / "shout.md").write_text("Say $ARGUMENTS loudly.")
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\necho "written in an editor" > "$1"\n')
    editor.chmod(0o755)
    model = script(
        tmp_path / "s.jsonl",
        {"when": r"line 39", "text": "A long paste."},
        {"when": "written in an editor", "text": "From the editor."},
        {"when": "Say hello loudly", "text": "HELLO"},
        {"when": "Review the changes", "text": "Nothing to complain about."},
        {"when": "AGENTS.md", "tool_calls": [call("list", path=".")]},
        {"when": "AGENTS.md", "text": "It would say this."},
        {"when": "a goal", "text": "1. Do it."},
        {"when": "Carry out the plan", "text": "Carried out."},
    )
    with Person(project, "chat", "-m", model, EDITOR=str(editor), VISUAL=str(editor)) as person:
        person.sees("agent mode", "/help")
        pasted = "\n".join(f"line {number}" for number in range(40))
        person.presses(f"\x1b[200~{pasted}\x1b[201~")
        person.sees("[Pasted text #1")
        person.presses("\r")
        person.sees("A long paste.", "done")
        person.presses(CTRL_G)
        person.sees("> written in an editor")
        person.presses("\r")
        person.sees("From the editor.")
        person.says("/shout hello")
        person.sees("HELLO")
        person.says("/review")
        person.sees("Nothing to complain about.")
        person.says("/init")
        person.sees("It would say this.")
        person.says("/effort high")
        person.sees("reasoning effort: high")
        person.says("/theme light")
        person.sees("theme: light")
        person.says("/theme none")
        person.sees("theme: none")
        person.presses(ESCAPE + ESCAPE)
        person.sees("Go back to before one: /rewind N")
        person.presses(SHIFT_TAB)
        person.sees("plan>")
        person.says("a goal")
        person.sees("do it, in agent mode", "or type what to change")
        person.presses("1")
        person.sees("Carried out.")
        assert person.leaves() == 0
    assert '"theme": "none"' in (home() / "config.json").read_text()
