"""A server behind the old transport: one stream brings every answer, questions are posted aside."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from urllib.parse import urljoin, urlsplit

from evercontext.domain.caller_scope import Hear
from evercontext.errors import ServerProblem, ServerTimeout
from evercontext.mcp.client.event_stream import EventStream
from evercontext.mcp.client.exchange import LONGEST_LINE, Exchange, Oddities, Params, forget, gone
from evercontext.mcp.client.http1 import Link, Origin
from evercontext.mcp.message import Answer, encode

_SECONDS = 10.0


class SseWire:
    """The stream and the place to post to. Made by ``SseWire.start``."""

    def __init__(
        self,
        name: str,
        url: str,
        headers: Mapping[str, str],
        on_changed: Callable[[], None],
        proxy: str | None = None,
    ) -> None:
        self._name, self._url = name, url
        self._headers = {key.lower(): value for key, value in headers.items()}
        self._exchange = Exchange(on_changed)
        self._events = EventStream(LONGEST_LINE)
        accept = {**self._headers, "accept": "text/event-stream"}
        self._stream = Origin(name, url, accept, proxy)
        self._post: Origin | None = None
        self._place: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._open = True
        self._replies: set[asyncio.Task[None]] = set()
        self._posted: set[_Posted] = set()

    @classmethod
    async def start(
        cls,
        name: str,
        url: str,
        headers: Mapping[str, str],
        on_changed: Callable[[], None],
        proxy: str | None = None,
    ) -> SseWire:
        """Open the stream and learn where to post."""
        wire = cls(name, url, headers, on_changed, proxy)
        try:
            async with asyncio.timeout(_SECONDS):
                await wire._stream.get(wire)
                place = await wire._place
        except TimeoutError:
            await wire.close()
            raise ServerTimeout(f"{name} did not say where to post") from None
        except BaseException:
            await wire.close()
            raise
        kind = {"content-type": "application/json"}
        wire._post = Origin(name, place, {**wire._headers, **kind}, proxy)
        return wire

    @property
    def oddities(self) -> Oddities:
        """What the server sent that nobody could use."""
        return self._exchange.oddities

    @property
    def open(self) -> bool:
        """False once the stream ended."""
        return self._open

    @property
    def hears(self) -> bool:
        """True: the stream brings whatever the server says."""
        return True

    def speak(self, version: str, envelope: Params | None) -> None:
        """Say the agreed revision from now on."""
        if self._post is not None:
            self._post.add("mcp-protocol-version", version)

    async def listen(self) -> None:
        """Nothing to do: the stream is open."""

    async def request(
        self,
        method: str,
        params: Params,
        seconds: float,
        hear: Hear | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Ask and wait; a question nobody waits for any more is taken back."""
        number, body, waiting = self._exchange.ask(method, params, seconds, hear)
        try:
            await self._send(body)
            return await waiting.answer
        except (ServerTimeout, asyncio.CancelledError) as late:
            self._beside(encode({"method": "notifications/cancelled",
                                 "params": {"requestId": number}}))  # fmt: skip
            if isinstance(late, ServerTimeout):
                raise ServerTimeout(f"{self._name}: {late}") from None
            raise
        finally:
            self._exchange.settle(number)

    async def notify(self, method: str, params: Params) -> None:
        """Tell without asking."""
        await self._send(encode({"method": method, "params": params}))

    async def close(self) -> None:
        """End the stream."""
        self._lose(gone(self._name))
        for task in self._replies:
            task.cancel()
        self._stream.close()

    def head(self, status: int, headers: Mapping[str, str]) -> None:
        """The stream's head is there."""
        if status != 200:
            raise ServerProblem(f"{self._name} answered with HTTP {status}")
        if not headers.get("content-type", "").startswith("text/event-stream"):
            raise ServerProblem(f"{self._name} has no stream of events at this address")

    def body(self, data: bytes) -> None:
        """A part of the stream is there."""
        for event, message in self._events.feed(data):
            if event == "endpoint":
                self._take_place(message.decode("utf-8", "replace"))
                continue
            reply = self._exchange.take(message)
            if reply is not None:
                self._beside(reply)

    def end(self, problem: ServerProblem | None) -> None:
        """The stream ended."""
        self._lose(problem or gone(self._name))

    def _take_place(self, place: str) -> None:
        """Only the same server is posted to: elsewhere would get its credentials."""
        whole = urljoin(self._url, place)
        told, known = urlsplit(whole), urlsplit(self._url)
        if (told.scheme, told.netloc) != (known.scheme, known.netloc):
            raise ServerProblem(f"{self._name} wants messages posted to another server")
        if not self._place.done():
            self._place.set_result(whole)

    async def _send(self, body: bytes) -> None:
        if not self._open or self._post is None:
            raise gone(self._name)
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
            forget(posted.done)

    def _beside(self, message: bytes) -> None:
        if len(self._replies) >= 16 or not self._open:
            return
        task = asyncio.ensure_future(self._send(message))
        self._replies.add(task)
        task.add_done_callback(self._replies.discard)
        task.add_done_callback(lambda done: done.cancelled() or done.exception())

    def _lose(self, problem: ServerProblem) -> None:
        self._open = False
        if not self._place.done():
            self._place.set_exception(problem)
            self._place.exception()
        self._exchange.fail(problem)
        # Nothing can be answered any more: connections that are kept would only keep the server.
        for posted in tuple(self._posted):
            posted.end(problem)
        if self._post is not None:
            self._post.close()


class _Posted:
    """Waits until a posted message was taken; what is said to it does not matter."""

    def __init__(self, name: str) -> None:
        self._name, self._status = name, 0
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def head(self, status: int, headers: Mapping[str, str]) -> None:
        """Remember the status."""
        self._status = status

    def body(self, data: bytes) -> None:
        """Nothing of it is needed."""

    def end(self, problem: ServerProblem | None) -> None:
        """It was taken, or not."""
        if self.done.done():
            return
        if problem is None and self._status >= 300:
            problem = ServerProblem(f"{self._name} answered with HTTP {self._status}")
        if problem is not None:
            self.done.set_exception(problem)
        else:
            self.done.set_result(None)
