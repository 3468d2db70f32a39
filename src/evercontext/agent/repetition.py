"""Warn, then stop, a model that repeats itself or fails at everything."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Sequence

from evercontext.domain.message import ToolCall
from evercontext.domain.tool import ToolResult
from evercontext.errors import LimitReached

NUDGE_AT = 3
STOP_AT = 5
STOP_FAILURES_AT = 3
MOST_FAILURES = 10
"""Calls that may fail in a row, however different they are (the circuit breaker, E42)."""
LEAST_REPLIES = 3
"""Replies they must come from: a model that asks for many at once has not seen one fail yet."""


class Repetition:
    """Counts identical calls with identical results."""

    def __init__(self) -> None:
        self._seen: Counter[str] = Counter()

    def note(self, call: ToolCall, result: ToolResult) -> str | None:
        """Count one call; return a warning for the model, or raise once it is hopeless."""
        times = self._count(call, result)
        if times >= STOP_AT or (times >= STOP_FAILURES_AT and not result.ok):
            raise LimitReached(
                f"stopped: {call.name} was called {times} times with the same result",
                fix="Say the task in other words, or use a stronger model",
            )
        if times >= NUDGE_AT:
            return f"You made this same call {times} times with the same result. Do something else."
        return None

    def _count(self, call: ToolCall, result: ToolResult) -> int:
        what = json.dumps([call.name, call.arguments, result.text], sort_keys=True, default=str)
        key = hashlib.sha256(what.encode("utf-8", "backslashreplace")).hexdigest()
        self._seen[key] += 1
        return self._seen[key]


class FailureStreak:
    """Counts the calls that failed one after another."""

    def __init__(self) -> None:
        self._calls = self._replies = 0

    def note(self, reply: Sequence[ToolResult]) -> None:
        """Take in the results of one reply; raise once too many failed in a row."""
        failed = 0
        for result in reversed(reply):
            if not failing(result):
                self._calls = self._replies = 0
                break
            failed += 1
        self._calls += failed
        self._replies += bool(failed)
        if self._calls >= MOST_FAILURES and self._replies >= LEAST_REPLIES:
            last = (reply[-1].text.strip().splitlines() or [""])[-1][:200]
            raise LimitReached(
                f"stopped: {self._calls} calls in a row failed, the last one with: {last}",
                fix="Say the task in other words, or use a stronger model",
            )


def failing(result: ToolResult) -> bool:
    """Tell whether a call failed: it could not be made, or its command ended badly."""
    return not result.ok or bool(exit_code(result))


def exit_code(result: ToolResult) -> int | None:
    """Return how the command of a call ended, where it ran one."""
    code = result.data.get("exit_code") if isinstance(result.data, dict) else None
    return code if isinstance(code, int) else None
