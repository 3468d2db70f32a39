from __future__ import annotations

import os
from pathlib import Path

import pytest

from evercontext.errors import ConfigError
from evercontext.files import json_file
from evercontext.files.json_file import read_json, read_json_leniently, replace_json


def test_what_was_replaced_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "new" / "state.json"
    replace_json(path, {"名": "値"})
    assert read_json(path) == read_json_leniently(path) == {"名": "値"}


def test_no_file_is_an_empty_object_to_the_strict_reader_and_nothing_to_the_other(
    tmp_path: Path,
) -> None:
    assert read_json(tmp_path / "none") == {}
    assert read_json_leniently(tmp_path / "none") is None


@pytest.mark.parametrize("content", [b"{", b"[1]", b"\xff\xfe{}", b"[" * 100_000])
def test_what_is_no_object_is_an_error_or_nothing(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "state.json"
    path.write_bytes(content)
    assert read_json_leniently(path) is None
    with pytest.raises(ConfigError, match="JSON"):
        read_json(path)


def test_a_pipe_and_a_folder_keep_nobody_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path):
        assert read_json_leniently(path) is None
        with pytest.raises(ConfigError, match="plain file"):
            read_json(path)


def test_a_huge_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_file, "MOST_BYTES", 10)
    path = tmp_path / "state.json"
    path.write_text('{"a": "0123456789"}')
    assert read_json_leniently(path) is None
    with pytest.raises(ConfigError, match="larger"):
        read_json(path)
