from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from evercontext.errors import IoFailed
from evercontext.files.file_tree import Tree
from evercontext.files.policy import agent_policy
from evercontext.files.undo import undo


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def test_a_journal_removed_while_serving_is_made_again(place: Path, home: Path) -> None:
    """X13: writes were acknowledged, and none of them could be undone."""
    tree = Tree.open(place, agent_policy(), home)
    tree.write("a.txt", "one", trace_id="t1")
    assert tree.journal
    shutil.rmtree(home / "journal")
    tree.write("a.txt", "two", trace_id="t2")
    tree.write("b/c.txt", "new", trace_id="t2")
    assert (tree.journal.directory / "root.json").exists()
    undo(tree.journal, ["t2"])
    assert (place / "a.txt").read_text() == "one"
    assert not (place / "b").exists()
    tree.close()
    again = Tree.open(place, agent_policy(), home)
    assert again.journal
    assert {entry.trace_id for entry in again.journal.history().entries} >= {"t2"}
    again.close()


def test_a_replaced_segment_is_left_and_another_begun(place: Path, home: Path) -> None:
    """X13."""
    tree = Tree.open(place, agent_policy(), home)
    tree.write("a.txt", "one", trace_id="t1")
    assert tree.journal
    (segment,) = tree.journal.segments()
    copy = segment.read_bytes()
    segment.unlink()
    segment.write_bytes(copy)
    tree.write("a.txt", "two", trace_id="t2")
    assert len(tree.journal.segments()) == 2
    undo(tree.journal, ["t2"])
    assert (place / "a.txt").read_text() == "one"
    tree.close()


def test_a_segment_cut_off_in_the_middle_of_a_record_is_left(place: Path, home: Path) -> None:
    """X13: what was written behind half a record could not be read, and so not be undone."""
    tree = Tree.open(place, agent_policy(), home)
    tree.write("a.txt", "one", trace_id="t1")
    assert tree.journal
    (segment,) = tree.journal.segments()
    os.truncate(segment, segment.stat().st_size - 5)
    tree.write("a.txt", "two", trace_id="t2")
    assert len(tree.journal.segments()) == 2
    undo(tree.journal, ["t2"])
    assert (place / "a.txt").read_text() == "one"
    tree.close()


def test_nothing_is_left_beside_a_file_that_was_replaced(place: Path, home: Path) -> None:
    tree = Tree.open(place, agent_policy(), home)
    for text in ("one", "two", "three"):
        tree.write("a.txt", text, trace_id="t")
    assert os.listdir(place) == ["a.txt"]
    assert tree.journal
    undo(tree.journal, ["t"])
    assert os.listdir(place) == []
    tree.close()


def test_a_step_that_lost_its_beginning_is_not_acknowledged(place: Path, home: Path) -> None:
    """X13: it could not be undone."""
    tree = Tree.open(place, agent_policy(), home)
    assert tree.journal
    with pytest.raises(IoFailed, match="removed"), tree.journal.step("t") as step:
        tree.write("a.txt", "one", trace_id="t", step=step)
        shutil.rmtree(tree.journal.directory)
    tree.write("a.txt", "two", trace_id="t2")
    tree.close()
