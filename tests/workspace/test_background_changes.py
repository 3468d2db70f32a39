"""Whatever changes while a command runs in the background is journalled once, for whom it was."""

from __future__ import annotations

from pathlib import Path

from evercontext.domain.tool import Caller, Door
from evercontext.files.file_tree import WriteMode
from evercontext.files.journal import Journal
from evercontext.files.undo import undo
from evercontext.workspace.workspace import LocalWorkspace

CALLER = Caller("task", Door.CHAT, session="s1")
EARLIER = Caller("earlier", Door.CHAT, session="s1")


def changed(workspace: LocalWorkspace, caller: Caller = CALLER) -> list[str]:
    return [change.path for change in workspace.untold(caller).changes]


def entries(journal: Journal) -> list[tuple[str, str, bool]]:
    return [(e.path, e.trace_id, bool(e.unsure)) for e in journal.history().entries]


async def test_it_is_counted_once_and_undone(workspace: LocalWorkspace, place: Path) -> None:
    (place / "a.txt").write_text("old")
    await workspace.watch()
    (place / "a.txt").write_text("new")
    (place / "b.txt").write_text("b")
    await workspace.account(CALLER)
    await workspace.account(CALLER)
    await workspace.end_watch()
    assert changed(workspace) == ["a.txt", "b.txt"]
    assert changed(workspace) == []
    undo(workspace.journal, ["task"])
    assert (place / "a.txt").read_text() == "old"
    assert not (place / "b.txt").exists()


async def test_what_a_tool_changes_meanwhile_is_the_tools(
    workspace: LocalWorkspace, place: Path
) -> None:
    """Both in one file: first the command, then the tool; the undo takes back both."""
    (place / "a.txt").write_text("old")
    await workspace.watch()
    (place / "a.txt").write_text("by the command")
    await workspace.write("./a.txt", "by the tool", WriteMode.OVERWRITE, CALLER)
    await workspace.write("d/new.txt", "tool", WriteMode.CREATE, CALLER)
    await workspace.account(CALLER)
    await workspace.end_watch()
    assert changed(workspace) == ["a.txt"]
    assert [path for path, _, _ in entries(workspace.journal)] == ["a.txt", "a.txt", "d/new.txt"]
    undo(workspace.journal, ["task"])
    assert (place / "a.txt").read_text() == "old"
    assert not (place / "d").exists()


async def test_between_tasks_it_may_be_the_users(workspace: LocalWorkspace, place: Path) -> None:
    await workspace.watch()
    (place / "mine.txt").write_text("mine")
    await workspace.account(EARLIER, doubt="npm run dev")
    await workspace.end_watch()
    assert changed(workspace, EARLIER) == []
    assert entries(workspace.journal) == [("mine.txt", "earlier", True)]
    (skipped,) = undo(workspace.journal, ["earlier"]).skipped
    assert skipped.reason.startswith("changed while npm run dev ran, by it or by you")
    undo(workspace.journal, ["earlier"], everything=True)
    assert not (place / "mine.txt").exists()


async def test_beside_a_command_that_somebody_waits_for(
    workspace: LocalWorkspace, place: Path
) -> None:
    (place / "a.txt").write_text("old")
    await workspace.watch()
    (place / "early.txt").write_text("x")
    async with workspace.recording(CALLER) as recorded:
        (place / "now.txt").write_text("x")
    assert [change.path for change in recorded.changes] == ["now.txt"]
    async with workspace.recording(CALLER, unsure="pytest -q") as looked:
        (place / "a.txt").write_text("new")
        await workspace.account(CALLER)
        await workspace.end_watch()
        (place / "late.txt").write_text("x")
    assert [change.path for change in looked.changes] == ["late.txt"]
    assert changed(workspace) == ["early.txt", "a.txt"]
    paths = [path for path, _, unsure in entries(workspace.journal) if not unsure]
    assert paths == ["early.txt", "now.txt", "a.txt", "late.txt"]


async def test_a_check_beside_it_is_not_blamed(workspace: LocalWorkspace, place: Path) -> None:
    (place / "a.txt").write_text("old")
    await workspace.watch()
    async with workspace.recording(CALLER, unsure="pytest -q") as looked:
        (place / "a.txt").write_text("new")
    await workspace.end_watch()
    assert (looked.changes, looked.unsure) == ((), ())
    assert changed(workspace) == ["a.txt"]


async def test_one_that_begins_beside_a_command(workspace: LocalWorkspace, place: Path) -> None:
    async with workspace.recording(CALLER) as recorded:
        (place / "one.txt").write_text("x")
        await workspace.watch()
        (place / "two.txt").write_text("x")
        await workspace.account(CALLER)
    await workspace.end_watch()
    both = [*changed(workspace), *(change.path for change in recorded.changes)]
    assert both == ["one.txt", "two.txt"]
    assert len(entries(workspace.journal)) == 2
