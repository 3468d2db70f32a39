from __future__ import annotations

from pathlib import Path

import pytest

from evercontext.storage.connect import create_private


def test_a_dangling_link_makes_no_file_elsewhere(tmp_path: Path) -> None:
    link = tmp_path / "store.db"
    link.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(FileNotFoundError):
        create_private(link)
    assert not (tmp_path / "elsewhere").exists()


def test_a_file_that_exists_is_left_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "store.db"
    create_private(file)
    assert file.stat().st_mode & 0o777 == 0o600
    file.write_bytes(b"kept")
    create_private(file)
    assert file.read_bytes() == b"kept"
