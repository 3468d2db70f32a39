from __future__ import annotations

import asyncio
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from pathlib import Path
from sqlite3 import connect

import pytest

from evercontext.errors import DiskFull, EverContextError, StoreBusy, StoreProblem, StoreReplaced
from evercontext.storage.sqlite import SqliteStore
from tests.storage.contract import COUNT, HELD, KEEP, StoreContract


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "home" / "memory.db"


class TestFile(StoreContract):
    @pytest.fixture
    async def store(self, path: Path) -> AsyncIterator[SqliteStore]:
        store = await SqliteStore.open(path)
        yield store
        await store.close()


class TestMemory(StoreContract):
    @pytest.fixture
    async def store(self) -> AsyncIterator[SqliteStore]:
        store = await SqliteStore.in_memory()
        yield store
        await store.close()


async def test_rows_outlive_the_process_that_wrote_them(path: Path) -> None:
    first = await SqliteStore.open(path)
    await first.execute(KEEP, ("k", "v"))
    await first.close()
    second = await SqliteStore.open(path)
    assert await second.fetch_one(HELD, ("k",)) == {"value": "v"}
    assert second.report.warnings == ()
    await second.close()


async def test_only_the_owner_can_read_the_file(path: Path) -> None:
    store = await SqliteStore.open(path)
    await store.execute(KEEP, ("k", "v"))
    modes = {stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
    await store.close()
    assert modes == {0o600}


async def test_reader_is_not_blocked_by_an_open_transaction(path: Path) -> None:
    store = await SqliteStore.open(path)
    async with store.transaction() as inside:
        await inside.execute(KEEP, ("a", "1"))
        reading = asyncio.create_task(store.fetch_one(COUNT))
        assert await asyncio.wait_for(reading, 10) == {"n": 0}
    await store.close()


async def test_writer_of_another_process_is_waited_for_then_reported(path: Path) -> None:
    store = await SqliteStore.open(path, busy_seconds=0.2)
    with closing(connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreBusy):
            await store.execute(KEEP, ("a", "1"))
        other.execute("ROLLBACK")
    await store.execute(KEEP, ("a", "1"))
    await store.close()


@pytest.mark.contract("N32", "N33")
async def test_conversation_tables_have_the_promised_columns(path: Path) -> None:
    store = await SqliteStore.open(path)
    sessions = await store.fetch_all("SELECT * FROM pragma_table_info('sessions')")
    messages = await store.fetch_all("SELECT * FROM pragma_table_info('messages')")
    assert [(c["name"], c["type"], c["notnull"], c["pk"]) for c in sessions][:5] == [
        ("id", "TEXT", 0, 1),
        ("started_at", "DATETIME", 0, 0),
        ("ended_at", "DATETIME", 0, 0),
        ("project_path", "TEXT", 1, 0),
        ("model_used", "TEXT", 1, 0),
    ]
    assert [(c["name"], c["type"], c["notnull"], c["pk"]) for c in messages][:7] == [
        ("id", "INTEGER", 0, 1),
        ("session_id", "TEXT", 0, 0),
        ("timestamp", "DATETIME", 0, 0),
        ("role", "TEXT", 1, 0),
        ("content", "TEXT", 0, 0),
        ("tool_calls", "TEXT", 0, 0),
        ("tool_results", "TEXT", 0, 0),
    ]
    assert not any(c["notnull"] for c in sessions[5:] + messages[7:])
    assert {c["dflt_value"] for c in (sessions[1], messages[2])} == {"CURRENT_TIMESTAMP"}
    await store.close()


_WRITER = """
import asyncio, sys
from pathlib import Path
from evercontext.storage.sqlite import SqliteStore

async def main() -> None:
    store = await SqliteStore.open(Path(sys.argv[1]), busy_seconds=60, durable=False)
    for n in range(int(sys.argv[3])):
        async with store.transaction() as inside:
            await inside.execute("INSERT INTO kept VALUES (?, ?)", (f"{sys.argv[2]}-{n}", "x"))
            await inside.execute(
                "UPDATE kept SET value = CAST(CAST(value AS INTEGER) + 1 AS TEXT) WHERE key = ?",
                ("sum",),
            )
    await store.close()

asyncio.run(main())
"""


@pytest.mark.case(120)
async def test_four_processes_write_and_no_row_is_lost(path: Path) -> None:
    each = 100
    store = await SqliteStore.open(path)
    await store.execute(KEEP, ("sum", "0"))
    writers = [
        subprocess.Popen([sys.executable, "-c", _WRITER, str(path), str(n), str(each)])
        for n in range(4)
    ]
    assert [await asyncio.to_thread(writer.wait) for writer in writers] == [0] * 4
    assert await store.fetch_one(HELD, ("sum",)) == {"value": str(4 * each)}
    assert await store.fetch_one(COUNT) == {"n": 4 * each + 1}
    await store.close()


async def test_four_processes_open_a_fresh_database_at_once(path: Path) -> None:
    writers = [
        subprocess.Popen([sys.executable, "-c", _WRITER, str(path), str(n), "1"]) for n in range(4)
    ]
    assert [await asyncio.to_thread(writer.wait) for writer in writers] == [0] * 4


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", str(disk)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True).returncode != 0:
        pytest.skip("needs root to mount a small disk")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


@pytest.mark.case(121)
async def test_full_disk_is_reported_and_acknowledged_rows_stay(tiny_disk: Path) -> None:
    path = tiny_disk / "memory.db"
    store = await SqliteStore.open(path)
    acknowledged = 0
    with pytest.raises(DiskFull):
        for n in range(1000):
            await store.execute(KEEP, (str(n), "x" * 10_000))
            acknowledged += 1
    assert acknowledged > 0
    assert await store.fetch_one(COUNT) == {"n": acknowledged}
    await store.close()
    again = await SqliteStore.open(path)
    assert again.report.warnings == ()
    assert await again.fetch_one(COUNT) == {"n": acknowledged}
    await again.close()


@pytest.mark.case(121)
async def test_full_disk_inside_a_transaction_keeps_nothing_of_it(tiny_disk: Path) -> None:
    store = await SqliteStore.open(tiny_disk / "memory.db")
    with pytest.raises(EverContextError):
        async with store.transaction() as inside:
            for n in range(1000):
                await inside.execute(KEEP, (str(n), "x" * 10_000))
    assert await store.fetch_one(COUNT) == {"n": 0}
    await store.execute(KEEP, ("small", "x"))
    await store.close()


@pytest.mark.parametrize("kind", ["folder is a file", "file is a folder"])
async def test_impossible_place_is_one_clear_error(tmp_path: Path, kind: str) -> None:
    (tmp_path / "file").write_text("")
    place = tmp_path / "file" / "memory.db" if kind == "folder is a file" else tmp_path
    with pytest.raises(StoreProblem, match="EC_HOME"):
        await SqliteStore.open(place)


async def _fails_once_then_keeps(store: SqliteStore, path: Path) -> None:
    with pytest.raises(StoreReplaced):
        await store.execute(KEEP, ("k", "v"))
    await store.execute(KEEP, ("k", "v"))
    assert await store.fetch_one(HELD, ("k",)) == {"value": "v"}
    with closing(connect(path)) as other:
        assert other.execute("SELECT count(*) FROM kept WHERE key = 'k'").fetchone() == (1,)
    await store.close()


async def test_a_removed_database_is_noticed_at_the_next_write(path: Path) -> None:
    """X13: it answered "Remembered", and what it remembered was nowhere."""
    store = await SqliteStore.open(path)
    await store.execute(KEEP, ("old", "1"))
    for file in path.parent.glob("memory.db*"):
        file.unlink()
    await _fails_once_then_keeps(store, path)


async def test_a_removed_home_folder_is_noticed_at_the_next_read(path: Path) -> None:
    """X13: a cached answer is not given for a database that is gone."""
    store = await SqliteStore.open(path)
    before = store.version()
    shutil.rmtree(path.parent)
    assert store.version() is None
    with pytest.raises(StoreReplaced):
        await store.fetch_one(COUNT)
    assert await store.fetch_one(COUNT) == {"n": 0}
    assert store.version() not in (None, before)
    await store.close()


async def test_a_replaced_database_is_noticed_at_the_next_write(path: Path) -> None:
    """X13: another file under its name, as a restored backup is."""
    store = await SqliteStore.open(path)
    other = await SqliteStore.open(path.with_name("other.db"))
    await other.execute(KEEP, ("old", "2"))
    await other.close()
    for file in path.parent.glob("memory.db*"):
        file.unlink()
    path.with_name("other.db").rename(path)
    with pytest.raises(StoreReplaced):
        await store.execute(KEEP, ("k", "v"))
    await store.execute(KEEP, ("k", "v"))
    assert await store.fetch_one(COUNT) == {"n": 2}
    await store.close()


@pytest.mark.parametrize("suffix", ["-wal", "-shm"])
async def test_nothing_is_lost_with_the_log_of_the_database(path: Path, suffix: str) -> None:
    """X13: what is committed and was only in the removed log is brought home."""
    store = await SqliteStore.open(path)
    await store.execute(KEEP, ("old", "1"))
    await store.fetch_one(COUNT)
    path.with_name(path.name + suffix).unlink()
    with pytest.raises(StoreReplaced):
        await store.execute(KEEP, ("k", "v"))
    await store.execute(KEEP, ("k", "v"))
    assert await store.fetch_one(COUNT) == {"n": 2}
    with closing(connect(path)) as other:
        assert other.execute("SELECT count(*) FROM kept").fetchone() == (2,)
    await store.close()


async def test_a_transaction_whose_file_went_is_not_acknowledged(path: Path) -> None:
    """X13: the file goes between the first statement and the commit."""
    store = await SqliteStore.open(path)
    with pytest.raises(StoreReplaced):
        async with store.transaction() as inside:
            await inside.execute(KEEP, ("k", "v"))
            for file in path.parent.glob("memory.db*"):
                file.unlink()
    assert await store.fetch_one(COUNT) == {"n": 0}
    await store.close()
