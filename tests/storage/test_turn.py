from __future__ import annotations

import asyncio

import pytest

from evercontext.errors import StoreBusy, StoreProblem
from evercontext.storage.turn import WritersTurn


async def test_one_task_writes_at_a_time() -> None:
    turn, order = WritersTurn(30), list[str]()

    async def write(name: str) -> None:
        async with turn.taken():
            order.append(f"{name} in")
            await asyncio.sleep(0)
            order.append(f"{name} out")

    await asyncio.gather(write("a"), write("b"))
    assert order == ["a in", "a out", "b in", "b out"]


async def test_the_writing_task_is_told_instead_of_waiting_for_itself() -> None:
    turn = WritersTurn(30)
    async with turn.taken():
        with pytest.raises(StoreProblem, match="use it, not the store"):
            async with turn.taken():
                pass
        with pytest.raises(StoreProblem, match="use it, not the store"):
            async with turn.last():
                pass
    async with turn.taken():
        pass


async def test_another_task_gives_up_and_leaves_the_turn_whole() -> None:
    turn = WritersTurn(0.01)

    async def write() -> None:
        async with turn.taken():
            pass

    async with turn.taken():
        with pytest.raises(StoreBusy):
            await asyncio.create_task(write())
    await write()


async def test_closing_waits_for_the_writer() -> None:
    turn, order = WritersTurn(0.01), list[str]()

    async def close() -> None:
        async with turn.last():
            order.append("closed")

    async with turn.taken():
        closing = asyncio.create_task(close())
        await asyncio.sleep(0.05)
        order.append("written")
    await closing
    assert order == ["written", "closed"]
