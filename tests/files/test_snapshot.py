from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from evercontext.files import snapshot
from evercontext.files.paths import Root


def test_a_change_within_the_same_tick_of_a_slow_clock_is_seen(root: Root, place: Path) -> None:
    file = place / "a.py"
    file.write_text("x = 1\n")
    before = snapshot.take(root)
    file.write_text("x = 2\n")
    # As it is where both writes fall into one tick: the same inode, size and times.
    stamp = snapshot.take(root).files["a.py"].stamp
    before.files["a.py"] = replace(before.files["a.py"], stamp=stamp)
    after = snapshot.take(root, before)
    assert after.files["a.py"].data == b"x = 2\n"


def test_a_file_that_was_long_the_same_is_not_read_again(root: Root, place: Path) -> None:
    (place / "a.py").write_text("x = 1\n")
    before = snapshot.take(root)
    later = replace(before, began=before.began + 3_600_000_000_000)
    assert snapshot.take(root, later).files["a.py"] is before.files["a.py"]
    assert snapshot.take(root, before).files["a.py"] is not before.files["a.py"]
