"""Connect to a server over the transport before Streamable HTTP: one stream, and POSTs beside."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from urllib.parse import urljoin, urlsplit

from evercontext.domain.caller_scope import ClientChannel, Hear
from evercontext.errors import ServerProblem, ServerTimeout
from evercontext.mcp.client.event_stream import EventStream
from evercontext.mcp.client.exchange import (
    LONGEST_LINE,
    Exchange,
    Notified,
    UnusableMessages,
    cancellation,
    connection_closed,
    discard,
    ignore_notification,
)
from evercontext.mcp.client.http1 import Link, Origin
from evercontext.mcp.messages import Params, Result, encode

_SECONDS = 10.0


class SseConnection:
    """The stream, and the address to post to. Made by ``SseConnection.start``."""

    def __init__(
        self,
        name: str,
        url: str,
        headers: Mapping[str, str],
        on_changed: Callable[[str], None],
        proxy: str | None = None,
        on_notified: Notified = ignore_notification,
    ) -> None:
        self._name, self._url = name, url
        self._headers = {key.lower(): value for key, value in headers.items()}
        self._exchange = Exchange(on_changed, on_notified, self._send_later)
        self._events = EventStream(LONGEST_LINE)
        accept = {**self._headers, "accept": "text/event-stream"}
        self._stream = Origin(name, url, accept, proxy)
        self._post: Origin | None = None
        self._address: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._open = True
        self._replies: set[asyncio.Task[None]] = set()
        self._posted: set[_Posted] = set()

    @classmethod
    async def start(
        cls,
        name: str,
        url: str,
        headers: Mapping[str, str],
        on_changed: Callable[[str], None],
        proxy: str | None = None,
        on_notified: Notified = ignore_notification,
    ) -> SseConnection:
        """Open the stream and wait for the address to post to."""
        connection = cls(name, url, headers, on_changed, proxy, on_notified)
        try:
            async with asyncio.timeout(_SECONDS):
                await connection._stream.get(connection)
                address = await connection._address
        except TimeoutError:
            await connection.close()
            raise ServerTimeout(f"{name} did not say where to post") from None
        except BaseException:
            await connection.close()
            raise
        kind = {"content-type": "application/json"}
        connection._post = Origin(name, address, {**connection._headers, **kind}, proxy)
        return connection

    @property
    def unusable(self) -> UnusableMessages:
        """The messages of the server that nobody could use."""
        return self._exchange.unusable

    @property
    def open(self) -> bool:
        """False once the stream ended."""
        return self._open

    @property
    def hears_changes(self) -> bool:
        """True: the stream brings every notification."""
        return True

    def use_revision(self, version: str, envelope: Params | None) -> None:
        """Send the agreed revision from now on."""
        if self._post is not None:
            self._post.add("mcp-protocol-version", version)

    async def subscribe(self) -> None:
        """Do nothing: the stream is open."""

    async def request(
        self,
        method: str,
        params: Params,
        seconds: float,
        hear: Hear | None = None,
        headers: Mapping[str, str] | None = None,
        client: ClientChannel | None = None,
    ) -> Result:
        """Send a request; it is cancelled at the server when nobody waits for it any more."""
        number, body, pending = self._exchange.begin(method, params, seconds, hear, client)
        try:
            await self._send(body)
            return await pending.response
        except (ServerTimeout, asyncio.CancelledError) as late:
            self._send_later(cancellation(number))
            if isinstance(late, ServerTimeout):
                raise ServerTimeout(f"{self._name}: {late}") from None
            raise
        finally:
            self._exchange.end(number)

    async def notify(self, method: str, params: Params) -> None:
        """Send a notification."""
        await self._send(encode({"method": method, "params": params}))

    async def close(self) -> None:
        """End the stream."""
        self._lose(connection_closed(self._name))
        for task in self._replies:
            task.cancel()
        self._stream.close()

    def head(self, status: int, headers: Mapping[str, str]) -> None:
        """Check the head of the stream."""
        if status != 200:
            raise ServerProblem(f"{self._name} answered with HTTP {status}")
        if not headers.get("content-type", "").startswith("text/event-stream"):
            raise ServerProblem(f"{self._name} has no stream of events at this address")

    def body(self, data: bytes) -> None:
        """Take a part of the stream."""
        for event, message in self._events.feed(data):
            if event == "endpoint":
                self._take_address(message.decode("utf-8", "replace"))
                continue
            reply = self._exchange.receive(message)
            if reply is not None:
                self._send_later(reply)

    def end(self, problem: ServerProblem | None) -> None:
        """Fail what is pending, because the stream ended."""
        self._lose(problem or connection_closed(self._name))

    def _take_address(self, place: str) -> None:
        """Accept an address of the same server only: another one would get its credentials."""
        address = urljoin(self._url, place)
        posted_to, server = urlsplit(address), urlsplit(self._url)
        if (posted_to.scheme, posted_to.netloc) != (server.scheme, server.netloc):
            raise ServerProblem(f"{self._name} wants messages posted to another server")
        if not self._address.done():
            self._address.set_result(address)

    async def _send(self, body: bytes) -> None:
        if not self._open or self._post is None:
            raise connection_closed(self._name)
        posted = _Posted(self._name)
        self._posted.add(posted)
        link: Link | None = None
        try:
            async with asyncio.timeout(_SECONDS):
                link = await self._post.post(body, posted)
                await posted.done
        except TimeoutError:
            raise ServerTimeout(f"{self._name} did not take a message") from None
        finally:
            self._posted.discard(posted)
            if link is not None and not (self._open and posted.done.done()):
                self._post.drop(link)
            discard(posted.done)

    def _send_later(self, message: bytes) -> None:
        if len(self._replies) >= 16 or not self._open:
            return
        task = asyncio.ensure_future(self._send(message))
        self._replies.add(task)
        task.add_done_callback(self._replies.discard)
        task.add_done_callback(lambda done: done.cancelled() or done.exception())

    def _lose(self, problem: ServerProblem) -> None:
        self._open = False
        if not self._address.done():
            self._address.set_exception(problem)
            self._address.exception()
        self._exchange.fail(problem)
        # No response can arrive any more: open connections would only occupy the server.
        for posted in tuple(self._posted):
            posted.end(problem)
        if self._post is not None:
            self._post.close()


class _Posted:
    """Waits until a posted message was accepted; the body of the response does not matter."""

    def __init__(self, name: str) -> None:
        self._name, self._status = name, 0
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def head(self, status: int, headers: Mapping[str, str]) -> None:
        """Keep the status."""
        self._status = status

    def body(self, data: bytes) -> None:
        """Ignore the body."""

    def end(self, problem: ServerProblem | None) -> None:
        """Note whether the message was accepted."""
        if self.done.done():
            return
        if problem is None and self._status >= 300:
            problem = ServerProblem(f"{self._name} answered with HTTP {self._status}")
        if problem is not None:
            self.done.set_exception(problem)
        else:
            self.done.set_result(None)
