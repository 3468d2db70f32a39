"""End this process: in order if that is quick, and soon in any case."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

from evercontext.process.fast_exit import hurry
from evercontext.process.worker_threads import DaemonPool

T = TypeVar("T")
PATIENCE = 1.5
"""Seconds that work has to put itself in order once a signal says stop; a busy machine needs the
rest of the two that it may take in all."""


def end_within(seconds: float, code: int) -> None:
    """Leave with ``code`` after so many seconds, whatever still runs then.

    A thread of its own keeps the time: neither a busy event loop nor one that is closed stops it.
    """
    hurry(code)
    clock = threading.Timer(seconds, os._exit, [code])
    clock.daemon = True
    clock.start()


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run ``work`` as ``asyncio.run`` does; threads it leaves behind are not waited for."""
    with new_runner() as runner:
        return runner.run(work)


def new_runner() -> asyncio.Runner:
    """Return what runs an event loop and, at its end, waits for no thread."""
    return asyncio.Runner(loop_factory=_new_loop)


def _new_loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    loop.set_default_executor(DaemonPool())
    return loop
