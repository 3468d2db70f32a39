from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from evercontext.files import journal, journal_recovery, journal_segments, tree_snapshot
from evercontext.files import undo as undo_module
from evercontext.files.clock import Clock
from evercontext.files.contained_paths import Root, SafePath
from evercontext.files.file_tree import Tree
from evercontext.files.journal_recovery import open_journal
from evercontext.files.policy import agent_policy
from evercontext.files.system_calls import Kernel
from evercontext.files.task_changes import list_traces
from evercontext.files.undo import undo

NAME = ".ec-0123456789abcdef.tmp"


def open_tree(place: Path, home: Path) -> Tree:
    return Tree.open(place, agent_policy(), home)


def die_while(place: Path, home: Path, work: Callable[[Tree], None]) -> None:
    """Run ``work`` in a process that is killed at its end, without any goodbye."""
    child = os.fork()
    if child == 0:
        try:
            work(open_tree(place, home))
        finally:
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def half_a_step(tree: Tree) -> None:
    assert tree.journal
    with tree.journal.step("t") as step:
        tree.write("a.txt", "new", trace_id="t", step=step)
        tree.write("d/b.txt", "new", trace_id="t", step=step)
        tree.delete("gone.txt", trace_id="t", step=step)
        os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.case(81)
def test_a_step_cut_in_the_middle_is_taken_back(place: Path, home: Path) -> None:
    (place / "a.txt").write_text("old")
    (place / "gone.txt").write_text("precious")
    die_while(place, home, half_a_step)
    assert (place / "a.txt").read_text() == "new"
    tree = open_tree(place, home)
    assert tree.recovery.rolled_back == ("a.txt", "d/b.txt", "gone.txt")
    assert {p.name: p.read_text() for p in place.iterdir()} == {
        "a.txt": "old",
        "gone.txt": "precious",
    }
    assert tree.journal
    assert undo(tree.journal, ["t"]).restored == ()
    tree.close()


@pytest.mark.case(81)
def test_what_the_user_changed_since_the_crash_stays(place: Path, home: Path) -> None:
    (place / "a.txt").write_text("old")
    (place / "gone.txt").write_text("precious")
    die_while(place, home, half_a_step)
    (place / "a.txt").write_text("the user's")
    tree = open_tree(place, home)
    assert tree.recovery.left_alone == ("a.txt",)
    assert (place / "a.txt").read_text() == "the user's"
    assert not (place / "d").exists()
    tree.close()


def test_finished_work_of_a_killed_process_stays_and_can_be_undone(place: Path, home: Path) -> None:
    die_while(place, home, lambda tree: void(tree.write("a.txt", "done", trace_id="t")))
    tree = open_tree(place, home)
    assert (place / "a.txt").read_text() == "done"
    assert tree.recovery.rolled_back == ()
    assert tree.journal
    assert undo(tree.journal, ["t"]).removed == ("a.txt",)
    tree.close()


def void(_: object) -> None:
    """Swallow a result."""


def test_a_living_process_is_left_alone(place: Path, home: Path) -> None:
    alive = open_tree(place, home)
    assert alive.journal
    with alive.journal.step("t") as step:
        alive.write("a.txt", "new", trace_id="t", step=step)
        (place / NAME).write_text("being written")
        second = open_tree(place, home)
        assert second.recovery.rolled_back == ()
        assert (place / "a.txt").read_text() == "new"
        assert (place / NAME).exists()
        second.close()
    alive.close()


@pytest.mark.case(51)
def test_stale_temporary_files_are_swept_after_a_crash(place: Path, home: Path) -> None:
    (place / "d").mkdir()
    die_while(place, home, lambda tree: void(tree.write("a.txt", "x", trace_id="t")))
    for where in (place, place / "d"):
        (where / NAME).write_text("half")
    (place / "d" / ".ec-notes.tmp").write_text("the user's")
    tree = open_tree(place, home)
    assert tree.recovery.swept == 2
    assert sorted(p.name for p in place.rglob("*") if p.is_file()) == [".ec-notes.tmp", "a.txt"]
    tree.close()


class EditorSaves(Kernel):
    """An editor that saves in the instant before the swap; then the power goes."""

    def __init__(self, place: Path, in_place: bool) -> None:
        super().__init__()
        self._place, self._in_place = place, in_place

    def exchange(self, one: str, other: str, dir_fd: int) -> None:
        if self._in_place:
            (self._place / "a.txt").write_text("the user's")
        else:
            (self._place / "saved").write_text("the user's")
            (self._place / "saved").rename(self._place / "a.txt")
        super().exchange(one, other, dir_fd)
        os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.case(46, 80)
@pytest.mark.parametrize("in_place", [True, False])
def test_an_edit_saved_in_the_last_instant_comes_back(
    place: Path, home: Path, in_place: bool
) -> None:
    (place / "a.txt").write_text("old")
    child = os.fork()
    if child == 0:
        root = Root.open(place, kernel=EditorSaves(place, in_place))
        journal, _ = open_journal(root, home)
        Tree(root, agent_policy(), journal).write("a.txt", "agent's", trace_id="t")
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    assert (place / "a.txt").read_text() == "agent's"
    tree = open_tree(place, home)
    assert (place / "a.txt").read_text() == "the user's"
    assert os.listdir(place) == ["a.txt"]
    tree.close()


def written_day(place: Path, home: Path, days: int) -> None:
    """Change a file on a day that is so many days from today."""
    tree = open_tree(place, home)
    tree.write("a.txt", f"day {days}", trace_id=f"day {days}")
    tree.close()
    assert tree.journal
    moment = time.time() + days * 86_400
    os.utime(tree.journal.segments()[-1], (moment, moment))


def test_segments_of_more_days_than_are_kept_are_dropped(
    place: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_recovery, "KEPT_DAYS", 2)
    for days in (-900, -800, -700):
        written_day(place, home, days)
    again = open_tree(place, home)
    assert again.journal
    assert [trace.trace_id for trace in list_traces(again.journal)] == ["day -700", "day -800"]
    again.close()


def test_a_clock_that_jumps_drops_no_history(place: Path, home: Path) -> None:
    """X12: one start with the clock 60 days ahead deleted all that could be undone."""
    for days in (-100, -99, 60):
        written_day(place, home, days)
    again = open_tree(place, home)
    assert again.journal
    assert len(again.journal.segments()) == 3
    again.close()


def test_undo_takes_the_latest_task_though_the_clock_was_set_back(
    place: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """X12: each start with another clock, as three processes would see it."""
    for number, shown in enumerate([9_000, 5_000, 1_000, 7_000]):
        # A new process knows nothing of what another one was told.
        clock = Clock(partial(int, shown * 10**15))
        for module in (journal, journal_segments, undo_module, tree_snapshot):
            monkeypatch.setattr(module, "journal_clock", clock)
        tree = open_tree(place, home)
        for text in ("x", "y"):
            tree.write("a.txt", f"{text}{number}", trace_id=f"task {number}")
        assert tree.journal
        assert list_traces(tree.journal)[0].trace_id == f"task {number}"
        tree.close()
    again = open_tree(place, home)
    assert again.journal
    undo(again.journal, ["task 3"])
    assert (place / "a.txt").read_text() == "y2"
    again.close()


def test_a_sibling_shares_its_directory(place: Path) -> None:
    with Root.open(place) as root, root.target("a.txt", agent_policy()) as safe:
        assert isinstance(safe.sibling("b.txt"), SafePath)
        assert safe.sibling("b.txt").dir_fd == safe.dir_fd
