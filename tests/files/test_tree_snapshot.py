from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from evercontext.files import tree_snapshot
from evercontext.files.contained_paths import Root
from evercontext.files.journal import Journal
from evercontext.files.undo import undo


def test_a_change_within_the_same_tick_of_a_slow_clock_is_seen(root: Root, place: Path) -> None:
    file = place / "a.py"
    file.write_text("x = 1\n")
    before = tree_snapshot.take(root)
    file.write_text("x = 2\n")
    # As it is where both writes fall into one tick: the same inode, size and times.
    stamp = tree_snapshot.take(root).files["a.py"].stamp
    before.files["a.py"] = replace(before.files["a.py"], stamp=stamp)
    after = tree_snapshot.take(root, before)
    assert after.files["a.py"].data == b"x = 2\n"


def test_a_file_that_was_long_the_same_is_not_read_again(root: Root, place: Path) -> None:
    (place / "a.py").write_text("x = 1\n")
    before = tree_snapshot.take(root)
    later = replace(before, began=before.began + 3_600_000_000_000)
    assert tree_snapshot.take(root, later).files["a.py"] is before.files["a.py"]
    assert tree_snapshot.take(root, before).files["a.py"] is not before.files["a.py"]


def test_what_the_first_look_did_not_reach_is_not_new(
    root: Root, place: Path, tmp_path: Path
) -> None:
    """An undo would take away what the user had before."""
    journal = Journal(root, tmp_path / "home")
    bounds = tree_snapshot.SnapshotBounds(files=1)
    (place / "a.py").write_text("x = 1\n")
    before = tree_snapshot.take(root, bounds=bounds)
    assert not before.complete
    for folder in (".venv", "docs/.venv", "docs/empty"):
        (place / folder).mkdir(parents=True)
    (place / "docs/b.py").write_text("mine\n")
    (place / "link").symlink_to("a.py")
    (place / "a.py").write_text("x = 2\n")
    changes = tree_snapshot.record(journal, before, tree_snapshot.take(root), "trace")
    assert [change.path for change in changes.changes] == ["a.py"]
    assert not changes.complete
    done = undo(journal, ["trace"])
    assert (done.restored, done.removed, done.moved) == (("a.py",), (), ())
