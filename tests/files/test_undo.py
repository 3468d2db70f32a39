from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evercontext.errors import AlreadyExists, FileProblem
from evercontext.files.file_tree import Tree, WriteMode
from evercontext.files.journal import Journal
from evercontext.files.policy import agent_policy
from evercontext.files.task_changes import list_traces
from evercontext.files.undo import SkippedFile, undo


@pytest.fixture
def tree(place: Path, tmp_path: Path) -> Iterator[Tree]:
    tree = Tree.open(place, agent_policy(), tmp_path / "home")
    yield tree
    tree.close()


@pytest.fixture
def journal(tree: Tree) -> Journal:
    assert tree.journal
    return tree.journal


def state(place: Path) -> dict[str, tuple[bytes, int] | None]:
    """Every file with content and permissions, every directory."""
    return {
        str(path.relative_to(place)): (path.read_bytes(), path.stat().st_mode & 0o777)
        if path.is_file()
        else None
        for path in place.rglob("*")
    }


@pytest.mark.contract("E54")
def test_undo_restores_exactly(tree: Tree, journal: Journal, place: Path) -> None:
    (place / "kept.sh").write_bytes(b"\xef\xbb\xbfa\r\nb\r")
    (place / "kept.sh").chmod(0o755)
    (place / "raw.txt").write_bytes(b"\xff\xfe binary")
    (place / "gone.txt").write_text("untracked and precious")
    before = state(place)
    tree.write("kept.sh", "one", trace_id="t")
    tree.write("kept.sh", "two", trace_id="t")
    tree.write("raw.txt", "text now", trace_id="t")
    tree.delete("gone.txt", trace_id="t")
    tree.write("new/deep/file.py", "x", WriteMode.CREATE, trace_id="t")
    tree.move("kept.sh", "new/moved.sh", trace_id="t")
    after = state(place)

    report = undo(journal, ["t"])
    assert state(place) == before
    assert set(report.restored) == {"kept.sh", "raw.txt", "gone.txt"}
    assert set(report.removed) == {"new/deep/file.py", "new/moved.sh"}
    assert report.skipped == ()

    again = undo(journal, [report.trace_id])
    assert state(place) == after
    undo(journal, [again.trace_id])
    assert state(place) == before


def test_undo_never_touches_what_the_user_changed(
    tree: Tree, journal: Journal, place: Path
) -> None:
    for name in ("a.txt", "b.txt"):
        tree.write(name, "agent", trace_id="t")
    tree.write("dir/c.txt", "agent", trace_id="t")
    (place / "a.txt").write_text("the user's")
    (place / "dir" / "mine.txt").write_text("the user's")
    (place / "dir/c.txt").unlink()
    report = undo(journal, ["t"])
    assert set(report.skipped) == {
        SkippedFile("a.txt", "changed since"),
        SkippedFile("dir/c.txt", "deleted since"),
    }
    assert report.removed == ("b.txt",)
    assert (place / "a.txt").read_text() == "the user's"
    assert (place / "dir" / "mine.txt").exists()


def test_an_edit_in_between_is_as_far_as_undo_goes(
    tree: Tree, journal: Journal, place: Path
) -> None:
    tree.write("a.txt", "agent 1", trace_id="t")
    (place / "a.txt").write_text("the user's")
    tree.write("a.txt", "agent 2", trace_id="t")
    report = undo(journal, ["t"])
    assert (place / "a.txt").read_text() == "the user's"
    assert report.partly == ("a.txt",)


def test_what_the_task_removed_itself_is_not_said_to_be_removed(
    tree: Tree, journal: Journal, place: Path
) -> None:
    tree.write("new.txt", "x", trace_id="t")
    tree.delete("new.txt", trace_id="t")
    done = undo(journal, ["t"])
    assert (done.removed, done.restored) == ((), ())


def test_other_traces_stay(tree: Tree, journal: Journal, place: Path) -> None:
    tree.write("a.txt", "1", trace_id="one")
    tree.write("b.txt", "2", trace_id="two")
    undo(journal, ["two"])
    assert state(place).keys() == {"a.txt"}
    assert [(t.trace_id, t.undone) for t in list_traces(journal) if not t.is_undo] == [
        ("two", True),
        ("one", False),
    ]
    assert undo(journal, ["two"]).removed == ()


def test_rewind_to_a_mark(tree: Tree, journal: Journal, place: Path) -> None:
    tree.write("a.txt", "1", trace_id="t")
    at = journal.mark("turn 2")
    tree.write("a.txt", "2", trace_id="t")
    tree.write("b.txt", "2", trace_id="t")
    assert journal.history().marks == {"turn 2": at}
    undo(journal, ["t"], since=at)
    assert (place / "a.txt").read_text() == "1"
    assert state(place).keys() == {"a.txt"}
    undo(journal, ["t"])
    assert state(place) == {}


def test_undo_works_in_another_process_later(tree: Tree, place: Path, tmp_path: Path) -> None:
    tree.write("a.txt", "1", trace_id="t")
    tree.close()
    later = Tree.open(place, agent_policy(), tmp_path / "home")
    assert later.journal
    assert undo(later.journal, ["t"]).removed == ("a.txt",)
    later.close()


def test_a_step_is_all_or_nothing(tree: Tree, journal: Journal, place: Path) -> None:
    tree.write("a.txt", "old", trace_id="s")
    before = state(place)

    def half() -> None:
        with journal.step("t") as step:
            tree.write("a.txt", "new", trace_id="t", step=step)
            tree.write("n/b.txt", "new", trace_id="t", step=step)
            tree.write("a.txt", "newer", trace_id="t", step=step)
            tree.write("a.txt", "no", WriteMode.CREATE, trace_id="t", step=step)

    with pytest.raises(AlreadyExists):
        half()
    assert state(place) == before
    assert [t.trace_id for t in list_traces(journal)] == ["s"]


names = st.sampled_from(["a.txt", "b.py", "d/c.txt", "d/e/f.md"])
moves = st.one_of(
    st.tuples(st.just("write"), names, st.text("xyz\r\n", max_size=5)),
    st.tuples(st.just("append"), names, st.text("xyz", max_size=5)),
    st.tuples(st.just("delete"), names, st.just("")),
    st.tuples(st.just("move"), names, names),
)


def act(tree: Tree, kind: str, path: str, other: str, trace: str) -> None:
    try:
        if kind == "delete":
            tree.delete(path, trace_id=trace)
        elif kind == "move":
            tree.move(path, other, trace_id=trace)
        else:
            mode = WriteMode.APPEND if kind == "append" else WriteMode.OVERWRITE
            tree.write(path, other, mode, trace_id=trace)
    except FileProblem:
        pass


@settings(
    max_examples=40,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.lists(moves, max_size=8), st.lists(moves, min_size=1, max_size=8))
def test_any_sequence_can_be_taken_back(
    tmp_path_factory: pytest.TempPathFactory,
    first: list[tuple[str, str, str]],
    second: list[tuple[str, str, str]],
) -> None:
    base = tmp_path_factory.mktemp("any")
    place = base / "root"
    place.mkdir()
    tree = Tree.open(place, agent_policy(), base / "home")
    assert tree.journal
    for step in first:
        act(tree, *step, trace="first")
    files = {path: kept for path, kept in state(place).items() if kept}
    for step in second:
        act(tree, *step, trace="second")
    report = undo(tree.journal, ["second"])
    assert report.skipped == ()
    assert {path: kept for path, kept in state(place).items() if kept} == files
    undo(tree.journal, ["first"])
    assert not any(state(place).values())
    tree.close()
