"""Secrets that pass through a task or a conversation, and what of them is left in the home."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from evercontext.events.redaction import redactor
from evercontext.settings import Settings
from tests.cli.command import evercontext, home
from tests.journeys.person import Person
from tests.journeys.story import call, script, write

CANARY = "canary-4f1d9a77e2"
ENVIRONMENT = {"MY_SECRET": CANARY}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    project = tmp_path / "project"
    project.mkdir()
    (project / "notes.txt").write_text(f"the password is {CANARY}\n")
    return project


def found() -> list[str]:
    """Files of the home that hold the secret; the journal must restore every byte."""
    files = [path for path in home().rglob("*") if path.is_file()]
    assert any(path.name == "memory.db" for path in files)
    kept = [path for path in files if "journal" not in path.relative_to(home()).parts]
    return [str(path) for path in kept if CANARY.encode() in path.read_bytes()]


def rows(query: str) -> list[tuple[str, ...]]:
    with closing(sqlite3.connect(home() / "memory.db")) as database:
        return database.execute(query).fetchall()


def turns(tmp_path: Path) -> str:
    return script(
        tmp_path / "s.jsonl",
        {"tool_calls": [call("read_file", path="notes.txt")]},
        {"tool_calls": [call("read_file", path=f"{CANARY}.txt")]},
        {"tool_calls": [call("remember", content=f"The password is {CANARY}.")]},
        write("copy.txt", f"{CANARY}\n"),
        {"text": f"It is {CANARY}."},
    )


@pytest.mark.slow
@pytest.mark.case(135)
def test_a_task_leaves_no_secret_in_the_home(project: Path, tmp_path: Path) -> None:
    model = turns(tmp_path)
    # The secret stands across the ends of the trace's title and of the memory.
    for lead in ("use", "x" * 190, "x" * 390):
        task = f"{lead} {CANARY}"
        ended = evercontext("run", "-t", task, "-m", model, cwd=project, env=ENVIRONMENT)
        assert ended.code == 0, ended.err
    assert (project / "copy.txt").read_text() == f"{CANARY}\n"
    assert found() == []
    kept = str(rows("SELECT title FROM traces") + rows("SELECT content FROM memories"))
    assert "use [redacted]" in kept
    assert "The password is [redacted]." in kept
    assert CANARY[:6] not in kept


@pytest.mark.case(135)
@pytest.mark.slow
def test_a_conversation_leaves_no_secret_in_the_home(project: Path, tmp_path: Path) -> None:
    said = f"{'x' * 70} {CANARY}\n"
    ended = evercontext(
        "chat", "--yes", "-m", turns(tmp_path), cwd=project, stdin=said, env=ENVIRONMENT
    )
    assert ended.code == 0, ended.err
    assert found() == []
    [(title, metadata)] = rows("SELECT title, metadata FROM sessions")
    assert CANARY[:6] not in title + metadata
    # It goes on from what was kept.
    model = script(tmp_path / "more.jsonl", {"when": r"\[redacted\]", "text": "Gone on."})
    more = evercontext("chat", "-c", "-m", model, cwd=project, stdin="go on\n", env=ENVIRONMENT)
    assert "Gone on." in more.out, more.err


@pytest.mark.case(135)
def test_what_is_typed_leaves_no_secret_in_the_history(project: Path, tmp_path: Path) -> None:
    model = script(tmp_path / "s.jsonl", {"text": "Noted."})
    with Person(project, "chat", "-m", model, MY_SECRET=CANARY) as person:
        person.sees("agent mode")
        person.says(f"use {CANARY}")
        person.sees("Noted.", "done")
        assert person.leaves() == 0
    assert found() == []


@pytest.mark.case(135)
def test_a_saved_memory_holds_no_secret(project: Path) -> None:
    told = ("memory", "add", f"The password is {CANARY}.")
    ended = evercontext(*told, cwd=project, env=ENVIRONMENT)
    assert ended.code == 0, ended.err
    assert found() == []


@pytest.mark.case(135)
def test_the_login_of_a_database_is_masked_and_its_words_are_not() -> None:
    address = "postgresql://shop:postgres@127.0.0.1/shop"
    known = redactor(Settings(database_url=address))
    assert known.text(f"it is {address}") == "it is postgresql://[redacted]@127.0.0.1/shop"
    assert known.text("the shop runs on postgres") == "the shop runs on postgres"
    assert redactor(Settings(database_url="postgresql://me@here/shop")).text("me@here") == "me@here"
