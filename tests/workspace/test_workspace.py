from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from evercontext.domain.tool import FileChange
from evercontext.errors import NotFound
from evercontext.files.file_tree import WriteMode
from evercontext.workspace.checkpoints import checkpoint, list_traces, rewind, undo
from evercontext.workspace.workspace import LocalWorkspace
from tests.workspace.conftest import CALLER


def run(place: Path, script: str) -> None:
    subprocess.run([sys.executable, "-c", script], cwd=place, check=True)


@pytest.mark.contract("E54")
async def test_a_command_can_be_undone(workspace: LocalWorkspace, place: Path) -> None:
    (place / "a.py").write_text("x=1\n")
    (place / "b.py").write_bytes(b"\xff\x00binary")
    (place / "same.py").write_text("same\n")
    async with workspace.recording(CALLER) as recorded:
        run(
            place,
            "import os; open('a.py','w').write('x = 1\\n'); os.unlink('b.py')\n"
            "os.makedirs('out/deep'); open('out/deep/n.txt','w').write('new')",
        )
    assert FileChange("a.py", "x=1\n", "x = 1\n") in recorded.changes
    assert {change.path for change in recorded.changes} == {"a.py", "b.py", "out/deep/n.txt"}
    assert recorded.complete
    done = await undo(workspace.journal)
    assert (place / "a.py").read_text() == "x=1\n"
    assert (place / "b.py").read_bytes() == b"\xff\x00binary"
    assert not (place / "out").exists()
    assert done.skipped == ()


async def test_a_command_that_fails_is_recorded_too(workspace: LocalWorkspace, place: Path) -> None:
    (place / "a.py").write_text("old")

    async def fail() -> None:
        async with workspace.recording(CALLER):
            run(place, "open('a.py','w').write('half'); raise SystemExit(1)")

    with pytest.raises(subprocess.CalledProcessError):
        await fail()
    await undo(workspace.journal)
    assert (place / "a.py").read_text() == "old"


async def test_files_too_large_to_keep_are_named(workspace: LocalWorkspace, place: Path) -> None:
    (place / "big.bin").write_bytes(b"x" * (3 << 20))
    async with workspace.recording(CALLER) as recorded:
        # Of another size: a clock that ticks slowly shows no other time yet.
        (place / "big.bin").write_bytes(b"y" * (4 << 20))
    assert recorded.not_undoable == ("big.bin",)
    assert [(change.path, change.undoable) for change in recorded.changes] == [("big.bin", False)]


@pytest.mark.case(81)
async def test_a_step_of_several_calls(workspace: LocalWorkspace, place: Path) -> None:
    async def half() -> None:
        async with workspace.step(CALLER):
            await workspace.write("a.txt", "1", WriteMode.CREATE, CALLER)
            await workspace.write("b.txt", "2", WriteMode.CREATE, CALLER)
            await workspace.delete("none.txt", CALLER)

    with pytest.raises(NotFound):
        await half()
    assert list(place.iterdir()) == []
    async with workspace.step(CALLER):
        await workspace.write("a.txt", "1", WriteMode.CREATE, CALLER)
        await workspace.move("a.txt", "c.txt", CALLER)
    assert (place / "c.txt").read_text() == "1"


async def test_undo_takes_the_latest_and_then_the_one_before(
    workspace: LocalWorkspace, place: Path
) -> None:
    for name in ("one", "two"):
        caller = replace(CALLER, trace_id=name)
        await workspace.write(f"{name}.txt", "x", WriteMode.CREATE, caller)
    second = await undo(workspace.journal)
    assert second.removed == ("two.txt",)
    assert (await undo(workspace.journal)).removed == ("one.txt",)
    with pytest.raises(NotFound, match="nothing to undo"):
        await undo(workspace.journal)
    with pytest.raises(NotFound, match="no changes of"):
        await undo(workspace.journal, "unknown")
    assert (await undo(workspace.journal, second.trace_id)).restored == ("two.txt",)
    traces = await list_traces(workspace.journal)
    assert [t.undone for t in traces if t.trace_id in ("one", "two")] == [False, True]


async def test_rewind(workspace: LocalWorkspace, place: Path) -> None:
    await workspace.write("a.txt", "1", WriteMode.CREATE, CALLER)
    mark = await checkpoint(workspace.journal, "before turn 2")
    await workspace.write("a.txt", "2", WriteMode.OVERWRITE, CALLER)
    assert (await rewind(workspace.journal, [CALLER.trace_id], mark)).restored == ("a.txt",)
    assert (place / "a.txt").read_text() == "1"
    await rewind(workspace.journal, [CALLER.trace_id], "before turn 2")
    with pytest.raises(NotFound, match="no checkpoint"):
        await rewind(workspace.journal, [CALLER.trace_id], "nowhere")
