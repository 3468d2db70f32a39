"""Bound the sessions of MCP clients: at the limit the one that was idle longest ends."""

from __future__ import annotations

import itertools
from collections import Counter

from evercontext.server.request_guard import App, Message, Receive, Scope, Send

_SESSION = b"mcp-session-id"


class SessionLimit:
    """Makes room for a new session by ending an old one, as its client would.

    Anybody who can reach a server without a token can open sessions. Refusing new ones would lock
    out everybody else for as long as the old ones last; a client whose session ended opens
    another one, as the protocol says.
    """

    def __init__(self, app: App, most: int) -> None:
        self._app, self._most = app, most
        self._last_use: dict[bytes, int] = {}
        self._busy: Counter[bytes] = Counter()
        self._uses = itertools.count()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        session = dict(scope["headers"]).get(_SESSION)
        if session is None:
            await self._make_room(scope)
        elif session in self._last_use:
            self._last_use[session] = next(self._uses)
            self._busy[session] += 1

        async def watch(message: Message) -> None:
            opened = dict(message.get("headers", ())).get(_SESSION)
            if opened and message["type"] == "http.response.start" and message["status"] < 400:
                self._last_use[opened] = next(self._uses)
            await send(message)

        try:
            await self._app(scope, receive, watch)
        finally:
            if session is not None and self._busy[session] > 0:
                self._busy[session] -= 1
            if scope["method"] == "DELETE" and session is not None:
                self._last_use.pop(session, None)

    async def _make_room(self, scope: Scope) -> None:
        while len(self._last_use) >= self._most:
            idle = [session for session in self._last_use if not self._busy[session]]
            if not idle:
                return
            oldest = min(idle, key=self._last_use.__getitem__)
            del self._last_use[oldest], self._busy[oldest]
            await self._end(oldest, scope)

    async def _end(self, session: bytes, scope: Scope) -> None:
        """End a session by the request with which clients do; one that is gone already is fine."""
        hosts = [header for header in scope["headers"] if header[0] == b"host"]
        headers = [*hosts, (_SESSION, session), (b"content-length", b"0")]

        async def receive() -> Message:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: Message) -> None:
            pass

        await self._app({**scope, "method": "DELETE", "headers": headers}, receive, send)
