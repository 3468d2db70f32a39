from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from evercontext.errors import PathRefused, StoreBusy
from evercontext.index.lease import LOCK, IndexLease

_HOLDER = """
import asyncio, sys
from pathlib import Path
from evercontext.index.lease import IndexLease
async def main():
    async with IndexLease(Path(sys.argv[1])).hold():
        print("held", flush=True)
        await asyncio.sleep(60)
asyncio.run(main())
"""


@pytest.mark.case(128)
async def test_a_killed_owner_gives_its_lease_back_at_once(tmp_path: Path) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", _HOLDER, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    mine = IndexLease(tmp_path)
    with pytest.raises(StoreBusy, match="another process"):
        async with mine.hold():
            pass
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    holder.stdout.close()
    async with mine.hold():
        assert (tmp_path / LOCK).exists()


async def test_the_patient_get_it_when_it_is_free(tmp_path: Path) -> None:
    first, second, order = IndexLease(tmp_path), IndexLease(tmp_path), []

    async def wait() -> None:
        async with second.hold(patience=30):
            order.append("second")

    async with first.hold(), first.hold():
        task = asyncio.create_task(wait())
        await asyncio.sleep(0.2)
        order.append("first")
    await task
    assert order == ["first", "second"]


async def test_a_link_in_its_place_is_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    (tmp_path / LOCK).symlink_to(outside)
    with pytest.raises(PathRefused, match="symlink"):
        async with IndexLease(tmp_path).hold():
            pass
    assert not outside.exists()
