"""Looks whether a client is still there, once its call takes a while."""

from __future__ import annotations

import asyncio

from evercontext.server.asgi import Receive

WATCH_SECONDS = 0.25
"""How long a call may take, at least, before its client is watched for going away."""


class Watches:
    """The calls that run. One clock for all of them: most end before it strikes."""

    def __init__(self) -> None:
        self._running: set[Watch] = set()
        self._clock: asyncio.TimerHandle | None = None

    def begin(self, receive: Receive) -> Watch:
        """Watch the client of the task that calls this."""
        watch = Watch(receive, self._running)
        self._running.add(watch)
        if self._clock is None:
            self._wind()
        return watch

    def _wind(self) -> None:
        self._clock = asyncio.get_running_loop().call_later(WATCH_SECONDS, self._strike)

    def _strike(self) -> None:
        for watch in self._running:
            watch.strike()
        if self._running:
            self._wind()
        else:
            self._clock = None


class Watch:
    """Cancels the task it was made in when the client goes away."""

    def __init__(self, receive: Receive, running: set[Watch]) -> None:
        self._receive, self._running = receive, running
        self._task = asyncio.current_task()
        self._watching: asyncio.Task[None] | None = None
        self._old = False
        self.gone = False

    def strike(self) -> None:
        """Begin to look at the second strike: then the call is old enough."""
        if self._old and self._watching is None:
            self._watching = asyncio.ensure_future(self._wait())
        self._old = True

    def end(self) -> None:
        """Look no more."""
        self._running.discard(self)
        if self._watching is not None:
            self._watching.cancel()

    async def _wait(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self.gone = True
        if self._task is not None:
            self._task.cancel()
