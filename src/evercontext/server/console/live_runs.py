"""Run tasks and conversations for the console, in this process, as `run` and `chat` run them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evercontext.access.permissions import StoredRules, open_permissions
from evercontext.access.router_projects import Projects
from evercontext.agent.conversation import Conversation
from evercontext.agent.task import new_trace_id
from evercontext.app import EverContext
from evercontext.app.conversations import check_after_changes, open_conversation
from evercontext.domain.event import Event, Task
from evercontext.domain.tool import Mode
from evercontext.errors import (
    EverContextError,
    InvalidArguments,
    LimitReached,
    NotFound,
    SessionBusy,
    StoreProblem,
)
from evercontext.events.redaction import redactor
from evercontext.server.console.event_feed import EventFeed
from evercontext.server.console.live_text import LiveTexts
from evercontext.settings import load
from evercontext.tools.approval_gate import Gate
from evercontext.tools.console_approval import ConsoleApproval

MOST_RUNS = 8
"""At one time; each may start programs of its own."""
IDLE_SECONDS = 600.0
"""After so long without a message a conversation is ended, with its summary."""
_END_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class WorkOrder:
    """What a page wants done."""

    text: str
    root: str
    chat: bool = False
    model: str | None = None
    mode: Mode = Mode.AGENT
    ask: bool = True
    """Ask before every change; else only for what is asked for each time."""
    session: str | None = None
    """The session to go on with."""
    fork: bool = False


@dataclass(slots=True)
class LiveRun:
    """One that was started here."""

    order: WorkOrder
    trace_id: str
    session: str | None
    work: asyncio.Task[Any]


@dataclass(slots=True)
class _OpenTalk:
    talk: Conversation
    app: EverContext
    used: float = field(default_factory=time.monotonic)


def _settle(begun: asyncio.Future[None]) -> None:
    if not begun.done():
        begun.set_result(None)


class LiveRuns:
    """What this process runs for the console's pages; all of it ends with the server."""

    def __init__(self, app: EverContext, feed: EventFeed) -> None:
        self._own, self._feed = app, feed
        self._stack = AsyncExitStack()
        self._apps: dict[str, EverContext] = {app.memory.path: app}
        self._runs: dict[str, LiveRun] = {}
        self._talks: dict[str, _OpenTalk] = {}
        self._begun: dict[str, asyncio.Future[None]] = {}
        self._opening = asyncio.Lock()
        self._sweeper: asyncio.Task[None] | None = None
        self.texts = LiveTexts(redactor(app.settings).masked, feed.wake)
        self._watch(app)

    def _watch(self, app: EverContext) -> None:
        self._stack.callback(app.events.subscribe(self._take))

    def _take(self, event: Event) -> None:
        """Take one event of this process; another thread may bring it."""
        self.texts.take(event)
        if not event.body.transient:
            self._feed.look_soon()
        begun = self._begun.get(event.trace_id)
        if begun is not None and isinstance(event.body, Task):
            begun.get_loop().call_soon_threadsafe(_settle, begun)

    async def projects(self) -> dict[str, str]:
        """Return the directories that can be worked in, each with its name; our own first."""
        own = self._own.memory.path
        places = {own: Path(own).name or "/"}
        with suppress(StoreProblem):
            for project in await Projects(self._own.store).all():
                if project.path and project.path not in places:
                    places[project.path] = project.id
        return places

    async def app_of(self, root: str) -> EverContext:
        """Return the open parts of a registered project."""
        if root in self._apps:
            return self._apps[root]
        if root not in await self.projects():
            raise NotFound("there is no such project", fix="Add it: evercontext projects add NAME")
        async with self._opening:
            if root not in self._apps:
                settings = await asyncio.to_thread(load, {"root": root})
                app = await self._stack.enter_async_context(EverContext.open(settings))
                self._watch(app)
                self._apps[app.memory.path] = self._apps[root] = app
        return self._apps[root]

    def of(self, trace_id: str) -> LiveRun | None:
        """Return a run of this process that has not ended."""
        run = self._runs.get(trace_id)
        return run if run and not run.work.done() else None

    def in_session(self, session_id: str) -> LiveRun | None:
        """Return the run that answers in a session now."""
        live = (run for run in self._runs.values() if not run.work.done())
        return next((run for run in live if run.session == session_id), None)

    async def start(self, order: WorkOrder) -> LiveRun:
        """Begin a task or a turn; return once its first event is there, or raise why not."""
        live = sum(not run.work.done() for run in self._runs.values())
        if live >= MOST_RUNS:
            raise LimitReached(f"{live} runs are under way here", fix="Wait for one, or stop one")
        self._runs = {id: run for id, run in self._runs.items() if not run.work.done()}
        app, trace_id = await self.app_of(order.root), new_trace_id()
        gate = await self._gate(app, ask=order.ask)
        session: str | None = None
        working: Awaitable[Any]
        if order.chat:
            opened = await self._talk(app, order)
            opened.talk.mode, session = order.mode, opened.talk.session.id
            working = self._turn(opened, order, gate, trace_id)
        else:
            working = app.run_task(
                order.text, mode=order.mode, gate=gate, model_name=order.model, trace_id=trace_id
            )
        begun = self._begun[trace_id] = asyncio.get_running_loop().create_future()
        work = asyncio.ensure_future(working)
        run = self._runs[trace_id] = LiveRun(order, trace_id, session, work)
        work.add_done_callback(lambda _: self._end(trace_id))
        try:
            await asyncio.wait((begun, work), return_when=asyncio.FIRST_COMPLETED)
        finally:
            del self._begun[trace_id]
        if not begun.done() and work.done() and not work.cancelled() and work.exception():
            del self._runs[trace_id]
            raise work.exception() or EverContextError("it did not begin")
        return run

    def _end(self, trace_id: str) -> None:
        self.texts.drop(trace_id)
        run = self._runs.get(trace_id)
        # Its trace tells how it ended; here only that nobody is left to be told of an exception.
        if run and not run.work.cancelled():
            run.work.exception()
        self._feed.look_soon()

    async def _gate(self, app: EverContext, *, ask: bool) -> Gate:
        stored = StoredRules(app.store, app.memory.path)
        permissions = await open_permissions(stored, app.settings, yes=not ask)
        return Gate(permissions, ConsoleApproval(None, app.asking_place, lambda text: None))

    async def _turn(self, opened: _OpenTalk, order: WorkOrder, gate: Gate, trace_id: str) -> None:
        try:
            await opened.talk.turn(order.text, gate, trace_id=trace_id)
        finally:
            opened.used = time.monotonic()

    async def _talk(self, app: EverContext, order: WorkOrder) -> _OpenTalk:
        """Return the conversation of an order: an open one, one that is taken up, or a new one."""
        if order.session and not order.fork:
            if self.in_session(order.session):
                raise SessionBusy(
                    "this session is being answered",
                    fix="Wait for the answer, stop it, or go on in a copy",
                )
            opened = self._talks.get(order.session)
            if opened and order.model in (None, opened.talk.model.info.name):
                return opened
            if opened:
                await self._close(self._talks.pop(order.session))
        if order.fork and not order.session:
            raise InvalidArguments("fork copies a session: name it")
        talk = await open_conversation(
            app, resume=order.session, fork=order.fork, model_name=order.model, mode=order.mode
        )
        check_after_changes(app, talk)
        opened = self._talks[talk.session.id] = _OpenTalk(talk, app)
        if self._sweeper is None:
            self._sweeper = asyncio.create_task(self._sweep())
        return opened

    async def _sweep(self) -> None:
        """End the conversations that nobody goes on with."""
        while True:
            await asyncio.sleep(IDLE_SECONDS / 10)
            for id, opened in list(self._talks.items()):
                if not self.in_session(id) and time.monotonic() - opened.used > IDLE_SECONDS:
                    del self._talks[id]
                    await self._close(opened)

    async def _close(self, opened: _OpenTalk) -> None:
        # The database may be away by now; the session is then ended by whoever lists it next.
        with suppress(EverContextError):
            await opened.talk.end()

    def stop(self, trace_id: str) -> None:
        """Stop a run; its trace ends as cancelled."""
        run = self.of(trace_id)
        if run is None:
            raise NotFound(
                "this console does not run that", fix="Stop it where it was started: Ctrl-C there"
            )
        run.work.cancel()

    async def close(self) -> None:
        """Stop everything."""
        if self._sweeper:
            self._sweeper.cancel()
        works = [run.work for run in self._runs.values()]
        for work in works:
            work.cancel()
        await asyncio.gather(*works, return_exceptions=True)
        with suppress(TimeoutError):
            async with asyncio.timeout(_END_SECONDS):
                for opened in self._talks.values():
                    await self._close(opened)
        await self._stack.aclose()
