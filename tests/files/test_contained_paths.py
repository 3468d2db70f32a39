"""One contract for both ways of resolving: every test runs on openat2 and on the walk."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from evercontext.errors import ConfigError, NotFound, PathRefused, ProtectedPath
from evercontext.files import file_io
from evercontext.files.contained_paths import Root
from evercontext.files.policy import FilePolicy, gateway_policy

POLICY = gateway_policy()


def read(root: Root, path: str, policy: FilePolicy = POLICY) -> str:
    with root.file(path, policy) as safe:
        return file_io.read(safe, policy).text()


@pytest.mark.contract("E21")
def test_links_that_stay_inside_are_read_through(root: Root, place: Path) -> None:
    (place / "real").mkdir()
    (place / "real" / "a.txt").write_text("inside")
    (place / "near").symlink_to("real")
    (place / "far").symlink_to(place / "real" / "a.txt")
    (place / "real" / "up.txt").symlink_to("../real/a.txt")
    (place / "far.txt").symlink_to("far")
    for path in ("near/a.txt", "real/up.txt", "near/up.txt", "far.txt"):
        assert read(root, path) == "inside"


@pytest.mark.contract("E21")
def test_a_link_into_a_protected_place_is_no_way_around(root: Root, place: Path) -> None:
    (place / ".git").mkdir()
    (place / ".git" / "notes.txt").write_text("hook")
    (place / "docs").symlink_to(".git")
    (place / "n.txt").symlink_to(".git/notes.txt")
    for path in ("docs/notes.txt", "n.txt"):
        with pytest.raises(ProtectedPath):
            read(root, path)


@pytest.mark.contract("E21")
def test_nothing_is_written_through_a_link(root: Root, place: Path) -> None:
    (place / "real").mkdir()
    (place / "near").symlink_to("real")
    with pytest.raises(PathRefused, match="symlink not allowed"):
        root.target("near/new.txt", POLICY)


def test_missing_directories_are_noted_and_made(root: Root, place: Path) -> None:
    (place / "a").mkdir()
    with root.target("a/b/c/d.txt", POLICY) as safe:
        assert safe.missing_directories == ("a/b", "a/b/c")
        safe.make_parents()
        assert safe.missing == ()
    assert (place / "a/b/c").is_dir()


def test_a_link_to_the_root_itself_is_a_directory(root: Root, place: Path) -> None:
    (place / "self").symlink_to(".")
    (place / "a.txt").write_text("x")
    assert read(root, "self/self/a.txt") == "x"
    with pytest.raises(PathRefused):
        read(root, "self", FilePolicy())


def test_the_root_is_pinned(root: Root, place: Path) -> None:
    (place / "a.txt").write_text("mine")
    place.rename(place.with_name("moved"))
    place.mkdir()
    (place / "a.txt").write_text("impostor")
    assert read(root, "a.txt") == "mine"


def test_a_missing_root_is_said(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot open the root"):
        Root.open(tmp_path / "nowhere")


def test_no_descriptor_is_left_open(root: Root, place: Path) -> None:
    (place / "d").mkdir()
    (place / "d" / "a.txt").write_text("x")
    (place / "out").symlink_to("/etc")
    before = len(os.listdir("/proc/self/fd"))
    for path in ("d/a.txt", "d/none.txt", "out/passwd.txt", "none/x.txt", "d/a.txt/x.txt"):
        try:
            read(root, path)
        except (FileNotFoundError, NotFound, PathRefused):
            continue
    with root.target("d/e/f.txt", POLICY) as safe:
        safe.make_parents()
    assert len(os.listdir("/proc/self/fd")) <= before
