from __future__ import annotations

import asyncio
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import evercontext
from evercontext.domain.memory import MemoryType, RetrievalOptions, SourceType
from evercontext.domain.message import user
from evercontext.errors import UsageError
from evercontext.memory.memory_store import MemoryStore
from evercontext.memory.memory_table import Memory, digest_of, stamp
from evercontext.memory.messages import MessageRepository
from evercontext.memory.recall import RetrievalOrchestrator
from evercontext.memory.session_search import search
from evercontext.memory.sessions import SessionRepository
from evercontext.storage.sqlite import SqliteStore
from evercontext.storage.store import Store

NOW = datetime(2026, 5, 20, 12, tzinfo=UTC)


@pytest.mark.contract("R54")
async def test_a_memory_is_kept_with_all_that_is_said_of_it(memories: MemoryStore) -> None:
    kept = await memories.save_memory(
        "Deploy on Fridays",
        MemoryType.WORKING,
        SourceType.DECISION,
        user_id="ana",
        project="/p",
        speaker="Ana",
        session_id="s1",
        created_at=NOW,
        importance=0.9,
        origin={"trace_id": "t"},
    )
    [found] = await memories.list(user_id="ana", project="/p")
    assert found == kept
    assert (found.content, found.memory_type, found.source_type) == (
        "Deploy on Fridays",
        MemoryType.WORKING,
        SourceType.DECISION,
    )
    assert (found.speaker, found.session_id, found.importance) == ("Ana", "s1", 0.9)
    assert found.created_at == "2026-05-20T12:00:00.000+00:00"
    assert found.origin == {"trace_id": "t"}
    assert not found.untrusted


@pytest.mark.contract("R54")
def test_the_names_are_public() -> None:
    assert evercontext.MemoryStore is MemoryStore
    assert evercontext.RetrievalOrchestrator is RetrievalOrchestrator


@pytest.mark.contract("R54")
async def test_the_same_words_again_are_one_memory(memories: MemoryStore) -> None:
    first = await memories.save_memory("Use ＴＡＢＳ  here", project="/p")
    again = await memories.save_memory("use tabs here", project="/p", importance=0.9)
    assert (again.id, again.seen, again.importance) == (first.id, 2, 0.9)
    assert len(await memories.list(project="/p")) == 1
    await memories.save_memory("use tabs here", project="/q")
    assert len(await memories.list(project="/q")) == 1
    assert digest_of("が") == digest_of("か\u3099")


async def test_turns_of_a_conversation_are_never_merged(memories: MemoryStore) -> None:
    turns = [
        Memory(f"t{i}", "Thanks!", MemoryType.LONGTERM, SourceType.MESSAGE, stamp(NOW))
        for i in range(3)
    ]
    assert await memories.save_many(turns) == 3
    assert await memories.save_many(turns[:1]) == 0


@pytest.mark.contract("R54")
async def test_a_newer_truth_ends_the_older_one(
    memories: MemoryStore, retrieval: RetrievalOrchestrator
) -> None:
    old = await memories.save_memory("The port is 8000", project="/p", created_at=NOW)
    later = NOW + timedelta(days=10)
    new = await memories.save_memory(
        "The port is 9000", project="/p", created_at=later, supersedes=old.id
    )
    found = await retrieval.retrieve("which port", RetrievalOptions(project="/p"))
    assert [one.id for one in found] == [new.id]
    [then] = await memories.list(project="/p", valid_at=NOW + timedelta(days=1))
    assert (then.id, then.superseded_by) == (old.id, new.id)
    assert then.valid_until == stamp(later)
    with pytest.raises(UsageError, match="no memory"):
        await memories.save_memory("x y", project="/other", supersedes=new.id)


@pytest.mark.contract("R54")
async def test_what_expired_is_neither_listed_nor_found(
    memories: MemoryStore, retrieval: RetrievalOrchestrator
) -> None:
    past = datetime.now(UTC) - timedelta(seconds=1)
    gone = await memories.save_memory("The code word is heron", expires_at=past)
    await memories.save_memory("The code word was eagle")
    found = await retrieval.retrieve("code word")
    assert [one.content for one in found] == ["The code word was eagle"]
    assert [one.content for one in await memories.list()] == ["The code word was eagle"]
    assert await memories.archive_expired() == 1
    [archived] = await memories.list(state="archived")
    assert archived.id == gone.id


@pytest.mark.contract("R54")
async def test_archived_and_forgotten_memories_are_not_found(
    memories: MemoryStore, retrieval: RetrievalOrchestrator, database: SqliteStore
) -> None:
    one = await memories.save_memory("The heron nests in May")
    two = await memories.save_memory("The heron eats fish")
    assert len(await retrieval.retrieve("heron")) == 2
    assert await memories.archive(one.id)
    assert await memories.forget(two.id)
    assert not await memories.forget(two.id)
    assert await retrieval.retrieve("heron") == []
    row = await database.fetch_one("SELECT * FROM memories WHERE id = ?", (two.id,))
    assert row is not None
    assert "fish" not in str(row)


