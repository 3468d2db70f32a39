from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from evercontext.domain.message import Message, ToolCall, assistant, tool_result, user
from evercontext.errors import UsageError
from evercontext.events.redaction import MASK, Redactor
from evercontext.memory.messages import MessageCreate, MessageRepository
from evercontext.memory.sessions import SessionRepository, new_session_id
from evercontext.storage.store import Store


@pytest.fixture
def store(database: Store) -> Store:
    return database


@pytest.fixture
def sessions(store: Store) -> SessionRepository:
    return SessionRepository(store)


@pytest.fixture
def messages(store: Store) -> MessageRepository:
    return MessageRepository(store)


@pytest.mark.contract("N32")
def test_ids_sort_by_time_and_never_collide() -> None:
    ids = [new_session_id() for _ in range(2000)]
    assert len(set(ids)) == len(ids)
    assert [i[:22] for i in ids] == sorted(i[:22] for i in ids)


@pytest.mark.contract("N24", "N34", "N38")
async def test_a_project_sees_only_its_own_sessions(
    sessions: SessionRepository, tmp_path: Path
) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    mine = await sessions.create(here, "gpt-4.1-nano")
    await sessions.create(there, "gpt-4.1-nano")
    (tmp_path / "link").symlink_to(here)
    found = await sessions.of_project(tmp_path / "link")
    assert [session.id for session in found] == [mine.id]
    assert mine.project_path == str(here.resolve())


async def test_a_user_sees_their_own_sessions_and_those_of_the_project(
    sessions: SessionRepository, tmp_path: Path
) -> None:
    made = {who: await sessions.create(tmp_path, "m", user_id=who) for who in ("ann", "bob", None)}

    async def seen_by(who: str | None) -> set[str]:
        return {one.id for one in await sessions.of_project(tmp_path, user_id=who)}

    assert await seen_by("ann") == {made["ann"].id, made[None].id}
    assert await seen_by("bob") == {made["bob"].id, made[None].id}
    assert await seen_by("carl") == await seen_by(None) == await seen_by("") == {made[None].id}


@pytest.mark.contract("N35", "N37")
async def test_an_end_is_recorded_and_restoring_takes_it_back(
    sessions: SessionRepository, tmp_path: Path
) -> None:
    session = await sessions.create(tmp_path, "m")
    await sessions.end(session.id)
    ended = await sessions.get_by_id(session.id)
    assert ended is not None
    assert ended.ended_at is not None
    await sessions.restore(session.id, "other")
    again = await sessions.get_by_id(session.id)
    assert again is not None
    assert (again.ended_at, again.model_used) == (None, "other")


@pytest.mark.contract("N37")
async def test_a_killed_session_gets_its_end_at_the_next_start(
    database_url: str, sessions: SessionRepository, messages: MessageRepository, tmp_path: Path
) -> None:
    script = (
        "import asyncio, os, sys, pathlib\n"
        "from evercontext.storage.opener import open_store\n"
        "from evercontext.memory.sessions import SessionRepository\n"
        "async def go():\n"
        "    store = await open_store(pathlib.Path(sys.argv[1]), sys.argv[2])\n"
        "    s = await SessionRepository(store).create(pathlib.Path('.'), 'm')\n"
        "    print(s.id, flush=True)\n"
        "    os.kill(os.getpid(), 9)\n"
        "asyncio.run(go())\n"
    )
    child = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "memory.db"), database_url],
        capture_output=True,
        text=True,
        check=False,
    )
    killed = child.stdout.strip()
    living = await sessions.create(tmp_path, "m")
    last = await messages.append(killed, user("last words"))
    assert await sessions.repair() == [killed]
    found = await sessions.get_by_id(killed)
    assert found is not None
    assert found.ended_at == last.timestamp
    still = await sessions.get_by_id(living.id)
    assert still is not None
    assert still.ended_at is None


@pytest.mark.contract("N22", "N23", "N33", "N36")
async def test_a_conversation_comes_back_whole(
    store: Store, sessions: SessionRepository, messages: MessageRepository, tmp_path: Path
) -> None:
    session = await sessions.create(tmp_path, "m")
    call = ToolCall("c1", "readFile", {"path": "日本語.md"})
    said: list[Message] = [
        user("読んで"),
        assistant("", (call,)),
        tool_result(call, '{"ok": true}'),
        assistant("読みました"),
    ]
    for message in said:
        await messages.append(session.id, message)
    assert await messages.conversation(session.id) == said
    rows = await store.fetch_all("SELECT role, tool_calls, tool_results FROM messages ORDER BY id")
    assert [row["role"] for row in rows] == ["user", "assistant", "tool", "assistant"]
    assert '"c1"' in rows[1]["tool_calls"]
    assert '"c1"' in rows[2]["tool_results"]


@pytest.mark.contract("R45")
async def test_messages_are_listed_per_user_newest_first(messages: MessageRepository) -> None:
    for n in range(12):
        await messages.create(MessageCreate("ann", f"a{n}", "user"))
    await messages.create(MessageCreate("bob", "b", "kana"))
    found, total = await messages.list(user_id="ann", limit=3)
    assert ([m.content for m in found], total) == (["a11", "a10", "a9"], 12)
    bobs, _ = await messages.list(user_id="bob", limit=3)
    assert (bobs[0].role, bobs[0].message_type) == ("assistant", "kana")


