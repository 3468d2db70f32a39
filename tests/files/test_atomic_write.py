from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from evercontext.files.atomic_write import replace_file


@pytest.mark.parametrize("durable", [True, False])
def test_a_file_is_replaced_with_its_mode_and_nothing_is_left_beside_it(
    tmp_path: Path, durable: bool
) -> None:
    path = tmp_path / "state.json"
    path.write_bytes(b"old")
    before = path.stat().st_ino
    replace_file(path, b"new", mode=0o640, durable=durable)
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert path.stat().st_ino != before, "written in place: a reader could see half of it"
    assert os.listdir(tmp_path) == ["state.json"]


def test_a_new_file_is_private(tmp_path: Path) -> None:
    replace_file(tmp_path / "key", b"secret")
    assert stat.S_IMODE((tmp_path / "key").stat().st_mode) == 0o600


def test_a_failure_leaves_the_old_file_and_nothing_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "folder"
    path.mkdir()
    with pytest.raises(OSError, match="directory"):
        replace_file(path, b"new")
    assert os.listdir(tmp_path) == ["folder"]


def test_a_link_is_replaced_and_not_written_through(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_bytes(b"theirs")
    (tmp_path / "link").symlink_to("elsewhere")
    replace_file(tmp_path / "link", b"ours")
    assert (tmp_path / "elsewhere").read_bytes() == b"theirs"
    assert (tmp_path / "link").read_bytes() == b"ours"
