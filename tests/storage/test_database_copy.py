from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest

from evercontext.domain.memory import RetrievalOptions
from evercontext.errors import StoreProblem, UsageError
from evercontext.memory.memory_store import MemoryStore
from evercontext.memory.messages import MessageCreate, MessageRepository
from evercontext.memory.recall import RetrievalOrchestrator
from evercontext.memory.sessions import SessionRepository
from evercontext.storage import database_copy
from evercontext.storage.database_copy import TABLES, copy_database
from evercontext.storage.key_value import put_value
from evercontext.storage.postgres import PostgresStore
from evercontext.storage.sqlite import SqliteStore
from evercontext.storage.store import Store
from tests import postgres

OPTIONS = RetrievalOptions(3, project="/p")


@pytest.fixture
async def file(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    store = await SqliteStore.open(tmp_path / "memory.db")
    yield store
    await store.close()


@pytest.fixture
async def server() -> AsyncIterator[PostgresStore]:
    store = await PostgresStore.open(postgres.new_database())
    yield store
    await store.close()


async def fill(store: Store, tmp_path: Path, count: int = 7) -> None:
    """Give a store some of everything, with letters that servers order by language."""
    session = await SessionRepository(store).create(tmp_path, "model", user_id="ann")
    for number in range(count):
        text = f"said {number}: a\0b 記憶 🙂"
        await MessageRepository(store).create(MessageCreate("ann", text, "user", session.id))
        await MemoryStore(store).save_memory(f"heron number {number} 記憶", project="/p")
        await put_value(store, ("plan:", "Plan:", "ärger:", "_x")[number % 4] + str(number), "v")
    for server in ("b", "A", "ä"):
        await store.execute(
            "INSERT INTO tool_pins (server, tool, digest) VALUES (?, ?, ?)", (server, "t", "d")
        )
    forgotten = await MemoryStore(store).save_memory("to be forgotten", project="/p")
    await MemoryStore(store).forget(forgotten.id, project="/p")


async def rows_of(store: Store) -> int:
    total = 0
    for table in TABLES:
        row = await store.fetch_one(f"SELECT count(*) AS n FROM {table.name}")
        total += int(row["n"]) if row else 0
    return total


async def test_both_ways_everything_arrives_and_goes_on(
    file: SqliteStore, server: PostgresStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database_copy, "PAGE", 3)
    await fill(file, tmp_path)
    there = await copy_database(file, server)
    assert sum(report.rows for report in there) == await rows_of(file) == await rows_of(server)
    [best, *_] = await RetrievalOrchestrator(server).retrieve("heron number 5", OPTIONS)
    assert best.content == "heron number 5 記憶"
    again = await SqliteStore.open(tmp_path / "again.db")
    back = await copy_database(server, again)
    assert [(r.name, r.rows, r.digest) for r in back] == [(r.name, r.rows, r.digest) for r in there]
    # Numbers that the server gives next are new ones.
    late = await MemoryStore(server).save_memory("a late heron", project="/p")
    assert await MemoryStore(server).get(late.id, project="/p") == late
    await again.close()


async def test_a_copy_that_was_cut_off_goes_on(
    file: SqliteStore, server: PostgresStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database_copy, "PAGE", 2)
    await fill(file, tmp_path)
    seen: list[str] = []

    def cut(name: str, rows: int) -> None:
        seen.append(name)
        if name == "memories" and rows >= 4:
            raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await copy_database(file, server, progress=cut)
    assert 0 < await rows_of(server) < await rows_of(file)
    reports = {report.name: report for report in await copy_database(file, server)}
    assert reports["messages"].copied == 0, "they were there already"
    assert reports["memories"].rows == 8
    assert reports["memories"].copied == 4
    assert await rows_of(server) == await rows_of(file)


async def fail_to_copy(file: SqliteStore, target: Store, tmp_path: Path) -> None:
    """Copy a source that changes meanwhile."""
    await fill(file, tmp_path)

    def change(name: str, rows: int) -> None:
        if name == "sessions":
            with closing(sqlite3.connect(tmp_path / "memory.db")) as db:
                db.execute("UPDATE sessions SET model_used = 'changed'")
                db.commit()

    with pytest.raises(StoreProblem, match="sessions changed"):
        await copy_database(file, target, progress=change)


async def test_what_changes_meanwhile_is_noticed_and_copied_anew(
    file: SqliteStore, server: PostgresStore, tmp_path: Path
) -> None:
    await fail_to_copy(file, server, tmp_path)
    await copy_database(file, server)
    assert await rows_of(server) == await rows_of(file)
    row = await server.fetch_one("SELECT model_used FROM sessions")
    assert row is not None
    assert row["model_used"] == "changed"


async def test_a_database_with_rows_of_its_own_is_left_alone(
    file: SqliteStore, server: PostgresStore
) -> None:
    await MemoryStore(file).save_memory("from here")
    await MemoryStore(server).save_memory("from there")
    with pytest.raises(UsageError, match="memories already"):
        await copy_database(file, server)
    assert await rows_of(server) == 1


@pytest.fixture
async def other(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    store = await SqliteStore.open(tmp_path / "other.db")
    yield store
    await store.close()


async def test_what_others_wrote_after_a_copy_that_failed_stays(
    file: SqliteStore, other: SqliteStore, tmp_path: Path
) -> None:
    """The next run deleted every row of the target, whoever had written it."""
    await fail_to_copy(file, other, tmp_path)
    mine = await MemoryStore(other).save_memory("from there", project="/q")
    with pytest.raises(UsageError, match="memories that this copy did not write"):
        await copy_database(file, other)
    assert await MemoryStore(other).get(mine.id, project="/q") == mine
    assert await rows_of(other) > await rows_of(file)


async def test_a_row_that_somebody_writes_meanwhile_is_not_written_over(
    file: SqliteStore, other: SqliteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database_copy, "PAGE", 3)
    await fill(file, tmp_path)

    def cut(name: str, rows: int) -> None:
        if name == "messages":
            raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await copy_database(file, other, progress=cut)
    mine = await MemoryStore(other).save_memory("from there", project="/q")
    with pytest.raises(UsageError, match="memories that this copy did not write"):
        await copy_database(file, other)
    assert await MemoryStore(other).get(mine.id, project="/q") == mine


async def test_every_table_is_copied_or_named_as_derived(file: SqliteStore) -> None:
    derived = {"schema_migrations", "traces"}
    tables = await file.fetch_all("SELECT name FROM sqlite_master WHERE type = 'table'")
    names = {row["name"] for row in tables if not row["name"].startswith(("sqlite_", "message_w"))}
    assert names - derived == {table.name for table in TABLES}
