from __future__ import annotations

import asyncio
import subprocess
import sys
import threading

import pytest

from evercontext.errors import Busy
from evercontext.process.worker_threads import Abandoned, Stop, Workers


async def test_work_that_was_not_begun_never_is_and_work_that_was_is_told() -> None:
    """X10: an abandoned search stops, and one that waits for a thread never starts."""
    workers, begun = Workers("test", threads=1, waiting=8), threading.Event()
    done: list[str] = []
    stop, ended = Stop(), threading.Event()

    def endless() -> None:
        begun.set()
        try:
            while True:
                stop.check()
        except Abandoned:
            ended.set()
            raise

    running = asyncio.create_task(workers.run(endless, stop=stop))
    waiting = asyncio.create_task(workers.run(done.append, "waited"))
    await asyncio.to_thread(begun.wait)
    waiting.cancel()
    running.cancel()
    await asyncio.gather(running, waiting, return_exceptions=True)
    assert await asyncio.to_thread(ended.wait, 60)
    await workers.run(done.append, "after")
    assert done == ["after"]
    workers.close()


async def test_a_crowd_is_sent_away_until_there_is_room_again() -> None:
    workers, go = Workers("test", threads=1, waiting=2), threading.Event()
    jobs = [asyncio.create_task(workers.run(go.wait)) for _ in range(3)]
    await asyncio.sleep(0)
    with pytest.raises(Busy, match="too much is waiting here already"):
        await workers.run(go.wait)
    go.set()
    assert await asyncio.gather(*jobs) == [True, True, True]
    while not await _accepted(workers):
        await asyncio.sleep(0)
    workers.close()


async def _accepted(workers: Workers) -> bool:
    try:
        return bool(await workers.run(lambda: True))
    except Busy:
        return False


async def test_what_goes_wrong_belongs_to_who_waits() -> None:
    workers = Workers("test", threads=2, waiting=0)
    with pytest.raises(ZeroDivisionError):
        await workers.run(lambda: 1 // 0)
    assert await workers.run(int, "12", base=8) == 10
    workers.close()
    with pytest.raises(RuntimeError, match="after shutdown"):
        await workers.run(int)


def test_no_thread_keeps_the_process_from_ending() -> None:
    """A read that hangs in a thread: the interpreter would wait for it for ever."""
    program = """
import asyncio, threading
from evercontext.process.worker_threads import DaemonPool, Workers

async def main():
    asyncio.get_running_loop().set_default_executor(DaemonPool())
    hangs = threading.Event()
    asyncio.ensure_future(asyncio.to_thread(hangs.wait))
    asyncio.ensure_future(Workers("test", 1, 1).run(hangs.wait))
    await asyncio.sleep(0.1)

asyncio.run(main())
print("over")
"""
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    assert ended.stdout == "over\n"