@pytest.mark.contract("R33", "R45")
async def test_every_type_of_message_keeps_who_spoke(
    sessions: SessionRepository, messages: MessageRepository, tmp_path: Path
) -> None:
    """C7: system was refused, KANA too, and kana and yuno became the same."""
    session = await sessions.create(tmp_path, "m")
    for kind in ("user", "KANA", "yuno", "System", "assistant"):
        created = await messages.create(MessageCreate("ann", kind, kind, session.id))
        assert created.message_type == kind.lower()
    rows, _ = await messages.list(session_id=session.id)
    assert [row.message_type for row in rows] == ["assistant", "system", "yuno", "kana", "user"]
    spoken = await messages.conversation(session.id)
    assert [message.role for message in spoken] == ["user", "assistant", "assistant", "assistant"]
    copy = await sessions.create(tmp_path, "m")
    await messages.copy(session.id, copy.id)
    rows, _ = await messages.list(session_id=copy.id)
    assert [row.message_type for row in rows] == ["assistant", "system", "yuno", "kana", "user"]
    with pytest.raises(UsageError, match="message_type 'kanna' is unknown"):
        await messages.create(MessageCreate("ann", "x", "kanna"))


async def test_summaries_and_titles_stay_with_the_session(
    sessions: SessionRepository, tmp_path: Path
) -> None:
    session = await sessions.create(tmp_path, "m")
    await sessions.set_summary(session.id, "要約")
    await sessions.set_title(session.id, "a title")
    found = await sessions.get_by_id(session.id)
    assert found is not None
    assert (found.metadata["summary"], found.title) == ("要約", "a title")
    assert "owner" in found.metadata


async def test_deleting_removes_the_messages_too(
    sessions: SessionRepository, messages: MessageRepository, tmp_path: Path
) -> None:
    session = await sessions.create(tmp_path, "m")
    kept = await messages.append(session.id, user("x"))
    await messages.append(session.id, user("y"))
    assert await messages.forget_after(session.id, kept.id) == 1
    assert await sessions.delete(session.id)
    assert not await sessions.delete(session.id)
    assert (await messages.list(session_id=session.id))[1] == 0


@pytest.mark.case(115)
async def test_sql_in_any_field_is_stored_literally(
    sessions: SessionRepository, messages: MessageRepository, tmp_path: Path
) -> None:
    evil = "'; DROP TABLE messages; --"
    session = await sessions.create(tmp_path, evil)
    await messages.append(session.id, user(evil))
    assert (await messages.conversation(session.id))[0].content == evil
    found = await sessions.get_by_id(session.id)
    assert found is not None
    assert found.model_used == evil


@pytest.mark.case(135)
async def test_a_secret_leaves_whatever_a_session_keeps(store: Store, tmp_path: Path) -> None:
    secret = 'pass"word\n-1234'
    clean = Redactor([secret]).masked
    sessions, messages = SessionRepository(store, clean), MessageRepository(store, clean)
    session = await sessions.create(tmp_path, "m")
    await sessions.set_title(session.id, f"{'x' * 75} {secret}")
    await sessions.set_metadata(session.id, "compacted", {"text": f"It is {secret}.", "after": 3})
    key = "-----BEGIN PRIVATE KEY-----\nMIIE"
    call = ToolCall("c1", "write_file", {"path": "a", "content": secret, "key": key, "n": 1})
    for message in (
        user(f"use {secret}"),
        assistant("", (call,)),
        tool_result(call, f"wrote {secret}"),
    ):
        await messages.append(session.id, message)
    kept = await sessions.get_by_id(session.id)
    assert kept
    assert kept.title == f"{'x' * 75} {MASK[:4]}"
    assert kept.metadata["compacted"] == {"text": f"It is {MASK}.", "after": 3}
    asked, called, answered = await messages.conversation(session.id)
    assert asked.content == f"use {MASK}"
    given = {"path": "a", "content": MASK, "key": MASK, "n": 1}
    assert called.tool_calls == (ToolCall("c1", "write_file", given),)
    assert (answered.content, answered.tool_call_id) == (f"wrote {MASK}", "c1")
    for table in ("messages", "sessions"):
        assert "1234" not in str(await store.fetch_all(f"SELECT * FROM {table}"))


@pytest.mark.case(135)
async def test_a_long_message_is_kept_whole(store: Store, tmp_path: Path) -> None:
    messages = MessageRepository(store, Redactor(["canary-1234"]).masked)
    session = await SessionRepository(store).create(tmp_path, "m")
    await messages.append(session.id, user("x" * 300_000 + "canary-1234"))
    [kept] = await messages.conversation(session.id)
    assert kept.content == "x" * 300_000 + MASK


async def test_a_session_of_another_machine_is_left_alone_for_a_day(
    store: Store, sessions: SessionRepository, tmp_path: Path
) -> None:
    session = await sessions.create(tmp_path, "m")
    elsewhere = {"pid": 2**22, "born": "1", "host": "another-machine"}
    await sessions.set_metadata(session.id, "owner", elsewhere)
    if not store.report.shared:
        # A file has no other machine; a name that changed is the same one after a restart.
        assert await sessions.repair() == [session.id]
        return
    assert await sessions.repair() == []
    await store.execute("UPDATE sessions SET started_at = ?", ("2020-01-01 00:00:00",))
    assert await sessions.repair() == [session.id]
