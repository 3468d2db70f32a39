"""Run work on input of any size in threads, off the event loop.

Each kind of work has threads of its own and a bound on what may wait for them: searches that take
long cannot keep a write waiting, and a crowd is sent away instead of queueing for ever. Nobody
waits for these threads when the process ends.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from queue import SimpleQueue
from typing import Any, ParamSpec, TypeVar

from evercontext.errors import Busy

P = ParamSpec("P")
T = TypeVar("T")

_LAST_WORDS = 0.5
"""Seconds that threads have to finish when their pool is closed."""
_MOST_THREADS = 8


class Abandoned(Exception):
    """Nobody waits for this work any more; raised inside it, and seen by nobody."""


class Stop:
    """Whether somebody still waits for a piece of work; the work asks now and then."""

    __slots__ = ("_is_set",)

    def __init__(self) -> None:
        self._is_set = False

    def tell(self) -> None:
        """Let the work end at its next question."""
        self._is_set = True

    def check(self) -> None:
        """Raise ``Abandoned`` if nobody waits any more."""
        if self._is_set:
            raise Abandoned


class DaemonPool(ThreadPoolExecutor):
    """A pool whose threads never keep the process from ending.

    The standard one is joined by the interpreter: one read that hangs, and Ctrl-C does nothing.
    """

    def __init__(self, threads: int = _MOST_THREADS, name: str = "worker") -> None:
        super().__init__(max_workers=threads, thread_name_prefix=name)
        self._most, self._name = threads, name
        self._waiting: SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = SimpleQueue()
        self._members: list[threading.Thread] = []
        self._idle = 0
        self._closed = False
        self._guard = threading.Lock()

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Let a thread call ``fn``."""
        job: Future[T] = Future()
        with self._guard:
            if self._closed:
                raise RuntimeError("cannot schedule new futures after shutdown")
            self._waiting.put((job, partial(fn, *args, **kwargs)))
            if self._idle < self._waiting.qsize() and len(self._members) < self._most:
                name = f"{self._name}_{len(self._members)}"
                thread = threading.Thread(target=self._serve, name=name, daemon=True)
                self._members.append(thread)
                thread.start()
        return job

    def _serve(self) -> None:
        while True:
            with self._guard:
                self._idle += 1
            item = self._waiting.get()
            with self._guard:
                self._idle -= 1
            if item is None:
                return
            job, work = item
            if job.set_running_or_notify_cancel():
                try:
                    job.set_result(work())
                except BaseException as problem:  # noqa: BLE001 - for whoever waits for the job
                    job.set_exception(problem)
            del item, job, work  # what was worked on is not kept until the next work comes

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more work; what runs has a moment to end, and is left to itself after it."""
        with self._guard:
            self._closed = True
            while cancel_futures and not self._waiting.empty():
                if item := self._waiting.get():
                    item[0].cancel()
            for _ in self._members:
                self._waiting.put(None)
        deadline = time.monotonic() + _LAST_WORDS
        for thread in self._members if wait else ():
            thread.join(max(0.0, deadline - time.monotonic()))


class Workers:
    """A few threads for one kind of work, and a bound on how much of it may be waiting."""

    def __init__(self, name: str, threads: int, waiting: int) -> None:
        self._name = name
        self._most = threads + waiting
        self._pool = DaemonPool(threads, name)
        self._jobs: dict[Future[Any], Stop | None] = {}

    async def run(
        self, work: Callable[..., T], *arguments: Any, stop: Stop | None = None, **options: Any
    ) -> T:
        """Call ``work`` in a thread; ``Busy`` if too much is waiting already.

        Cancelled, work that has not begun never does, and work that has is told by ``stop``.
        """
        if len(self._jobs) >= self._most:
            raise Busy(
                f"too much is waiting here already ({self._name})", fix="Try again in a moment"
            )
        context = contextvars.copy_context()
        job = self._pool.submit(context.run, work, *arguments, **options)
        self._jobs[job] = stop
        job.add_done_callback(lambda ended: self._jobs.pop(ended, None))
        try:
            return await asyncio.wrap_future(job)
        except asyncio.CancelledError:
            if stop is not None:
                stop.tell()
            raise

    def close(self) -> None:
        """Stop what can be stopped, and give the rest a moment."""
        for stop in list(self._jobs.values()):
            if stop is not None:
                stop.tell()
        self._pool.shutdown(cancel_futures=True)


_LARGE = 16_384
THINKING = Workers("thinking", threads=2, waiting=256)
"""For what takes processor time and no file: parsing, comparing, checking."""


async def think(size: int, work: Callable[..., T], *arguments: Any) -> T:
    """Call ``work`` on an input of ``size`` characters: here if small, else in a thread."""
    # Handing a small thing to a thread and back takes longer than the work.
    return work(*arguments) if size < _LARGE else await THINKING.run(work, *arguments)
