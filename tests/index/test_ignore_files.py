from __future__ import annotations

from pathlib import Path

import pytest

from evercontext.index.ignore_files import IgnoreFile
from tests.index.world import opened, write

_HOSTILE = ["*a*a*a*a*a*a*a*a*a*a*a*a*b", "[!x]*[!x]*[!x]*[!x]*[!x]*[!x]*[!x]*[!x]*z", "(a+)+$"]


@pytest.mark.case(132)
@pytest.mark.timeout(20)
@pytest.mark.parametrize("pattern", _HOSTILE)
async def test_no_pattern_takes_longer_than_a_name_is_long(tmp_path: Path, pattern: str) -> None:
    name = "a" * 240 + ".py"
    write(tmp_path, {".gitignore": pattern, ".evercontextignore": pattern, name: "x = 1\n"})
    async with opened(tmp_path) as index:
        await index.update()
        assert list(await index.table.rows()) == [name]


def test_the_last_word_counts_across_many_patterns() -> None:
    many = [f"build{i}/" for i in range(3_000)]
    rules = IgnoreFile(["*.py", *many, "!kept.py", "gone/"])
    assert rules.verdict("a.py") is True
    assert rules.verdict("kept.py") is False
    assert rules.verdict("build2999/a.txt") is True
    assert rules.verdict("gone/a.txt") is True
    assert rules.verdict("a.txt") is None


def test_lines_that_git_does_not_understand_say_nothing() -> None:
    rules = IgnoreFile(["!", "a\\", "\\", "[", "x" * 5_000, "日本*.py", "# comment", "", "*.log"])
    assert rules.verdict("日本語.py") is True
    assert rules.verdict("x.log") is True
    assert rules.verdict("x.py") is None


@pytest.mark.parametrize("kind", ["huge", "link", "folder", "none"])
def test_a_strange_ignore_file_is_bounded_or_left(tmp_path: Path, kind: str) -> None:
    file = tmp_path / ".gitignore"
    if kind == "huge":
        file.write_bytes(b"*.log\n" + b"#" * 3_000_000)
    elif kind == "link":
        file.symlink_to("/etc/passwd")
    elif kind == "folder":
        file.mkdir()
    rules = IgnoreFile.read(file)
    assert (rules is not None) == (kind == "huge")
    if rules is not None:
        assert rules.verdict("x.log") is True


def test_an_ignore_file_is_read_as_it_is_now(tmp_path: Path) -> None:
    file = tmp_path / ".gitignore"
    assert IgnoreFile.read(file) is None
    for name in ("a", "b", "a"):
        file.write_text(f"{name}.py\n", "utf-8")
        rules = IgnoreFile.read(file)
        assert rules is not None
        assert [rules.verdict(f"{each}.py") for each in "ab"] == [
            True if name == each else None for each in "ab"
        ]
    link = tmp_path / "link"
    link.symlink_to(file)
    assert IgnoreFile.read(link) is None
    assert IgnoreFile.read(tmp_path) is None
