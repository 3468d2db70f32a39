"""Compute the wait before a retry: one policy for every provider and caller.

Overload (429, 529), server errors (5xx) and cut connections are tried again with growing waits and
jitter, as the vendors' own SDKs do; what a provider asks for in ``Retry-After`` comes first. No
wait begins that would outlast the time of the task.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeVar

from evercontext.errors import EverContextError, ModelUnavailable

Sleep = Callable[[float], Awaitable[None]]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Backoff:
    """How often something is tried, and how long the waits between are."""

    attempts: int = 6
    first_wait: float = 0.5
    """Seconds; doubled after each try."""
    longest_wait: float = 8.0
    jitter: float = 0.25
    """Share of a wait that chance takes off, so that many clients do not come back at once."""
    longest_asked: float = 60.0
    """The longest ``Retry-After`` that is waited for where the task has no time limit."""
    patience: float = 120.0
    """Seconds after which nothing is tried again, except once."""
    sleep: Sleep = asyncio.sleep
    clock: Callable[[], float] = time.monotonic
    chance: Callable[[], float] = random.random

    def begin(self, seconds_left: float | None = None) -> Tries:
        """Begin to count the tries of one request."""
        return Tries(self, self.clock(), seconds_left)


@dataclass(slots=True)
class Tries:
    """The tries of one request."""

    backoff: Backoff
    began: float
    seconds_left: float | None
    number: int = field(default=1)

    def wait(self, error: EverContextError) -> float | None:
        """Return the seconds until the next try; ``None`` if there is none."""
        rules, spent = self.backoff, self.backoff.clock() - self.began
        if self.number >= rules.attempts or (self.number > 1 and spent > rules.patience):
            return None
        requested: float | None = getattr(error, "retry_after", None)
        seconds = self._own_wait() if requested is None else requested
        longest = rules.longest_asked if self.seconds_left is None else self.seconds_left - spent
        if seconds > longest:
            return None
        self.number += 1
        return seconds

    def _own_wait(self) -> float:
        rules = self.backoff
        grown = min(rules.first_wait * 2.0 ** (self.number - 1), rules.longest_wait)
        return grown * (1 - rules.jitter * rules.chance())


async def persist(
    do: Callable[[], Awaitable[T]],
    backoff: Backoff,
    *,
    retryable: tuple[type[EverContextError], ...] = (ModelUnavailable,),
    tell: Callable[[EverContextError, int], None] = lambda error, number: None,
) -> T:
    """Do something until it works or the policy gives up; ``tell`` hears of each failed try."""
    tries = backoff.begin()
    while True:
        number = tries.number
        try:
            return await do()
        except retryable as error:
            seconds = tries.wait(error)
            if seconds is None:
                raise
            tell(error, number)
        await backoff.sleep(seconds)
