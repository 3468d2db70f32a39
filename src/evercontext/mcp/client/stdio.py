"""A server that is a child process: messages are lines on its pipes, and its tree ends with us."""

from __future__ import annotations

import asyncio
import contextlib
from asyncio import StreamReader
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from evercontext.domain.caller_scope import Hear
from evercontext.errors import ServerProblem, ServerTimeout
from evercontext.mcp.client.exchange import LONGEST_LINE, Exchange, Oddities, Params, gone
from evercontext.mcp.message import Answer, encode
from evercontext.process.child import Child, start
from evercontext.process.limits import UNLIMITED
from evercontext.process.sandbox import Layer, Sandbox

_READ = 65_536
_WRITE_SECONDS = 10.0
MOST_LOG_LINES = 200
LONGEST_LOG_LINE = 2_000
TakeLog = Callable[[list[str]], None]
"""Takes lines that a server wrote to stderr, at most ``MOST_LOG_LINES`` at a time."""


class StdioWire:
    """The pipes of one server. Made by ``StdioWire.start``."""

    def __init__(self, name: str, child: Child, log: TakeLog, exchange: Exchange) -> None:
        self._name, self._child, self._log, self._exchange = name, child, log, exchange
        self._open = True
        self._writing = asyncio.Lock()
        self._reading = [
            asyncio.create_task(self._read_messages()),
            asyncio.create_task(_read_log(child.stderr, log)),
        ]

    @classmethod
    async def start(
        cls,
        name: str,
        argv: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        log: TakeLog,
        on_changed: Callable[[], None],
    ) -> StdioWire:
        """Start the server; nothing was said to it yet."""
        cage = Sandbox(cwd, Layer.NONE, limits=UNLIMITED)
        child = await start(argv, cwd=cwd, env=env, sandbox=cage)
        return cls(name, child, log, Exchange(on_changed))

    @property
    def oddities(self) -> Oddities:
        """What the server sent that nobody could use."""
        return self._exchange.oddities

    @property
    def open(self) -> bool:
        """False once the server ended."""
        return self._open

    @property
    def pid(self) -> int:
        """The process that supervises the server."""
        return self._child.pid

    @property
    def hears(self) -> bool:
        """True: the server may speak at any time."""
        return True

    def speak(self, version: str, envelope: Params | None) -> None:
        """Put the envelope of the stateless revision into every question."""
        self._exchange.envelope = envelope or {}

    async def listen(self) -> None:
        """Ask the stateless revision for what the others send by themselves."""
        if self._exchange.envelope:
            wanted = {"toolsListChanged": True, "resourcesListChanged": True}
            asked = {"notifications": {**wanted, "promptsListChanged": True}}
            params = {**asked, "_meta": dict(self._exchange.envelope)}
            await self._write(encode({"id": 0, "method": "subscriptions/listen", "params": params}))

    async def request(
        self,
        method: str,
        params: Params,
        seconds: float,
        hear: Hear | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Ask and wait; a question nobody waits for any more is taken back."""
        if not self._open:
            raise gone(self._name)
        number, line, waiting = self._exchange.ask(method, params, seconds, hear)
        try:
            await self._write(line)
            return await waiting.answer
        except ServerTimeout as late:
            self._say_later("notifications/cancelled", {"requestId": number})
            raise ServerTimeout(f"{self._name}: {late}") from None
        except asyncio.CancelledError:
            self._say_later("notifications/cancelled", {"requestId": number})
            raise
        finally:
            self._exchange.settle(number)

    async def notify(self, method: str, params: Params) -> None:
        """Tell without asking."""
        envelope = self._exchange.envelope
        given = {**params, "_meta": dict(envelope)} if envelope else params
        await self._write(encode({"method": method, "params": given}))

    async def close(self) -> None:
        """End the server and everything it started."""
        self._lose(gone(self._name))
        for task in self._reading:
            task.cancel()
        await asyncio.gather(*self._reading, return_exceptions=True)
        await self._child.close()

    def _say_later(self, method: str, params: Params) -> None:
        task = asyncio.ensure_future(self.notify(method, params))
        task.add_done_callback(lambda done: done.cancelled() or done.exception())

    async def _write(self, line: bytes) -> None:
        pipe = self._child.stdin
        if pipe is None or not self._open:
            raise gone(self._name)
        try:
            # A pipe with room takes it at once, and nobody has to wait for a turn.
            if pipe.transport.get_write_buffer_size() == 0 and not self._writing.locked():
                pipe.write(line + b"\n")
                return
            async with asyncio.timeout(_WRITE_SECONDS), self._writing:
                pipe.write(line + b"\n")
                await pipe.drain()
        except (BrokenPipeError, ConnectionResetError):
            raise gone(self._name) from None
        except TimeoutError:
            raise ServerProblem(f"{self._name} does not read what it is sent") from None

    async def _read_messages(self) -> None:
        rest = bytearray()
        while chunk := await self._child.stdout.read(_READ):
            rest += chunk
            if b"\n" in chunk:
                *lines, last = rest.split(b"\n")
                rest = bytearray(last)
                for line in lines:
                    self._take(bytes(line))
            if len(rest) > LONGEST_LINE:
                self._log([f"ended: a line longer than {LONGEST_LINE} bytes"])
                self._lose(ServerProblem(f"{self._name} sent a line over {LONGEST_LINE} bytes"))
                self._child.kill()
                return
        self._lose(gone(self._name))

    def _take(self, line: bytes) -> None:
        if not line.strip():
            return
        reply = self._exchange.take(line)
        if reply is not None and self._child.stdin is not None:
            # Not waited for: a server that asks and never reads must not stop our reading.
            with contextlib.suppress(OSError, RuntimeError):
                if self._child.stdin.transport.get_write_buffer_size() < LONGEST_LINE:
                    self._child.stdin.write(reply + b"\n")

    def _lose(self, problem: ServerProblem) -> None:
        self._open = False
        self._exchange.fail(problem)


async def _read_log(stream: StreamReader, log: TakeLog) -> None:
    """Keep the last lines a server says for people; never more than a little."""
    rest = b""
    while chunk := await stream.read(_READ):
        *lines, rest = (rest + chunk).split(b"\n")
        rest = rest[:LONGEST_LOG_LINE]
        last = lines[-MOST_LOG_LINES:]
        log([line[:LONGEST_LOG_LINE].decode("utf-8", "replace") for line in last])
