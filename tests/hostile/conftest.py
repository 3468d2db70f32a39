from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from evercontext.files.contained_paths import Root
from evercontext.files.file_tree import Tree
from evercontext.files.journal_recovery import open_journal
from evercontext.files.open_beneath import Openat2, Walk
from evercontext.files.policy import gateway_policy

SECRET = "SECRET-CANARY"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "root").mkdir()
    (tmp_path / "root-evil").mkdir()
    (tmp_path / "root-evil" / "s.txt").write_text(SECRET)
    return tmp_path / "root"


@pytest.fixture
def outside(place: Path) -> Path:
    return place.with_name("root-evil")


@pytest.fixture(params=[Openat2, Walk], ids=["openat2", "walk"])
def tree(request: pytest.FixtureRequest, place: Path, outside: Path) -> Iterator[Tree]:
    """The gateway's tree, both ways of resolving; afterwards nothing outside has changed."""
    before = snapshot(outside)
    root = Root.open(place, strategy=request.param)
    journal, _ = open_journal(root, place.with_name("home"))
    tree = Tree(root, gateway_policy(), journal)
    yield tree
    tree.close()
    assert snapshot(outside) == before
    assert not [name for _, _, files in os.walk(place) for name in files if name.endswith(".tmp")]


def snapshot(directory: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in directory.rglob("*") if path.is_file()}
