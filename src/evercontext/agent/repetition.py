"""A model that makes the same call with the same result for ever is told, then stopped."""

from __future__ import annotations

import hashlib
import json
from collections import Counter

from evercontext.domain.message import ToolCall
from evercontext.domain.tool import ToolResult
from evercontext.errors import LimitReached

NUDGE_AT = 3
STOP_AT = 5
STOP_FAILURES_AT = 3


class Repetition:
    """Counts identical calls with identical results."""

    def __init__(self) -> None:
        self._seen: Counter[str] = Counter()

    def note(self, call: ToolCall, result: ToolResult) -> str | None:
        """Count one call; return what to tell the model, or raise once it is hopeless."""
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
