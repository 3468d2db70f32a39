from __future__ import annotations

from pathlib import Path

from evercontext.memory.memory_store import MemoryStore
from evercontext.storage.database_status import postgres_status, sqlite_status
from evercontext.storage.migrate import home_migrations
from evercontext.storage.postgres import PostgresStore
from evercontext.storage.sqlite import SqliteStore
from tests import postgres


async def test_a_file_is_looked_at_and_not_made(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    assert sqlite_status(path).version == 0
    assert not path.exists()
    store = await SqliteStore.open(path)
    await MemoryStore(store).save_memory("a heron")
    state = sqlite_status(path)
    await store.close()
    assert (state.version, state.known) == (len(home_migrations()),) * 2
    assert state.rows["memories"] == 1


async def test_a_server_is_looked_at_and_not_migrated() -> None:
    url = postgres.new_database()
    state = await postgres_status(url)
    assert (state.version, state.rows) == (0, {})
    assert "CREATE EXTENSION" in state.memory_search
    assert (await postgres_status(url)).version == 0
    store = await PostgresStore.open(url)
    await MemoryStore(store).save_memory("a heron")
    await store.close()
    state = await postgres_status(url)
    assert state.version == state.known
    assert state.memory_search == "in the database (pgvector)"
    assert state.rows["memories"] == 1
