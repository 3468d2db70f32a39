"""Serve Streamable HTTP: one POST, one response, as JSON or as a stream that begins with progress.

The stream begins only when there is progress to tell, so most responses are plain JSON.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any

from evercontext.domain.caller_scope import Hear
from evercontext.domain.error_codes import JSON_RPC_UNAUTHORIZED
from evercontext.errors import EverContextError
from evercontext.mcp.messages import (
    INVALID_REQUEST,
    PARSE_ERROR,
    Id,
    Request,
    RpcError,
    encode,
    encode_error,
    one_line,
    parse_request,
)
from evercontext.mcp.revisions import check_envelope, http_status_of, is_stateless
from evercontext.mcp.server.dispatcher import Answer, encode_answer, rpc_error

MOST_PENDING_PROGRESS = 64
"""Progress messages that wait for a slow client; later ones are left out."""
Headers = Mapping[bytes, bytes]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
SendResponse = Callable[[int, bytes], Awaitable[None]]
"""Sends a status and a body as a whole response."""
_STREAM_HEADERS = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-content-type-options", b"nosniff"),
]


class Refused(Exception):
    """A client that may not do this: the HTTP status, and the message inside JSON-RPC."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class HttpExchange:
    """One POST: parses the body, and sends the response."""

    def __init__(self, body: bytes, headers: Headers, send: Send) -> None:
        self._body, self.headers, self._send = body, headers, send
        self.stateless = False
        self._progress: ProgressStream | None = None

    async def serve(
        self,
        answer: Callable[[Request], Awaitable[Answer]],
        notified: Callable[[Request], Awaitable[None]],
        send_response: SendResponse,
    ) -> None:
        """Answer a request, or take a notification."""
        status, body = await self._respond(answer, notified)
        if self._progress is not None and self._progress.has_begun:
            await self._progress.finish(body)
        else:
            await send_response(status, body)

    def progress_to(self, token: str | int) -> Hear | None:
        """Return what passes progress on, where the client accepts a stream."""
        if b"text/event-stream" not in self.headers.get(b"accept", b""):
            return None
        self._progress = ProgressStream(self._send, token)
        return self._progress.pass_on

    async def _respond(
        self,
        answer: Callable[[Request], Awaitable[Answer]],
        notified: Callable[[Request], Awaitable[None]],
    ) -> tuple[int, bytes]:
        id: Id = None
        try:
            request = parse_request(self._body)
            if request is None:
                return 202, b""
            id = request.id
            if request.is_notification:
                await notified(request)
                return 202, b""
            version = self.headers.get(b"mcp-protocol-version", b"").decode("latin-1")
            self.stateless = is_stateless(request, version)
            if self.stateless:
                check_envelope(request, self.headers)
            return 200, encode_answer(request, await answer(request), self.stateless)
        except Refused as refusal:
            unauthorized = RpcError(JSON_RPC_UNAUTHORIZED, str(refusal))
            return refusal.status, encode_error(id, unauthorized)
        except EverContextError as error:
            return 200, encode_error(id, rpc_error(error))
        except RpcError as error:
            malformed = error.code in (PARSE_ERROR, INVALID_REQUEST)
            status = 400 if malformed else http_status_of(error, self.stateless)
            return status, encode_error(id, error)


class ProgressStream:
    """A response that became a stream, because there was progress before the result."""

    def __init__(self, send: Send, token: str | int) -> None:
        self._send, self._token = send, token
        self._pending: list[bytes] = []
        self._writing: asyncio.Task[None] | None = None
        self._head_sent = False

    @property
    def has_begun(self) -> bool:
        """True once there was progress to tell."""
        return self._writing is not None

    def pass_on(self, params: dict[str, Any]) -> None:
        """Send progress under the client's own token."""
        if len(self._pending) >= MOST_PENDING_PROGRESS:
            return
        params = {**params, "progressToken": self._token}
        message = encode({"method": "notifications/progress", "params": params})
        self._pending.append(_event(message))
        if self._writing is None or self._writing.done():
            self._writing = asyncio.ensure_future(self._write())

    async def finish(self, body: bytes) -> None:
        """Send the response itself, as the last event."""
        assert self._writing is not None
        await self._writing
        await self._send({"type": "http.response.body", "body": _event(body)})

    async def _write(self) -> None:
        if not self._head_sent:
            self._head_sent = True
            head = {"type": "http.response.start", "status": 200, "headers": list(_STREAM_HEADERS)}
            await self._send(head)
        while self._pending:
            part, self._pending = b"".join(self._pending), []
            await self._send({"type": "http.response.body", "body": part, "more_body": True})


def _event(message: bytes) -> bytes:
    return b"event: message\ndata: " + one_line(message) + b"\n\n"
