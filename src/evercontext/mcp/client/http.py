"""Connect to a server over Streamable HTTP: a POST for every request, JSON or a stream back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from evercontext.domain.caller_scope import ClientChannel, Hear
from evercontext.errors import ServerGone, ServerProblem, ServerTimeout
from evercontext.mcp.client.event_stream import EventStream
from evercontext.mcp.client.exchange import (
    CHANGES_REQUEST,
    LONGEST_LINE,
    Exchange,
    Notified,
    UnusableMessages,
    cancellation,
    connection_closed,
    ignore_notification,
)
from evercontext.mcp.client.http1 import Link, Origin
from evercontext.mcp.messages import Params, Result, encode
from evercontext.mcp.revisions import encode_header, routing_headers

ACCEPT = "application/json, text/event-stream"
SESSION = "mcp-session-id"
_NOTIFY_SECONDS = 10.0
_STREAM_SECONDS = 1.0
_MOST_LATER = 16


class SessionExpired(ServerGone):
    """The server no longer knows our session: the request was not carried out."""


class HttpRefused(ServerProblem):
    """The server answered with a status that is an error."""

    def __init__(self, name: str, status: int) -> None:
        super().__init__(f"{name} answered with HTTP {status}")
        self.status = status


class HttpConnection:
    """The connection to one address, with the credentials of the server and no caller's."""

    def __init__(
        self,
        name: str,
        url: str,
        headers: Mapping[str, str],
        on_changed: Callable[[str], None],
        proxy: str | None = None,
        on_notified: Notified = ignore_notification,
    ) -> None:
        self._name = name
        self._exchange = Exchange(on_changed, on_notified, self._send_later)
        configured = {key.lower(): value for key, value in headers.items()}
        kind = {"accept": ACCEPT, "content-type": "application/json"}
        sent = {**configured, **kind, "accept-encoding": "identity"}
        self._origin = Origin(name, url, sent, proxy)
        self._open = True
        self._stateless = False
        self._listening: Link | None = None
        self._later_tasks: set[asyncio.Task[None]] = set()

    @property
    def unusable(self) -> UnusableMessages:
        """The messages of the server that nobody could use."""
        return self._exchange.unusable

    @property
    def open(self) -> bool:
        """False once the connection was refused or closed."""
        return self._open

    @property
    def hears_changes(self) -> bool:
        """True while the server has a stream for notifications of changes."""
        return self._listening is not None

    def use_revision(self, version: str, envelope: Params | None) -> None:
        """Send the agreed revision from now on."""
        self._origin.add("mcp-protocol-version", version)
        self._stateless = envelope is not None
        self._exchange.envelope = envelope or {}

    async def request(
        self,
        method: str,
        params: Params,
        seconds: float,
        hear: Hear | None = None,
        headers: Mapping[str, str] | None = None,
        client: ClientChannel | None = None,
    ) -> Result:
        """Send a request; its connection is closed when nobody waits for the response any more."""
        number, body, pending = self._exchange.begin(method, params, seconds, hear, client)
        post = _PostResponse(self, number)
        link: Link | None = None
        try:
            more = self._routed(method, params, headers) if self._stateless else ""
            link = await self._post(body, post, more)
            answer = await pending.response
        except ServerTimeout as late:
            self._cancel(number, link, post)
            raise ServerTimeout(f"{self._name}: {late}") from None
        except BaseException:
            self._cancel(number, link, post)
            raise
        finally:
            self._exchange.end(number)
        if not post.over:
            # A stream ends a moment after the response; only then its connection is free again.
            loop = asyncio.get_running_loop()
            loop.call_later(_STREAM_SECONDS, self._drop, link, post)
        return answer

    def _cancel(self, number: int, link: Link | None, post: _PostResponse) -> None:
        """Cancel a request: by closing its connection, and before 2026 by a message as well."""
        self._drop(link, post)
        if not self._stateless and self._open and not post.over:
            self._send_later(cancellation(number))

    def _drop(self, link: Link | None, post: _PostResponse) -> None:
        if link is not None and not post.over:
            self._origin.drop(link)

    async def notify(self, method: str, params: Params) -> None:
        """Send a notification."""
        message = encode({"method": method, "params": self._exchange.with_envelope(params)})
        post = _PostResponse(self, None)
        link: Link | None = None
        try:
            async with asyncio.timeout(_NOTIFY_SECONDS):
                link = await self._post(message, post, "")
                await post.wait()
        except TimeoutError:
            raise ServerTimeout(f"{self._name} did not take a message") from None
        finally:
            self._drop(link, post)

    async def subscribe(self) -> None:
        """Open the stream for notifications of changes; most servers have none."""
        stream = _PostResponse(self, None, is_stream=True)
        try:
            if self._stateless:
                params = self._exchange.with_envelope({"notifications": CHANGES_REQUEST})
                message = encode({"id": 0, "method": "subscriptions/listen", "params": params})
                more = "mcp-method: subscriptions/listen\r\n"
                self._listening = await self._origin.post(message, stream, more)
            else:
                self._listening = await self._origin.get(stream)
        except ServerProblem:
            self._listening = None

    async def close(self) -> None:
        """Close the connections."""
        self._open = False
        self._exchange.fail(connection_closed(self._name))
        for task in self._later_tasks:
            task.cancel()
        self._origin.close()

    def receive(self, message: bytes, number: int | None = None) -> None:
        """Take a message that arrived; a request in it is answered by a POST of its own."""
        reply = self._exchange.receive(message, number)
        if reply is not None and self._open:
            self._send_later(reply)

    def ended(self, number: int | None, problem: ServerProblem | None) -> None:
        """Fail a request whose response ended without a result."""
        if number is None:
            return
        if isinstance(problem, ServerGone):
            problem = type(problem)(f"{self._name} gave no answer: the connection closed")
        self._exchange.fail_request(
            number, problem or ServerProblem(f"{self._name} gave no answer")
        )

    def refused(self, status: int) -> ServerProblem:
        """Return the problem that a status means."""
        if status == 404 and self._origin.has(SESSION):
            self._open = False
            return SessionExpired(f"{self._name} has forgotten the session")
        return HttpRefused(self._name, status)

    def keep_session(self, session: str) -> None:
        """Keep the session id that the server issued."""
        if not self._origin.has(SESSION) and session.isprintable() and len(session) <= 512:
            self._origin.add(SESSION, session)

    def stream_ended(self) -> None:
        """Note that the stream of notifications ended."""
        self._listening = None

    @property
    def name(self) -> str:
        """The server's name, for messages."""
        return self._name

    async def _post(self, body: bytes, post: _PostResponse, more: str) -> Link:
        try:
            return await self._origin.post(body, post, more)
        except ServerGone:
            self._open = False
            raise

    def _send_later(self, message: bytes) -> None:
        if len(self._later_tasks) < _MOST_LATER:
            task = asyncio.ensure_future(self._send(message))
            self._later_tasks.add(task)
            task.add_done_callback(self._later_tasks.discard)

    async def _send(self, reply: bytes) -> None:
        post = _PostResponse(self, None)
        try:
            async with asyncio.timeout(_NOTIFY_SECONDS):
                await self._origin.post(reply, post)
                await post.wait()
        except (ServerProblem, TimeoutError):
            return

    def _routed(self, method: str, params: Params, headers: Mapping[str, str] | None) -> str:
        """Return the header lines of a stateless request."""
        lines = {**routing_headers(method, params), **(headers or {})}
        return "".join(f"{name}: {encode_header(value)}\r\n" for name, value in lines.items())


