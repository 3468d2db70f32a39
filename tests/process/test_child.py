"""A long-lived child with pipes."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

from evercontext.process.child import start
from evercontext.process.resource_limits import UNLIMITED
from evercontext.process.sandbox import Layer, Sandbox


async def test_a_conversation_line_by_line(tmp_path: Path) -> None:
    echo = "import sys\nfor line in sys.stdin: print(line.upper(), end='', flush=True)"
    async with await start([sys.executable, "-c", echo], cwd=tmp_path) as child:
        assert child.stdin is not None
        for word in (b"one\n", b"two\n"):
            child.stdin.write(word)
            assert await child.stdout.readline() == word.upper()
    assert child.exit_code == -9


async def test_a_child_that_ends_by_itself(tmp_path: Path) -> None:
    async with await start(["sh", "-c", "exit 4"], cwd=tmp_path) as child:
        await child.wait()
        assert await child.stdout.read() == b""
    assert child.exit_code == 4


async def test_closing_twice_is_harmless(tmp_path: Path) -> None:
    child = await start(["sleep", "60"], cwd=tmp_path)
    await child.close()
    await child.close()
    assert child.exit_code == -9


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="counts descriptors in /proc")
@pytest.mark.parametrize("steps", range(12))
async def test_a_start_that_is_given_up_at_any_step_keeps_no_descriptor(
    tmp_path: Path, steps: int
) -> None:
    before = set(os.listdir("/proc/self/fd"))
    starting = asyncio.create_task(start(["sleep", "60"], cwd=tmp_path))
    for _ in range(steps):
        await asyncio.sleep(0)
    if starting.done():
        await starting.result().close()
    else:
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await starting
    for _ in range(3):
        await asyncio.sleep(0)
    assert set(os.listdir("/proc/self/fd")) <= before


@pytest.mark.skipif(sys.platform != "linux", reason="the supervisor needs Linux")
async def test_a_supervised_server_takes_its_tree_with_it(tmp_path: Path) -> None:
    sandbox = Sandbox(tmp_path, Layer.NONE, limits=UNLIMITED)
    line = "setsid sleep 600 & echo $!; cat"
    async with await start(["sh", "-c", line], cwd=tmp_path, sandbox=sandbox) as child:
        left = int(await child.stdout.readline())
        assert Path(f"/proc/{left}").exists()
    assert not Path(f"/proc/{left}").exists()
    assert child.exit_code == -9
