from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from evercontext.errors import StoreBusy, StoreProblem
from evercontext.storage.sqlite_copy import replicate, stamp_of


def _write(database: Path, *values: int) -> sqlite3.Connection:
    link = sqlite3.connect(database, isolation_level=None)
    link.execute("PRAGMA journal_mode = WAL")
    link.execute("CREATE TABLE IF NOT EXISTS numbers (n INTEGER)")
    link.executemany("INSERT INTO numbers VALUES (?)", [(value,) for value in values])
    return link


def _numbers(database: Path) -> list[int]:
    with closing(sqlite3.connect(database)) as link:
        return [row[0] for row in link.execute("SELECT n FROM numbers ORDER BY n")]


def test_a_copy_leaves_nothing_beside_the_original(tmp_path: Path) -> None:
    source, target = tmp_path / "a" / "x.db", tmp_path / "b" / "x.db"
    source.parent.mkdir()
    target.parent.mkdir()
    _write(source, 1, 2).close()
    before = stamp_of(source)
    replicate(source, target)
    assert [file.name for file in source.parent.iterdir()] == ["x.db"]
    assert stamp_of(source) == before
    assert _numbers(target) == [1, 2]
    assert target.stat().st_mode & 0o777 == 0o600


def test_what_a_writer_has_committed_is_copied_while_it_goes_on(tmp_path: Path) -> None:
    source, target = tmp_path / "x.db", tmp_path / "y.db"
    with closing(_write(source, 1, 2)), closing(_write(target, 7)) as reader:
        before = stamp_of(source)
        replicate(source, target)
        # Whoever had the target open sees the copy.
        assert [row[0] for row in reader.execute("SELECT n FROM numbers")] == [1, 2]
        _write(source, 3).close()
        assert stamp_of(source) != before
        replicate(source, target)
    assert _numbers(target) == [1, 2, 3]


def test_what_a_killed_process_left_is_copied_too(tmp_path: Path) -> None:
    live, source = tmp_path / "live.db", tmp_path / "tree" / "x.db"
    source.parent.mkdir()
    with closing(_write(live, 1, 2)):
        shutil.copyfile(live, source)
        shutil.copyfile(tmp_path / "live.db-wal", source.with_name("x.db-wal"))
    before = {file.name: file.read_bytes() for file in source.parent.iterdir()}
    replicate(source, tmp_path / "y.db")
    assert _numbers(tmp_path / "y.db") == [1, 2]
    assert {file.name: file.read_bytes() for file in source.parent.iterdir()} == before


def test_no_database_is_no_copy(tmp_path: Path) -> None:
    with pytest.raises(StoreProblem):
        replicate(tmp_path / "nothing.db", tmp_path / "y.db")
    assert stamp_of(tmp_path / "nothing.db") == ""


def test_a_copy_is_dropped_if_somebody_began_to_write_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F1: half of it may be from before and half from after; what the target held stays."""
    source, target = tmp_path / "a" / "x.db", tmp_path / "b" / "x.db"
    source.parent.mkdir()
    target.parent.mkdir()
    _write(source, 1).close()
    replicate(source, target)
    copy = shutil.copyfile

    def write_then_copy(file: Path, other: Path) -> None:
        _write(source, 2).close()
        copy(file, other)

    monkeypatch.setattr(shutil, "copyfile", write_then_copy)
    with pytest.raises(StoreBusy, match="began to write"):
        replicate(source, target)
    assert _numbers(target) == [1]
    assert [file.name for file in target.parent.iterdir()] == ["x.db"]
    with pytest.raises(StoreBusy):
        replicate(source, target.with_name("new.db"))
    assert not target.with_name("new.db").exists()
