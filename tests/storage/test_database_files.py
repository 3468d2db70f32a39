from __future__ import annotations

from pathlib import Path

from evercontext.storage.database_files import DatabaseFiles


def test_the_database_and_its_log_are_watched(tmp_path: Path) -> None:
    """X13."""
    path, log = tmp_path / "memory.db", tmp_path / "memory.db-wal"
    path.touch()
    log.touch()
    files = DatabaseFiles(path)
    assert files.in_place()
    log.unlink()
    assert (files.main_in_place(), files.in_place()) == (True, False)
    path.rename(tmp_path / "elsewhere.db")
    assert not files.main_in_place()


def test_a_database_without_a_log_is_in_place(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    path.touch()
    files = DatabaseFiles(path)
    (tmp_path / "memory.db-wal").touch()
    assert files.in_place()
