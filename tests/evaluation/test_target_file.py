from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from evercontext.errors import (
    AlreadyExists,
    Changed,
    EverContextError,
    NotUtf8,
    PathRefused,
    ProtectedPath,
    ReadOnlyTree,
)
from evercontext.evaluation.target_file import TargetFile
from evercontext.files.policy import FilePolicy


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


def place(file: Path, project: Path) -> TargetFile:
    return TargetFile.of(file, project, FilePolicy(), project.parent / "home")


def rewrite(file: Path, project: Path, content: str = "new\n") -> None:
    there = place(file, project)
    there.write(there.inspect(), content, "trace")


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o755, 0o640])
def test_permissions_stay(project: Path, mode: int) -> None:
    file = project / "a.md"
    file.write_text("old\n")
    file.chmod(mode)
    rewrite(file, project)
    assert file.read_text() == "new\n"
    assert stat.S_IMODE(file.stat().st_mode) == mode


def test_a_link_inside_the_folder_is_written_through_and_stays(project: Path) -> None:
    (project / "docs").mkdir()
    (project / "docs" / "real.md").write_text("old\n")
    (project / "README.md").symlink_to("docs/real.md")
    rewrite(project / "README.md", project)
    assert (project / "README.md").is_symlink()
    assert (project / "docs" / "real.md").read_text() == "new\n"


@pytest.mark.parametrize("target", ["../secret.md", "missing.md", "loop.md"])
def test_a_link_that_leads_elsewhere_is_refused(project: Path, target: str) -> None:
    (project.parent / "secret.md").write_text("untouched\n")
    (project / "loop.md").symlink_to(target)
    with pytest.raises(EverContextError, match=r"loop\.md"):
        rewrite(project / "loop.md", project)
    assert (project.parent / "secret.md").read_text() == "untouched\n"
    assert (project / "loop.md").is_symlink()


def test_a_refused_link_names_the_way_out(project: Path) -> None:
    (project.parent / "out.md").write_text("x\n")
    (project / "in.md").symlink_to("../out.md")
    with pytest.raises(PathRefused, match="name its target"):
        place(project / "in.md", project).inspect()


def test_what_was_written_meanwhile_is_left_alone(project: Path) -> None:
    file = project / "a.md"
    file.write_text("old\n")
    there = place(file, project)
    seen = there.inspect()
    file.write_text("somebody else's\n")
    with pytest.raises(Changed, match="left alone"):
        there.write(seen, "new\n", "trace")
    assert file.read_text() == "somebody else's\n"


def test_a_file_that_appeared_meanwhile_is_left_alone(project: Path) -> None:
    there = place(project / "new.md", project)
    seen = there.inspect()
    (project / "new.md").write_text("somebody else's\n")
    with pytest.raises(AlreadyExists, match="left alone"):
        there.write(seen, "new\n", "trace")
    assert (project / "new.md").read_text() == "somebody else's\n"


def test_a_file_elsewhere_is_bounded_by_its_own_folder(project: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "a.md").write_text("old\n")
    there = place(elsewhere / "a.md", project)
    assert (there.root, there.relative) == (elsewhere.resolve(), "a.md")
    rewrite(elsewhere / "a.md", project)
    assert (elsewhere / "a.md").read_text() == "new\n"


def test_new_folders_are_made(project: Path) -> None:
    rewrite(project / "out" / "deep" / "a.md", project)
    assert (project / "out" / "deep" / "a.md").read_text() == "new\n"


def test_looking_changes_nothing(project: Path) -> None:
    place(project / "new.md", project).inspect()
    assert list(project.iterdir()) == []


@pytest.mark.parametrize(
    ("kind", "wanted"),
    [
        ("directory", PathRefused),
        ("fifo", PathRefused),
        ("binary", NotUtf8),
        ("hard link", ProtectedPath),
    ],
)
def test_what_is_no_document_is_refused_before_any_work(
    project: Path, kind: str, wanted: type[EverContextError]
) -> None:
    file = project / "a.md"
    if kind == "directory":
        file.mkdir()
    elif kind == "fifo":
        os.mkfifo(file)
    elif kind == "binary":
        file.write_bytes(b"\xff\x00")
    else:
        file.write_text("x\n")
        os.link(file, project.parent / "other.md")
    with pytest.raises(wanted, match=r"a\.md cannot be written"):
        place(file, project).inspect()


def test_protected_places_stay_protected(project: Path) -> None:
    (project / ".git").mkdir()
    with pytest.raises(ProtectedPath):
        place(project / ".git" / "hooks.md", project).inspect()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_is_said_before_any_work(project: Path) -> None:
    (project / "closed").mkdir(mode=0o500)
    with pytest.raises(ReadOnlyTree, match="read-only"):
        place(project / "closed" / "a.md", project).inspect()
