"""A conversation over two days on a real project: approvals, a rewind, a switch, a kill."""

from __future__ import annotations

import json
import os
import re
import signal
import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pexpect
import pytest

from evercontext.domain.event import Approval, Event, Final, Task
from evercontext.events.log_reader import read, segments
from tests.cli.command import EVERCONTEXT, evercontext, home
from tests.journeys.model_server import ModelServer, model_server
from tests.journeys.repositories import git, repository
from tests.journeys.story import call

LOOKS = 20
PATIENCE = 900
YES, ALWAYS, NO = "1", "3", "4"
QUESTIONS = ("/4 > ", "instead?")
"""They are answered as they stand; everything else at the prompt."""


def rows(sql: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(home() / "memory.db")) as database, database:
        return database.execute(sql).fetchall()


def events() -> list[Event]:
    return [event for place in segments(home() / "traces") for event in read(place)]


def note(name: str) -> str:
    return f"# {name}\n\nhttpx のメモ {name}\n"


def first_day(model: ModelServer, project: Path) -> list[tuple[str, str]]:
    """What the user types, and what must be seen before; the model's part goes into its script."""
    typed: list[tuple[str, str]] = []
    seen = "openai:gpt-4.1-mini in"
    files = sorted((project / "httpx").glob("*.py"))
    for number in range(LOOKS):
        path = str(files[number % len(files)].relative_to(project))
        first = 1 + 12 * (number // len(files))
        typed.append((seen, f"question {number}: {path} は何をする?"))
        look = call("readFile", path=path, start_line=first, end_line=first + 11)
        model.will([look], f"answer {number} about {path}")
        seen = f"answer {number} about {path}"

    def make(name: str, *answers: tuple[str, str]) -> None:
        nonlocal seen
        typed.extend([(seen, f"make {name}"), *answers])
        seen = f"That was {name}."
        model.will([call("writeFile", path=f"notes/{name}.md", content=note(name))])
        model.will(f"That was {name}.")

    make("a", ("/4 > ", YES))
    make("b", ("/4 > ", NO), ("instead?", "短くして"))
    make("c", ("/4 > ", ALWAYS))
    make("d")
    typed.append((seen, "model gpt-4.1"))
    model.will("I am another model.")
    typed.append(("the history stays", "who are you?"))
    seen = "I am another model."
    make("e")
    typed += [(seen, "/rewind 1 both"), ("taken back", "cut off here")]
    return typed


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.case(81)
@pytest.mark.contract("N5", "N13", "N20", "N22", "N36", "N37", "N38")
def test_two_days_with_a_kill_between(tmp_path: Path) -> None:
    project = repository("httpx", tmp_path)
    with model_server() as model:
        shown = _talk_until_killed(model, project)
        _check_first_day(shown, project, model)
        ((yesterday,),) = rows("SELECT date(started_at, '-1 day') FROM sessions")
        for table, column in (("sessions", "started_at"), ("messages", "timestamp")):
            rows(f"UPDATE {table} SET {column} = datetime({column}, '-1 day')")
        _second_day(model, project, yesterday)
    _check_log(len(model.asked))


def _talk_until_killed(model: ModelServer, project: Path) -> str:
    typed = first_day(model, project)
    reached, dead = threading.Event(), threading.Event()

    def stall(messages: list[dict[str, Any]]) -> str:
        reached.set()
        dead.wait(PATIENCE)
        return "too late"

    model.will(stall)
    shown = ""
    child: pexpect.spawn[str] = pexpect.spawn(
        EVERCONTEXT,
        ["chat", "-m", "gpt-4.1-mini"],
        cwd=str(project),
        encoding="utf-8",
        timeout=PATIENCE,
        echo=False,
        dimensions=(50, 200),
        env={**os.environ, **model.settings, "TERM": "dumb"},
    )
    try:
        for seen, line in typed:
            child.expect_exact(seen)
            shown += f"{child.before}{seen}"
            if seen not in QUESTIONS:
                child.expect_exact("\n> ")
                shown += f"{child.before}\n> "
            child.sendline(line)
        assert reached.wait(PATIENCE), shown
        child.kill(signal.SIGKILL)
        child.expect_exact(pexpect.EOF)
        shown += str(child.before)
        child.wait()
    finally:
        dead.set()
        child.close(force=True)
    assert child.signalstatus == signal.SIGKILL
    return shown.replace("\r\n", "\n")


def _check_first_day(shown: str, project: Path, model: ModelServer) -> None:
    notes = {path.name: path.read_text() for path in (project / "notes").iterdir()}
    assert notes == {f"{name}.md": note(name) for name in "acd"}
    status = git(project, "status", "--porcelain", "-uall").split()
    assert status[1::2] == [f"notes/{name}.md" for name in "acd"]
    assert re.findall(r"notes/(\w)\.md created", shown) == ["a", "c", "d", "e"], shown
    assert re.findall(r"removed notes/(\w)\.md", shown) == ["e"]
    assert re.findall(r"notes/(\w)\.md would be created", shown) == ["a", "b", "c"]
    assert "always: allow edit(notes/**)" in shown
    assert shown.count("1 file changed") == 4, shown
    ((ended, used),) = rows("SELECT ended_at, model_used FROM sessions")
    assert (ended, used) == (None, "gpt-4.1")
    texts = [text for (text,) in rows("SELECT content FROM messages ORDER BY id")]
    for number in range(LOOKS):
        assert sum(text.startswith(f"answer {number} about") for text in texts) == 1
        assert f"answer {number} about" in shown
    assert "make e" not in texts, "the rewind took it back"
    assert "That was e." not in texts
    assert texts[-1] == "cut off here"
    used_models = [body["model"] for body in model.asked]
    assert used_models == ["gpt-4.1-mini"] * (2 * LOOKS + 8) + ["gpt-4.1"] * 4
    roles = [message["role"] for message in model.asked[-1]["messages"]]
    assert roles.count("user") - LOOKS == 6, "a, b, c, d, who and what was cut off"


def _second_day(model: ModelServer, project: Path, yesterday: str) -> None:
    answers = [f"on the second day, {number}" for number in range(10)]
    model.will(*answers, [call("writeFile", path="notes/f.md", content=note("f"))], "That was f.")
    typed = [f"day two {number}" for number in range(10)]
    before = len(model.asked)
    ended = evercontext(
        "chat",
        "-c",
        cwd=project,
        env=model.settings,
        stdin="".join(f"{line}\n" for line in [*typed, "make f"]),
    )
    assert (ended.code, model.steps) == (0, []), ended.out + ended.err
    for answer in answers:
        assert answer in ended.out
    # The rule of the first day still holds, so nobody was asked.
    assert "would be created" not in ended.out
    assert ended.out.count("notes/f.md created") == 1
    assert (project / "notes/f.md").read_text() == note("f")
    first = model.asked[before]
    assert first["model"] == "gpt-4.1", "the model of the session, not the default"
    said = [m["content"] for m in first["messages"] if m["role"] == "user"]
    assert said[-1] == "day two 0"
    assert "make a" in said
    assert "make e" not in said
    assert "cut off here" in said
    ((started, over, count),) = rows(
        "SELECT date(started_at), ended_at, (SELECT count(*) FROM messages) FROM sessions"
    )
    assert over is not None
    assert started == yesterday
    listed = json.loads(evercontext("sessions", "list", "--json", cwd=project).out)
    assert [session["messages"] for session in listed] == [count]


def _check_log(replies: int) -> None:
    """The trace, its figures and the conversation tell the same."""
    log = events()
    answers = [event.body for event in log if isinstance(event.body, Approval)]
    assert [body.allowed for body in answers] == [True, False, True]
    assert answers[1].feedback == "短くして"
    begun = {event.trace_id for event in log if isinstance(event.body, Task)}
    finals = {event.trace_id: event.body for event in log if isinstance(event.body, Final)}
    (killed,) = begun - set(finals)
    assert replies >= 60
    # What was killed was asked and never answered.
    assert sum(final.turns for final in finals.values()) == replies - 1
    done = sum(final.exit_code == 0 for final in finals.values())
    assert len(finals) - done == 1, "only the one that was not approved did not end well"
    figures = json.loads(evercontext("kpi", "--all", "--json").out)
    assert figures["task_success"]["hits"] == done
    # What was killed was begun and is no success.
    assert figures["tasks"] == figures["task_success"]["of"] == len(begun)
    assert figures["cut_off"] == len(begun) - len(finals) == 1
    listed = evercontext("trace", "list", "--all", "--json").out
    status = {one["trace_id"]: one["status"] for one in json.loads(listed)}
    assert status[killed] not in ("done", "running"), status[killed]
