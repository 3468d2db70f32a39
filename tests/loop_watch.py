"""A watch over the event loop: no callback of ours may hold it for long.

Each callback's own processor time is counted, not the clock's, so that waiting for a processor does
not count; the limit grows with the time that a known piece of work takes right then, because shared
caches and threads of one core make a busy machine slower, too. A thread looks on every few
milliseconds and charges the time to whoever is at work: the innermost frame that lies in
``src/evercontext`` or in ``tests``. What a test does itself, or calls without awaiting it, is its
own affair; so are imports, which a process makes once, and collections of garbage, whose size
depends on all the tests before.
"""

from __future__ import annotations

import asyncio
import gc
import inspect
import sys
import threading
import time
from pathlib import Path
from types import FrameType
from typing import Any

LIMIT = 0.05
"""Seconds of processor time that one callback may take, on a machine of ordinary speed."""
ALLOWED = {
    "mcp/messages.py:read_message": "at most 4 MiB of JSON, read in one go; in a thread it would"
    " hold the interpreter's lock all the same",
    "context/token_estimate.py:count": "a talk's own process; the first count reads the vocabulary",
    "models/scripted.py:_turn": "stands in for a model; its replies are what a test writes",
}
"""Functions of ours that may take longer, with all that they call, and why."""

_EVERY = 0.008
_WORK = 100_000
_WORK_SECONDS = 0.003
"""What so many rounds of a loop take on a machine of ordinary speed."""
_HERE = str(Path(__file__).parent)
_OURS = str(Path(__file__).parent.parent / "src" / "evercontext")
_IMPORTS = "<frozen importlib._bootstrap>"
_ASYNC = inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


class _Turn:
    """One callback while it runs."""

    __slots__ = ("charged", "clock", "collected", "seen")

    def __init__(self) -> None:
        # Nearly every callback is over before anybody looks: it costs this much and no more.
        self.charged: dict[str, float] | None = None
        self.collected = 0.0
        self.clock = 0
        self.seen = 0.0


class LoopWatch:
    """Counts for every loop of this process from ``start`` on."""

    def __init__(self) -> None:
        self._turns: dict[int, _Turn] = {}
        self._stalls: list[str] = []
        self._collecting = 0.0

    def start(self) -> None:
        """Put the watch around every callback."""
        if not hasattr(time, "pthread_getcpuclockid"):
            return  # macOS cannot tell one thread's time from another
        run, turns, ident_of = asyncio.Handle._run, self._turns, threading.get_ident

        def watched(handle: asyncio.Handle) -> None:
            ident = ident_of()
            outer = turns.get(ident)
            turns[ident] = turn = _Turn()
            try:
                run(handle)
            finally:
                if turn.charged:
                    self._judge(turn.charged)
                if outer is None:
                    del turns[ident]
                else:
                    turns[ident] = outer

        setattr(asyncio.Handle, "_run", watched)  # noqa: B010 - a method is not a name to assign
        gc.callbacks.append(self._collection)
        threading.Thread(target=self._look_on, name="loop watch", daemon=True).start()

    def taken(self) -> list[str]:
        """What held a loop too long since the last time this was asked."""
        stalls, self._stalls = self._stalls, []
        return stalls

    def _collection(self, phase: str, info: dict[str, Any]) -> None:
        turn = self._turns.get(threading.get_ident())
        if turn is None:
            return
        if phase == "start":
            self._collecting = time.thread_time()
        else:
            turn.collected += time.thread_time() - self._collecting

    def _look_on(self) -> None:
        before: dict[int, _Turn] = {}
        while True:
            time.sleep(_EVERY)
            running = dict(self._turns)
            if any(before.get(ident) is turn for ident, turn in running.items()):
                frames = sys._current_frames()
                for ident, turn in running.items():
                    if before.get(ident) is turn is self._turns.get(ident) and ident in frames:
                        self._charge(turn, ident, frames[ident])
                del frames  # or what they hold would live on
            before = running

    def _charge(self, turn: _Turn, ident: int, frame: FrameType) -> None:
        try:
            if turn.charged is None:
                turn.clock = time.pthread_getcpuclockid(ident)
                turn.charged, turn.seen = {}, time.clock_gettime(turn.clock)
                turn.collected = 0.0
                return
            now = time.clock_gettime(turn.clock)
        except OSError:
            return  # the thread has ended
        spent, turn.seen = now - turn.seen - turn.collected, now
        turn.collected = 0.0
        if spent > 0 and (who := _at_work(frame)):
            turn.charged[who] = turn.charged.get(who, 0.0) + spent

    def _judge(self, charged: dict[str, float]) -> None:
        if sum(charged.values()) > LIMIT and sum(charged.values()) > LIMIT * _slowness():
            worst = sorted(charged.items(), key=lambda item: -item[1])[:4]
            told = ", ".join(f"{who} {spent * 1000:.0f} ms" for who, spent in worst)
            self._stalls.append(told)


def _slowness() -> float:
    """Measure how many times slower this machine is now than an ordinary one; at least 1."""
    started, total = time.thread_time(), 0
    for number in range(_WORK):
        total += number & 7
    return max(1.0, (time.thread_time() - started) / _WORK_SECONDS)


def _at_work(frame: FrameType | None) -> str | None:
    """Name the function of ours that is at work, if it is one and does not import."""
    ours: str | None = None
    awaited = False
    while frame is not None and not _is_watch(frame):
        file, name = frame.f_code.co_filename, frame.f_code.co_name
        if file == _IMPORTS:
            return None
        if file.startswith(_HERE) and not awaited:
            return None  # the test itself called a plain function
        if file.startswith(_OURS):
            place = f"{file[len(_OURS) + 1 :]}:{name}"
            if place in ALLOWED:
                return None
            ours = ours or place
            awaited = awaited or bool(frame.f_code.co_flags & _ASYNC)
        frame = frame.f_back
    return ours


def _is_watch(frame: FrameType) -> bool:
    return frame.f_code.co_filename == __file__