@pytest.mark.contract("R54")
async def test_an_export_comes_back_whole(memories: MemoryStore) -> None:
    for i in range(1200):
        await memories.save_memory(f"fact number {i}", project="/p") if i < 3 else None
    many = [
        Memory(
            f"t{i}", f"turn {i}", MemoryType.LONGTERM, SourceType.MESSAGE, stamp(NOW), project="/p"
        )
        for i in range(1200)
    ]
    await memories.save_many(many)
    lines = [one async for one in memories.export(project="/p")]
    assert len(lines) == 1203
    assert lines[-1]["content"] == "turn 1199"


@pytest.mark.parametrize("bad", ["", "  \n", "x" * 100_001])
async def test_a_memory_needs_words_and_a_bound(memories: MemoryStore, bad: str) -> None:
    with pytest.raises(UsageError):
        await memories.save_memory(bad)


@pytest.mark.case(115)
@pytest.mark.contract("R54")
async def test_sql_in_any_field_is_stored_literally(memories: MemoryStore) -> None:
    evil = "'; DROP TABLE memories; --\""
    kept = await memories.save_memory(
        evil, user_id=evil, project=evil, speaker=evil, session_id=evil, origin={evil: evil}
    )
    [found] = await memories.list(user_id=evil, project=evil)
    assert found == kept
    assert (found.content, found.speaker, found.origin) == (evil, evil, {evil: evil})
    assert await memories.get(evil) is None


@pytest.mark.case(118)
async def test_a_flipped_byte_in_a_memory_is_noticed_and_the_others_are_saved(
    tmp_path: Path,
) -> None:
    path = tmp_path / "m.db"
    store = await SqliteStore.open(path)
    for i in range(20):
        await MemoryStore(store).save_memory(f"remarkable fact number {i:02}")
    await store.close()
    content = path.read_bytes()
    at = content.index(b"remarkable fact number 07")
    path.write_bytes(content[:at] + b"X" + content[at + 1 :])
    store = await SqliteStore.open(path)
    try:
        assert store.report.moved_to
        assert store.report.warnings
        kept = await MemoryStore(store).list()
        assert len(kept) == 19
    finally:
        await store.close()


_WRITER = """
import asyncio, sys
from pathlib import Path
from evercontext.memory.memory_store import MemoryStore
from evercontext.storage.opener import open_store
async def main():
    store = await open_store(Path(sys.argv[1]), sys.argv[3])
    for i in range(25):
        await MemoryStore(store).save_memory(f"writer {sys.argv[2]} says {i}", project="/p")
    await store.close()
asyncio.run(main())
"""


@pytest.mark.case(120)
async def test_four_processes_write_and_a_fifth_sees_all_of_it(
    tmp_path: Path,
    database_url: str,
    database: Store,
    memories: MemoryStore,
    retrieval: RetrievalOrchestrator,
) -> None:
    await memories.save_memory("writer zero says hello", project="/p")
    wanted = RetrievalOptions(limit=200, project="/p")
    assert len(await retrieval.retrieve("writer", wanted)) == 1
    path = str(tmp_path / "memory.db")
    running = [
        await asyncio.create_subprocess_exec(
            sys.executable, "-c", _WRITER, path, str(n), database_url
        )
        for n in range(4)
    ]
    assert [await one.wait() for one in running] == [0, 0, 0, 0]
    assert len(await memories.list(project="/p", limit=1000)) == 101
    rows = await database.fetch_all("SELECT change FROM memories ORDER BY change")
    assert len({row["change"] for row in rows}) == 101
    found = await retrieval.retrieve("writer 3 says 24", wanted)
    assert found[0].content == "writer 3 says 24"


async def test_what_is_forgotten_is_in_no_file_any_more(tmp_path: Path) -> None:
    store = await SqliteStore.open(tmp_path / "memory.db")
    memories, sessions = MemoryStore(store), SessionRepository(store)
    for n in range(50):
        await memories.save_memory(f"Herons nest on chimney number {n}")
    secret = await memories.save_memory("The vault opens with zxqvault9931 at night")
    session = await sessions.create(tmp_path, "m")
    await MessageRepository(store).append(session.id, user("say zxqspoken4417 aloud"))
    assert await search(store, tmp_path, "zxqspoken4417")
    assert b"zxqvault9931" in everything(tmp_path)
    await memories.forget(secret.id)
    await sessions.delete(session.id)
    left = everything(tmp_path)
    await store.close()
    assert b"zxqvault9931" not in left
    assert b"zxqspoken4417" not in left
    assert b"Herons nest on chimney number 7" in left


def everything(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.iterdir() if path.is_file())
