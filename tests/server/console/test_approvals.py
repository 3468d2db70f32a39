from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.journeys.person import Person
from tests.server.console.visit import Visit
from tests.server.console.world import Served, World, write


@contextmanager
def asking(world: World, served: Served, *turns: dict[str, Any]) -> Iterator[subprocess.Popen[str]]:
    """``evercontext run --ask`` without a terminal, waiting for the console."""
    model = world.script(*turns)
    command = [sys.executable, "-m", "evercontext", "run", "--ask", "-t", "ask me", "-m", model]
    place = {"EC_HOME": str(world.home), "EC_APP_ROOT": str(world.root)}
    with subprocess.Popen(
        [*command, "--no-auto-test"],
        env={**os.environ, **place},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        try:
            yield running
        finally:
            running.kill()


def waiting(visit: Visit) -> dict[str, Any]:
    """The question that waits, once it does."""
    for _ in range(1_200):
        if pending := visit.get("approvals")["pending"]:
            return dict(pending[0])
        time.sleep(0.05)
    raise AssertionError("no question came")


@pytest.mark.contract("N20")
@pytest.mark.slow
def test_a_run_waits_for_the_console_and_goes_on(
    visit: Visit, served: Served, world: World
) -> None:
    with asking(world, served, write("asked.py", "x = 1\n"), {"text": "written"}) as run:
        asked = waiting(visit)
        assert asked["tool"] == "write_file"
        assert asked["question"]["changes"][0]["path"] == "asked.py"
        assert not (world.root / "asked.py").exists()
        yes = {"nonce": asked["nonce"], "digest": asked["question"]["digest"], "allowed": True}
        stale = visit.post(f"approvals/{asked['id']}", {**yes, "nonce": "x" * 32})
        assert stale.status_code == 409
        assert visit.post(f"approvals/{asked['id']}", yes).status_code == 200
        assert visit.post(f"approvals/{asked['id']}", yes).status_code == 409
        out, err = run.communicate(timeout=120)
    assert (run.returncode, out) == (0, "written\n"), err
    assert re.search(r"http://ec-\w+\.localhost:\d+/console/approvals", err)
    assert (world.root / "asked.py").read_text() == "x = 1\n"
    settled = visit.get("approvals")["settled"][0]
    assert (settled["state"], "nonce" in settled) == ("allowed", False)


def test_a_tool_is_allowed_for_the_whole_run(visit: Visit, served: Served, world: World) -> None:
    turns = [write("one.py", "x\n"), write("two.py", "x\n"), {"text": "both"}]
    with asking(world, served, *turns) as run:
        asked = waiting(visit)
        yes = {
            "nonce": asked["nonce"],
            "digest": asked["question"]["digest"],
            "allowed": True,
            "for_run": True,
        }
        assert visit.post(f"approvals/{asked['id']}", yes).status_code == 200
        out, err = run.communicate(timeout=120)
    assert (run.returncode, out) == (0, "both\n"), err
    assert (world.root / "two.py").exists()


@pytest.mark.contract("N20")
def test_a_no_carries_its_feedback_to_the_model(visit: Visit, served: Served, world: World) -> None:
    turns = [write("no.py", "x\n"), {"when": "call it yes.py", "text": "I heard you"}]
    with asking(world, served, *turns) as run:
        asked = waiting(visit)
        no = {"nonce": asked["nonce"], "allowed": False, "feedback": "call it yes.py"}
        assert visit.post(f"approvals/{asked['id']}", no).status_code == 200
        out, _ = run.communicate(timeout=120)
    assert "I heard you" in out
    assert not (world.root / "no.py").exists()


def _place(world: World) -> dict[str, Any]:
    return {"EC_HOME": str(world.home), "EC_APP_ROOT": str(world.root)}


@pytest.mark.contract("N20")
def test_the_terminal_asks_too_and_the_console_may_be_first(
    visit: Visit, served: Served, world: World
) -> None:
    model = world.script(write("tty.py", "x = 1\n"), {"text": "written"})
    arguments = ("run", "--ask", "-t", "ask here and there", "-m", model, "--no-auto-test")
    with Person(world.root, *arguments, **_place(world)) as person:
        person.sees("write_file", "needs your approval", "1 yes")
        asked = waiting(visit)
        yes = {"nonce": asked["nonce"], "digest": asked["question"]["digest"], "allowed": True}
        assert visit.post(f"approvals/{asked['id']}", yes).status_code == 200
        person.sees("answered in the console: yes", "written")
    assert (world.root / "tty.py").exists()


@pytest.mark.contract("N20")
def test_the_chat_goes_on_after_an_answer_in_the_console(
    visit: Visit, served: Served, world: World
) -> None:
    model = world.script(
        write("chat-1.py", "x = 1\n"),
        {"text": "First done."},
        write("chat-2.py", "x = 2\n"),
        {"text": "Second done."},
    )
    with Person(world.root, "chat", "-m", model, **_place(world)) as person:
        person.sees("agent mode")
        person.says("first")
        person.sees("chat-1.py would be created", "4 >")
        asked = waiting(visit)
        yes = {"nonce": asked["nonce"], "digest": asked["question"]["digest"], "allowed": True}
        assert visit.post(f"approvals/{asked['id']}", yes).status_code == 200
        person.sees("answered in the console: yes", "First done.")
        person.says("second")
        person.sees("chat-2.py would be created")
        asked = waiting(visit)
        person.presses("1")
        person.sees("Second done.")
        late = {"nonce": asked["nonce"], "allowed": False}
        assert visit.post(f"approvals/{asked['id']}", late).status_code == 409
        assert person.leaves() == 0
    assert (world.root / "chat-1.py").exists()
    assert (world.root / "chat-2.py").exists()


def test_the_question_of_a_killed_run_does_not_wait(
    visit: Visit, served: Served, world: World
) -> None:
    with asking(world, served, write("dead.py", "x\n")) as run:
        asked = waiting(visit)
        run.kill()
        run.wait()
    yes = {"nonce": asked["nonce"], "digest": asked["question"]["digest"], "allowed": True}
    assert visit.post(f"approvals/{asked['id']}", yes).status_code == 409
    assert visit.get("approvals")["pending"] == []
    assert visit.get("approvals")["settled"][0]["state"] == "withdrawn"


def test_odd_answers_are_refused(visit: Visit) -> None:
    assert visit.post("approvals/none", {"nonce": "x", "allowed": True}).status_code == 404
    assert visit.post("approvals/none", {"allowed": True}).status_code == 422
    assert visit.post("approvals/none", {"nonce": "x", "allowed": "yes"}).status_code == 422
