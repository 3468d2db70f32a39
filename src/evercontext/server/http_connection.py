"""Read one HTTP connection: a request head in time and in bounds, or none."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable
from typing import Any

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from evercontext.errors import BadRequest, Busy, EverContextError, ForeignOrigin, Unauthorized
from evercontext.server.peer_user import is_other_user
from evercontext.server.request_cancellation import DISCONNECT, Disconnect
from evercontext.server.request_guard import DRAIN_SECONDS, DRAINED
from evercontext.server.responses import error_response

HEAD_SECONDS = 8.0
HEAD_BYTES = 65_536

OnRefused = Callable[[str, int], None]
"""Told the trace id and the status of a request that never became one."""


class IncomingConnection(HttpToolsProtocol):
    """uvicorn's fast protocol with what it lacks: limits on time and size before a request is one.

    A client that sends its head byte by byte would otherwise hold a connection for ever, and one
    that never ends it would fill the memory.
    """

    on_refused: OnRefused = staticmethod(lambda trace_id, status: None)
    token_needed = False

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._deadline: asyncio.TimerHandle | None = None
        self._head_bytes = 0
        self._drained: int | None = None
        self._requests: list[Disconnect] = []
        self._in_body = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the clock: nothing was asked yet."""
        super().connection_made(transport)
        if len(self.connections) > (self.limit_concurrency or len(self.connections)):
            self._refuse(Busy("too many connections; try again"))
            return
        self._wait_for_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the clock, and the work that nobody waits for any more."""
        self._stop_clock()
        super().connection_lost(exc)
        for request in self._requests:
            request.disconnected()

    def on_message_begin(self) -> None:
        """A request begins: it can learn that its client went away."""
        super().on_message_begin()
        self._in_body = False
        self._requests = [request for request in self._requests if request.is_working]
        self._requests.append(Disconnect())
        self.scope[DISCONNECT] = self._requests[-1]  # type: ignore[literal-required]

    def data_received(self, data: bytes) -> None:
        """Parse what came; a head that does not end is not collected."""
        if self._drained is not None:
            self._drain(len(data))
            return
        if self._head_bytes == 0 and self.cycle is None and self._is_foreign():
            self._refuse(
                ForeignOrigin(
                    "this server is for the user who started it", fix="Set EC_TOKEN and send it"
                )
            )
            return
        if self._awaits_head():
            self._head_bytes += len(data)
            self._wait_for_head()
        super().data_received(data)
        if self._awaits_head() and self._head_bytes > HEAD_BYTES and self._drained is None:
            # No token of ours is that long, so whoever sends one is not let in.
            self._refuse(
                Unauthorized("a token is needed", fix="Send Authorization: Bearer <EC_TOKEN>")
                if self.token_needed
                else BadRequest("the request's head is too large")
            )

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header; one that comes behind the body was checked by nobody and is dropped."""
        if not self._in_body:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """The head is there: from here on the body's own limits hold."""
        self._stop_clock()
        self._head_bytes = 0
        self._in_body = True
        if not self.url.startswith(b"/"):
            self._believe_target()
        super().on_headers_complete()

    def _believe_target(self) -> None:
        """Let the host of a whole address stand for the Host header, as HTTP says."""
        target = httptools.parse_url(self.url)
        if target.host:
            port = b":%d" % target.port if target.port else b""
            host = b"[%s]" % target.host if b":" in target.host else target.host
            self.headers[:] = [h for h in self.headers if h[0] != b"host"]
            self.headers.append((b"host", host + port))

    def send_400_response(self, msg: str) -> None:
        """Answer what is not HTTP in the same shape as everything else."""
        self._refuse(BadRequest("this is not a valid HTTP request"))

    def _is_foreign(self) -> bool:
        """True for another user of this machine at a server that asks for no token."""
        if self.token_needed or not self.client or not self.server:
            return False
        return self.server[1] is not None and is_other_user(self.client, self.server)  # type: ignore[arg-type]

    def _awaits_head(self) -> bool:
        return self.cycle is None or (self.cycle.response_complete and not self.pipeline)

    def _wait_for_head(self) -> None:
        if self._deadline is None:
            self._deadline = self.loop.call_later(HEAD_SECONDS, self._too_late)

    def _stop_clock(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _too_late(self) -> None:
        self._deadline = None
        if not self.transport.is_closing():
            self.transport.close()

    def _refuse(self, error: EverContextError) -> None:
        """Answer, then let a little more pass unread: closing at once would lose the answer."""
        self._stop_clock()
        self._drained = 0
        self._deadline = self.loop.call_later(DRAIN_SECONDS, self._too_late)
        if self.cycle is not None and not self.cycle.response_complete:
            if not self.cycle.more_body:
                # A whole request is being answered: that answer comes first, and is the last.
                self._stop_clock()
                self.cycle.keep_alive = False
                return
            # The request broke off in its body: nobody is to answer it but us.
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        trace_id = str(uuid.uuid4())
        head, body = error_response(error, trace_id, close=True)
        head["headers"].append((b"x-trace-id", trace_id.encode()))
        lines = [b"%s: %s" % header for header in head["headers"]]
        status = f"HTTP/1.1 {head['status']} Refused".encode()
        self.transport.write(b"\r\n".join([status, *lines, b"", body]))
        type(self).on_refused(trace_id, head["status"])
        self.flow.resume_reading()

    def _drain(self, size: int) -> None:
        self._drained = (self._drained or 0) + size
        if self._drained > DRAINED and not self.transport.is_closing():
            self.transport.close()
