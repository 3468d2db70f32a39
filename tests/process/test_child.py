"""A long-lived child with pipes."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from evercontext.process.child import start
from evercontext.process.limits import UNLIMITED
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


@pytest.mark.skipif(sys.platform != "linux", reason="the supervisor needs Linux")
async def test_a_supervised_server_takes_its_tree_with_it(tmp_path: Path) -> None:
    sandbox = Sandbox(tmp_path, Layer.NONE, limits=UNLIMITED)
    line = "setsid sleep 600 & echo $!; cat"
    async with await start(["sh", "-c", line], cwd=tmp_path, sandbox=sandbox) as child:
        left = int(await child.stdout.readline())
        assert Path(f"/proc/{left}").exists()
    assert not Path(f"/proc/{left}").exists()
    assert child.exit_code == -9
