"""Read the stream of another model, and close it in every case."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from evercontext.domain.model import Delta, Model, Request


@asynccontextmanager
async def open_stream(model: Model, request: Request) -> AsyncIterator[AsyncIterator[Delta]]:
    """Open ``model.stream``; a reader that leaves early must not leave the connection open."""
    stream = model.stream(request)
    try:
        yield stream
    finally:
        close = getattr(stream, "aclose", None)
        if close is not None:
            await close()
