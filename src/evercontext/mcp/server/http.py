"""Serve Streamable HTTP: one POST, one response, as JSON or as a stream that begins with progress.

The stream begins only when there is progress to tell, so most responses are plain JSON.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from evercontext.domain.caller_scope import Hear
from evercontext.domain.error_codes import JSON_RPC_UNAUTHORIZED
from evercontext.errors import EverContextError
from evercontext.mcp.messages import (
    INVALID_REQUEST,
    PARSE_ERROR,
    Id,
    RpcError,
    RpcRequest,
    RpcResponse,
    encode,
    encode_error,
    parse_message,
)
from evercontext.mcp.revisions import check_envelope, http_status_of, is_stateless
from evercontext.mcp.server.client_sessions import ClientSession
from evercontext.mcp.server.dispatcher import Answer, encode_answer, rpc_error
from evercontext.mcp.server.response_stream import ResponseStream, Send

Headers = Mapping[bytes, bytes]
SendResponse = Callable[[int, bytes], Awaitable[None]]
"""Sends a status and a body as a whole response."""
_RESUMABLE = b"2025-11-25"
"""The revision whose clients know an event that only tells an id."""


class Refused(Exception):
    """A client that may not do this: the HTTP status, and the message inside JSON-RPC."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class HttpExchange:
    """One POST: its message, and its response."""

    def __init__(self, body: bytes, headers: Headers, send: Send) -> None:
        self._body, self.headers, self._send = body, headers, send
        self._id: Id = None
        self.stateless = False
        self.session: ClientSession | None = None
        self._stream: ResponseStream | None = None

    def read(self) -> RpcRequest | RpcResponse:
        """Return the message of the body; raise ``RpcError`` for one that is malformed."""
        message = parse_message(self._body)
        if isinstance(message, RpcRequest) and not message.is_notification:
            self._id = message.id
            version = self.headers.get(b"mcp-protocol-version", b"").decode("latin-1")
            self.stateless = is_stateless(message, version)
            if self.stateless:
                check_envelope(message, self.headers)
        return message

    def encode(self, request: RpcRequest, answer: Answer) -> tuple[int, bytes]:
        """Return the status and body that answer a request."""
        return 200, encode_answer(request, answer, self.stateless)

    def encode_failure(self, error: Refused | EverContextError | RpcError) -> tuple[int, bytes]:
        """Return the status and body for an error that answering raised."""
        if isinstance(error, Refused):
            unauthorized = RpcError(JSON_RPC_UNAUTHORIZED, str(error))
            return error.status, encode_error(self._id, unauthorized)
        if isinstance(error, EverContextError):
            return 200, encode_error(self._id, rpc_error(error))
        malformed = error.code in (PARSE_ERROR, INVALID_REQUEST)
        status = 400 if malformed else http_status_of(error, self.stateless)
        return status, encode_error(self._id, error)

    async def finish(self, status: int, body: bytes, send_response: SendResponse) -> None:
        """End the stream with the response, or send it alone where no stream has begun."""
        if self._stream is not None and self._stream.has_begun:
            await self._stream.finish(body)
        else:
            await send_response(status, body)

    def progress_to(self, token: str | int) -> Hear | None:
        """Return what passes progress on, where the client accepts a stream."""
        stream = self.stream()
        if stream is None:
            return None

        def pass_on(params: dict[str, Any]) -> None:
            params = {**params, "progressToken": token}
            message = encode({"method": "notifications/progress", "params": params})
            stream.put(message, optional=True)

        return pass_on

    def stream(self) -> ResponseStream | None:
        """Return the stream that the response becomes, if the client accepts one."""
        if b"text/event-stream" not in self.headers.get(b"accept", b""):
            return None
        if self._stream is None:
            self._stream = (
                self.session.open_stream(self._send)
                if self.session is not None and self.may_resume
                else ResponseStream(self._send)
            )
        return self._stream

    @property
    def may_resume(self) -> bool:
        """True if the client could come back for a stream it lost."""
        return (
            self.headers.get(b"mcp-protocol-version") == _RESUMABLE
            and b"mcp-session-id" in self.headers
        )

    @property
    def resumable(self) -> ResponseStream | None:
        """The stream that has begun, if the client can come back for it."""
        return self._stream if self._stream is not None and self._stream.is_resumable else None