class _PostResponse:
    """Reads the response to one POST: a message, a stream of messages, or an error."""

    def __init__(
        self, connection: HttpConnection, number: int | None, *, is_stream: bool = False
    ) -> None:
        self._connection, self._number, self._is_stream = connection, number, is_stream
        self._status = 0
        self._stream: EventStream | None = None
        self._body = bytearray()
        self._done: asyncio.Future[None] | None = None
        self._problem: ServerProblem | None = None
        self.over = False

    def head(self, status: int, headers: Mapping[str, str]) -> None:
        """Learn whether the response is a message, a stream or an error."""
        self._status = status
        session = headers.get(SESSION)
        if session and status < 300:
            self._connection.keep_session(session)
        if headers.get("content-encoding", "identity") != "identity":
            raise ServerProblem(f"{self._connection.name} compressed its answer, unasked")
        if status < 300 and headers.get("content-type", "").startswith("text/event-stream"):
            self._stream = EventStream(LONGEST_LINE)

    def body(self, data: bytes) -> None:
        """Take a part of the body."""
        if self._stream is not None:
            try:
                for _, message in self._stream.feed(data):
                    self._connection.receive(message, self._number)
            except ServerProblem as problem:
                raise ServerProblem(f"{self._connection.name} sent {problem}") from None
            return
        self._body += data
        if len(self._body) > LONGEST_LINE:
            raise ServerProblem(f"{self._connection.name} sent more than {LONGEST_LINE} bytes")

    def end(self, problem: ServerProblem | None) -> None:
        """Hand over the message, or the problem."""
        self.over = True
        if self._is_stream:
            self._connection.stream_ended()
            return
        if self._status >= 300:
            # The body may hold an error of JSON-RPC, which says more than the status.
            if self._number is not None and self._body.startswith(b"{"):
                self._connection.receive(bytes(self._body))
            problem = problem or self._connection.refused(self._status)
        elif self._stream is None and self._number is not None and problem is None:
            self._connection.receive(bytes(self._body))
        self._connection.ended(self._number, problem)
        self._problem = problem
        if self._done is not None and not self._done.done():
            self._done.set_result(None)

    async def wait(self) -> None:
        """Wait for the end of the response; raise its problem if it has one."""
        if not self.over:
            self._done = asyncio.get_running_loop().create_future()
            await self._done
        if self._problem is not None:
            raise self._problem
