from __future__ import annotations

import os
from pathlib import Path

from evercontext.files.open_file import identity_of, is_in_place


def test_a_removed_and_a_replaced_file_are_told_from_the_open_one(tmp_path: Path) -> None:
    file = tmp_path / "log"
    file.write_text("one")
    descriptor = os.open(file, os.O_RDONLY)
    assert is_in_place(file, descriptor)
    file.rename(tmp_path / "other")
    assert not is_in_place(file, descriptor)
    assert identity_of(file) is None
    file.write_text("two")
    assert not is_in_place(file, descriptor)
    os.close(descriptor)


def test_a_file_that_was_cut_off_is_told_from_one_that_grows(tmp_path: Path) -> None:
    file = tmp_path / "log"
    file.write_text("one")
    descriptor = os.open(file, os.O_RDONLY)
    assert is_in_place(file, descriptor, 3)
    with file.open("a") as more:
        more.write("two")
    assert is_in_place(file, descriptor, 3)
    os.truncate(file, 2)
    assert not is_in_place(file, descriptor, 3)
    os.close(descriptor)
