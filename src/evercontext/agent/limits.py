"""Limits of one task, and what has been used of them."""

from __future__ import annotations

import time
from dataclasses import dataclass

from evercontext.domain.event import Limit
from evercontext.domain.model import Usage
from evercontext.errors import LimitReached
from evercontext.settings import Settings

_FIX = {
    "turns": "--max-turns",
    "time": "--timeout",
    "tokens": "EC_MAX_TOKENS",
    "money": "--max-budget-usd",
}


@dataclass(frozen=True, slots=True)
class Limits:
    """What one task may use; 0 means no limit."""

    turns: int = 50
    seconds: float = 1800.0
    tokens: int = 0
    usd: float = 0.0


def limits_of(settings: Settings) -> Limits:
    """Return the limits that the settings give a task."""
    return Limits(
        turns=settings.max_turns,
        seconds=settings.timeout,
        tokens=settings.max_tokens,
        usd=settings.max_budget_usd,
    )


class LimitHit(LimitReached):
    """A limit was reached; carries the event that says which."""

    def __init__(self, event: Limit) -> None:
        super().__init__(
            f"the limit of {event.allowed:g} {_UNIT[event.kind]} is used up",
            fix=f"Raise it with {_FIX[event.kind]}",
        )
        self.event = event


_UNIT = {"turns": "turns", "time": "seconds", "tokens": "tokens", "money": "US dollars"}


class Meter:
    """Counts turns, seconds, tokens and money against the limits."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._started = time.monotonic()
        self.turns = 0
        self.answered = 0
        """Those of the turns that the model answered."""
        self.usage = Usage()
        self.cost: float | None = None

    @property
    def seconds(self) -> float:
        """Time since the task began."""
        return time.monotonic() - self._started

    @property
    def seconds_left(self) -> float | None:
        """Time until the limit, or ``None`` without one."""
        return max(0.0, self._limits.seconds - self.seconds) if self._limits.seconds else None

    def begin_turn(self) -> None:
        """Count a turn, or raise ``LimitHit`` if any limit is used up."""
        allowed = self._limits
        spent = self.usage.input_tokens + self.usage.output_tokens
        for kind, limit, used in (
            ("turns", allowed.turns, self.turns),
            ("time", allowed.seconds, self.seconds),
            ("tokens", allowed.tokens, spent),
            ("money", allowed.usd, self.cost or 0.0),
        ):
            if limit and used >= limit:
                raise LimitHit(Limit(kind=kind, allowed=limit, used=used))
        self.turns += 1

    def out_of_time(self) -> LimitHit:
        """The error of a turn that was cut by the clock."""
        return LimitHit(Limit(kind="time", allowed=self._limits.seconds, used=self.seconds))

    def add(self, usage: Usage, cost: float | None) -> None:
        """Count what one reply cost."""
        self.usage += usage
        if cost is not None:
            self.cost = (self.cost or 0.0) + cost
