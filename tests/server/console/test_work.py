"""Work that is given in the browser: the same runs and sessions as at the terminal."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evercontext.app import EverContext
from evercontext.app.conversations import open_conversation
from evercontext.errors import SessionBusy
from evercontext.tools.approval_gate import Gate
from tests.server.console.slow_model import SlowModel
from tests.server.console.visit import Visit
from tests.server.console.world import CODE, World, serving, write

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> World:
    """A home in which nothing was done yet."""
    return World(tmp_path_factory.mktemp("work"))


@pytest.fixture(scope="module")
def model() -> Iterator[SlowModel]:
    with SlowModel().serving() as playing:
        yield playing


@pytest.fixture(scope="module")
def desk(bare: World, model: SlowModel) -> Iterator[Visit]:
    """Somebody at a console whose usual model is the slow one."""
    place = {"HOME": str(bare.folder), "OPENAI_API_KEY": "k" * 20, "OPENAI_BASE_URL": model.url}
    with (
        serving(bare, **place, EC_MODEL_NAME="openai:slow", EC_AUTO_TEST="false") as served,
        Visit(served.url) as visitor,
    ):
        visitor.enter(bare)
        yield visitor


def begin(desk: Visit, text: str, **more: Any) -> dict[str, Any]:
    body = {"kind": "task", "text": text, "ask": False, **more}
    answer = desk.post("work", body)
    assert answer.status_code == 200, answer.text
    began: dict[str, Any] = answer.json()
    return began


def ended(desk: Visit, trace_id: str) -> dict[str, Any]:
    """The summary of a run once it is over."""
    for _ in range(600):
        run: dict[str, Any] = desk.get(f"runs/{trace_id}")["run"]
        if run["status"] != "running":
            return run
        time.sleep(0.1)
    raise AssertionError(f"{trace_id} goes on and on")


def spoken(desk: Visit, session: str) -> list[tuple[str, str]]:
    messages = desk.get(f"sessions/{session}")["messages"]
    return [(one["role"], one.get("content", "")) for one in messages]


def test_a_task_is_done_as_run_does_it(desk: Visit, bare: World) -> None:
    """W1."""
    script = bare.script(write("made.py", "x = 1\n"), {"text": "It is **made**."})
    began = begin(desk, "Make made.py", model=script)
    assert began["session"] is None
    run = ended(desk, began["trace_id"])
    assert (run["status"], run["changed"]) == ("done", ["made.py"])
    assert (bare.root / "made.py").read_text() == "x = 1\n"
    again = desk.post(f"work/{began['trace_id']}/retry", {"ask": False})
    assert again.status_code == 200, again.text
    assert again.json()["trace_id"] != began["trace_id"]
    assert ended(desk, again.json()["trace_id"])["text"] == "Make made.py"


def test_words_come_as_they_are_said_and_a_run_can_be_stopped(
    desk: Visit, model: SlowModel
) -> None:
    """W2."""
    model.answer("The first half ", "and never this.")
    trace = begin(desk, "Talk slowly")["trace_id"]
    with desk.stream(trace=trace) as messages:
        for message in messages:
            if message.event == "text" and message.data["text"]:
                assert message.data["text"].startswith("The first")
                break
        assert desk.get(f"runs/{trace}")["here"] is True
        assert desk.post(f"work/{trace}/stop", {}).status_code == 200
        for message in messages:
            if message.event == "event" and message.data["type"] == "final":
                assert message.data["data"]["status"] == "cancelled"
                break
    assert ended(desk, trace)["status"] == "cancelled"
    gone = desk.post(f"work/{trace}/stop", {})
    assert (gone.status_code, "does not run that" in gone.text) == (404, True)


def test_a_question_is_asked_with_its_task_and_answered(desk: Visit, bare: World) -> None:
    script = bare.script(write("asked.py", "y = 2\n"), {"text": "written"})
    trace = begin(desk, "Write asked.py, but ask", model=script, ask=True)["trace_id"]
    for _ in range(300):
        waiting = desk.get("approvals")["pending"]
        if waiting:
            break
        time.sleep(0.1)
    [one] = waiting
    assert (one["task"], one["trace_id"]) == ("Write asked.py, but ask", trace)
    assert one["question"]["changes"][0]["path"] == "asked.py"
    answer = {"nonce": one["nonce"], "digest": one["question"]["digest"], "allowed": True}
    assert desk.post(f"approvals/{one['id']}", answer).status_code == 200
    assert ended(desk, trace)["status"] == "done"
    assert (bare.root / "asked.py").exists()


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ({"kind": "dance"}, 422, "kind is task or chat"),
        ({"text": "   "}, 422, "the text is empty"),
        ({"text": 7}, 422, "text must be a text"),
        ({"mode": "yolo"}, 422, "mode is one of agent, plan, dry-run"),
        ({"ask": "no"}, 422, "ask must be true or false"),
        ({"project": "/etc"}, 404, "there is no such project"),
        ({"kind": "chat", "session": "nope"}, 400, "no session nope"),
        ({"kind": "chat", "fork": True}, 422, "fork copies a session"),
        ({"session": "20200101"}, 422, "kind is chat"),
        ({"model": "scripted:/no/such/file"}, 502, "cannot read the script"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_line(
    desk: Visit, body: dict[str, Any], status: int, words: str
) -> None:
    before = desk.get("runs", project="all")["total"]
    answer = desk.post("work", {"kind": "task", "text": "x", "ask": False, **body})
    message = answer.json()["error"]["message"]
    assert (answer.status_code, words in message, "\n" in message) == (status, True, False), message
    assert desk.get("runs", project="all")["total"] == before


@pytest.mark.case(58)
def test_only_the_consoles_own_page_starts_and_stops(desk: Visit, bare: World) -> None:
    body = {"kind": "task", "text": "x", "ask": False}
    for path in ("work", "work/x/stop", "work/x/retry"):
        forged = desk.post(path, body, **{"x-evercontext-csrf": "guess"})
        assert forged.status_code == 403, path
        foreign = desk.post(path, body, origin="http://evil.example")
        assert foreign.status_code == 403, path
        cookies = desk.client.cookies
        desk.client.cookies = type(cookies)()
        assert desk.post(path, body).status_code == 401, path
        desk.client.cookies = cookies


def test_a_session_goes_from_the_browser_to_the_terminal_and_back(
    desk: Visit, bare: World, model: SlowModel
) -> None:
    """W1: nobody overwrites what the other said, and one is answered at a time."""
    script = bare.script(*({"text": f"answer {number}"} for number in range(1, 9)))
    first = begin(desk, "from the browser", kind="chat", model=script)
    session = first["session"]
    assert ended(desk, first["trace_id"])["status"] == "done"
    model.answer("half of it ", "and the rest")

    async def at_the_terminal() -> None:
        async with EverContext.open(bare.settings) as app:
            talk = await open_conversation(app, resume=session, model_name=script)
            assert talk.history[-1].content == "answer 1"
            await talk.turn("from the terminal", Gate())
            # The browser's next turn is told what was said here, and the other way round.
            second = begin(desk, "again from the browser", kind="chat", session=session)
            assert ended(desk, second["trace_id"])["status"] == "done"
            await talk.turn("and the terminal once more", Gate())
            users = [m.content for m in talk.history if m.role == "user"]
            assert users == [
                "from the browser",
                "from the terminal",
                "again from the browser",
                "and the terminal once more",
            ]
            slow = begin(desk, "slowly", kind="chat", session=session, model="openai:slow")
            with pytest.raises(SessionBusy, match="another window"):
                await talk.turn("meanwhile", Gate())
            busy = desk.post("work", {**BODY, "session": session})
            assert (busy.status_code, "is being answered" in busy.text) == (409, True)
            assert desk.get(f"sessions/{session}")["live"]["trace_id"] == slow["trace_id"]
            model.go_on()
            run = ended(desk, slow["trace_id"])
            assert run["status"] == "done"
            await talk.end()

    asyncio.run(at_the_terminal())
    assert spoken(desk, session)[-2:] == [
        ("user", "slowly"),
        ("assistant", "half of it and the rest"),
    ]
    copy = begin(desk, "in a copy", kind="chat", session=session, fork=True, model=script)
    assert copy["session"] != session
    assert ended(desk, copy["trace_id"])["status"] == "done"
    assert spoken(desk, session)[-1][1] == "half of it and the rest"
    assert desk.get(f"sessions/{copy['session']}")["session"]["forked_from"] == session


BODY = {"kind": "chat", "text": "meanwhile", "ask": False}


def test_pictures_of_the_project_are_shown_and_nothing_else(desk: Visit, bare: World) -> None:
    """W3."""
    png = b"\x89PNG\r\n\x1a\n" + bytes(40)
    (bare.root / "plan.png").write_bytes(png)
    (bare.root / "fake.png").write_text(CODE["README.md"])
    (bare.folder / "outside.png").write_bytes(png)
    (bare.root / "link.png").symlink_to(bare.folder / "outside.png")
    shown = desk.client.get("/console/api/picture", params={"path": "plan.png"})
    assert (shown.status_code, shown.headers["content-type"]) == (200, "image/png")
    assert shown.content == png
    for path in ("fake.png", "../outside.png", "link.png", "README.md", "none.png", "", "\0.png"):
        refused = desk.client.get("/console/api/picture", params={"path": path})
        assert 400 <= refused.status_code < 500, path
    other = {"path": "plan.png", "project": str(Path("/"))}
    assert desk.client.get("/console/api/picture", params=other).status_code == 404
