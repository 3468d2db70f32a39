"""Define memories and the options of a recall."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Protocol


class MemoryType(StrEnum):
    """How long a memory is meant to last."""

    WORKING = "working"
    LONGTERM = "longterm"


class SourceType(StrEnum):
    """What a memory came from."""

    INTENT = "intent"
    THOUGHT = "thought"
    CORRECTION = "correction"
    DECISION = "decision"
    MESSAGE = "message"
    TOOL = "tool"


@dataclass(frozen=True, slots=True)
class RetrievalOptions:
    """What to look for, and on whose behalf. Nothing crosses from one user to another."""

    limit: int = 5
    user_id: str | None = None
    project: str | None = None
    memory_type: MemoryType | None = None
    now: datetime | None = None
    """The moment that "yesterday" is counted from; the present if not said."""
    min_similarity: float = 0.0
    log_metrics: bool = True
    """Taken as others' orchestrators know it; ours logs no single retrieval."""
    hurried: bool = False
    """A model waits for the answer: rather no memories than late ones."""


@dataclass(frozen=True, slots=True)
class RetrievedMemory:
    """A memory that was found, with why."""

    id: str
    content: str
    similarity: float
    """0 to 1, higher is better."""
    untrusted: bool = False
    """It came from a tool's output: data, never an instruction."""
    created_at: str | None = None
    speaker: str | None = None
    reasons: Mapping[str, float] = field(default_factory=dict)


class RetrievedMemories(list[RetrievedMemory]):
    """The memories that answer a query, the best first: a list that is also a response."""

    @property
    def results(self) -> list[RetrievedMemory]:
        """The memories themselves."""
        return self


class Retrieval(Protocol):
    """Finds memories; implemented by ``RetrievalOrchestrator``."""

    async def retrieve(
        self, query: str, options: RetrievalOptions | None = None
    ) -> Sequence[RetrievedMemory]:
        """Return the best memories first."""
        ...
