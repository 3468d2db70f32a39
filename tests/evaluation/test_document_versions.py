from __future__ import annotations

import stat
from pathlib import Path

import pytest

from evercontext.errors import ConfigError
from evercontext.evaluation.document_versions import Versions


def test_a_version_comes_back_to_the_byte_and_is_private(tmp_path: Path) -> None:
    versions = Versions(tmp_path)
    data = b"\xef\xbb\xbf# \xe9\xa1\x8c\r\n\xff"
    path = versions.keep("1f3a-00", 0, "題.md", data)
    assert path.name == "00-題.md"
    assert versions.read("1f3a-00", 0) == data
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert [entry.name for entry in path.parent.iterdir()] == ["00-題.md"]


def test_the_longest_names_are_cut_and_keep_their_kind(tmp_path: Path) -> None:
    versions = Versions(tmp_path)
    for number, name in enumerate(["日" * 84 + ".md", "x" * 255, "y" * 200 + "." + "z" * 50]):
        path = versions.keep("a", number, name, b"x")
        assert path.suffix in (".md", "")
        assert versions.read("a", number) == b"x"


def test_what_is_not_there_is_nothing(tmp_path: Path) -> None:
    assert Versions(tmp_path).read("a", 3) is None


@pytest.mark.parametrize("name", ["", "..", "../x", "a/b", "*", "a\0"])
def test_a_run_cannot_name_another_folder(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError):
        Versions(tmp_path).read(name, 0)


def test_a_home_that_cannot_be_written_is_said_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "versions").write_text("a file, no folder")
    with pytest.raises(ConfigError, match="cannot be written"):
        Versions(tmp_path).keep("a", 0, "x.md", b"x")
