"""Write the event log: JSON Lines, one segment per process and day, and live subscribers."""

from __future__ import annotations

import asyncio
import errno
import itertools
import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from evercontext.domain.event import Body, Event, Notice
from evercontext.errors import AuditUnavailable
from evercontext.events.redaction import Redactor, redactor
from evercontext.events.retention import Retention, prune_soon
from evercontext.files.clock import instant
from evercontext.files.open_file import is_in_place
from evercontext.process.worker_threads import Workers
from evercontext.settings import Settings

Subscriber = Callable[[Event], None]

_SOON = 0.05
_LOST = "the event log was removed, replaced or cut off: earlier events may be missing"
_SYNCING = Workers("event log", threads=2, waiting=1_000_000)


class EventLog:
    """Append-only. ``emit`` writes at once; ``emit_durable`` also waits until it is on disk.

    ``emit_soon`` writes together with the next line, or when this turn of the event loop is over.
    """

    def __init__(
        self,
        directory: Path,
        redactor: Redactor | None = None,
        retention: Retention = Retention(),  # noqa: B008 it is frozen
    ) -> None:
        self._directory = directory
        self._retention = retention
        self._redactor = redactor or Redactor()
        self._subscribers: list[Subscriber] = []
        self._numbers = itertools.count()
        self._segment: _Segment | None = None
        self._lock = threading.Lock()
        self._flush: asyncio.Task[None] | None = None
        self._waiters: list[asyncio.Future[None]] = []
        self._later: asyncio.TimerHandle | None = None
        self._nameless = False
        self._gathered: list[Event] = []
        self._second = (-1, "")

    @property
    def segment(self) -> Path | None:
        """The file being written, once something was."""
        return self._segment.path if self._segment else None

    def subscribe(self, subscriber: Subscriber) -> Callable[[], None]:
        """Call ``subscriber`` with every event from now on; returns how to stop that."""
        self._subscribers.append(subscriber)
        return lambda: self._subscribers.remove(subscriber)

    def emit(self, body: Body, *, trace_id: str, parent: str | None = None) -> Event:
        """Record an event. A log that cannot be written does not stop ordinary work."""
        event = self._event(body, trace_id, parent)
        if not body.transient:
            try:
                self._append(event)
            except OSError:
                if self.segment:
                    self._close_segment()
        self._publish(event)
        return event

    def emit_soon(self, body: Body, *, trace_id: str, parent: str | None = None) -> Event:
        """Record an event of a request: its lines are one write, and there before its answer is.

        Each write lets other threads take the interpreter, which costs more than the write.
        """
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return self.emit(body, trace_id=trace_id, parent=parent)
        event = self._event(body, trace_id, parent)
        with self._lock:
            self._gathered.append(event)
            if len(self._gathered) == 1:
                loop.call_soon(self._write_gathered)
        self._publish(event)
        return event

    def _write_gathered(self) -> None:
        if not self._gathered:
            return
        try:
            self._append()
        except OSError:
            if self.segment:
                self._close_segment()

    def emit_audited(self, body: Body, *, trace_id: str, parent: str | None = None) -> Event:
        """Record an event or raise ``AuditUnavailable``; it is on disk a moment later."""
        event = self._event(body, trace_id, parent)
        try:
            self._append(event)
        except OSError as problem:
            raise self._unavailable(problem) from problem
        if self._later is None:
            self._later = asyncio.get_running_loop().call_later(_SOON, self._start_flush)
        self._publish(event)
        return event

    def note(self, body: Body, *, trace_id: str, parent: str | None = None, needed: bool) -> None:
        """Write an event that no subscriber is shown, because another one has told them.

        One that is ``needed`` raises ``AuditUnavailable`` where it cannot be written.
        """
        event = self._event(body, trace_id, parent)
        try:
            self._append(event)
        except OSError as problem:
            if needed:
                raise self._unavailable(problem) from problem
            return
        if needed and self._later is None:
            self._later = asyncio.get_running_loop().call_later(_SOON, self._start_flush)

    async def emit_durable(self, body: Body, *, trace_id: str, parent: str | None = None) -> Event:
        """Record an event and return once it survives a power cut; else ``AuditUnavailable``."""
        event = self._event(body, trace_id, parent)
        try:
            self._append(event)
            await self._synced()
        except OSError as problem:
            raise self._unavailable(problem) from problem
        self._publish(event)
        return event

    def _unavailable(self, problem: OSError) -> AuditUnavailable:
        return AuditUnavailable(
            f"the event log cannot be written: {problem.strerror}",
            fix=f"Free space or fix permissions under {self._directory}",
        )

    def close(self) -> None:
        """Close the segment; a later event opens a new one."""
        self._write_gathered()
        with self._lock:
            if self._later is not None:
                self._later.cancel()
                self._later = None
                self._sync_segment()
            self._close_segment()

    def _event(self, body: Body, trace_id: str, parent: str | None) -> Event:
        # Readers find their place by it, so it grows though the clock be set back.
        now = instant()
        number = next(self._numbers) & 0xFFFF
        id = f"{now:016x}{os.getpid() & 0xFFFF:04x}{number:04x}"
        return Event(id, self._clock(now), trace_id, body, parent)

    def _clock(self, now: int) -> str:
        """The time of an event; its seconds are written once for all events of a second."""
        second, rest = divmod(now, 1_000_000_000)
        if self._second[0] != second:
            self._second = second, datetime.fromtimestamp(second, UTC).isoformat()[:19]
        return f"{self._second[1]}.{rest // 1000:06d}+00:00"

    def _publish(self, event: Event) -> None:
        for subscriber in tuple(self._subscribers):
            subscriber(event)

    def _append(self, *events: Event) -> None:
        """Write what was gathered, and these after it."""
        with self._lock:
            events, self._gathered = (*self._gathered, *events), []
            if not events:
                return
            lines = [self._redactor.line(event.to_json()) for event in events]
            # A lone surrogate from a model must not make a line unwritable.
            payload = "\n".join([*lines, ""]).encode("utf-8", "backslashreplace")
            segment = self._open_segment(events[-1])
            _write_whole(segment.descriptor, payload)
            segment.size += len(payload)

    def _open_segment(self, event: Event) -> _Segment:
        day, segment = event.at[:10], self._segment
        full = segment is not None and segment.size >= self._retention.segment_bytes
        lost = segment is not None and not segment.in_place
        if segment and segment.day == day and not full and not lost:
            return segment
        if segment and not lost:
            _sync(segment.descriptor)
        self._close_segment()
        segment = self._segment = _create(self._directory, day)
        self._nameless = True
        prune_soon(self._directory, self._retention, segment.path, at_once=full)
        if lost:
            # Readers of the log learn of it where the log goes on.
            notice = Event(event.id, event.at, event.trace_id, Notice(level="warning", text=_LOST))
            line = self._redactor.line(notice.to_json()).encode() + b"\n"
            _write_whole(segment.descriptor, line)
            segment.size += len(line)
        return segment

    def _close_segment(self) -> None:
        if self._segment:
            os.close(self._segment.descriptor)
            self._segment = None

    async def _synced(self) -> None:
        # Waiters that arrive during an fsync share the next one: durability at group price.
        waiter = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        self._start_flush()
        await waiter

    def _start_flush(self) -> None:
        if self._later is not None:
            self._later.cancel()
            self._later = None
        if self._flush is None or self._flush.done():
            self._flush = asyncio.create_task(self._flush_all())

    async def _flush_all(self) -> None:
        waiting = True
        while waiting:
            batch, self._waiters = self._waiters, []
            problem: OSError | None = None
            try:
                # Every write waits for this one: it waits for nothing else.
                await _SYNCING.run(self._sync_segment)
            except OSError as error:
                problem = error
            for waiter in batch:
                if waiter.done():
                    continue
                if problem:
                    waiter.set_exception(problem)
                else:
                    waiter.set_result(None)
            waiting = bool(self._waiters)

    def _sync_segment(self) -> None:
        segment = self._segment
        if segment is None:
            return
        _sync(segment.descriptor)
        if not segment.in_place:
            # Whoever waits is not told that it is on disk; the next event opens another segment.
            raise OSError(errno.ESTALE, "it was removed or cut off while it was written")
        if self._nameless:
            # A file is only safe once the directory knows its name.
            self._nameless = False
            directory = os.open(self._directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                os.fsync(directory)
            finally:
                os.close(directory)


def open_log(settings: Settings, secrets: Redactor | None = None) -> EventLog:
    """Open the event log of the settings' home, within the limits they name."""
    retention = Retention.of(settings.traces_mb, settings.traces_days)
    return EventLog(settings.traces, secrets or redactor(settings), retention)


@dataclass(slots=True)
class _Segment:
    day: str
    path: Path
    descriptor: int
    size: int = 0

    @property
    def in_place(self) -> bool:
        return is_in_place(self.path, self.descriptor, self.size)


def _create(directory: Path, day: str) -> _Segment:
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
    for moment in itertools.count(time.time_ns() // 1_000_000):
        path = directory / f"{day}-{os.getpid()}-{moment:x}.jsonl"
        # Full within a millisecond, or the clock was set back.
        with suppress(FileExistsError):
            return _Segment(day, path, os.open(path, flags, 0o600))
    raise AssertionError


# Flushes the data and the length, which is all a reader needs; macOS has only the slower one.
_sync = getattr(os, "fdatasync", os.fsync)


def _write_whole(descriptor: int, payload: bytes) -> None:
    written = os.write(descriptor, payload)
    if written < len(payload):
        # A nearly full disk takes half a line, which would spoil the next one.
        os.ftruncate(descriptor, os.fstat(descriptor).st_size - written)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
