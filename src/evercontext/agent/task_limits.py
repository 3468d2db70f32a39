"""Count the limits of one task."""

from __future__ import annotations

import time
from dataclasses import dataclass

from evercontext.domain.event import Limit
from evercontext.domain.model import EFFORTS, Effort, Usage
from evercontext.errors import LimitReached
from evercontext.settings import Settings

_FIX = {
    "turns": "--max-turns or EC_MAX_TURNS",
    "time": "--timeout or EC_TIMEOUT",
    "tokens": "EC_MAX_TOKENS",
    "money": "--max-budget-usd or EC_MAX_BUDGET_USD",
}
"""How to raise a limit: the flag is one of ``run``, the variable counts wherever a task runs."""


@dataclass(frozen=True, slots=True)
class TaskLimits:
    """The limits of one task; 0 means no limit."""

    turns: int = 50
    seconds: float = 1800.0
    tokens: int = 0
    usd: float = 0.0


def limits_of(settings: Settings) -> TaskLimits:
    """Return the limits that the settings give a task."""
    return TaskLimits(
        turns=settings.max_turns,
        seconds=settings.timeout,
        tokens=settings.max_tokens,
        usd=settings.max_budget_usd,
    )


def effort_of(settings: Settings) -> Effort | None:
    """Return how much the settings let a model think."""
    return next((level for level in EFFORTS if level == settings.reasoning_effort), None)


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

    def __init__(self, limits: TaskLimits, parent: Meter | None = None) -> None:
        self._limits = limits
        self._parent = parent
        self._started = time.monotonic()
        self.turns = 0
        self.answered = 0
        """The turns that the model answered."""
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
        if (reached := self._reached()) is not None:
            raise LimitHit(reached)
        self.turns += 1

    def _reached(self) -> Limit | None:
        allowed = self._limits
        for kind, limit, used in (
            ("turns", allowed.turns, self.turns),
            ("time", allowed.seconds, self.seconds),
            ("tokens", allowed.tokens, self._spent_tokens()),
            ("money", allowed.usd, self.cost or 0.0),
        ):
            if limit and used >= limit:
                return Limit(kind=kind, allowed=limit, used=used)
        return None

    def out_of_time(self) -> LimitHit:
        """The error of a turn that was cut by the clock."""
        return LimitHit(Limit(kind="time", allowed=self._limits.seconds, used=self.seconds))

    def add(self, usage: Usage, cost: float | None) -> None:
        """Count the cost of one reply."""
        self.usage += usage
        if cost is not None:
            self.cost = (self.cost or 0.0) + cost
        if self._parent is not None:
            self._parent.add(usage, cost)

    def count_answer(self) -> None:
        """Count a turn that the model answered."""
        self.answered += 1
        if self._parent is not None:
            self._parent.count_answer()

    def used_up(self) -> bool:
        """Tell whether some limit is reached."""
        return self._reached() is not None

    def share(self, turns: int, part: float) -> Meter:
        """Return a meter for a share of the remaining budget; its counts are added here, too."""
        allowed = self._limits
        left_tokens = max(1, allowed.tokens - self._spent_tokens()) if allowed.tokens else 0
        left_usd = max(1e-9, allowed.usd - (self.cost or 0.0)) if allowed.usd else 0.0
        limits = TaskLimits(
            turns=turns,
            seconds=max(0.001, self.seconds_left or 0.0) if allowed.seconds else 0.0,
            tokens=max(1, int(left_tokens * part)) if left_tokens else 0,
            usd=left_usd * part,
        )
        return Meter(limits, self)

    def _spent_tokens(self) -> int:
        return self.usage.input_tokens + self.usage.output_tokens
