"""Load an application with the first request to it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager

from evercontext.server.request_guard import App, Receive, Scope, Send

Open = Callable[[], Awaitable[AbstractAsyncContextManager[App]]]


class LazyApp:
    """Keeps an application open in a task of its own, from its first request to ``close``.

    The MCP library takes longer to import than everything else together, and many who serve
    files never call it.
    """

    def __init__(self, open_app: Open) -> None:
        self._open = open_app
        self._opened: asyncio.Future[App] | None = None
        self._keeper: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if self._opened is None:
            self._opened = asyncio.get_running_loop().create_future()
            self._keeper = asyncio.create_task(self._keep(self._opened))
            self._keeper.add_done_callback(self._tell)
        app = await asyncio.shield(self._opened)
        await app(scope, receive, send)

    async def close(self) -> None:
        """Close the application, if it was ever opened."""
        self._closing.set()
        if self._keeper is not None:
            await asyncio.wait([self._keeper])

    async def _keep(self, opened: asyncio.Future[App]) -> None:
        async with await self._open() as app:
            opened.set_result(app)
            await self._closing.wait()

    def _tell(self, keeper: asyncio.Task[None]) -> None:
        """Pass on why it could not be opened, so that nobody waits for it."""
        if self._opened is not None and not self._opened.done():
            problem = None if keeper.cancelled() else keeper.exception()
            self._opened.set_exception(problem or RuntimeError("closed while it was opening"))
