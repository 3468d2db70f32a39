from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from evercontext.domain.tool import Caller, Door, Mode
from evercontext.files.journal import Journal
from evercontext.files.policy import agent_policy, gateway_policy
from evercontext.files.task_changes import Extent, TakenBack, find_undo, list_traces, taken_back
from evercontext.files.undo import undo
from evercontext.workspace import checkpoints
from evercontext.workspace.workspace import LocalWorkspace

CALLER = Caller("t", Door.RUN, Mode.AGENT)


@pytest.fixture
def workspace(tmp_path: Path, place: Path) -> Iterator[LocalWorkspace]:
    opened = LocalWorkspace.open(
        place, tmp_path / "home", gateway=gateway_policy(None, 1000), agent=agent_policy(None, 1000)
    )
    yield opened
    opened.close()


@pytest.fixture
def journal(workspace: LocalWorkspace) -> Journal:
    return workspace.journal


def extent(journal: Journal, place: Path, trace_id: str = "t") -> Extent:
    return find_undo(journal.directory.parent.parent, place, trace_id).extent


def test_how_much_of_a_task_is_taken_back_is_known(
    workspace: LocalWorkspace, journal: Journal, place: Path
) -> None:
    assert extent(journal, place) is Extent.UNKNOWN
    workspace.tree.write("a.txt", "1", trace_id="t")
    workspace.tree.write("b.txt", "1", trace_id="t")
    assert extent(journal, place) is Extent.NOTHING
    (place / "b.txt").write_text("mine")
    first = undo(journal, ["t"])
    assert extent(journal, place) is Extent.PART
    (place / "b.txt").write_text("1")
    second = undo(journal, ["t"])
    home = journal.directory.parent.parent
    assert find_undo(home, place, "t") == TakenBack(Extent.ALL, second.trace_id)
    undo(journal, [second.trace_id])
    undo(journal, [first.trace_id])
    assert extent(journal, place) is Extent.NOTHING


async def test_a_directory_that_was_put_to_use_is_not_called_undone(
    workspace: LocalWorkspace, journal: Journal, place: Path
) -> None:
    """Nobody undid it: the user filled it. Nor is it what the next undo tries in vain."""
    workspace.tree.write("a.txt", "1", trace_id="earlier")
    async with workspace.recording(CALLER):
        (place / "docs").mkdir()
    assert [(t.undone, t.stands) for t in list_traces(journal) if t.trace_id == "t"] == [
        (False, True)
    ]
    (place / "docs" / "mine.md").write_text("mine")
    (trace,) = (t for t in list_traces(journal) if t.trace_id == "t")
    assert (trace.undone, trace.stands) == (False, False)
    assert extent(journal, place) is Extent.NOTHING
    assert await checkpoints.latest(journal) == "earlier"
    (place / "docs" / "mine.md").unlink()
    undo(journal, ["t"])
    (trace,) = (t for t in list_traces(journal) if t.trace_id == "t")
    assert (trace.undone, trace.stands) == (True, False)
    assert extent(journal, place) is Extent.ALL
    (place / "docs").mkdir()
    (trace,) = (t for t in list_traces(journal) if t.trace_id == "t")
    assert (trace.undone, trace.stands) == (False, True)


async def test_two_commands_of_one_task_are_one_row(
    workspace: LocalWorkspace, journal: Journal, place: Path
) -> None:
    for name in ("one", "two"):
        async with workspace.recording(CALLER):
            (place / name).mkdir()
    (trace,) = list_traces(journal)
    assert trace.paths == ("one/", "two/")


def test_what_a_task_took_back_itself_does_not_count_as_undone(
    workspace: LocalWorkspace, journal: Journal, place: Path
) -> None:
    """A repair attempt that did not help: the task stands, and so does what is remembered of it."""
    workspace.tree.write("a.txt", "1", trace_id="t")
    at = journal.mark("repair")
    workspace.tree.write("b.txt", "attempt", trace_id="t")
    undo(journal, ["t"], since=at, during="t")
    assert extent(journal, place) is Extent.NOTHING
    assert taken_back(journal)["t"] is False
    (trace,) = (t for t in list_traces(journal) if t.trace_id == "t")
    assert (trace.paths, trace.undone, trace.stands) == (("a.txt",), False, True)
    undo(journal, ["t"])
    assert extent(journal, place) is Extent.ALL
    assert taken_back(journal)["t"] is True
