"""Running a coroutine until it ends, Ctrl-C is pressed or the system asks to stop."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Coroutine
from typing import Any, TypeVar

from evercontext.domain.outcome import outcome_of
from evercontext.errors import Cancelled, Terminated
from evercontext.process.shutdown import PATIENCE, end_within, new_runner

T = TypeVar("T")


def run_until_stopped(work: Coroutine[Any, Any, T]) -> T:
    """Run ``work``; a signal cancels it and raises ``Cancelled``, a second one leaves at once."""
    reasons: list[Cancelled] = []
    with new_runner() as runner:
        loop = runner.get_loop()
        task = loop.create_task(work)

        def stop(reason: Cancelled) -> None:
            if reasons:
                os._exit(int(outcome_of(reason)))
            reasons.append(reason)
            # The task's trace should end with the same word as the process.
            task.cancel(reason.code)
            # Something that cannot be cancelled must not keep the process for ever.
            end_within(PATIENCE, int(outcome_of(reason)))

        signals = {signal.SIGINT: Cancelled("stopped"), signal.SIGTERM: Terminated("terminated")}
        # nohup means that work goes on when the terminal is gone.
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
            signals[signal.SIGHUP] = Terminated("the terminal was closed")
        for number, reason in signals.items():
            loop.add_signal_handler(number, stop, reason)
        try:
            return loop.run_until_complete(task)
        except (asyncio.CancelledError, Exception):
            # What breaks while it is being stopped is no news.
            if not reasons:
                raise
            raise reasons[0] from None
        finally:
            for number in signals:
                loop.remove_signal_handler(number)
