"""Connect to a server that is a child process; its process tree ends with the connection."""

from __future__ import annotations

import asyncio
import contextlib
from asyncio import StreamReader
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from evercontext.domain.caller_scope import ClientChannel, Hear
from evercontext.errors import ServerProblem, ServerTimeout
from evercontext.mcp.client.exchange import (
    CHANGES_REQUEST,
    LONGEST_LINE,
    Exchange,
    Notified,
    UnusableMessages,
    connection_closed,
    ignore_notification,
)
from evercontext.mcp.messages import Params, Result, encode
from evercontext.process.child import Child, start
from evercontext.process.resource_limits import UNLIMITED
from evercontext.process.sandbox import Layer, Sandbox

_READ = 65_536
_WRITE_SECONDS = 10.0
MOST_LOG_LINES = 200
LONGEST_LOG_LINE = 2_000
TakeLog = Callable[[list[str]], None]
"""Takes lines that a server wrote to stderr, at most ``MOST_LOG_LINES`` at a time."""


class StdioConnection:
    """The pipes of one server. Made by ``StdioConnection.start``."""

    def __init__(self, name: str, child: Child, log: TakeLog, exchange: Exchange) -> None:
        self._name, self._child, self._log, self._exchange = name, child, log, exchange
        self._open = True
        exchange.send_later = self._reply
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
        on_changed: Callable[[str], None],
        on_notified: Notified = ignore_notification,
    ) -> StdioConnection:
        """Start the server; no message is sent yet."""
        sandbox = Sandbox(cwd, Layer.NONE, limits=UNLIMITED)
        child = await start(argv, cwd=cwd, env=env, sandbox=sandbox)
        return cls(name, child, log, Exchange(on_changed, on_notified))

    @property
    def unusable(self) -> UnusableMessages:
        """The messages of the server that nobody could use."""
        return self._exchange.unusable

    @property
    def open(self) -> bool:
        """False once the server ended."""
        return self._open

    @property
    def pid(self) -> int:
        """The process that supervises the server."""
        return self._child.pid

    @property
    def hears_changes(self) -> bool:
        """True: the server may speak at any time."""
        return True

    def use_revision(self, version: str, envelope: Params | None) -> None:
        """Put the envelope of the stateless revision into every request."""
        self._exchange.envelope = envelope or {}

    async def subscribe(self) -> None:
        """Ask for the notifications that other revisions send without being asked."""
        if self._exchange.envelope:
            params = self._exchange.with_envelope({"notifications": CHANGES_REQUEST})
            await self._write(encode({"id": 0, "method": "subscriptions/listen", "params": params}))

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
        if not self._open:
            raise connection_closed(self._name)
        number, line, pending = self._exchange.begin(method, params, seconds, hear, client)
        try:
            await self._write(line)
            return await pending.response
        except ServerTimeout as late:
            self._notify_later("notifications/cancelled", {"requestId": number})
            raise ServerTimeout(f"{self._name}: {late}") from None
        except asyncio.CancelledError:
            self._notify_later("notifications/cancelled", {"requestId": number})
            raise
        finally:
            self._exchange.end(number)

    async def notify(self, method: str, params: Params) -> None:
        """Send a notification."""
        params = self._exchange.with_envelope(params)
        await self._write(encode({"method": method, "params": params}))

    async def close(self) -> None:
        """End the server and everything it started."""
        self._lose(connection_closed(self._name))
        for task in self._reading:
            task.cancel()
        await asyncio.gather(*self._reading, return_exceptions=True)
        await self._child.close()

    def _notify_later(self, method: str, params: Params) -> None:
        task = asyncio.ensure_future(self.notify(method, params))
        task.add_done_callback(lambda done: done.cancelled() or done.exception())

    async def _write(self, line: bytes) -> None:
        pipe = self._child.stdin
        if pipe is None or not self._open:
            raise connection_closed(self._name)
        try:
            # A pipe with room takes the line at once, without waiting for the lock.
            if pipe.transport.get_write_buffer_size() == 0 and not self._writing.locked():
                pipe.write(line + b"\n")
                return
            async with asyncio.timeout(_WRITE_SECONDS), self._writing:
                pipe.write(line + b"\n")
                await pipe.drain()
        except (BrokenPipeError, ConnectionResetError):
            raise connection_closed(self._name) from None
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
                    self._receive(bytes(line))
            if len(rest) > LONGEST_LINE:
                self._log([f"ended: a line longer than {LONGEST_LINE} bytes"])
                self._lose(ServerProblem(f"{self._name} sent a line over {LONGEST_LINE} bytes"))
                self._child.kill()
                return
        self._lose(connection_closed(self._name))

    def _receive(self, line: bytes) -> None:
        if not line.strip():
            return
        reply = self._exchange.receive(line)
        if reply is not None:
            self._reply(reply)

    def _reply(self, reply: bytes) -> None:
        if self._child.stdin is not None:
            # Not awaited: a server that sends requests and never reads must not stop our reading.
            with contextlib.suppress(OSError, RuntimeError):
                if self._child.stdin.transport.get_write_buffer_size() < LONGEST_LINE:
                    self._child.stdin.write(reply + b"\n")

    def _lose(self, problem: ServerProblem) -> None:
        self._open = False
        self._exchange.fail(problem)


async def _read_log(stream: StreamReader, log: TakeLog) -> None:
    """Pass on the last lines that a server writes to stderr; never more than a bounded number."""
    rest = b""
    while chunk := await stream.read(_READ):
        *lines, rest = (rest + chunk).split(b"\n")
        rest = rest[:LONGEST_LOG_LINE]
        last = lines[-MOST_LOG_LINES:]
        log([line[:LONGEST_LOG_LINE].decode("utf-8", "replace") for line in last])
