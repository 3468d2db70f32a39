"""How a task ended."""

from __future__ import annotations

from dataclasses import dataclass

from evercontext.domain.event import Final
from evercontext.domain.outcome import Outcome
from evercontext.errors import EverContextError


@dataclass(frozen=True, slots=True)
class TaskReport:
    """How a task ended, for people and programs."""

    trace_id: str
    outcome: Outcome
    text: str
    error: EverContextError | None
    final: Final
