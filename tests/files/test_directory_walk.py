"""X3: a look at a tree that somebody made hard to look at."""

from __future__ import annotations

import codecs
import os
import shutil
import stat
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from evercontext.files.directory_walk import Folder, walk

ORDINARY = 65_534
"""Nobody: an ordinary user that every machine has."""


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that an ordinary user may reach."""
    path = Path(tempfile.mkdtemp(prefix="evercontext-walk-"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path, ignore_errors=True)


def as_ordinary_user(work: Callable[[], None]) -> None:
    """Run ``work`` without the superuser's rights; where we have none, just run it."""
    if os.geteuid() != 0:
        work()
        return
    # That user may not be allowed into the folder Python lies in, and this is loaded at first use.
    codecs.lookup("ascii")
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(ORDINARY)
            os.setuid(ORDINARY)
            work()
        except BaseException:  # noqa: BLE001 - a forked child must end here
            traceback.print_exc(file=sys.__stderr__)
            os._exit(1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def collect(root: Path) -> tuple[list[str], Callable[[Folder], Iterable[str]]]:
    seen: list[str] = []

    def look(folder: Folder) -> Iterable[str]:
        seen.extend("/".join((*folder.parts, name)) for name in folder.others)
        return folder.directories

    return seen, look


@pytest.mark.parametrize(("depth", "name"), [(1_500, "d"), (40, "x" * 200)])
def test_depth_and_length_of_paths_do_not_matter(tmp_path: Path, depth: int, name: str) -> None:
    fd = os.open(tmp_path, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir(name, dir_fd=fd)
        below = os.open(name, os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = below
    os.close(os.open("end.txt", os.O_CREAT | os.O_WRONLY, dir_fd=fd))
    os.close(fd)
    (tmp_path / name / "beside.txt").touch()
    seen, look = collect(tmp_path)
    assert walk(tmp_path, look).unseen == []
    assert sorted(path.rpartition("/")[2] for path in seen) == ["beside.txt", "end.txt"]
    shutil.rmtree(tmp_path / name, ignore_errors=True) if depth < 900 else remove_deep(tmp_path)


def remove_deep(folder: Path) -> None:
    """Flatten what the standard library cannot remove."""
    while (folder / "d").exists():
        (folder / "d").rename(folder / "old")
        if (folder / "old/d").exists():
            (folder / "old/d").rename(folder / "d")
        shutil.rmtree(folder / "old")


@pytest.mark.parametrize("mode", [0o311, 0o000, 0o644, 0o444])
def test_folders_that_were_closed_are_looked_into_and_closed_again(place: Path, mode: int) -> None:
    place.chmod(0o777)

    def work() -> None:
        inner = place / "closed/inner"
        inner.mkdir(parents=True)
        (inner / "a.txt").touch()
        inner.chmod(mode)
        (place / "closed").chmod(mode)
        seen, look = collect(place)
        walked = walk(place, look)
        assert (seen, walked.unseen) == (["closed/inner/a.txt"], [])
        assert len(walked.opened) == 2
        assert stat.S_IMODE((place / "closed").stat().st_mode) == mode
        # What a command closed stays open: else nobody could see or undo what it did there.
        walk(place, look, leave_open=())
        assert (inner / "a.txt").exists()

    as_ordinary_user(work)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs a folder of somebody else")
def test_what_cannot_be_seen_is_said_if_it_could_be_written(place: Path) -> None:
    for name, mode in (("writable", 0o703), ("shut", 0o700)):
        (place / name).mkdir()
        (place / name).chmod(mode)

    def work() -> None:
        _, look = collect(place)
        assert walk(place, look).unseen == ["writable"]

    as_ordinary_user(work)
