from __future__ import annotations

import asyncio
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from sqlite3 import connect

import pytest

from evercontext.errors import StoreProblem, StoreTooNew
from evercontext.storage.migrate import (
    Migration,
    home_migrations,
    load_migrations,
    split_statements,
)
from evercontext.storage.sqlite import SqliteStore

FIRST = Migration(1, "first", ("CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT)",))
SECOND = Migration(2, "second", ("ALTER TABLE notes ADD COLUMN author TEXT",))
BROKEN = Migration(
    2, "broken", ("ALTER TABLE notes ADD COLUMN author TEXT", "INSERT INTO nowhere VALUES (1)")
)


@pytest.fixture
async def old(tmp_path: Path) -> Path:
    path = tmp_path / "notes.db"
    store = await SqliteStore.open(path, migrations=(FIRST,))
    await store.execute("INSERT INTO notes (text) VALUES (?)", ("kept",))
    await store.close()
    return path


async def test_older_schema_is_migrated_and_a_copy_kept(old: Path) -> None:
    store = await SqliteStore.open(old, migrations=(FIRST, SECOND))
    assert store.report.migrated_from == 1
    assert store.report.version == 2
    assert await store.fetch_all("SELECT * FROM notes") == [
        {"id": 1, "text": "kept", "author": None}
    ]
    await store.close()
    assert store.report.backup is not None
    with closing(connect(store.report.backup)) as backup:
        assert backup.execute("SELECT * FROM notes").fetchall() == [(1, "kept")]


async def test_second_open_migrates_nothing(old: Path) -> None:
    for _ in range(2):
        store = await SqliteStore.open(old, migrations=(FIRST, SECOND))
        await store.close()
    assert store.report.migrated_from is None
    assert store.report.backup is None


@pytest.mark.case(123)
async def test_newer_schema_is_refused_and_left_alone(old: Path) -> None:
    newer = await SqliteStore.open(old, migrations=(FIRST, SECOND))
    await newer.close()
    before = old.read_bytes()
    with pytest.raises(StoreTooNew, match="Update evercontext"):
        await SqliteStore.open(old, migrations=(FIRST,))
    assert old.read_bytes() == before


@pytest.mark.case(123)
async def test_failing_migration_is_rolled_back_with_its_backup(old: Path) -> None:
    with pytest.raises(StoreProblem, match=r"0002_broken failed and was rolled back.*backup-v1"):
        await SqliteStore.open(old, migrations=(FIRST, BROKEN))
    assert old.with_name("notes.db.backup-v1").exists()
    store = await SqliteStore.open(old, migrations=(FIRST,))
    assert await store.fetch_all("SELECT * FROM notes") == [{"id": 1, "text": "kept"}]
    await store.close()


_ENDLESS = """
import asyncio, sys
from pathlib import Path
from evercontext.storage.sqlite import SqliteStore
from tests.storage.test_migrate import FIRST, Migration

endless = Migration(2, "endless", (
    "ALTER TABLE notes ADD COLUMN author TEXT",
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000000000) "
    "INSERT INTO notes (text, author) SELECT hex(zeroblob(500)), 'x' FROM n",
))
asyncio.run(SqliteStore.open(Path(sys.argv[1]), migrations=(FIRST, endless)))
"""


@pytest.mark.case(123)
async def test_migration_killed_half_way_never_happened(old: Path) -> None:
    migrating = subprocess.Popen([sys.executable, "-c", _ENDLESS, str(old)])
    log = old.with_name("notes.db-wal")
    while not (log.exists() and log.stat().st_size > 1_000_000):
        assert migrating.poll() is None
        await asyncio.sleep(0.01)
    migrating.kill()
    migrating.wait()
    assert old.with_name("notes.db.backup-v1").exists()
    store = await SqliteStore.open(old, migrations=(FIRST, SECOND))
    assert store.report.migrated_from == 1
    assert await store.fetch_all("SELECT text, author FROM notes") == [
        {"text": "kept", "author": None}
    ]
    await store.close()


def test_home_schema_is_numbered_without_gaps() -> None:
    numbers = [migration.version for migration in home_migrations()]
    assert numbers == list(range(1, len(numbers) + 1))


def test_statements_are_split_at_their_real_ends() -> None:
    script = """
-- a comment; with a semicolon
CREATE TABLE a (x TEXT DEFAULT ';');
CREATE TRIGGER t AFTER INSERT ON a BEGIN
    DELETE FROM a WHERE x = '1';
    DELETE FROM a WHERE x = '2';
END;
-- the end
"""
    statements = list(split_statements(script))
    assert len(statements) == 2
    assert statements[1].startswith("CREATE TRIGGER")
    with pytest.raises(StoreProblem, match="middle"):
        list(split_statements("CREATE TABLE a (x TEXT"))


def test_gap_in_the_numbers_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "gappy"
    (package / "sql").mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "sql" / "0002_late.sql").write_text("SELECT 1;")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(StoreProblem, match="numbered"):
        load_migrations("gappy", "sql")
