"""Races, kills and failing system calls. ``benchmarks/hostile.py`` runs the same for longer."""

from __future__ import annotations

import errno
import os
import time
from pathlib import Path

import pytest

from evercontext.files import file_io
from evercontext.files.file_tree import Tree, WriteMode
from evercontext.files.journal import Change
from evercontext.files.open_beneath import Openat2, Walk
from evercontext.files.undo import undo
from tests.hostile.attackers import (
    TRACE,
    Action,
    kill_repeatedly,
    race_reads,
    race_writes,
    survey,
    swapping,
)


@pytest.mark.case(18)
def test_reads_under_a_swap_race(tree: Tree, place: Path, tmp_path: Path) -> None:
    outside = tmp_path / "elsewhere"
    outside.mkdir()
    with swapping(place, outside):
        raced = race_reads(lambda path: tree.read(path).content, 4000)
    assert raced.escaped == 0
    assert raced.served > 100
    assert raced.refused > 100


@pytest.mark.case(14, 18)
def test_writes_under_a_swap_race(tree: Tree, place: Path, tmp_path: Path) -> None:
    outside = tmp_path / "elsewhere"
    outside.mkdir()
    with swapping(place, outside):
        raced = race_writes(tree, outside, tries=500, served=30)
    assert raced.escaped == 0
    assert raced.refused > 10


def test_the_swap_race_catches_a_checked_string(place: Path, tmp_path: Path) -> None:
    """Negative control: resolve, compare, open later loses the same race."""
    outside = tmp_path / "elsewhere"
    outside.mkdir()

    def naive(path: str) -> str:
        real = (place / path).resolve(strict=True)
        if not real.is_relative_to(place):
            raise PermissionError
        time.sleep(0)  # what a busy server does between check and use
        return (place / path).read_text()

    with swapping(place, outside):
        escaped = any(race_reads(naive, 500).escaped for _ in range(100))
    assert escaped


@pytest.mark.case(51, 81)
@pytest.mark.slow
def test_killed_at_random_instants(place: Path, tmp_path: Path) -> None:
    total, wrong = kill_repeatedly(place, tmp_path / "home", 8)
    assert wrong == []
    assert total >= 8


OLD = {"a.txt": "old a", "b.txt": "old b"}


def _several(tree: Tree) -> None:
    assert tree.journal
    with tree.journal.step(TRACE) as step:
        tree.write("a.txt", "new a", trace_id=TRACE, step=step)
        tree.write("n/e/w.txt", "new", trace_id=TRACE, step=step)
        tree.delete("b.txt", trace_id=TRACE, step=step)


SCENARIOS: dict[str, tuple[dict[str, str], Action, dict[str, str]]] = {
    "create": (
        OLD,
        lambda tree: tree.write("d/n.txt", "new", WriteMode.CREATE, trace_id=TRACE),
        {**OLD, "d/n.txt": "new"},
    ),
    "overwrite": (
        OLD,
        lambda tree: tree.write("a.txt", "new" * 1000, trace_id=TRACE),
        {**OLD, "a.txt": "new" * 1000},
    ),
    "append": (
        OLD,
        lambda tree: tree.write("a.txt", "+", WriteMode.APPEND, trace_id=TRACE),
        {**OLD, "a.txt": "old a+"},
    ),
    "delete": (OLD, lambda tree: tree.delete("a.txt", trace_id=TRACE), {"b.txt": "old b"}),
    "move": (
        OLD,
        lambda tree: tree.move("a.txt", "c/d.txt", trace_id=TRACE),
        {"b.txt": "old b", "c/d.txt": "old a"},
    ),
    "step": (OLD, _several, {"a.txt": "new a", "n/e/w.txt": "new"}),
}


@pytest.mark.case(50)
@pytest.mark.parametrize(
    ("scenario", "code"),
    [*((name, errno.EIO) for name in SCENARIOS), ("overwrite", errno.ENOSPC)],
)
def test_every_system_call_fails_once(tmp_path: Path, scenario: str, code: int) -> None:
    surveyed = survey(tmp_path, *SCENARIOS[scenario], code)
    assert surveyed.wrong == []
    assert surveyed.points > 10


@pytest.mark.case(51, 81)
@pytest.mark.parametrize(
    ("scenario", "strategy"), [*((name, Openat2) for name in SCENARIOS), ("overwrite", Walk)]
)
def test_killed_before_every_system_call(
    tmp_path: Path, scenario: str, strategy: type[Openat2 | Walk]
) -> None:
    surveyed = survey(tmp_path, *SCENARIOS[scenario], None, strategy=strategy)
    assert surveyed.wrong == []
    assert surveyed.points > 10


def _write_in_place(tree: Tree) -> None:
    """What a careless writer does: the same harness must catch it."""
    kernel = tree.root.kernel
    fd = kernel.open("a.txt", os.O_WRONLY | os.O_TRUNC, dir_fd=tree.root.fd)
    for piece in (b"new", b"new"):
        kernel.write(fd, piece)
    kernel.fsync(fd)
    kernel.close(fd)


def test_a_careless_writer_is_caught(tmp_path: Path) -> None:
    """Negative control for the two tests above."""
    surveyed = survey(tmp_path, OLD, _write_in_place, {**OLD, "a.txt": "newnew"}, None)
    assert any("mixed" in said for said in surveyed.wrong)


@pytest.mark.case(50, 81)
@pytest.mark.parametrize("code", [errno.EIO, None], ids=["EIO", "killed"])
def test_undo_through_every_failure(tmp_path: Path, code: int | None) -> None:
    before = {"a.txt": "agent", "b.txt": "agent"}

    def action(tree: Tree) -> None:
        kernel = tree.root.kernel
        kernel.armed = False  # type: ignore[attr-defined]
        assert tree.journal
        for name in before:
            with tree.root.target(name, tree.policy) as safe:
                now = file_io.read(safe, tree.policy)
                entry = Change(safe, None, now.data).entry("first", None)
                tree.journal.record([(entry, None)])
        kernel.armed = True  # type: ignore[attr-defined]
        undo(tree.journal, ["first"])

    surveyed = survey(tmp_path, before, action, {}, code)
    assert surveyed.wrong == []
    assert surveyed.points > 10
