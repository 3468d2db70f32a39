from __future__ import annotations

import os
from pathlib import Path

import pytest

from evercontext.files.tree_digest import tree_digest


@pytest.mark.contract("E45")
def test_a_tree_is_known_by_its_contents(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1")
    before = tree_digest(tmp_path, ["a", "missing"])
    assert before == tree_digest(tmp_path, ["missing", "a"])
    os.utime(tmp_path / "a", (1, 1))
    assert before == tree_digest(tmp_path, ["a", "missing"]), "a checkout touches every time"
    (tmp_path / "a").write_text("2")
    assert tree_digest(tmp_path, ["a", "missing"]) != before
    assert tree_digest(tmp_path, ["a"]) != tree_digest(tmp_path, ["a", "missing"])


def test_what_is_too_large_to_read_counts_by_size_and_time(tmp_path: Path) -> None:
    (tmp_path / "large").write_text("12345")
    before = tree_digest(tmp_path, ["large"], most=4)
    assert before == tree_digest(tmp_path, ["large"], most=4)
    os.utime(tmp_path / "large", (1, 1))
    assert tree_digest(tmp_path, ["large"], most=4) != before


def test_links_and_directories_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("secret")
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "link").symlink_to(tmp_path / "out")
    before = tree_digest(tmp_path / "tree", ["link", "../out", "."])
    (tmp_path / "out").write_text("another")
    assert tree_digest(tmp_path / "tree", ["link", "../out", "."]) == before
