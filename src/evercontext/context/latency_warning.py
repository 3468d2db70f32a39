"""Warn when assembling contexts becomes slow, once each time."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field

SLOW_MS = 100.0
"""The latency that 95 of 100 assemblies should stay under (R6)."""
FEWEST = 20
_NEWEST = 100


@dataclass(slots=True)
class LatencyWatch:
    """Keeps the newest latencies of a process."""

    slow_ms: float = SLOW_MS
    _newest: deque[float] = field(default_factory=lambda: deque(maxlen=_NEWEST))
    _warned: bool = False

    def observe(self, milliseconds: float) -> str | None:
        """Take in one latency; return the warning that is due, if one is."""
        self._newest.append(milliseconds)
        p95 = self.p95()
        slow = len(self._newest) >= FEWEST and p95 > self.slow_ms
        due, self._warned = slow and not self._warned, slow
        if not due:
            return None
        return (
            f"putting a context together takes {p95:.0f} ms (p95 of the last {len(self._newest)});"
            f" {self.slow_ms:.0f} ms is the goal"
        )

    def p95(self) -> float:
        """The latency that 95 of 100 stay under."""
        ranked = sorted(self._newest)
        return ranked[math.ceil(0.95 * len(ranked)) - 1] if ranked else 0.0
