"""Looks whether a client is still there, once its call takes a while."""

from __future__ import annotations

import asyncio

from evercontext.server.asgi import Receive

WATCH_SECONDS = 0.25
"""How long a call may take before its client is watched for going away."""


class Watch:
    """Cancels the task it was made in when the client goes away."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._task = asyncio.current_task()
        self._watching: asyncio.Task[None] | None = None
        self.gone = False
        self._timer = asyncio.get_running_loop().call_later(WATCH_SECONDS, self._begin)

    def end(self) -> None:
        """Look no more."""
        self._timer.cancel()
        if self._watching is not None:
            self._watching.cancel()

    def _begin(self) -> None:
        self._watching = asyncio.ensure_future(self._wait())

    async def _wait(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self.gone = True
        if self._task is not None:
            self._task.cancel()
