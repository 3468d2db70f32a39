"""A response that became a stream of events, which a client can take up again where it lost it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from evercontext.mcp.messages import one_line

MOST_PENDING_PROGRESS = 64
"""Progress messages that wait for a slow client; later ones are left out."""
RETRY_MS = 500
"""After how long a client that lost the stream comes back for the rest."""
MOST_EVENTS, LARGEST_EVENTS = 256, 4 * 1024 * 1024
"""Events, and their bytes, that are stored for a client that comes back."""
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
_HEADERS = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-content-type-options", b"nosniff"),
]


class ResponseStream:
    """Sends messages as they come, and ends with the response.

    With a ``name`` every event has an id, and is stored until the client has had time to come
    back for it; without one, what was sent is forgotten.
    """

    def __init__(self, send: Send, name: str = "") -> None:
        self._send: Send | None = send
        self._name = name
        self._events: deque[tuple[int, bytes]] = deque()
        self._last = self._sent = 0
        self._writing: asyncio.Task[None] | None = None
        self._head_sent = self._is_finished = False
        self._over = asyncio.Event()

    @property
    def has_begun(self) -> bool:
        """True once there was something to send."""
        return self._last > 0 or self._head_sent

    @property
    def is_resumable(self) -> bool:
        """True if a client that lost the stream can come back for the rest."""
        return bool(self._name) and self.has_begun

    @property
    def is_attached(self) -> bool:
        """True while a client reads the stream."""
        return self._send is not None

    def put(self, message: bytes, *, optional: bool = False) -> None:
        """Send a message; one that is optional is left out where many wait already."""
        if self._is_finished or (optional and self._waiting() >= MOST_PENDING_PROGRESS):
            return
        self._last += 1
        self._events.append((self._last, message))
        self._forget_oldest()
        self._start()

    def begin(self) -> None:
        """Send the head now, because the stream itself is what the client asked for."""
        self._start()

    async def finish(self, response: bytes = b"") -> None:
        """Send the response as the last event, and end the stream."""
        if response:
            self.put(response)
        self._is_finished = True
        self._start()
        assert self._writing is not None
        await self._writing

    def detach(self) -> None:
        """Store what comes from now on: the client has lost the stream."""
        self._send = None

    async def resume(self, send: Send, after: int) -> None:
        """Send what came after an event, and go on until the stream ends."""
        if self._writing is not None:
            await self._writing
        self._send, self._sent, self._head_sent = send, after, False
        self._writing = asyncio.ensure_future(self._write())
        await self._writing
        await self._over.wait()

    def _start(self) -> None:
        if self._writing is None or self._writing.done():
            self._writing = asyncio.ensure_future(self._write())

    async def _write(self) -> None:
        if (send := self._send) is None:
            return
        if not self._head_sent:
            self._head_sent = True
            await send({"type": "http.response.start", "status": 200, "headers": list(_HEADERS)})
            if self._name:
                # An id before anything else: a client that loses the stream at once has one.
                first = f"id: {self._name}-{self._sent}\nretry: {RETRY_MS}\ndata: \n\n".encode()
                await send({"type": "http.response.body", "body": first, "more_body": True})
        while waiting := [event for event in self._events if event[0] > self._sent]:
            part = b"".join(self._event(number, message) for number, message in waiting)
            self._sent = waiting[-1][0]
            await send({"type": "http.response.body", "body": part, "more_body": True})
            if not self._name:
                self._events.clear()
        if self._is_finished:
            await send({"type": "http.response.body", "body": b""})
            self._over.set()

    def _waiting(self) -> int:
        return sum(number > self._sent for number, _ in self._events)

    def _forget_oldest(self) -> None:
        size = sum(len(message) for _, message in self._events)
        while len(self._events) > MOST_EVENTS or (size > LARGEST_EVENTS and len(self._events) > 1):
            size -= len(self._events.popleft()[1])

    def _event(self, number: int, message: bytes) -> bytes:
        id = f"id: {self._name}-{number}\n".encode() if self._name else b""
        return id + b"event: message\ndata: " + one_line(message) + b"\n\n"
