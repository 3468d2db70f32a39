"""Small files of a stranger's folder: never waited for, never read without end (S6, X9)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from evercontext.files.small_files import first_bytes, small_bytes, small_text


def make_pipe(path: Path) -> None:
    os.mkfifo(path)


def make_endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


def make_huge(path: Path) -> None:
    path.touch()
    os.truncate(path, 1 << 40)


@pytest.mark.parametrize("make", [make_pipe, make_endless, make_huge, Path.mkdir])
def test_what_is_no_small_plain_file_counts_as_not_there(tmp_path: Path, make: object) -> None:
    make(tmp_path / "package.json")  # type: ignore[operator]
    assert small_text(tmp_path, "package.json") is None


def test_a_plain_file_is_read_whole_or_not_at_all(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes("日本語".encode() + b"\xff")
    assert small_text(tmp_path, "a") == "日本語\ufffd"
    assert small_bytes(tmp_path, "a", most=10) is not None
    assert small_bytes(tmp_path, "a", most=9) is None
    assert first_bytes(tmp_path, "a", 3) == "日".encode()


def test_a_link_is_followed_inside_the_folder_only(tmp_path: Path) -> None:
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    inside.mkdir()
    outside.write_text("secret")
    (inside / "real").write_text("shown")
    (inside / "near").symlink_to("real")
    (inside / "far").symlink_to(outside)
    assert small_text(inside, "near") == "shown"
    assert small_text(inside, "far") is None
    assert small_text(inside / "no such folder", "near") is None
