from __future__ import annotations

import os
from pathlib import Path

import pytest

from evercontext.domain.tool import Caller, Door, FileChange
from evercontext.errors import NotFound
from evercontext.files.links_and_directories import Creations, remove, standing
from evercontext.files.policy import agent_policy, gateway_policy
from evercontext.workspace.checkpoints import list_traces, undo
from evercontext.workspace.workspace import LocalWorkspace

CALLER = Caller("11111111-1111-4111-8111-111111111111", Door.RUN)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "tree").mkdir()
    return tmp_path / "tree"


@pytest.fixture
def workspace(tmp_path: Path, place: Path) -> LocalWorkspace:
    opened = LocalWorkspace.open(
        place, tmp_path / "home", gateway=gateway_policy(None, 1000), agent=agent_policy(None, 1000)
    )
    return opened


@pytest.mark.contract("E54")
async def test_links_and_empty_directories_of_a_command_are_taken_back(
    workspace: LocalWorkspace, place: Path
) -> None:
    (place / "kept").mkdir()
    async with workspace.recording(CALLER) as recorded:
        (place / "link").symlink_to("/etc/passwd")
        (place / "empty" / "deeper").mkdir(parents=True)
        (place / "full").mkdir()
        (place / "full" / "a.txt").write_text("x")
    assert FileChange("link", None, "link to /etc/passwd\n") in recorded.changes
    done = await undo(workspace.journal)
    assert sorted(done.removed) == ["empty/", "empty/deeper/", "full/a.txt", "link"]
    assert sorted(path.name for path in place.iterdir()) == ["kept"]
    workspace.close()


async def test_what_somebody_made_of_them_since_stays(
    workspace: LocalWorkspace, place: Path
) -> None:
    async with workspace.recording(CALLER):
        (place / "link").symlink_to("a")
        (place / "empty").mkdir()
    (trace,) = await list_traces(workspace.journal)
    assert (trace.paths, trace.undone) == (("link", "empty/"), False)
    (place / "link").unlink()
    (place / "link").symlink_to("b")
    (place / "empty" / "mine.txt").write_text("mine")
    done = await undo(workspace.journal, CALLER.trace_id)
    assert done.removed == ()
    assert (place / "link").readlink() == Path("b")
    assert (place / "empty" / "mine.txt").exists()
    workspace.close()


async def test_a_link_that_a_command_changed_is_named(
    workspace: LocalWorkspace, place: Path
) -> None:
    (place / "link").symlink_to("a")
    async with workspace.recording(CALLER) as recorded:
        (place / "link").unlink()
    assert recorded.not_undoable == ("link",)
    with pytest.raises(NotFound):
        await undo(workspace.journal)
    workspace.close()


async def test_a_dry_run_only_says_it(workspace: LocalWorkspace, place: Path) -> None:
    async with workspace.recording(CALLER):
        (place / "link").symlink_to("a")
    assert (await undo(workspace.journal, dry_run=True)).removed == ("link",)
    assert (place / "link").is_symlink()
    made = Creations(CALLER.trace_id, 0, (("link", "a"), ("gone", "x")), ("nowhere",))
    assert standing(workspace.tree.root, made) == ["link"]
    workspace.close()


@pytest.mark.case(80)
@pytest.mark.contract("E54")
async def test_an_edit_by_hand_during_a_check_is_kept_and_said(
    workspace: LocalWorkspace, place: Path
) -> None:
    (place / "mine.py").write_text("old\n")
    (place / "both.py").write_text("old\n")
    async with workspace.recording(CALLER, unsure="pytest -q"):
        (place / "mine.py").write_text("by hand\n")
        (place / "report.txt").write_text("made by the tests\n")
    done = await undo(workspace.journal)
    assert (place / "mine.py").read_text() == "by hand\n"
    assert not (place / "report.txt").exists()
    (kept,) = done.skipped
    assert kept.path == "mine.py"
    assert kept.reason.startswith("changed while pytest -q ran, by it or by you")
    done = await undo(workspace.journal, CALLER.trace_id, everything=True)
    assert (place / "mine.py").read_text() == "old\n"
    workspace.close()


async def test_a_new_folder_of_installed_programs_is_seen_and_taken_back(
    workspace: LocalWorkspace, place: Path, tmp_path: Path
) -> None:
    """X4: what runs later, outside, is a change like any other, and is moved and not deleted."""
    (place / "old/node_modules").mkdir(parents=True)
    async with workspace.recording(CALLER) as recorded:
        for name in (".venv/bin/activate", "web/node_modules/.bin/tsc", ".next/server.js"):
            (place / name).parent.mkdir(parents=True)
            (place / name).write_text("evil\n")
        (place / "old/node_modules/b.js").write_text("new\n")
    named = sorted(change.path for change in recorded.changes)
    assert named == [".next/", ".venv/", "web/node_modules/"]
    done = await undo(workspace.journal, CALLER.trace_id, dry_run=True)
    assert (set(done.removed) >= set(named), done.moved) == (True, ())
    assert (place / ".venv/bin/activate").exists()
    done = await undo(workspace.journal, CALLER.trace_id)
    assert [path.name for path in place.iterdir()] == ["old"]
    assert sorted(done.removed) == [".next/", ".venv/", "web/", "web/node_modules/"]
    (venv,) = (Path(moved) for moved in done.moved if "venv" in moved)
    assert (venv / "bin/activate").read_text() == "evil\n"
    assert venv.parent == tmp_path / "home/quarantine"
    workspace.close()


async def test_another_folder_of_that_name_stays(workspace: LocalWorkspace, place: Path) -> None:
    async with workspace.recording(CALLER):
        (place / "node_modules").mkdir()
    (place / "node_modules").rename(place / "aside")
    (place / "node_modules").mkdir()
    done = await undo(workspace.journal, CALLER.trace_id)
    assert (done.removed, done.moved) == ((), ())
    assert (place / "node_modules").is_dir()
    workspace.close()


async def test_installed_programs_of_a_renamed_folder_stay(
    workspace: LocalWorkspace, place: Path
) -> None:
    (place / "pkg/node_modules/p").mkdir(parents=True)
    (place / "pkg/a.py").write_text("x = 1\n")
    async with workspace.recording(CALLER) as recorded:
        (place / "pkg").rename(place / "lib")
    assert sorted(change.path for change in recorded.changes) == ["lib/a.py", "pkg/a.py"]
    done = await undo(workspace.journal, CALLER.trace_id)
    assert (done.restored, done.moved) == (("pkg/a.py",), ())
    assert (place / "lib/node_modules/p").is_dir()
    workspace.close()


def test_what_is_moved_inside_the_tree_is_closed_and_none_of_gits_business(
    workspace: LocalWorkspace, place: Path, tmp_path: Path
) -> None:
    (place / ".venv").mkdir()
    there = (place / ".venv").stat()
    (tmp_path / "file").touch()
    made = Creations(CALLER.trace_id, 0, folders=((".venv", there.st_dev, there.st_ino),))
    before = os.umask(0)
    try:
        gone = remove(workspace.tree.root, made, tmp_path / "file/no-place")
    finally:
        os.umask(before)
    moved = gone[".venv/"]
    assert moved is not None
    assert moved.parent == place / ".evercontext/quarantine"
    assert [p.stat().st_mode & 0o077 for p in (moved.parent, moved.parent.parent)] == [0, 0]
    assert (place / ".evercontext/.gitignore").read_text() == "*\n"
    workspace.close()
