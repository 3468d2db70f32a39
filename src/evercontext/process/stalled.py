"""A program that may wait for ever: after a moment somebody looks whether it does."""

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

    Raises ProcessProblem then, which names the pipe.
    """
    running = asyncio.ensure_future(work)
    try:
        await asyncio.wait({running}, timeout=GRACE)
        if not running.done() and (pipe := await asyncio.to_thread(look, *arguments)):
            raise ProcessProblem(
                f"git cannot read {pipe}: it is a pipe or a device", fix="Remove it, or put it back"
            )
        return await running
    finally:
        if not running.done():
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
