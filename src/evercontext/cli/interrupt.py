"""Running a coroutine until it ends, Ctrl-C is pressed or the system asks to stop."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Coroutine
from typing import Any, TypeVar

from evercontext.domain.outcome import outcome_of
from evercontext.errors import Cancelled, Terminated
from evercontext.process.shutdown import PATIENCE, end_within, run

T = TypeVar("T")


def run_until_stopped(work: Coroutine[Any, Any, T]) -> T:
    """Run ``work``; a signal cancels it and raises ``Cancelled``, a second one leaves at once."""
    return run(_guarded(work))


async def _guarded(work: Coroutine[Any, Any, T]) -> T:
    loop = asyncio.get_running_loop()
    task = asyncio.ensure_future(work)
    reasons: list[Cancelled] = []

    def stop(reason: Cancelled) -> None:
        if reasons:
            os._exit(int(outcome_of(reason)))
        reasons.append(reason)
        # The task's trace should end with the same word as the process.
        task.cancel(reason.code)
        # Something that cannot be cancelled must not keep the process for ever.
        end_within(PATIENCE, int(outcome_of(reason)))

    loop.add_signal_handler(signal.SIGINT, stop, Cancelled("stopped"))
    loop.add_signal_handler(signal.SIGTERM, stop, Terminated("terminated"))
    # nohup means that work goes on when the terminal is gone.
    hangs_up = signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN
    if hangs_up:
        loop.add_signal_handler(signal.SIGHUP, stop, Terminated("the terminal was closed"))
    try:
        return await task
    except (asyncio.CancelledError, Exception):
        # What breaks while it is being stopped is no news.
        if not reasons:
            raise
        raise reasons[0] from None
    finally:
        loop.remove_signal_handler(signal.SIGINT)
        loop.remove_signal_handler(signal.SIGTERM)
        if hangs_up:
            loop.remove_signal_handler(signal.SIGHUP)
