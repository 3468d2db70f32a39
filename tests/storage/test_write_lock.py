from __future__ import annotations

import asyncio

import pytest

from evercontext.errors import StoreBusy, StoreProblem
from evercontext.storage.write_lock import WriteLock


async def test_one_task_writes_at_a_time() -> None:
    lock, order = WriteLock(30), list[str]()

    async def write(name: str) -> None:
        async with lock.hold():
            order.append(f"{name} in")
            await asyncio.sleep(0)
            order.append(f"{name} out")

    await asyncio.gather(write("a"), write("b"))
    assert order == ["a in", "a out", "b in", "b out"]


async def test_the_writing_task_is_told_instead_of_waiting_for_itself() -> None:
    lock = WriteLock(30)
    async with lock.hold():
        with pytest.raises(StoreProblem, match="use it, not the store"):
            async with lock.hold():
                pass
        with pytest.raises(StoreProblem, match="use it, not the store"):
            async with lock.hold_to_close():
                pass
    async with lock.hold():
        pass


async def test_another_task_gives_up_and_leaves_the_turn_whole() -> None:
    lock = WriteLock(0.01)

    async def write() -> None:
        async with lock.hold():
            pass

    async with lock.hold():
        with pytest.raises(StoreBusy):
            await asyncio.create_task(write())
    await write()


async def test_closing_waits_for_the_writer() -> None:
    lock, order = WriteLock(0.01), list[str]()

    async def close() -> None:
        async with lock.hold_to_close():
            order.append("closed")

    async with lock.hold():
        closing = asyncio.create_task(close())
        await asyncio.sleep(0.05)
        order.append("written")
    await closing
    assert order == ["written", "closed"]
