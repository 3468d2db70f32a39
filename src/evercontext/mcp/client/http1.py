"""Send HTTP/1.1 requests to one address over connections that are kept open.

No redirect is followed and nothing is decompressed: what a server may send is bounded as it comes.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from base64 import b64encode
from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import unquote, urlsplit

from evercontext.errors import ConfigError, ServerGone, ServerProblem

if TYPE_CHECKING:
    import httptools

CONNECT_SECONDS = 10.0
IDLE_SECONDS = 4.0
"""Servers close a connection that is idle for five seconds: it is not used again before that."""
MOST_IDLE = 32
LARGEST_HEAD = 65_536


class ResponseReader(Protocol):
    """Who takes an answer as it arrives."""

    def head(self, status: int, headers: Mapping[str, str]) -> None:
        """The head is there; raise ``ServerProblem`` to read no more."""
        ...

    def body(self, data: bytes) -> None:
        """A part of the body is there; raise ``ServerProblem`` to read no more."""
        ...

    def end(self, problem: ServerProblem | None) -> None:
        """Nothing more comes."""
        ...


class Link(asyncio.Protocol):
    """One connection, for one question after another."""

    def __init__(self, name: str) -> None:
        import httptools

        self._name = name
        self._parser: httptools.HttpResponseParser = httptools.HttpResponseParser(self)
        self._transport: asyncio.Transport | None = None
        self._reader: ResponseReader | None = None
        self._headers: dict[str, str] = {}
        self._head_size = 0
        self._keep = True
        self._until_close = False
        self.on_free: Callable[[Link], None] = lambda link: None
        self.idle_since = 0.0

    @property
    def usable(self) -> bool:
        """True if another question can be sent."""
        transport = self._transport
        return transport is not None and not transport.is_closing() and self._reader is None

    def send(self, request: bytes, reader: ResponseReader) -> None:
        """Send a question; its answer goes to ``reader``."""
        if self._transport is None or self._transport.is_closing():
            raise ServerGone(f"{self._name}: connection closed")
        self._reader = reader
        self._transport.write(request)

    def close(self) -> None:
        """Give the connection up, and whatever it was to bring."""
        self._reader = None
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell whoever waits."""
        self._transport = None
        if self._reader is not None:
            is_complete = self._until_close and exc is None
            self._over(None if is_complete else ServerGone(f"{self._name}: connection closed"))

    def data_received(self, data: bytes) -> None:
        """Parse what came."""
        import httptools

        try:
            self._parser.feed_data(data)
        except ServerProblem as problem:
            self._broken(problem)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            # What a callback raises comes out of the parser wrapped.
            cause = error.__context__
            known = cause if isinstance(cause, ServerProblem) else None
            self._broken(known or ServerProblem(f"{self._name} does not speak HTTP"))

    def on_header(self, name: bytes, value: bytes) -> None:
        """Called by the parser."""
        self._head_size += len(name) + len(value)
        if self._head_size > LARGEST_HEAD:
            raise ServerProblem(f"{self._name} answered with too large a head")
        self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        """Called by the parser."""
        status = self._parser.get_status_code()
        if status >= 200 and self._reader is not None:
            self._keep = bool(self._parser.should_keep_alive())
            lengths = ("content-length", "transfer-encoding")
            self._until_close = not any(name in self._headers for name in lengths)
            self._reader.head(status, self._headers)

    def on_body(self, data: bytes) -> None:
        """Called by the parser."""
        if self._reader is not None:
            self._reader.body(data)

    def on_message_complete(self) -> None:
        """Called by the parser."""
        self._headers, self._head_size = {}, 0
        if self._parser.get_status_code() >= 200:
            self._over(None)

    def _broken(self, problem: ServerProblem) -> None:
        self._keep = False
        self._over(problem)

    def _over(self, problem: ServerProblem | None) -> None:
        reader, self._reader = self._reader, None
        if not self._keep or reader is None:
            self.close()
        else:
            self.on_free(self)
        if reader is not None:
            reader.end(problem)


class _Knock(asyncio.Protocol):
    """Waits for a proxy to say yes."""

    def __init__(self) -> None:
        self.answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._head = b""

    def data_received(self, data: bytes) -> None:
        self._head += data
        if not self.answer.done() and b"\r\n\r\n" in self._head:
            self.answer.set_result(self._head)
        elif len(self._head) > LARGEST_HEAD:
            self.connection_lost(None)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.answer.done():
            self.answer.set_exception(OSError("the proxy closed the connection"))


