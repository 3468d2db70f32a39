"""Define the request and the result of the assembler."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from evercontext.context.conversation_window import Window
from evercontext.context.token_estimate import TokenEstimator
from evercontext.settings import Settings

ChatMessage = dict[str, str]
"""``{"role": …, "content": …}``, as every chat API takes it."""


class ContextOverflowError(ValueError):
    """The system prompt and the user's message alone are more than the window."""


class MemoryLayer(StrEnum):
    """The layers of a context."""

    SYSTEM = "system"
    WORKING = "working"
    SEMANTIC = "semantic"
    SESSION_SUMMARY = "session_summary"
    USER_MESSAGE = "user_message"


def _within(name: str, value: float, low: float, high: float = float("inf")) -> None:
    if isinstance(value, bool) or not low <= value <= high:
        bound = f"at least {low:g}" if high == float("inf") else f"between {low:g} and {high:g}"
        raise ValueError(f"{name} must be {bound}, not {value!r}")


class Record:
    """A dataclass that can be written as plain JSON, by the names that pydantic's models have."""

    __slots__ = ()

    def model_dump(self) -> dict[str, Any]:
        """Return the fields by name, of nested records too."""
        return {name: _plain(getattr(self, name)) for name in self.__dataclass_fields__}  # type: ignore[attr-defined]

    def dict(self) -> dict[str, Any]:
        """Return the same as ``model_dump``, under pydantic's older name."""
        return self.model_dump()


def _plain(value: Any) -> Any:
    if isinstance(value, Record):
        return value.model_dump()
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value


@dataclass(frozen=True, slots=True)
class ContextConfig(Record):
    """How much of each layer, in which window."""

    system_prompt: str = "You are Kana, the external translator for Resonant Engine."
    working_memory_limit: int = 10
    semantic_memory_limit: int = 5
    max_tokens: int = 100_000
    token_safety_margin: float = 0.8

    def __post_init__(self) -> None:
        _within("working_memory_limit", self.working_memory_limit, 1, 50)
        _within("semantic_memory_limit", self.semantic_memory_limit, 1, 20)
        _within("max_tokens", self.max_tokens, 1000)
        _within("token_safety_margin", self.token_safety_margin, 0.5, 0.95)
        if not self.system_prompt.strip():
            raise ValueError("system_prompt must not be empty")

    @classmethod
    def of(cls, settings: Settings) -> ContextConfig:
        """The configuration that the settings ask for."""
        return cls(
            system_prompt=settings.system_prompt,
            working_memory_limit=settings.working_memory_limit,
            semantic_memory_limit=settings.semantic_memory_limit,
            max_tokens=settings.context_max_tokens,
            token_safety_margin=settings.token_safety_margin,
        )

    @property
    def token_limit(self) -> int:
        """Return how many tokens a context may hold: the window less its safety margin."""
        return int(self.max_tokens * self.token_safety_margin)

    def window(self, estimator: TokenEstimator) -> Window:
        """Return the window that contexts must fit into; the safety margin is its reserve."""
        return Window(self.max_tokens, self.max_tokens - self.token_limit, estimator)


@dataclass(frozen=True, slots=True)
class AssemblyOptions(Record):
    """Options of one request that override the configuration."""

    working_memory_limit: int | None = None
    semantic_memory_limit: int | None = None
    include_semantic_memory: bool = True
    include_session_summary: bool = True


@dataclass(frozen=True, slots=True)
class ContextMetadata(Record):
    """The layers that were sent, and the time it took."""

    working_memory_count: int
    semantic_memory_count: int
    has_session_summary: bool
    total_tokens: int
    token_limit: int
    compression_applied: bool
    assembly_latency_ms: float
    degraded: Mapping[str, str] = field(default_factory=dict)
    """Layers that failed, with why; the answer goes on without them."""


@dataclass(frozen=True, slots=True)
class AssembledContext(Record):
    """A message list that fits, and its metadata."""

    messages: list[ChatMessage]
    metadata: ContextMetadata
