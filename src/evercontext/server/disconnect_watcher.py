"""Cancel calls whose client has disconnected."""

from __future__ import annotations

import asyncio

from evercontext.server.request_guard import Receive

WATCH_SECONDS = 0.25
"""How long a call runs, at least, before its client is watched."""


class DisconnectWatcher:
    """Watches the clients of running calls. One timer serves all: most calls end before it."""

    def __init__(self) -> None:
        self._running: set[Watch] = set()
        self._timer: asyncio.TimerHandle | None = None

    def watch(self, receive: Receive) -> Watch:
        """Cancel the task that calls this when its client disconnects."""
        watch = Watch(receive, self._running)
        self._running.add(watch)
        if self._timer is None:
            self._start_timer()
        return watch

    def _start_timer(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(WATCH_SECONDS, self._tick)

    def _tick(self) -> None:
        for watch in self._running:
            watch.tick()
        if self._running:
            self._start_timer()
        else:
            self._timer = None


class Watch:
    """Watches the client of one call."""

    def __init__(self, receive: Receive, running: set[Watch]) -> None:
        self._receive, self._running = receive, running
        self._task = asyncio.current_task()
        self._watching: asyncio.Task[None] | None = None
        self._has_ticked = False
        self.disconnected = False

    def tick(self) -> None:
        """Begin to watch at the second tick: then the call is old enough."""
        if self._has_ticked and self._watching is None:
            self._watching = asyncio.ensure_future(self._wait())
        self._has_ticked = True

    def end(self) -> None:
        """Stop watching."""
        self._running.discard(self)
        if self._watching is not None:
            self._watching.cancel()

    async def _wait(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self.disconnected = True
        if self._task is not None:
            self._task.cancel()
