from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evercontext.app.conversations import open_conversation
from evercontext.app.summaries import GROWTH, WORTH_ASKING
from evercontext.domain.message import assistant, user
from evercontext.memory.sessions import Session
from evercontext.testing import house

LONG = "We spoke of the heron on the chimney. " * (WORTH_ASKING // 30)
ASKED = {"when": "Write the summary now", "text": "The user wants the heron left in peace."}


def script(path: Path, *turns: dict[str, Any]) -> str:
    path.write_text("".join(json.dumps(turn) + "\n" for turn in turns))
    return f"scripted:{path}"


async def talked(folder: Path, text: str, *turns: dict[str, Any]) -> Session:
    """A session of one turn, ended."""
    async with house(folder) as app:
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
    async with house(tmp_path) as app:
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


@pytest.mark.contract("R51")
async def test_nothing_new_is_no_reason_to_ask_again(tmp_path: Path) -> None:
    first = await talked(tmp_path, LONG, {"text": "I see."}, ASKED)
    async with house(tmp_path) as app:
        unwilling = script(tmp_path / "model.jsonl", {"when": "never", "text": "no"})
        talk = await open_conversation(app, resume=first.id, model_name=unwilling)
        await talk.end()
        again = await app.memory.sessions.get_by_id(first.id)
    assert again is not None
    assert again.metadata["summary"] == first.metadata["summary"]
    assert again.metadata["summary_made"] == first.metadata["summary_made"]
