from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from evercontext import testing
from evercontext.agent.conversation import Conversation
from evercontext.agent.system_prompt import Surroundings
from evercontext.agent.valid_history import INTERRUPTED, complete_calls, split_for_compaction
from evercontext.context.conversation_window import Window
from evercontext.context.token_estimate import TokenEstimator
from evercontext.domain.event import Compacted, Event, Spent, Task
from evercontext.domain.message import Message, ToolCall, assistant, tool_result, user
from evercontext.domain.model import Usage
from evercontext.domain.outcome import Outcome
from evercontext.domain.tool import Caller, Effect, Mode, ToolResult
from evercontext.errors import LimitReached, ModeRefused
from evercontext.events.log import EventLog
from evercontext.memory.messages import MessageRepository
from evercontext.memory.sessions import SessionRepository
from evercontext.storage.sqlite import SqliteStore
from evercontext.tools.tool_decorator import tool
from evercontext.tools.toolbox import Toolbox


async def look(caller: Caller) -> Surroundings:
    return Surroundings("project", instructions="Always say please.")


class Room:
    """A store on disk, a tool that keeps notes, and conversations over them."""

    def __init__(self, tmp_path: Path, store: SqliteStore) -> None:
        self.tmp_path, self.notes = tmp_path, list[str]()
        self.waits = asyncio.Event()
        self.sessions, self.messages = SessionRepository(store), MessageRepository(store)
        self.log, self.heard = EventLog(tmp_path / "traces"), list[Event]()
        self.log.subscribe(self.heard.append)

        @tool(Effect.WRITE)
        async def note(text: str) -> ToolResult:
            """Keep a note."""
            if text == "wait":
                self.waits.set()
                await asyncio.Event().wait()
            self.notes.append(text)
            return ToolResult("kept")

        self.box = Toolbox([note], self.log)

    async def talk(
        self, *turns: dict[str, Any], session: str | None = None, window: int = 50_000
    ) -> Conversation:
        model = testing.scripted_model(self.tmp_path / "s.jsonl", turns)
        kept = await self.sessions.get_by_id(session) if session else None
        opened = kept or await self.sessions.create(self.tmp_path, "scripted")
        conversation = Conversation(
            opened,
            model,
            Window(window, window // 10, TokenEstimator("gpt-4o")),
            self.box,
            self.log,
            self.sessions,
            self.messages,
            look,
            "project",
        )
        await conversation.load()
        return conversation


@pytest.fixture
async def room(tmp_path: Path) -> AsyncIterator[Room]:
    store = await SqliteStore.open(tmp_path / "memory.db")
    room = Room(tmp_path, store)
    yield room
    room.log.close()
    await store.close()


def call(text: str) -> dict[str, Any]:
    return {"tool_calls": [{"name": "note", "arguments": {"text": text}}]}


@pytest.mark.contract("N22", "N29")
async def test_the_whole_history_goes_into_the_next_turn(room: Room) -> None:
    talk = await room.talk(
        {"text": "Hello Ann"},
        {"when": "Hello Ann", "text": "You are Ann"},
    )
    await talk.turn("I am Ann")
    report = await talk.turn("Who am I?")
    assert report.text == "You are Ann"
    assert [m.content for m in talk.history][:2] == ["I am Ann", "Hello Ann"]


@pytest.mark.contract("N23", "N35", "N36")
async def test_another_process_takes_the_session_up_again(room: Room) -> None:
    first = await room.talk(call("a"), {"text": "noted"})
    await first.turn("note a")
    await first.end()
    again = await room.talk({"when": "noted", "text": "yes"}, session=first.session.id)
    assert [m.role for m in again.history] == ["user", "assistant", "tool", "assistant"]
    assert (await again.turn("still there?")).text == "yes"


@pytest.mark.contract("N36")
async def test_a_message_is_in_the_database_before_the_loop_goes_on(room: Room) -> None:
    talk = await room.talk(call("wait"))
    turn = asyncio.create_task(talk.turn("note wait"))
    await room.waits.wait()
    with sqlite3.connect(room.tmp_path / "memory.db") as raw:
        roles = [row[0] for row in raw.execute("SELECT role FROM messages ORDER BY id")]
    raw.close()
    assert roles == ["user", "assistant"]
    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn


async def test_an_interrupted_turn_leaves_a_history_that_can_go_on(room: Room) -> None:
    talk = await room.talk(call("wait"), {"when": "interrupted before", "text": "I see"})
    turn = asyncio.create_task(talk.turn("note wait"))
    await room.waits.wait()
    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn
    assert talk.history[-1].content == INTERRUPTED
    assert (await talk.turn("go on")).text == "I see"


@pytest.mark.contract("N7", "N9", "N27")
async def test_plan_mode_offers_no_writes_and_agent_mode_carries_it_out(room: Room) -> None:
    talk = await room.talk(call("x"), {"text": "the plan"}, call("x"), {"text": "done"})
    talk.mode = Mode.PLAN
    assert talk.tools() == []
    await talk.turn("plan it")
    assert room.notes == []
    assert any(ModeRefused.code in str(event.to_json()) for event in room.heard)
    talk.mode = Mode.AGENT
    report = await talk.turn("do it")
    assert (report.outcome, room.notes) == (Outcome.DONE, ["x"])


@pytest.mark.contract("N13")
async def test_a_model_switch_keeps_the_history(room: Room) -> None:
    talk = await room.talk({"text": "one"})
    await talk.turn("first")
    other = testing.scripted_model(room.tmp_path / "o.jsonl", [{"when": "one", "text": "two"}])
    await talk.switch_model(other, talk.window)
    assert (await talk.turn("second")).text == "two"
    kept = await room.sessions.get_by_id(talk.session.id)
    assert kept is not None
    assert kept.model_used == other.info.bare_name


async def test_compaction_hands_over_and_survives_a_restart(room: Room) -> None:
    turns = [{"text": f"answer {n} " + "word " * 60} for n in range(8)]
    usage = {"input_tokens": 700, "output_tokens": 30}
    handover = {"role": "compaction", "text": "## Goal\nFinish.", "usage": usage}
    talk = await room.talk(*turns, handover)

    async def price(model: str, usage: Usage) -> float:
        return usage.output_tokens / 10

    talk.price = price
    for n in range(8):
        await talk.turn(f"question {n}")
    before, after = await talk.compact("the goal")
    assert (talk.spent_tokens, talk.spent_usd) == (730, 3.0)
    assert after < before
    assert talk.history[0].content.endswith("## Goal\nFinish.")
    shorter = list(talk.history)
    again = await room.talk({"text": "x"}, session=talk.session.id)
    assert [m.content for m in again.history] == [m.content for m in shorter]
    _, total = await room.messages.list(session_id=talk.session.id)
    assert total == 16
    assert any(isinstance(event.body, Compacted) for event in room.heard)
    [spent] = [event.body for event in room.heard if isinstance(event.body, Spent)]
    assert (spent.purpose, spent.input_tokens, spent.cost_usd) == ("handover", 700, 3.0)


async def test_a_full_window_is_compacted_by_itself_and_rules_stay(room: Room) -> None:
    turns = [{"role": "agent", "text": "long " * 200} for _ in range(5)]
    handover = {"role": "compaction", "text": "## Goal\nGo on."}
    last = {"role": "agent", "when": "Always say please", "text": "please"}
    talk = await room.talk(*turns, *[handover] * 3, last, window=1_500)
    for n in range(6):
        report = await talk.turn(f"q{n}")
    assert report.text == "please"
    assert "Handover" in talk.history[0].content


async def test_a_failing_compaction_does_not_end_the_turn(room: Room) -> None:
    turns = [{"role": "agent", "text": "long " * 200} for _ in range(5)]
    talk = await room.talk(*turns, {"role": "agent", "text": "still here"}, window=1_500)
    for n in range(6):
        report = await talk.turn(f"q{n}")
    assert report.text == "still here"
    assert any("could not be compacted" in str(event.to_json()) for event in room.heard)


async def test_half_a_handover_stands_for_nothing(room: Room) -> None:
    """P6: what was said stays as it is."""
    turns = [{"text": f"answer {n} " + "word " * 60} for n in range(8)]
    talk = await room.talk(*turns, {"role": "compaction", "text": "## Go", "stop": "length"})
    for n in range(8):
        await talk.turn(f"question {n}")
    before = list(talk.history)
    with pytest.raises(LimitReached, match="did not come whole"):
        await talk.compact()
    assert talk.history == before


async def test_compacting_nothing_says_so(room: Room) -> None:
    talk = await room.talk({"text": "hi"})
    await talk.turn("hello")
    with pytest.raises(LimitReached, match="nothing old enough"):
        await talk.compact()


async def test_each_turn_is_a_task_of_the_session(room: Room) -> None:
    talk = await room.talk({"text": "a"}, {"text": "b"})
    await talk.turn("one")
    await talk.turn("two")
    tasks = [e for e in room.heard if isinstance(e.body, Task)]
    assert len({task.trace_id for task in tasks}) == 2
    bodies = [task.body for task in tasks]
    assert {body.session for body in bodies if isinstance(body, Task)} == {talk.session.id}
    assert 0 < talk.filled() < 1
    kept = await room.sessions.get_by_id(talk.session.id)
    assert kept is not None
    assert kept.title == "one"


def test_every_call_gets_a_result_and_strays_are_dropped() -> None:
    one, two = ToolCall("1", "a", {}), ToolCall("2", "b", {})
    said: list[Message] = [
        user("x"),
        assistant("", (one, two)),
        tool_result(one, "r"),
        user("y"),
        tool_result(two, "stray"),
    ]
    mended = complete_calls(said)
    assert [m.role for m in mended] == ["user", "assistant", "tool", "tool", "user"]
    assert mended[3].content == INTERRUPTED
    assert complete_calls(mended) == mended


def test_compaction_cuts_only_before_the_users_words() -> None:
    one = ToolCall("1", "a", {})
    said = [
        user("x"),
        assistant("", (one,)),
        tool_result(one, "r"),
        assistant("z"),
        user("y"),
        assistant("w"),
    ]
    older, newest = split_for_compaction(said, 2)
    assert (len(older), newest[0].content) == (4, "y")
    assert split_for_compaction(said, 5)[0] == []


async def test_effort_and_the_cached_share_stay_with_the_session(room: Room) -> None:
    """A7: how much the model thinks is the session's; what the provider had cached is counted."""
    usage = {"input_tokens": 100, "output_tokens": 5, "cached_tokens": 80}
    talk = await room.talk({"text": "one", "usage": usage}, {"text": "two", "usage": usage})
    await talk.set_effort("high")
    report = await talk.turn("first")
    await talk.turn("second")
    assert talk.spent == Usage(200, 10, 160)
    assert report.final.cached_tokens == 80
    stored = await room.sessions.get_by_id(talk.session.id)
    assert stored is not None
    assert stored.metadata["effort"] == "high"
