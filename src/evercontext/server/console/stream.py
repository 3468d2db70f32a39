"""Stream server-sent events to pages, resuming after the last one seen.

Nothing is buffered for anybody: each reader has a place in the log and is sent what comes after it
as fast as it reads. ``Last-Event-ID`` is an event's id, so a reader that was away is at its place.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from evercontext.access.pending_approvals import Approvals
from evercontext.app import EverContext
from evercontext.errors import StoreProblem
from evercontext.events.log_index import Ledger, moment_of
from evercontext.server.console.event_feed import EventFeed
from evercontext.server.console.live_text import LiveText, LiveTexts
from evercontext.server.console.runs import find, row, summary
from evercontext.server.request_guard import Receive, Send
from evercontext.server.responses import encode

Projects = Callable[[], Awaitable[dict[str, str]]]
HEARTBEAT = 15.0
BATCH = 200
MOST_MISSED = 2_000
"""A reader that missed more than this is told to load its page again."""
MOST_READERS = 32
_LOOK_FOR_QUESTIONS = 0.15


def frame(kind: str, data: Any, id: str | None = None) -> bytes:
    """One server-sent event; JSON has no line breaks that could end it early."""
    head = f"id: {id}\n" if id else ""
    return f"{head}event: {kind}\ndata: ".encode() + encode(data) + b"\n\n"


@dataclass(slots=True)
class StreamReader:
    """One open page: what it follows, and how far it has read."""

    app: EverContext
    feed: EventFeed
    trace: str | None
    last_id: str
    beat: float = HEARTBEAT
    _number: int = 0
    _position: int | None = None
    _waiting: list[str] | None = None
    _first: bool = field(default=True)
    _behind: bool = False
    texts: LiveTexts | None = None
    projects: Projects | None = None
    """The directories whose questions are answered here; without it only the server's own."""
    _shown: LiveText | None = None

    async def frames(self) -> AsyncGenerator[bytes, None]:
        """Everything new, as it comes; a comment now and then where nothing does."""
        yield b"retry: 1000\n\n"
        silent, seen = 0.0, -1
        async with self.feed.watching():
            while not self.feed.closed:
                before = self.feed.number
                # Between events only the questions are looked for: the log is read for all.
                events = await self._events() if before != seen or self._behind else []
                seen = before
                new = [*events, *self._text(), *await self._questions()]
                for part in new:
                    yield part
                silent = 0.0 if new else silent + _LOOK_FOR_QUESTIONS
                if silent >= self.beat:
                    silent = 0.0
                    yield b": still here\n\n"
                if not new:
                    await self.feed.wait(before, _LOOK_FOR_QUESTIONS)

    def _text(self) -> list[bytes]:
        """What the model says at this moment: what is new of it, or all of it anew."""
        now = self.texts.of(self.trace) if self.texts and self.trace else None
        if now == self._shown:
            return []
        before, self._shown = self._shown, now
        if now is None:
            return []
        goes_on = before is not None and before.turn == now.turn
        start = len(before.text) if before and goes_on and now.text.startswith(before.text) else 0
        piece = {"turn": now.turn, "start": start, "text": now.text[start:]}
        return [frame("text", {**piece, "thinking": now.thinking})]

    async def _events(self) -> list[bytes]:
        if self.trace is None:
            return await self.feed.look(self._runs)
        return await self.feed.look(self._one_run)

    def _runs(self, ledger: Ledger) -> list[bytes]:
        """The runs that have something new, each once."""
        if self._first:
            self._first = False
            self._number = self.feed.number
            if not self.last_id:
                return []
            since = moment_of(self.last_id)
            missed = [run for run in ledger.runs.values() if run.moments[-1] > since]
            touched = [run.trace_id for run in missed]
        else:
            recent = self.feed.touched_since(self._number)
            self._number = self.feed.number
            touched = [] if recent is None else recent
            if recent is None:
                return [frame("reset", {})]
        if len(touched) > MOST_MISSED:
            return [frame("reset", {})]
        met = (ledger.runs.get(trace) for trace in touched)
        runs = [run for run in met if run and run.started]
        ordered = sorted(runs, key=lambda run: run.last_id)
        return [frame("run", summary(ledger, run), run.last_id) for run in ordered]

    def _one_run(self, ledger: Ledger) -> list[bytes]:
        """The next events of one run, and its summary after them."""
        run = find(ledger, self.trace or "")
        if self._position is None:
            self._position = ledger.after(run, self.last_id, 0)[0] if self.last_id else 0
            if len(run.places) - self._position > MOST_MISSED:
                self._position = len(run.places)
                return [frame("reset", {}, run.last_id)]
        events = ledger.events(run, self._position, BATCH)
        self._behind = len(events) == BATCH
        if not events:
            return []
        frames = [
            frame("event", {"position": self._position + at, **row(event)}, event["id"])
            for at, event in enumerate(events)
        ]
        self._position += len(events)
        return [*frames, frame("run", summary(ledger, run))]

    async def _questions(self) -> list[bytes]:
        """What waits for an answer, whenever that changes."""
        with suppress(StoreProblem):
            approvals = Approvals(self.app.store, self.app.settings.user)
            places = await self.projects() if self.projects else {self.app.memory.path: ""}
            pending = [question for place in places for question in await approvals.pending(place)]
            waiting = [question.id for question in pending]
            if waiting != self._waiting:
                self._waiting = waiting
                traces = [question.trace_id for question in pending]
                return [frame("approvals", {"ids": waiting, "traces": traces})]
        return []


async def send_frames(reader: StreamReader, receive: Receive, send: Send) -> None:
    """Send until the page goes away or the server ends."""
    sending = asyncio.create_task(_send(reader, send))
    leaving = asyncio.create_task(_gone(receive))
    try:
        await asyncio.wait((sending, leaving), return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in (sending, leaving):
            task.cancel()
        await asyncio.gather(sending, leaving, return_exceptions=True)


async def _send(reader: StreamReader, send: Send) -> None:
    async for part in reader.frames():
        await send({"type": "http.response.body", "body": part, "more_body": True})
    await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        continue
