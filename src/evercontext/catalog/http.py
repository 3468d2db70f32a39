"""A server behind Streamable HTTP: every question is a POST, its answer JSON or a short stream."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from typing import TYPE_CHECKING, Any

from evercontext.catalog.wire import LONGEST_LINE, Exchange, Oddities, Params, encode
from evercontext.errors import ServerGone, ServerProblem, ServerTimeout

if TYPE_CHECKING:
    import httpx2

_ACCEPT = "application/json, text/event-stream"


class HttpWire:
    """One address. Carries its own credentials and no caller's."""

    def __init__(
        self, name: str, url: str, headers: Mapping[str, str], on_changed: Callable[[], None]
    ) -> None:
        import httpx2

        self._name, self._url = name, url
        self._exchange = Exchange(on_changed)
        self._headers = {**headers, "accept": _ACCEPT, "content-type": "application/json"}
        self._client = httpx2.AsyncClient(follow_redirects=False, timeout=None)
        self._open = True

    @property
    def oddities(self) -> Oddities:
        """What the server sent that nobody could use."""
        return self._exchange.oddities

    @property
    def open(self) -> bool:
        """False once the connection was refused or closed."""
        return self._open

    def speak(self, version: str) -> None:
        """Say the agreed revision from now on."""
        self._headers["mcp-protocol-version"] = version

    async def request(self, method: str, params: Params, seconds: float) -> Any:
        """Ask and wait."""
        number, body, waiting = self._exchange.ask(method, params, seconds)
        posting = asyncio.create_task(self._post(body, number))
        posting.add_done_callback(lambda done: self._ended(done, number))
        try:
            return await self._exchange.wait(number, waiting)
        except ServerTimeout as late:
            raise ServerTimeout(f"{self._name}: {late}") from None
        finally:
            posting.cancel()

    async def notify(self, method: str, params: Params) -> None:
        """Tell without asking."""
        try:
            async with asyncio.timeout(10):
                await self._post(encode({"method": method, "params": params}), None)
        except TimeoutError:
            raise ServerTimeout(f"{self._name} did not take a message") from None

    async def close(self) -> None:
        """Close the connections."""
        self._open = False
        self._exchange.fail(ServerGone(f"{self._name}: connection closed"))
        await self._client.aclose()

    def _ended(self, posting: asyncio.Task[None], number: int) -> None:
        """A stream that ended, well or badly, without an answer is an answer too."""
        problem = None if posting.cancelled() else posting.exception()
        waiting = self._exchange.waiting.get(number)
        if waiting is None or waiting.answer.done():
            return
        if isinstance(problem, ServerProblem):
            waiting.answer.set_exception(problem)
        else:
            said = f": {type(problem).__name__}" if problem else ""
            waiting.answer.set_exception(ServerProblem(f"{self._name} gave no answer{said}"))

    async def _post(self, body: bytes, number: int | None) -> None:
        import httpx2

        try:
            async with self._client.stream(
                "POST", self._url, content=body, headers=self._headers
            ) as answer:
                await self._read(answer, number)
        except httpx2.HTTPError as problem:
            if isinstance(problem, httpx2.ConnectError):
                self._open = False
            said = str(problem) or type(problem).__name__
            raise ServerGone(f"{self._name} cannot be reached: {said[:200]}") from None

    async def _read(self, answer: httpx2.Response, number: int | None) -> None:
        if answer.status_code >= 300:
            if answer.status_code == 404 and "mcp-session-id" in self._headers:
                self._open = False
            raise ServerProblem(f"{self._name} answered with HTTP {answer.status_code}")
        session = answer.headers.get("mcp-session-id")
        if session:
            self._headers["mcp-session-id"] = session
        if number is None:
            return
        if answer.headers.get("content-type", "").startswith("text/event-stream"):
            async for message in _events(answer, self._name):
                await self._take(message)
                if number not in self._exchange.waiting:
                    return
        else:
            await self._take(b"".join([part async for part in _bounded(answer, self._name)]))

    async def _take(self, message: bytes) -> None:
        reply = self._exchange.take(message)
        if reply is not None:
            await self._post(reply, None)


async def _bounded(answer: httpx2.Response, name: str) -> AsyncIterator[bytes]:
    size = 0
    async for part in answer.aiter_bytes():
        size += len(part)
        if size > LONGEST_LINE:
            raise ServerProblem(f"{name} sent more than {LONGEST_LINE} bytes")
        yield part


async def _events(answer: httpx2.Response, name: str) -> AsyncIterator[bytes]:
    """Yield the data of each event of a stream; each event may be as long as a message."""
    rest, data, size = b"", [], 0
    async for part in answer.aiter_bytes():
        *lines, rest = (rest + part).split(b"\n")
        for line in (line.rstrip(b"\r") for line in lines):
            if line.startswith(b"data:"):
                data.append(line[5:].lstrip())
                size += len(line)
            elif not line and data:
                yield b"\n".join(data)
                data, size = [], 0
        if size + len(rest) > LONGEST_LINE:
            raise ServerProblem(f"{name} sent more than {LONGEST_LINE} bytes")
