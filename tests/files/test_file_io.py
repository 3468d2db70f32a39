"""The swap that protects an editor's save, and kernels that cannot swap."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from evercontext.errors import AlreadyExists, Changed, NotFound
from evercontext.files.contained_paths import Root
from evercontext.files.file_io import digest
from evercontext.files.file_tree import Tree, WriteMode
from evercontext.files.journal_recovery import open_journal
from evercontext.files.policy import agent_policy
from evercontext.files.system_calls import Kernel


class OldKernel(Kernel):
    """A file system or kernel without renameat2."""

    def _rename_flags(self, old: str, new: str, dir_fd: int, flags: int) -> None:
        raise OSError(errno.EINVAL, "not here")


class Editor(Kernel):
    """Somebody who saves just before every swap, a few times."""

    def __init__(self, place: Path, saves: int) -> None:
        super().__init__()
        self._place, self.saves = place, saves

    def exchange(self, one: str, other: str, dir_fd: int) -> None:
        if self.saves and not self._place.joinpath(one).name.startswith("swap"):
            self.saves -= 1
            (self._place / "a.txt").write_text(f"the user's {self.saves}")
        super().exchange(one, other, dir_fd)


def open_with(kernel: Kernel, place: Path, home: Path) -> Tree:
    root = Root.open(place, kernel=kernel)
    journal, _ = open_journal(root, home)
    return Tree(root, agent_policy(), journal)


@pytest.fixture(params=[Kernel, OldKernel], ids=["renameat2", "plain rename"])
def tree(request: pytest.FixtureRequest, place: Path, tmp_path: Path) -> Iterator[Tree]:
    tree = open_with(request.param(), place, tmp_path / "home")
    yield tree
    tree.close()
    assert not list(place.rglob(".ec-*"))


@pytest.mark.contract("E11")
def test_every_operation_works_on_both(tree: Tree, place: Path) -> None:
    tree.write("a.txt", "1", WriteMode.CREATE, trace_id="t")
    with pytest.raises(AlreadyExists):
        tree.write("a.txt", "1", WriteMode.CREATE, trace_id="t")
    tree.write("a.txt", "2", trace_id="t")
    tree.write("a.txt", "3", WriteMode.APPEND, trace_id="t")
    tree.move("a.txt", "b.txt", trace_id="t")
    assert tree.read("b.txt").content == "23"
    tree.delete("b.txt", trace_id="t")
    assert os.listdir(place) == []


def test_readers_never_see_a_half_made_file(tree: Tree) -> None:
    names = [f"{n}.txt" for n in range(40)]

    def create(name: str) -> None:
        tree.write(name, "x" * 5000, WriteMode.CREATE, trace_id="t")

    with ThreadPoolExecutor(4) as pool:
        done = pool.map(create, names)
        for name in names:
            while True:
                try:
                    content = tree.read(name).content
                except NotFound:
                    continue
                assert content == "x" * 5000
                break
        list(done)


@pytest.mark.case(46, 80)
def test_a_save_in_the_last_instant_is_not_lost(place: Path, tmp_path: Path) -> None:
    (place / "a.txt").write_text("old")
    tree = open_with(Editor(place, 1), place, tmp_path / "home")
    with pytest.raises(Changed):
        tree.write("a.txt", "agent's", trace_id="t", if_match=digest(b"old"))
    assert (place / "a.txt").read_text() == "the user's 0"
    assert os.listdir(place) == ["a.txt"]
    tree.close()


def test_appending_looks_again_when_somebody_was_quicker(place: Path, tmp_path: Path) -> None:
    (place / "a.txt").write_text("old")
    tree = open_with(Editor(place, 3), place, tmp_path / "home")
    tree.write("a.txt", "+", WriteMode.APPEND, trace_id="t")
    assert (place / "a.txt").read_text().startswith("the user's")
    assert (place / "a.txt").read_text().endswith("+")
    tree.close()
