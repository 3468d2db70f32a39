from __future__ import annotations

from pathlib import Path

from evercontext.models.embedded.written_files import FILE, WrittenFiles


def test_a_file_is_its_own_by_path_and_content(tmp_path: Path) -> None:
    """V2."""
    own = WrittenFiles(tmp_path / "home")
    own.note("a.py", "print(1)")
    again = WrittenFiles(tmp_path / "home")
    assert again.holds("a.py", "print(1)\n")
    assert not again.holds("b.py", "print(1)")
    assert not again.holds("a.py", "print(2)")


def test_a_broken_list_holds_nothing(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text("{")
    own = WrittenFiles(tmp_path)
    own.note("a.py", "x")
    assert not own.holds("a.py", "x")
    assert (tmp_path / FILE).read_text() == "{"
