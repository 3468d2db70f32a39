"""The chat through a real terminal, and what it leaves in the database."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import evercontext, home
from tests.journeys.person import CTRL_C, ESCAPE, NEBULA, SHIFT_TAB, Person
from tests.journeys.story import call, digest, script

HELLO = 'print("こんにちは")\n'


@pytest.fixture
def project(tmp_path: Path) -> Path:
    project = tmp_path / "project"
    project.mkdir()
    return project


def new_file(path: str, content: str = HELLO) -> dict[str, Any]:
    return {"tool_calls": [call("writeFile", path=path, content=content)]}


def command(line: str) -> dict[str, Any]:
    return {"tool_calls": [call("run_command", command=line)]}


def rows(sql: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(home() / "memory.db")) as database:
        return database.execute(sql).fetchall()


@pytest.mark.contract("N8", "N20", "N22", "N23", "N29", "N32", "N33", "N36", "N37")
def test_a_change_is_asked_for_and_everything_is_kept(project: Path, tmp_path: Path) -> None:
    model = script(
        tmp_path / "s.jsonl",
        {"text": "**Hello.** これは日本語です。"},
        new_file("src/a.py"),
        {"when": "短く書いて", "text": "Then shorter."},
        new_file("src/b.py"),
        {"text": "Made b."},
        new_file("src/c.py"),
        {"text": "Made c."},
    )
    with Person(project, "chat", "-m", model) as person:
        person.sees("agent mode", "context")
        person.says("やあ")
        person.sees("Hello. これは日本語です。", "done")
        person.says("make a")
        person.sees("src/a.py would be created", 'print("こんにちは")', "allow edit(src/**)", "4 >")
        assert digest(project) == {}
        person.presses("4")
        person.sees("instead?")
        person.says("短く書いて")
        person.sees("Then shorter.", "denied")
        assert digest(project) == {}
        person.says("make b")
        person.sees("src/b.py would be created")
        person.presses("3")
        person.sees("always: allow edit(src/**)", "Made b.")
        person.says("make c")
        person.sees("src/c.py created", "Made c.")
        assert list(digest(project)) == ["src/b.py", "src/c.py"]
        person.says("/permissions")
        person.sees("allow edit(src/**)   (this project)")
        person.says("/undo")
        person.sees("removed src/c.py")
        assert list(digest(project)) == ["src/b.py"]
        assert rows("SELECT ended_at FROM sessions") == [(None,)]
        assert person.leaves() == 0
    _check_tables(project)


def _check_tables(project: Path) -> None:
    ((ended, path, used),) = rows("SELECT ended_at, project_path, model_used FROM sessions")
    assert ended is not None
    assert path == str(project.resolve())
    assert used
    kept = rows("SELECT role, content, tool_calls, tool_results FROM messages ORDER BY id")
    assert [role for role, *_ in kept][:6] == [
        "user",
        "assistant",
        "user",
        "assistant",
        "tool",
        "assistant",
    ]
    assert kept[0][1] == "やあ"
    (asked,) = json.loads(kept[3][2])
    assert (asked["name"], asked["arguments"]["path"]) == ("writeFile", "src/a.py")
    (answered,) = json.loads(kept[4][3])
    assert answered["id"] == asked["id"]
    assert "短く書いて" in answered["result"]


@pytest.mark.slow
@pytest.mark.contract("N24", "N34", "N35", "N37", "N38")
def test_a_session_is_offered_restored_and_stays_in_its_project(
    project: Path, tmp_path: Path
) -> None:
    model = script(tmp_path / "s.jsonl", {"text": "Noted."})
    evercontext("chat", "-m", model, cwd=project, stdin="覚えて: the word is plum\n")
    other = tmp_path / "other"
    other.mkdir()
    with Person(other, "chat", "-m", model) as person:
        person.sees("agent mode")
        assert "plum" not in person.shown
        assert person.leaves() == 0
    model = script(tmp_path / "t.jsonl", {"when": "the word is plum", "text": "It is plum."})
    with Person(project, "chat", "-m", model) as person:
        person.sees("1  2", "the word is plum", "Type a number", "agent mode")
        person.says("1")
        person.sees("back in:", "Noted.")
        assert rows("SELECT ended_at FROM sessions") == [(None,)]
        person.says("which word?")
        person.sees("It is plum.")
        assert person.leaves() == 0
    assert rows("SELECT count(*), count(ended_at) FROM sessions") == [(1, 1)]
    assert rows("SELECT count(*) FROM messages") == [(4,)]


@pytest.mark.contract("N7", "N9", "N13", "N27")
@pytest.mark.slow
def test_plan_mode_writes_nothing_and_the_model_can_be_switched(
    project: Path, tmp_path: Path
) -> None:
    first = script(
        tmp_path / "s.jsonl",
        {
            "when": "You are nebula, the coding agent of EverContext, in plan mode",
            **new_file("a.py"),
        },
        {"when": "plan mode changes nothing", "text": "1. create a.py"},
    )
    second = script(
        tmp_path / "t.jsonl",
        {"when": "1. create a.py", **new_file("a.py")},
        {"text": "Carried out."},
    )
    with Person(project, "chat", "-m", first) as person:
        person.sees("agent mode")
        person.presses(SHIFT_TAB)
        person.sees("plan>", "plan mode")
        person.says("add a.py")
        person.sees("refused", "1 create a.py", "done")
        assert digest(project) == {}
        person.says(f"model {second}")
        person.sees("the history stays")
        person.says("agent")
        person.sees("agent mode: it changes files")
        person.says("go")
        person.sees("a.py would be created")
        person.presses("1")
        person.sees("Carried out.")
        assert list(digest(project)) == ["a.py"]
        person.says("exit")
        assert person.leaves("") == 0
    assert rows("SELECT model_used FROM sessions")[0][0].endswith("t.jsonl")


@pytest.mark.case(136)
@pytest.mark.slow
def test_interrupting_queueing_and_what_yes_does_not_cover(project: Path, tmp_path: Path) -> None:
    model = script(
        tmp_path / "s.jsonl",
        command("sleep 60"),
        {"when": "interrupted before it finished", "text": "You stopped me."},
        command("git push"),
        {"text": "Not pushed."},
    )
    with Person(project, "chat", "--yes", "-m", model) as person:
        person.sees("agent mode")
        person.says("wait")
        person.sees("run_command sleep 60")
        person.says("what happened?")
        person.sees("1 queued")
        person.presses(ESCAPE)
        person.sees("cancelled", "You stopped me.")
        person.says("publish")
        person.sees("git push needs your approval", "every time, because", "1/4/5/6 >")
        person.presses("4")
        person.sees("instead?")
        person.says("")
        person.sees("Not pushed.")
        person.presses("half a draft")
        person.sees("half a draft")
        person.presses(CTRL_C)
        person.presses(CTRL_C)
        person.sees("again, or Ctrl-D")
        assert person.leaves(CTRL_C) == 0


def test_terminals_that_can_little(project: Path, tmp_path: Path) -> None:
    model = script(tmp_path / "s.jsonl", new_file("a.py"), {"text": "**Made** \x1b[2Jit."})
    with Person(project, "chat", "-m", model, TERM="dumb") as person:
        person.sees("\n>")
        person.child.sendline("make a")
        person.sees("a.py would be created", "1/2/3/4 >")
        person.child.sendline("1")
        person.sees("**Made** \\x1b[2Jit.")
        assert person.leaves() == 0
        assert "\x1b" not in person.raw
    assert list(digest(project)) == ["a.py"]


@pytest.mark.contract("N20")
@pytest.mark.slow
def test_a_pipe_means_no_unless_yes(project: Path, tmp_path: Path) -> None:
    model = script(tmp_path / "s.jsonl", new_file("a.py"), {"text": "Made."})
    done = evercontext("chat", "-m", model, cwd=project, stdin="make a\n")
    assert done.code == 5
    assert digest(project) == {}
    done = evercontext("chat", "--yes", "-m", model, cwd=project, stdin="make a\n")
    assert done.code == 0
    assert "Made." in done.out
    assert "\x1b" not in done.out
    assert list(digest(project)) == ["a.py"]


@pytest.mark.slow
def test_both_names_open_the_chat(project: Path, tmp_path: Path) -> None:
    model = script(tmp_path / "s.jsonl", {"text": "Hello."})
    with Person(project, EC_MODEL_NAME=model) as person:
        person.sees("EverContext", "agent mode")
        assert person.leaves() == 0
    with Person(project, "--plan", command=NEBULA, EC_MODEL_NAME=model, NO_COLOR="1") as person:
        person.sees("EverContext", "plan mode")
        assert person.leaves() == 0
        assert "\x1b[32m" not in person.raw
    assert rows("SELECT count(*) FROM sessions") == [(0,)]
