"""Watch a program that may wait forever, and look after a moment whether it does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from evercontext.errors import ProcessProblem

T = TypeVar("T")
GRACE = 0.5
"""Seconds that pass before somebody looks: nearly every call is over by then."""


async def unless_stalled(
    work: Coroutine[Any, Any, T], look: Callable[..., str | None], *arguments: Any
) -> T:
    """Await ``work``; if it takes long and ``look`` finds a pipe that it reads, stop it.

    Raises ProcessProblem then, which names the pipe. Work that ends meanwhile waits for no pipe,
    and its answer counts.
    """
    running = asyncio.ensure_future(work)
    try:
        await asyncio.wait({running}, timeout=GRACE)
        if not running.done() and (pipe := await _seen_before(running, look, *arguments)):
            raise ProcessProblem(
                f"git cannot read {pipe}: it is a pipe or a device", fix="Remove it, or put it back"
            )
        return await running
    finally:
        if not running.done():
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


async def _seen_before(
    running: asyncio.Future[T], look: Callable[..., str | None], *arguments: Any
) -> str | None:
    """What ``look`` finds, or nothing if the work ends first."""
    looking = asyncio.ensure_future(asyncio.to_thread(look, *arguments))
    try:
        both: set[asyncio.Future[Any]] = {running, looking}
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        return None if running.done() else await looking
    finally:
        looking.cancel()
