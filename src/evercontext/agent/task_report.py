"""How a task ended."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from evercontext.domain.event import Body, Final, Notice, RolledBack
from evercontext.domain.outcome import Outcome
from evercontext.errors import EverContextError

Rollback = Callable[[], Awaitable[RolledBack]]
"""Takes back what the task changed, and says what came of it."""
Standing = tuple[tuple[str, ...], tuple[str, ...]]
"""The files that stay changed, and those that were taken back."""


@dataclass(frozen=True, slots=True)
class TaskReport:
    """How a task ended, for people and programs."""

    trace_id: str
    outcome: Outcome
    text: str
    error: EverContextError | None
    final: Final


async def roll_back(
    rollback: Rollback, changed: tuple[str, ...], emit: Callable[[Body], object]
) -> Standing:
    """Take back what a task changed, and tell of it."""
    try:
        undone = await rollback()
    except EverContextError as problem:
        emit(Notice(level="error", text=f"nothing was rolled back: {problem}"))
        return changed, ()
    emit(undone)
    back = (*undone.restored, *undone.removed)
    return tuple(path for path in changed if path not in back), back
