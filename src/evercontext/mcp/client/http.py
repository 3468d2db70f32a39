"""A server behind Streamable HTTP: every question is a POST, its answer JSON or a short stream."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable, Mapping
from typing import Any

from evercontext.domain.caller_scope import Hear
from evercontext.errors import ServerGone, ServerProblem, ServerTimeout
from evercontext.mcp.client.event_stream import EventStream
from evercontext.mcp.client.exchange import LONGEST_LINE, Exchange, Oddities, Params, gone
from evercontext.mcp.client.http1 import Link, Origin
from evercontext.mcp.message import Answer, encode

ACCEPT = "application/json, text/event-stream"
SESSION = "mcp-session-id"
_NOTIFY_SECONDS = 10.0
_STREAM_SECONDS = 1.0
_MOST_BESIDE = 16
_NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}


class SessionExpired(ServerGone):
    """The server no longer knows our session: what was asked was not done."""


class HttpRefused(ServerProblem):
    """The server answered with a status that is an error."""

    def __init__(self, name: str, status: int) -> None:
        super().__init__(f"{name} answered with HTTP {status}")
        self.status = status


class HttpWire:
    """One address. Carries its own credentials and no caller's."""

    def __init__(
        self,
        name: str,
        url: str,
        headers: Mapping[str, str],
        on_changed: Callable[[], None],
        proxy: str | None = None,
    ) -> None:
        self._name = name
        self._exchange = Exchange(on_changed)
        given = {key.lower(): value for key, value in headers.items()}
        kind = {"accept": ACCEPT, "content-type": "application/json"}
        sent = {**given, **kind, "accept-encoding": "identity"}
        self._origin = Origin(name, url, sent, proxy)
        self._open = True
        self._modern = False
        self._listening: Link | None = None
        self._beside_tasks: set[asyncio.Task[None]] = set()

    @property
    def oddities(self) -> Oddities:
        """What the server sent that nobody could use."""
        return self._exchange.oddities

    @property
    def open(self) -> bool:
        """False once the connection was refused or closed."""
        return self._open

    @property
    def hears(self) -> bool:
        """True while the server has a stream to tell us of changes."""
        return self._listening is not None

    def speak(self, version: str, envelope: Params | None) -> None:
        """Say the agreed revision from now on."""
        self._origin.add("mcp-protocol-version", version)
        self._modern = envelope is not None
        self._exchange.envelope = envelope or {}

    async def request(
        self,
        method: str,
        params: Params,
        seconds: float,
        hear: Hear | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Ask and wait; an answer nobody waits for any more ends with its connection."""
        number, body, waiting = self._exchange.ask(method, params, seconds, hear)
        post = _Post(self, number)
        link: Link | None = None
        try:
            more = self._routed(method, params, headers) if self._modern else ""
            link = await self._post(body, post, more)
            answer = await waiting.answer
        except ServerTimeout as late:
            self._take_back(number, link, post)
            raise ServerTimeout(f"{self._name}: {late}") from None
        except BaseException:
            self._take_back(number, link, post)
            raise
        finally:
            self._exchange.settle(number)
        if not post.over:
            # A stream ends a moment after its answer; only then its connection is free again.
            loop = asyncio.get_running_loop()
            loop.call_later(_STREAM_SECONDS, self._drop, link, post)
        return answer

    def _take_back(self, number: int, link: Link | None, post: _Post) -> None:
        """Tell the server that nobody waits: by the closed connection, and before 2026 in words."""
        self._drop(link, post)
        if not self._modern and self._open and not post.over:
            message = {"method": "notifications/cancelled", "params": {"requestId": number}}
            self._beside(encode(message))

    def _drop(self, link: Link | None, post: _Post) -> None:
        if link is not None and not post.over:
            self._origin.drop(link)

    async def notify(self, method: str, params: Params) -> None:
        """Tell without asking."""
        given = {**params, "_meta": dict(self._exchange.envelope)} if self._modern else params
        post = _Post(self, None)
        link: Link | None = None
        try:
            async with asyncio.timeout(_NOTIFY_SECONDS):
                link = await self._post(encode({"method": method, "params": given}), post, "")
                await post.wait()
        except TimeoutError:
            raise ServerTimeout(f"{self._name} did not take a message") from None
        finally:
            self._drop(link, post)

    async def listen(self) -> None:
        """Open the stream on which the server tells of changes; most have none."""
        hearing = _Post(self, None, unasked=True)
        try:
            if self._modern:
                wanted = dict.fromkeys(
                    ("toolsListChanged", "resourcesListChanged", "promptsListChanged"), True
                )
                asked = {"notifications": wanted, "_meta": dict(self._exchange.envelope)}
                message = encode({"id": 0, "method": "subscriptions/listen", "params": asked})
                more = "mcp-method: subscriptions/listen\r\n"
                self._listening = await self._origin.post(message, hearing, more)
            else:
                self._listening = await self._origin.get(hearing)
        except ServerProblem:
            self._listening = None

    async def close(self) -> None:
        """Close the connections."""
        self._open = False
        self._exchange.fail(gone(self._name))
        for task in self._beside_tasks:
            task.cancel()
        self._origin.close()

    def take(self, message: bytes) -> None:
        """Take a message that arrived; a question in it is answered beside."""
        reply = self._exchange.take(message)
        if reply is not None and self._open:
            self._beside(reply)

    def ended(self, number: int | None, problem: ServerProblem | None) -> None:
        """An answer ended, well or badly: if it held none, that is an answer too."""
        if number is None:
            return
        if isinstance(problem, ServerGone):
            problem = type(problem)(f"{self._name} gave no answer: the connection closed")
        self._exchange.fail_one(number, problem or ServerProblem(f"{self._name} gave no answer"))

    def refused(self, status: int) -> ServerProblem:
        """What an answer with this status means."""
        if status == 404 and self._origin.has(SESSION):
            self._open = False
            return SessionExpired(f"{self._name} has forgotten the session")
        return HttpRefused(self._name, status)

    def greeted(self, session: str) -> None:
        """The server gave the conversation a name."""
        if not self._origin.has(SESSION) and session.isprintable() and len(session) <= 512:
            self._origin.add(SESSION, session)

    def deaf(self) -> None:
        """The stream of changes ended."""
        self._listening = None

    @property
    def name(self) -> str:
        """The server's name, for messages."""
        return self._name

    async def _post(self, body: bytes, post: _Post, more: str) -> Link:
        try:
            return await self._origin.post(body, post, more)
        except ServerGone:
            self._open = False
            raise

    def _beside(self, message: bytes) -> None:
        if len(self._beside_tasks) < _MOST_BESIDE:
            task = asyncio.ensure_future(self._send(message))
            self._beside_tasks.add(task)
            task.add_done_callback(self._beside_tasks.discard)

    async def _send(self, reply: bytes) -> None:
        post = _Post(self, None)
        try:
            async with asyncio.timeout(_NOTIFY_SECONDS):
                await self._origin.post(reply, post)
                await post.wait()
        except (ServerProblem, TimeoutError):
            return

    def _routed(self, method: str, params: Params, headers: Mapping[str, str] | None) -> str:
        """The lines that the stateless revision wants beside the message."""
        named = params.get(_NAMED.get(method, ""))
        lines = {"mcp-method": method, **({"mcp-name": named} if named else {}), **(headers or {})}
        return "".join(f"{name}: {header_text(value)}\r\n" for name, value in lines.items())


class _Post:
    """Reads the answer to one POST: a message, a stream of them, or an error."""

    def __init__(self, wire: HttpWire, number: int | None, *, unasked: bool = False) -> None:
        self._wire, self._number, self._unasked = wire, number, unasked
        self._status = 0
        self._stream: EventStream | None = None
        self._body = bytearray()
        self._done: asyncio.Future[None] | None = None
        self._problem: ServerProblem | None = None
        self.over = False

    def head(self, status: int, headers: Mapping[str, str]) -> None:
        """Look what kind of answer it is."""
        self._status = status
        session = headers.get(SESSION)
        if session and status < 300:
            self._wire.greeted(session)
        if headers.get("content-encoding", "identity") != "identity":
            raise ServerProblem(f"{self._wire.name} compressed its answer unasked")
        if status < 300 and headers.get("content-type", "").startswith("text/event-stream"):
            self._stream = EventStream(LONGEST_LINE)

    def body(self, data: bytes) -> None:
        """Take a part of it."""
        if self._stream is not None:
            try:
                for _, message in self._stream.feed(data):
                    self._wire.take(message)
            except ServerProblem as problem:
                raise ServerProblem(f"{self._wire.name} sent {problem}") from None
            return
        self._body += data
        if len(self._body) > LONGEST_LINE:
            raise ServerProblem(f"{self._wire.name} sent more than {LONGEST_LINE} bytes")

    def end(self, problem: ServerProblem | None) -> None:
        """Hand over what came."""
        self.over = True
        if self._unasked:
            self._wire.deaf()
            return
        if self._status >= 300:
            # An error may be told inside as well, and better.
            if self._number is not None and self._body.startswith(b"{"):
                self._wire.take(bytes(self._body))
            problem = problem or self._wire.refused(self._status)
        elif self._stream is None and self._number is not None and problem is None:
            self._wire.take(bytes(self._body))
        self._wire.ended(self._number, problem)
        self._problem = problem
        if self._done is not None and not self._done.done():
            self._done.set_result(None)

    async def wait(self) -> None:
        """Wait for the end; raise what went wrong."""
        if not self.over:
            self._done = asyncio.get_running_loop().create_future()
            await self._done
        if self._problem is not None:
            raise self._problem


def header_text(value: Any) -> str:
    """Return a value as a header may carry it; anything unusual is wrapped."""
    text = str(value).lower() if isinstance(value, bool) else str(value)
    plain = text.isascii() and text.isprintable() and text == text.strip()
    if plain and not (text.startswith("=?base64?") and text.endswith("?=")):
        return text
    return f"=?base64?{base64.b64encode(text.encode('utf-8', 'replace')).decode()}?="
