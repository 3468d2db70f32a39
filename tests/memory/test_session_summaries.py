from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from evercontext import ContextAssemblerService, ContextConfig
from evercontext.agent.conversation import Conversation
from evercontext.app import EverContext
from evercontext.app.conversations import open_conversation
from evercontext.domain.message import assistant, user
from evercontext.domain.model import Usage
from evercontext.events.log_index import Ledger
from evercontext.memory.session_summaries import GROWTH, WORTH_ASKING
from evercontext.memory.sessions import Session
from evercontext.models.prices import price
from evercontext.testing import application
from tests.models.wire_server import Answer, WireServer, sse, wire_server

LONG = "We spoke of the heron on the chimney. " * (WORTH_ASKING // 30)
ASKED = {"when": "Write the summary now", "text": "The user wants the heron left in peace."}


def script(path: Path, *turns: dict[str, Any]) -> str:
    path.write_text("".join(json.dumps(turn) + "\n" for turn in turns))
    return f"scripted:{path}"


async def talked(folder: Path, text: str, *turns: dict[str, Any]) -> Session:
    """A session of one turn, ended."""
    async with application(folder) as app:
        model = script(folder / "model.jsonl", *turns)
        talk = await open_conversation(app, model_name=model)
        await talk.turn(text)
        await talk.end()
        kept = await app.memory.sessions.get_by_id(talk.session.id)
    assert kept is not None
    return kept


@pytest.mark.contract("R51")
async def test_the_model_writes_the_summary_of_a_long_session(tmp_path: Path) -> None:
    kept = await talked(tmp_path, LONG, {"text": "I see."}, ASKED)
    assert kept.metadata["summary"] == ASKED["text"]
    assert kept.metadata["summary_made"]["by"].endswith("model.jsonl")


@pytest.mark.contract("R51")
async def test_a_short_session_asks_no_model(tmp_path: Path) -> None:
    kept = await talked(tmp_path, "Hello heron.", {"text": "Hello."}, ASKED)
    assert kept.metadata["summary"] == "- user: Hello heron.\n- assistant: Hello."
    assert kept.metadata["summary_made"]["by"] == "extraction"


@pytest.mark.contract("R51")
@pytest.mark.parametrize("failure", [{"error": "model_unavailable"}, {"text": "  "}])
async def test_a_model_that_fails_leaves_the_sentences(
    tmp_path: Path, failure: dict[str, Any]
) -> None:
    kept = await talked(tmp_path, LONG, {"text": "I see the heron."}, failure)
    assert "- assistant: I see the heron." in kept.metadata["summary"]
    assert kept.metadata["summary_made"]["by"] == "extraction"


@pytest.mark.contract("R51")
async def test_a_session_that_grows_has_a_summary_before_it_ends(tmp_path: Path) -> None:
    async with application(tmp_path) as app:
        memory = app.memory
        session = await memory.sessions.create(tmp_path, "m")
        for n in range(GROWTH // 2 - 1):
            await memory.messages.append(session.id, user(f"Question {n} about the heron."))
            await memory.messages.append(session.id, assistant(f"Answer {n} about it."))
        await memory.summaries.grow(session.id)
        early = await memory.sessions.get_by_id(session.id)
        await memory.messages.append(session.id, user("One more."))
        await memory.messages.append(session.id, assistant("The last word."))
        await memory.summaries.grow(session.id)
        grown = await memory.sessions.get_by_id(session.id)
    assert early is not None
    assert "summary" not in early.metadata
    assert grown is not None
    assert "The last word." in grown.metadata["summary"]


def spoken(text: str, sent: int = 0, got: int = 0) -> Answer:
    delta = {"index": 0, "delta": {"content": text}, "finish_reason": None}
    end = {"index": 0, "delta": {}, "finish_reason": "stop"}
    chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "gpt-4.1-nano"}
    usage = {"prompt_tokens": sent, "completion_tokens": got, "total_tokens": sent + got}
    counted = [{**chunk, "choices": [], "usage": usage}] if sent else []
    said = ({**chunk, "choices": [one]} for one in (delta, end))
    return Answer(sse(*said, *counted, done=True))


@asynccontextmanager
async def long_talk(
    folder: Path,
) -> AsyncIterator[tuple[EverContext, Conversation, WireServer]]:
    """A conversation over a real wire that needs one more turn to have grown."""
    async with (
        wire_server() as server,
        application(folder, openai_api_key="sk-test", openai_base_url=f"{server.url}/v1") as app,
    ):
        talk = await open_conversation(app, model_name="openai:gpt-4.1-nano")
        for n in range(GROWTH // 2 - 1):
            await talk.add(user(f"{n}. {LONG[:400]}"))
            await talk.add(assistant(f"Answer {n}."))
        yield app, talk, server


async def summary_of(app: EverContext, talk: Conversation) -> dict[str, Any]:
    found = await app.memory.sessions.get_by_id(talk.session.id)
    assert found is not None
    return found.metadata


async def made(app: EverContext, talk: Conversation, server: WireServer) -> str:
    """What the model was told for the summary that is being made, once that is done."""
    await app.memory.growing[talk.session.id]
    return str(server.asked[-1].body["messages"][-1]["content"])


@pytest.mark.contract("R51")
async def test_a_session_that_grows_is_summed_up_by_its_model_and_carried_on(
    tmp_path: Path,
) -> None:
    async with long_talk(tmp_path) as (app, talk, server):
        server.will(spoken("Turn."), spoken("要約その一"))
        await talk.turn("The heron flew off.")
        told = await made(app, talk, server)
        assert "user: 0. We spoke of the heron" in told
        first = await summary_of(app, talk)
        assert first["summary"] == "要約その一"
        assert first["summary_made"]["by"] == "gpt-4.1-nano"
        for n in range(GROWTH // 2 - 1):
            await talk.add(user(f"Later {n}."))
            await talk.add(assistant("Yes."))
        server.will(spoken("Turn."), spoken("要約その二"))
        await talk.turn("It is back.")
        told = await made(app, talk, server)
        assert "The summary so far:\n要約その一" in told
        assert "user: Later 0." in told
        assert "user: 0. We spoke" not in told
        # The assembler gives it to whoever takes the session up.
        assembler = ContextAssemblerService(
            app.memory.retrieval, app.memory.messages, app.memory.sessions, ContextConfig()
        )
        context = await assembler.assemble_context("What now?", "me", session_id=talk.session.id)
        assert "要約その二" in context.messages[0]["content"]
        await talk.add(user("Good night."))
        server.will(spoken("The end."))
        await talk.end()
        assert (await summary_of(app, talk))["summary"] == "The end."


async def test_what_a_summary_costs_is_counted_with_the_turns(tmp_path: Path) -> None:
    async with long_talk(tmp_path) as (app, talk, server):
        server.will(spoken("Turn.", 1_000_000, 0), spoken("Summary.", 2_000_000, 100_000))
        await talk.turn("The heron flew off.")
        turn = await price("gpt-4.1-nano", Usage(1_000_000, 0))
        assert (talk.spent_tokens, talk.spent_usd) == (1_000_000, turn)
        await made(app, talk, server)
        summary = await price("gpt-4.1-nano", Usage(2_000_000, 100_000))
        assert turn
        assert summary
        assert talk.spent_tokens == 3_100_000
        assert talk.spent_usd == pytest.approx(turn + summary)
        await talk.add(user("Good night."))
        server.will(spoken("The end.", 10, 1))
        await talk.end()
        assert talk.spent_tokens == 3_100_011
        ledger = Ledger(app.settings.traces)
        ledger.refresh()
        run = ledger.runs[talk.last_trace or ""]
        assert (run.turns, run.input_tokens + run.output_tokens) == (1, talk.spent_tokens)
        assert run.cost_usd == pytest.approx(talk.spent_usd)


@pytest.mark.contract("R51")
async def test_nobody_waits_for_it_and_one_that_fails_leaves_the_sentences(
    tmp_path: Path,
) -> None:
    async with long_talk(tmp_path) as (app, talk, server):
        server.will(spoken("Turn."), Answer(stall=True), spoken("Answered meanwhile."))
        await talk.turn("The heron flew off.")
        while len(server.asked) < 2:
            await asyncio.sleep(0.01)
        # There is one already, should all end here.
        assert "- user: The heron flew off." in (await summary_of(app, talk))["summary"]
        report = await talk.turn("And now?")
        assert report.text == "Answered meanwhile."
        waiting = app.memory.growing[talk.session.id]
        server.will(*[Answer(cut=True)] * 4)
        server.done.set()
        await waiting
        kept = await summary_of(app, talk)
        assert kept["summary_made"]["by"] == "extraction"
        assert "The heron flew off." in kept["summary"]
        server.answers.clear()
        server.will(*[Answer(cut=True)] * 4)
        await talk.end()


@pytest.mark.contract("R51")
async def test_what_is_asked_in_the_background_takes_no_turn_of_a_script(tmp_path: Path) -> None:
    async with application(tmp_path) as app:
        turns = [{"text": f"Answer {n}. {LONG[:400]}"} for n in range(GROWTH // 2 + 2)]
        talk = await open_conversation(app, model_name=script(tmp_path / "m.jsonl", *turns))
        for n in range(GROWTH // 2 + 1):
            report = await talk.turn(f"Question {n}")
            assert report.text.startswith(f"Answer {n}.")
        await asyncio.gather(*app.memory.growing.values())
        assert (await summary_of(app, talk))["summary_made"]["by"] == "extraction"
        await talk.end()


@pytest.mark.contract("R51")
async def test_a_house_that_closes_waits_for_no_summary(
    tmp_path: Path,
) -> None:
    async with long_talk(tmp_path) as (app, talk, server):
        server.will(spoken("Turn."), Answer(stall=True))
        await talk.turn("The heron flew off.")
        while len(server.asked) < 2:
            await asyncio.sleep(0.01)
        await app.memory.settle()
        assert app.memory.growing == {}
        assert "The heron flew off." in (await summary_of(app, talk))["summary"]
        server.done.set()
        server.will(*[Answer(cut=True)] * 4)
        await talk.end()


@pytest.mark.contract("R51")
async def test_nothing_new_is_no_reason_to_ask_again(tmp_path: Path) -> None:
    first = await talked(tmp_path, LONG, {"text": "I see."}, ASKED)
    async with application(tmp_path) as app:
        unwilling = script(tmp_path / "model.jsonl", {"when": "never", "text": "no"})
        talk = await open_conversation(app, resume=first.id, model_name=unwilling)
        await talk.end()
        again = await app.memory.sessions.get_by_id(first.id)
    assert again is not None
    assert again.metadata["summary"] == first.metadata["summary"]
    assert again.metadata["summary_made"] == first.metadata["summary_made"]