class Origin:
    """An address and the connections to it that are not in use."""

    def __init__(
        self, name: str, url: str, headers: Mapping[str, str], proxy: str | None = None
    ) -> None:
        parts = urlsplit(url)
        self._name, self._proxy = name, proxy
        self._secure = parts.scheme == "https"
        self._host = parts.hostname or ""
        self._port = parts.port or (443 if self._secure else 80)
        path = parts.path or "/"
        self._target = f"{path}?{parts.query}" if parts.query else path
        self._headers = {"host": parts.netloc.rpartition("@")[2], **headers}
        self._idle: list[Link] = []
        self._used: set[Link] = set()
        self._head = self._render()

    def add(self, name: str, value: str) -> None:
        """Send this header too from now on."""
        self._headers[name] = value
        self._head = self._render()

    def has(self, name: str) -> bool:
        """True if this header is sent."""
        return name in self._headers

    async def post(self, body: bytes, reader: ResponseReader, more: str = "") -> Link:
        """Send a body; the answer goes to ``reader``."""
        link = self._take() or await self._connect()
        head = f"POST {self._head}{more}content-length: {len(body)}\r\n\r\n"
        self._used.add(link)
        link.send(head.encode("latin-1") + body, reader)
        return link

    async def get(self, reader: ResponseReader) -> Link:
        """Ask for the stream at this address."""
        link = await self._connect()
        self._used.add(link)
        link.send(f"GET {self._head}\r\n".encode("latin-1"), reader)
        return link

    def close(self) -> None:
        """Close every connection."""
        for link in (*self._idle, *self._used):
            link.close()
        self._idle.clear()
        self._used.clear()

    def _take(self) -> Link | None:
        now = time.monotonic()
        while self._idle:
            link = self._idle.pop()
            if link.usable and now - link.idle_since < IDLE_SECONDS:
                return link
            link.close()
        return None

    def _free(self, link: Link) -> None:
        self._used.discard(link)
        if len(self._idle) < MOST_IDLE:
            link.idle_since = time.monotonic()
            self._idle.append(link)
        else:
            link.close()

    def drop(self, link: Link) -> None:
        """Close a connection whose answer nobody waits for."""
        self._used.discard(link)
        if link not in self._idle:
            link.close()

    async def _connect(self) -> Link:
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                link = await (self._tunnel(self._proxy) if self._proxy else self._direct())
        except (OSError, TimeoutError, ValueError, IndexError) as problem:
            refused = isinstance(problem, ConnectionRefusedError)
            reason = "nobody listens there" if refused else str(problem) or "no answer in time"
            raise ServerGone(f"{self._name} cannot be reached: {reason[:200]}") from None
        link.on_free = self._free
        return link

    async def _direct(self) -> Link:
        loop = asyncio.get_running_loop()
        options: dict[str, Any] = {"ssl": _tls()} if self._secure else {}
        _, link = await loop.create_connection(
            lambda: Link(self._name), self._host, self._port, **options
        )
        return link

    async def _tunnel(self, proxy: str) -> Link:
        """Connect through a proxy, which sees the name of the server and nothing else."""
        parts, loop = urlsplit(proxy), asyncio.get_running_loop()
        transport, knock = await loop.create_connection(
            _Knock, parts.hostname or "", parts.port or 80
        )
        try:
            place = f"{self._host}:{self._port}"
            user = unquote(f"{parts.username or ''}:{parts.password or ''}")
            authorization = f"proxy-authorization: Basic {b64encode(user.encode()).decode()}\r\n"
            login = authorization if parts.username else ""
            transport.write(f"CONNECT {place} HTTP/1.1\r\nhost: {place}\r\n{login}\r\n".encode())
            status = (await knock.answer).split(b" ", 2)[1]
            if status != b"200":
                raise OSError(f"the proxy answered with HTTP {status.decode('latin-1')[:3]}")
            link = Link(self._name)
            secure = await loop.start_tls(transport, link, _tls(), server_hostname=self._host)
        except BaseException:
            transport.abort()
            raise
        assert secure is not None
        link.connection_made(secure)
        return link

    def _render(self) -> str:
        lines = [f"{name}: {value}\r\n" for name, value in self._headers.items()]
        if any(set("\r\n\0") & set(line[:-2]) for line in (*lines, f"{self._target}\r\n")):
            raise ConfigError(f"server {self._name}: a header or the address breaks the line")
        return f"{self._target} HTTP/1.1\r\n{''.join(lines)}"


def proxy_for(url: str, environment: Mapping[str, str]) -> str | None:
    """The proxy that the environment names for an address; plain HTTP goes its own way."""
    parts = urlsplit(url)
    proxy = environment.get("https_proxy") or environment.get("HTTPS_PROXY")
    if parts.scheme != "https" or not proxy or not parts.hostname:
        return None
    excepted = environment.get("no_proxy") or environment.get("NO_PROXY") or ""
    for name in (part.strip().lstrip("*.").lower() for part in excepted.split(",")):
        if name and (parts.hostname == name or parts.hostname.endswith(f".{name}")):
            return None
    if excepted.strip() == "*":
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


@cache
def _tls() -> ssl.SSLContext:
    # Made once: reading the certificates costs more than a hundred calls.
    return ssl.create_default_context()
