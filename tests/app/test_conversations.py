from __future__ import annotations

from pathlib import Path

import pytest

from evercontext import testing
from evercontext.app.conversations import (
    find_session,
    open_conversation,
    past_sessions,
    switch_model,
)
from evercontext.domain.event import Notice
from evercontext.errors import ModelProblem, ModelRefused, ModelUnknown, UsageError


@pytest.mark.contract("N24", "N34", "N35", "N37")
async def test_a_session_is_found_again_and_restored(tmp_path: Path) -> None:
    name = testing.write_script(tmp_path / "a.jsonl", [{"text": "hello"}])
    async with testing.house(tmp_path) as app:
        talk = await open_conversation(app, model_name=name)
        await talk.turn("こんにちは")
        await talk.end()
    name = testing.write_script(tmp_path / "b.jsonl", [{"when": "hello", "text": "again"}])
    async with testing.house(tmp_path) as app:
        (kept,) = await past_sessions(app)
        assert kept.ended_at is not None
        talk = await open_conversation(app, resume="last", model_name=name)
        assert talk.session.id == kept.id
        assert (await talk.turn("and?")).text == "again"
        await talk.end()


async def test_nobody_takes_up_another_users_session(tmp_path: Path) -> None:
    name = testing.write_script(tmp_path / "a.jsonl", [{"text": "herons"}])
    async with testing.house(tmp_path, user="ann") as app:
        talk = await open_conversation(app, model_name=name)
        await talk.turn("which birds?")
        await talk.end()
    async with testing.house(tmp_path, user="bob") as app:
        assert await past_sessions(app) == []
        for wanted in ("last", talk.session.id):
            with pytest.raises(UsageError, match="no session"):
                await open_conversation(app, resume=wanted, model_name=name)
    async with testing.house(tmp_path, user="ann") as app:
        assert (await find_session(app, "last")).id == talk.session.id


async def test_a_fork_goes_its_own_way(tmp_path: Path) -> None:
    turns = [{"text": "one"}, {"text": "two"}]
    async with testing.house(tmp_path) as app:
        name = testing.write_script(tmp_path / "a.jsonl", turns)
        first = await open_conversation(app, model_name=name)
        await first.turn("start")
        name = testing.write_script(tmp_path / "b.jsonl", [{"text": "other"}])
        copy = await open_conversation(app, resume=first.session.id, fork=True, model_name=name)
        assert [m.content for m in copy.history] == ["start", "one"]
        await copy.turn("elsewhere")
        _, kept = await first.messages.list(session_id=first.session.id)
        await first.end()
        await copy.end()
    assert kept == 2
    assert copy.session.metadata["forked_from"] == first.session.id


async def test_an_unknown_session_names_the_list(tmp_path: Path) -> None:
    async with testing.house(tmp_path) as app:
        with pytest.raises(UsageError, match="sessions list"):
            await find_session(app, "2026")
        with pytest.raises(UsageError):
            await find_session(app, "last")


@pytest.mark.contract("N13")
async def test_a_model_that_cannot_be_opened_leaves_the_old_one(tmp_path: Path) -> None:
    name = testing.write_script(tmp_path / "a.jsonl", [{"text": "still me"}])
    async with testing.house(tmp_path) as app:
        talk = await open_conversation(app, model_name=name)
        with pytest.raises(ModelUnknown):
            await switch_model(app, talk, "scripted:/nowhere")
        assert (await talk.turn("who?")).text == "still me"
        await talk.end()


async def test_a_tiny_model_has_room_to_talk(tmp_path: Path) -> None:
    async with testing.house(tmp_path) as app:
        talk = await open_conversation(app, model_name="embedded:smollm2")
        assert {tool.name for tool in talk.tools()} == {"list_files", "read_file", "write_file"}
        assert talk.filled() < 0.5
        report = await talk.turn("こんにちは")
        # V2: it writes small new files and answers nothing.
        assert isinstance(report.error, ModelRefused), report.error
        name = testing.write_script(tmp_path / "a.jsonl", [{"text": "hello"}])
        await switch_model(app, talk, name)
        assert "run_command" in {tool.name for tool in talk.tools()}
        await talk.end()


@pytest.mark.contract("N13")
@pytest.mark.parametrize("gone", ["script", "key"])
async def test_a_session_whose_model_is_gone_goes_on_with_the_default_and_says_so(
    tmp_path: Path, gone: str
) -> None:
    script = testing.write_script(tmp_path / "own.jsonl", [{"text": "hello"}])
    default = testing.write_script(tmp_path / "default.jsonl", [{"text": "from the default"}])
    async with testing.house(tmp_path, model_name=default) as app:
        talk = await open_conversation(app, model_name=script)
        await talk.turn("who?")
        if gone == "key":
            await talk.sessions.set_metadata(talk.session.id, "model", "openai:gpt-4.1")
        await talk.end()
    own = "openai:gpt-4.1" if gone == "key" else script
    if gone == "script":
        (tmp_path / "own.jsonl").rename(tmp_path / "away.jsonl")
    async with testing.house(tmp_path, model_name=default) as app:
        heard: list[str] = []
        stop = app.events.subscribe(
            lambda event: heard.append(event.body.text) if isinstance(event.body, Notice) else None
        )
        talk = await open_conversation(app, resume="last")
        stop()
        assert heard == [talk.problem]
        assert own in heard[0]
        assert "default.jsonl" in heard[0]
        assert (await talk.turn("and now?")).text == "from the default"
        # It was not chosen for the session: once its own is back, it goes on with that.
        assert (await find_session(app, "last")).metadata["model"] == own
        with pytest.raises(ModelProblem):
            await open_conversation(app, resume="last", model_name=own)
        await talk.end()


async def test_the_default_is_not_chosen_by_a_new_session_or_a_copy(tmp_path: Path) -> None:
    default = testing.write_script(tmp_path / "a.jsonl", [{"text": "hello"}])
    async with testing.house(tmp_path, model_name=default) as app:
        first = await open_conversation(app)
        await first.turn("who?")
        new = await open_conversation(app, otherwise=default)
        await new.turn("who?")
        copy = await open_conversation(app, resume=first.session.id, fork=True, otherwise=default)
        for talk in (first, new, copy):
            kept = await talk.sessions.get_by_id(talk.session.id)
            assert kept
            assert "model" not in kept.metadata
            await talk.end()
