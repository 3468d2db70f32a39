"""What was read is believed until somebody commits: this process or another."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from evercontext.storage.sqlite import SqliteStore
from evercontext.storage.version_cache import VersionCache


async def test_a_commit_of_another_process_is_seen_at_the_next_question(tmp_path: Path) -> None:
    store = await SqliteStore.open(tmp_path / "house.db")
    reads = 0

    async def read() -> list[str]:
        nonlocal reads
        reads += 1
        rows = await store.fetch_all("SELECT id FROM projects ORDER BY id")
        return [row["id"] for row in rows]

    known = VersionCache(store, read)
    try:
        assert [await known.get() for _ in range(5)] == [[]] * 5
        assert reads == 1
        await store.execute("INSERT INTO projects (id, path) VALUES ('a', '')")
        assert await known.get() == ["a"]
        with sqlite3.connect(tmp_path / "house.db") as other:
            other.execute("INSERT INTO projects (id, path) VALUES ('b', '')")
        other.close()
        assert await known.get() == ["a", "b"]
        assert await known.get() == ["a", "b"]
        assert reads == 3
    finally:
        await store.close()


async def test_a_store_that_cannot_tell_is_read_every_time() -> None:
    store = await SqliteStore.in_memory()
    reads = 0

    async def read() -> int:
        nonlocal reads
        reads += 1
        return reads

    known = VersionCache(store, read)
    assert [await known.get(), await known.get()] == [1, 2]
    await store.close()
