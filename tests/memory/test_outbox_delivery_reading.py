from __future__ import annotations

from pathlib import Path

import pytest

from evercontext.domain.message import user
from evercontext.errors import StoreGone
from evercontext.memory.messages import MessageRepository
from evercontext.memory.sessions import SessionRepository
from evercontext.storage.opener import open_or_wait
from tests import postgres


@pytest.mark.case(122)
async def test_a_session_begun_meanwhile_can_be_read_taken_up_and_dropped(
    url: str, tmp_path: Path
) -> None:
    with postgres.away():
        store = await open_or_wait(tmp_path / "memory.db", url)
        sessions, messages = SessionRepository(store), MessageRepository(store)
        session = await sessions.create(tmp_path, "m", user_id="ann")
        empty = await sessions.create(tmp_path, "m")
        await messages.append(session.id, user("はい"))
        await sessions.set_summary(session.id, "short")
        await sessions.end(session.id)
        await sessions.restore(session.id, "other")
        assert await sessions.delete(empty.id)
        [found] = await sessions.waiting_in(tmp_path, user_id="ann")
        assert [await sessions.waiting_in(tmp_path, user_id=w) for w in ("bob", None)] == [[], []]
        assert (found.id, found.messages, found.model_used) == (session.id, 1, "other")
        assert (found.ended_at, found.metadata["summary"]) == (None, "short")
        assert [m.content for m in await messages.conversation(session.id)] == ["はい"]
        rows, total = await messages.list(session_id=session.id, limit=10)
        assert ([row.content for row in rows], total) == (["はい"], 1)
        with pytest.raises(StoreGone):
            await sessions.get_by_id("another")
        with pytest.raises(StoreGone):
            await sessions.of_project(tmp_path)
    [stored] = await sessions.of_project(tmp_path, user_id="ann")
    assert stored == (await sessions.get_by_id(session.id))
    assert (stored.id, stored.user_id, stored.metadata["summary"]) == (session.id, "ann", "short")
    assert await sessions.waiting_in(tmp_path, user_id="ann") == []
    await store.close()


@pytest.mark.case(122)
async def test_what_waits_can_be_taken_back_as_long_as_nobody_else_can_know_it(
    url: str, tmp_path: Path
) -> None:
    with postgres.away():
        store = await open_or_wait(tmp_path / "memory.db", url)
        sessions, messages = SessionRepository(store), MessageRepository(store)
        session, other = [await sessions.create(tmp_path, "m") for _ in range(2)]
        kept = await messages.append(session.id, user("stays"))
        for word in ("goes", "goes too"):
            await messages.append(session.id, user(word))
        await messages.append(other.id, user("another's"))
        assert await messages.forget_after(session.id, kept.id) == 2
        assert [m.content for m in await messages.conversation(session.id)] == ["stays"]
        with pytest.raises(StoreGone):
            await messages.forget_after("one on the server", 0)
    assert [m.content for m in await messages.conversation(session.id)] == ["stays"]
    assert [m.content for m in await messages.conversation(other.id)] == ["another's"]
    await store.close()
