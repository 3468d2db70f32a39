from __future__ import annotations

import os
from pathlib import Path

import pytest

from evercontext.process.temporary_directory import remove_folder
from tests.files.test_directory_walk import as_ordinary_user, place

place = place


def nest(folder: Path, depth: int, name: str) -> None:
    """Make a folder that no path reaches the end of."""
    here = os.open(folder, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir(name, dir_fd=here)
        below = os.open(name, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(os.open("end.txt", os.O_CREAT | os.O_WRONLY, dir_fd=here))
    os.close(here)


@pytest.mark.parametrize(("depth", "name"), [(1_500, "d"), (40, "x" * 200)])
def test_depth_and_length_of_paths_do_not_matter(tmp_path: Path, depth: int, name: str) -> None:
    """X3: 1,500 nested folders in its temporary directory made every command an internal error."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    nest(folder, depth, name)
    (folder / name / "beside").mkdir()
    (folder / "file").touch()
    remove_folder(str(folder))
    assert list(tmp_path.iterdir()) == []


def test_links_are_removed_and_not_followed(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/kept.txt").touch()
    (tmp_path / "scratch/deeper").mkdir(parents=True)
    for link in ("scratch/link", "scratch/deeper/link"):
        (tmp_path / link).symlink_to(tmp_path / "mine")
    remove_folder(str(tmp_path / "scratch"))
    assert [path.name for path in tmp_path.rglob("*")] == ["mine", "kept.txt"]
    (tmp_path / "scratch").symlink_to(tmp_path / "mine")
    remove_folder(str(tmp_path / "scratch"))
    assert (tmp_path / "mine/kept.txt").exists()
    remove_folder(str(tmp_path / "not there"))


def test_closed_folders_are_removed_by_an_ordinary_user(place: Path) -> None:
    """As an ordinary user, because the superuser may do everything."""
    place.chmod(0o777)

    def work() -> None:
        (place / "scratch/a/b/c").mkdir(parents=True)
        (place / "scratch/a/b/c/file").touch()
        for name in ("scratch/a/b/c", "scratch/a/b", "scratch/a", "scratch"):
            (place / name).chmod(0)
        remove_folder(str(place / "scratch"))
        assert list(place.iterdir()) == []

    as_ordinary_user(work)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs a folder of somebody else")
def test_what_cannot_be_removed_does_not_keep_the_rest(place: Path) -> None:
    place.chmod(0o777)
    (place / "scratch/theirs").mkdir(parents=True)
    (place / "scratch/theirs/file").touch()
    (place / "scratch/own").mkdir()
    os.chown(place / "scratch", 65_534, 65_534)
    os.chown(place / "scratch/own", 65_534, 65_534)
    descriptors = len(list(Path("/proc/self/fd").iterdir()))
    as_ordinary_user(lambda: remove_folder(str(place / "scratch")))
    assert [path.name for path in (place / "scratch").iterdir()] == ["theirs"]
    assert len(list(Path("/proc/self/fd").iterdir())) == descriptors
