"""Progress on its way to a client: the answer becomes a stream at the first word of it."""

from __future__ import annotations

import asyncio
from typing import Any

from evercontext.server.asgi import Send
from evercontext.server.responses import encode, start

MOST_PENDING = 64
"""Messages that wait for a slow client; more are left out, for progress is only the last of it."""
_HEADERS = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-content-type-options", b"nosniff"),
]


class Telling:
    """One answer: plain JSON, or a stream if something is to be told before it."""

    def __init__(self, send: Send, token: str | int | None) -> None:
        self._send, self._token = send, token
        self._pending: list[bytes] = []
        self._writing: asyncio.Task[None] | None = None
        self._started = False

    @property
    def wanted(self) -> bool:
        """True if the client asked to hear of progress and can."""
        return self._token is not None

    def hear(self, params: dict[str, Any]) -> None:
        """Pass progress on, under the client's own token."""
        if len(self._pending) >= MOST_PENDING:
            return
        told = {**params, "progressToken": self._token}
        message = {"jsonrpc": "2.0", "method": "notifications/progress", "params": told}
        self._pending.append(_event(encode(message)))
        if self._writing is None or self._writing.done():
            self._writing = asyncio.ensure_future(self._write())

    async def finish(self, status: int, body: bytes, extra: list[tuple[bytes, bytes]]) -> None:
        """Send the answer itself."""
        if self._writing is None:
            await self._send(start(status, body, extra))
            await self._send({"type": "http.response.body", "body": body})
            return
        await self._writing
        await self._send({"type": "http.response.body", "body": _event(body)})

    async def _write(self) -> None:
        if not self._started:
            self._started = True
            head = {"type": "http.response.start", "status": 200, "headers": list(_HEADERS)}
            await self._send(head)
        while self._pending:
            part, self._pending = b"".join(self._pending), []
            await self._send({"type": "http.response.body", "body": part, "more_body": True})


def _event(message: bytes) -> bytes:
    # In JSON a line can only end between values, where a space says the same.
    line = message.replace(b"\r", b" ").replace(b"\n", b" ")
    return b"event: message\ndata: " + line + b"\n\n"
