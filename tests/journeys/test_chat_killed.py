"""Kill -9 in the middle of a conversation: what was shown is kept, files are whole."""

from __future__ import annotations

import random
import re
import signal
import sqlite3
import subprocess
import time
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.command import EVERCONTEXT, evercontext, home
from tests.journeys.person import Person
from tests.journeys.story import call, script

TURNS = 12
LINES = 200


def content(number: int) -> str:
    return f"{number}\n" * LINES


@pytest.mark.slow
@pytest.mark.case(81)
@pytest.mark.contract("N36", "N37")
@pytest.mark.parametrize("seed", range(4))
def test_nothing_that_was_shown_is_lost(tmp_path: Path, seed: int) -> None:
    project = tmp_path / "project"
    project.mkdir()
    turns = [
        turn
        for n in range(TURNS)
        for turn in (
            {
                "tool_calls": [
                    call("writeFile", path=f"{n}-{part}.txt", content=content(n)) for part in "abc"
                ]
            },
            {"text": f"answer {n} kept"},
        )
    ]
    model = script(tmp_path / "s.jsonl", *turns)
    shown = _talk_until_killed(project, model, tmp_path, random.Random(seed))
    for path in project.glob("*.txt"):
        number = int(path.name.split("-")[0])
        assert path.read_text() == content(number), f"{path.name} is not whole"
    (project / ".ec-0123456789abcdef.tmp").write_text("cut off in the middle of a write")
    last = script(tmp_path / "t.jsonl", {"text": "going on"})
    resumed = evercontext("chat", "-c", "-m", last, cwd=project, stdin="and now?\n")
    assert resumed.code == 0, resumed.err
    assert "going on" in resumed.out
    assert [path.name for path in project.iterdir() if path.suffix != ".txt"] == []
    with closing(sqlite3.connect(home() / "memory.db")) as database:
        ((ended,),) = database.execute("SELECT ended_at FROM sessions").fetchall()
        kept = "\n".join(text for (text,) in database.execute("SELECT content FROM messages"))
    assert ended is not None
    assert all(text in kept for text in shown)


def _talk_until_killed(
    project: Path, model: str, tmp_path: Path, chance: random.Random
) -> list[str]:
    out = tmp_path / "out.txt"
    with out.open("wb") as shown:
        child = subprocess.Popen(
            [EVERCONTEXT, "chat", "--yes", "-m", model],
            cwd=project,
            stdin=subprocess.PIPE,
            stdout=shown,
            stderr=subprocess.DEVNULL,
        )
        assert child.stdin is not None
        child.stdin.write(b"".join(b"message %d\n" % n for n in range(TURNS)))
        child.stdin.flush()
        wanted = chance.randrange(TURNS - 1)
        while f"answer {wanted} kept" not in out.read_text() and child.poll() is None:
            time.sleep(0.005)
        time.sleep(chance.random() / 20)
        child.send_signal(signal.SIGKILL)
        child.wait()
        child.stdin.close()
    found = re.findall(r"answer \d+ kept", out.read_text())
    assert found
    return found


@pytest.mark.case(136)
@pytest.mark.contract("N37")
def test_a_polite_end_is_recorded_at_once(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    turns = ({"text": "hello"}, {"tool_calls": [call("run_command", command="sleep 60")]})
    model = script(tmp_path / "s.jsonl", *turns)
    with Person(project, "chat", "--yes", "-m", model) as person:
        person.sees("agent mode")
        person.says("hi")
        person.sees("hello", "done")
        person.says("wait")
        person.sees("sleep 60")
        person.child.kill(signal.SIGTERM)
        assert person.leaves("") == 143
    with closing(sqlite3.connect(home() / "memory.db")) as database:
        ((ended,),) = database.execute("SELECT ended_at FROM sessions").fetchall()
    assert ended is not None
