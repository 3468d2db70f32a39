"""The tool router for the one client that started this process, over stdin and stdout.

It answers as the HTTP door does. There is no token: whoever starts the process has the rights of
its user, and sees the servers of the project that is bound to the directory.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from evercontext.access.router_projects import Projects
from evercontext.app import EverContext
from evercontext.app.catalog import scope_at
from evercontext.domain.caller_scope import Hear
from evercontext.domain.caller_scope import Scope as Sight
from evercontext.domain.error_codes import json_rpc_code
from evercontext.domain.event import Audit
from evercontext.errors import AuditUnavailable, EverContextError
from evercontext.events.log import EventLog
from evercontext.mcp import json_rpc, revisions
from evercontext.mcp.json_rpc import RpcError
from evercontext.process.stdin import read_lines
from evercontext.server.asgi import take_trace_id
from evercontext.server.router.authentication import Visitor
from evercontext.server.router.list_changes import ListChanges
from evercontext.server.router.offer import Offer
from evercontext.server.router.results import whole
from evercontext.server.telling import MOST_PENDING


class StdioRouter:
    """Answers the lines of stdin, each in a task of its own."""

    def __init__(self, app: EverContext) -> None:
        self._app, self._offer = app, Offer(app)
        self._projects = Projects(app.store)
        self._running: dict[json_rpc.Id, asyncio.Task[None]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._out = _Outgoing()
        self._changes = ListChanges(self._offer, self._sight, self._tell)
        self._watching: asyncio.Task[None] | None = None

    async def _sight(self) -> Sight:
        return await scope_at(self._app.settings, self._projects)

    def _tell(self, method: str) -> None:
        self._out.put(json_rpc.notification(method, {}).encode())

    async def serve(self) -> None:
        """Serve until the client closes the pipe; what it asked by then is answered first."""
        writing = asyncio.create_task(self._out.write())
        try:
            async for line in read_lines():
                if line.strip():
                    self._take(line)
            await asyncio.gather(*self._tasks, return_exceptions=True)
        finally:
            running = [*self._tasks, *([self._watching] if self._watching else [])]
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)
            self._out.end()
            await writing

    def _take(self, line: bytes) -> None:
        try:
            call = json_rpc.parse(line)
        except RpcError as problem:
            self._out.put(json_rpc.error(problem.id, problem).encode())
            return
        if call is None:
            return
        if call.notification:
            self._told(call)
            return
        task = asyncio.create_task(self._answer(call))
        self._running[call.id] = task
        self._tasks.add(task)
        task.add_done_callback(lambda done: self._ended(call.id, done))

    def _ended(self, id: json_rpc.Id, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if self._running.get(id) is task:
            del self._running[id]
        if not task.cancelled() and task.exception() is not None:
            # Without an answer the client would wait for ever.
            broken = RpcError(json_rpc.INTERNAL, "the router failed at this")
            self._out.put(json_rpc.error(id, broken).encode())

    def _told(self, call: json_rpc.Call) -> None:
        """Take a notification: a call is taken back, or the client is ready to be told things."""
        if call.method == "notifications/initialized" and self._watching is None:
            self._watching = asyncio.create_task(self._changes.watch())
        id = call.params.get("requestId")
        if call.method == "notifications/cancelled" and isinstance(id, str | int):
            task = self._running.get(id)
            if task is not None:
                task.cancel()

    async def _answer(self, call: json_rpc.Call) -> None:
        question = _Question(call, self._app.events, self._out)
        try:
            if question.stateless:
                revisions.check_envelope(call, None)
            result = await self._result(call, question)
            answer = whole(call, result, question.stateless)
        except EverContextError as error:
            told = RpcError(json_rpc_code(error), str(error))
            answer = json_rpc.error(call.id, told).encode()
        except RpcError as problem:
            answer = json_rpc.error(call.id, problem).encode()
        self._out.put(answer)

    async def _result(self, call: json_rpc.Call, question: _Question) -> dict[str, Any] | bytes:
        if call.method in revisions.GREETINGS:
            return revisions.greeting(call, tells=True)
        visitor = Visitor(None, await self._sight(), user=self._app.settings.user)
        answer = await self._offer.answer(call, visitor, question)
        await self._changes.note(call.method)
        return answer


class _Question:
    """One line: its era, its trace, and how its progress goes back."""

    def __init__(self, call: json_rpc.Call, events: EventLog, out: _Outgoing) -> None:
        self._call, self._events, self._out = call, events, out
        given = revisions.meta_of(call.params).get("x-trace-id")
        named = [(b"x-trace-id", str(given).encode("latin-1", "replace"))] if given else []
        self.trace_id = take_trace_id(named).trace_id
        self.stateless = revisions.is_stateless(call, "")

    def hear(self, token: str | int) -> Hear | None:
        """Tell the client of progress, under its own token."""

        def heard(params: dict[str, Any]) -> None:
            # Progress is only the last of it: a client that reads slowly misses some.
            if self._out.pending < MOST_PENDING:
                told = {**params, "progressToken": token}
                self._out.put(json_rpc.notification("notifications/progress", told).encode())

        return heard

    def record(self, line: Audit) -> None:
        """Leave the line of the audit; a call that nobody could prove is not acknowledged."""
        try:
            self._events.emit_audited(line, trace_id=self.trace_id)
        except AuditUnavailable:
            if self._call.method == "tools/call":
                raise


class _Outgoing:
    """What waits for stdout, which belongs to the protocol alone."""

    def __init__(self) -> None:
        self._lines: asyncio.Queue[bytes | None] = asyncio.Queue()

    @property
    def pending(self) -> int:
        """How many lines wait."""
        return self._lines.qsize()

    def put(self, message: bytes) -> None:
        """Have a message written; within JSON a line can only end where a space says the same."""
        self._lines.put_nowait(message.replace(b"\r", b" ").replace(b"\n", b" ") + b"\n")

    def end(self) -> None:
        """Nothing follows."""
        self._lines.put_nowait(None)

    async def write(self) -> None:
        """Write line after line; a client that does not read holds up nothing but its answers."""
        while (line := await self._lines.get()) is not None:
            try:
                await asyncio.to_thread(_write, line)
            except OSError:
                # The client is gone; the end of stdin follows.
                return


def _write(line: bytes) -> None:
    sys.stdout.buffer.write(line)
    sys.stdout.buffer.flush()
