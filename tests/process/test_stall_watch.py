from __future__ import annotations

import asyncio
import sys
import threading
from pathlib import Path

import pytest

from evercontext.errors import ProcessProblem, ProgramMissing
from evercontext.process.run import run
from evercontext.process.stall_watch import unless_stalled


def endless(folder: Path) -> list[str]:
    waiting = "import pathlib, time; pathlib.Path('begun').touch(); time.sleep(1000)"
    return [sys.executable, "-c", waiting]


def a_pipe() -> str:
    return ".git/HEAD"


def none() -> None:
    return None


async def test_a_program_that_waits_for_a_pipe_is_stopped(tmp_path: Path) -> None:
    """S6, X9: the error says where it waited."""
    work = run(endless(tmp_path), cwd=tmp_path, timeout=600)
    with pytest.raises(ProcessProblem, match=r"cannot read \.git/HEAD: it is a pipe"):
        await unless_stalled(work, a_pipe)


async def test_a_slow_program_is_left_to_end(tmp_path: Path) -> None:
    slow = [sys.executable, "-c", "import time; time.sleep(0.8); print('at last')"]
    ended = await unless_stalled(run(slow, cwd=tmp_path, timeout=600), none)
    assert ended.text == "at last\n"


async def test_a_program_that_cannot_start_says_so(tmp_path: Path) -> None:
    with pytest.raises(ProgramMissing):
        await unless_stalled(run(["no-such-program"], cwd=tmp_path, timeout=600), none)


async def test_an_answer_that_comes_while_somebody_looks_counts() -> None:
    """A pipe that git does not read is none of its business."""
    began, ended = threading.Event(), threading.Event()

    def look() -> str:
        began.set()
        ended.wait()
        return ".git/pipe"

    async def work() -> str:
        while not began.is_set():
            await asyncio.sleep(0.01)
        ended.set()
        return "answer"

    assert await unless_stalled(work(), look) == "answer"


async def test_who_gives_up_takes_the_program_along(tmp_path: Path) -> None:
    work = run(endless(tmp_path), cwd=tmp_path, timeout=600)
    waiting = asyncio.create_task(unless_stalled(work, none))
    while not (tmp_path / "begun").exists():
        await asyncio.sleep(0.01)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
