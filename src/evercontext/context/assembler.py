"""Assemble a context: fetch the layers, pack them, check them, report them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, cast

from evercontext import settings as sources
from evercontext.context.context_check import ContextValidator
from evercontext.context.context_request import (
    AssembledContext,
    AssemblyOptions,
    ChatMessage,
    ContextConfig,
    ContextMetadata,
    MemoryLayer,
)
from evercontext.context.conversation_window import Window
from evercontext.context.engine import LAYER_SECONDS, ContextEngine
from evercontext.context.layer_messages import MessageBuilder, conversation
from evercontext.context.packing import Selection, pack
from evercontext.context.token_estimate import PER_REPLY, TokenEstimator
from evercontext.domain.event import ContextAssembled, ModelReply
from evercontext.domain.memory import Retrieval
from evercontext.domain.message import Message, Role
from evercontext.events.log import EventLog


class MessageSource(Protocol):
    """Where the conversation comes from."""

    async def list(self, *, user_id: str, limit: int) -> tuple[Sequence[Any], int]:
        """Return the newest messages, the newest first, and how many there are in all."""
        ...


class SessionSource(Protocol):
    """Where the summary comes from."""

    async def get_by_id(self, id: object) -> Any:
        """The session, whose ``metadata["summary"]`` may hold one; ``user_id`` is whose it is."""
        ...


@dataclass(slots=True)
class _Layers:
    working: Sequence[Any] = ()
    semantic: Sequence[Any] = ()
    summary: str = ""
    degraded: Mapping[str, str] = field(default_factory=dict)


class ContextAssemblerService:
    """Weaves working memory, related memories and the session's summary into one request."""

    def __init__(
        self,
        retrieval_orchestrator: Retrieval | None,
        message_repository: MessageSource | None,
        session_repository: SessionSource | None,
        config: ContextConfig | None = None,
        *,
        estimator: TokenEstimator | None = None,
        events: EventLog | None = None,
        trace_id: str = "context",
        layer_seconds: float = LAYER_SECONDS,
    ) -> None:
        self._messages = message_repository
        self._sessions = session_repository
        self._config = config or ContextConfig.of(sources.load())
        self._window = self._config.window(estimator or TokenEstimator())
        self._builder = MessageBuilder(self._config)
        self._validator = ContextValidator(self._config)
        self._engine = ContextEngine(retrieval_orchestrator, self._config, events, layer_seconds)
        self._events, self._trace_id = events, trace_id

    async def assemble_context(
        self,
        user_message: str,
        user_id: str,
        session_id: object | None = None,
        options: AssemblyOptions | None = None,
    ) -> AssembledContext:
        """Return a message list that fits the window; ``ContextOverflowError`` if none can."""
        started = time.perf_counter()
        if not user_message.strip():
            raise ValueError("user_message must not be empty")
        layers = await self._fetch(user_message, user_id, session_id, options or AssemblyOptions())
        complete = Selection(bool(layers.summary), len(layers.semantic), len(layers.working))
        cost = _Cost(self._window, lambda selection: self._build(layers, selection, user_message))
        chosen = pack(complete, cost, self._config.token_limit)
        messages = self._build(layers, chosen, user_message)
        tokens = cost.of(messages)
        self._validator._validate_context(messages, tokens)
        metadata = ContextMetadata(
            working_memory_count=chosen.messages,
            semantic_memory_count=chosen.memories,
            has_session_summary=chosen.summary,
            total_tokens=tokens,
            token_limit=self._config.token_limit,
            compression_applied=chosen != complete,
            assembly_latency_ms=(time.perf_counter() - started) * 1000,
            degraded=layers.degraded,
        )
        self._report(metadata)
        return AssembledContext(messages, metadata)

    async def _fetch(
        self, user_message: str, user_id: str, session_id: object | None, options: AssemblyOptions
    ) -> _Layers:
        fetched = await self._engine.fetch(
            {
                "working": self._working(user_message, user_id, options),
                "semantic": self._semantic(user_message, user_id, options),
                "session_summary": self._summary(user_id, session_id, options),
            }
        )
        working, semantic, summary = (
            fetched.results.get(name) for name in ("working", "semantic", "session_summary")
        )
        return _Layers(working or (), semantic or (), summary or "", fetched.degraded)

    async def _working(
        self, user_message: str, user_id: str, options: AssemblyOptions
    ) -> list[ChatMessage]:
        limit = _chosen(options.working_memory_limit, self._config.working_memory_limit)
        if self._messages is None or not limit:
            return []
        # One more than asked for: the user's message may have been saved before it is sent.
        stored, _ = await self._messages.list(user_id=user_id, limit=limit + 1)
        messages = conversation(list(reversed(stored)))
        if messages and messages[-1] == {"role": "user", "content": user_message}:
            messages.pop()
        return messages[-limit:]

    async def _semantic(
        self, user_message: str, user_id: str, options: AssemblyOptions
    ) -> list[Any]:
        if not options.include_semantic_memory:
            return []
        limit = options.semantic_memory_limit
        return await self._engine.related(user_message, user_id, limit=limit)

    async def _summary(
        self, user_id: str, session_id: object | None, options: AssemblyOptions
    ) -> str:
        if self._sessions is None or session_id is None or not options.include_session_summary:
            return ""
        session = await self._sessions.get_by_id(session_id)
        # Sources are foreign code: some know no users, and theirs belong to everybody.
        whose = getattr(session, "user_id", None) or ""
        if not session or whose not in ("", user_id):
            return ""
        return str((session.metadata or {}).get("summary") or "").strip()

    def _build(self, layers: _Layers, chosen: Selection, user_message: str) -> list[ChatMessage]:
        recent = layers.working[len(layers.working) - chosen.messages :]
        taken = {
            MemoryLayer.SESSION_SUMMARY: layers.summary if chosen.summary else "",
            MemoryLayer.SEMANTIC: layers.semantic[: chosen.memories],
            MemoryLayer.WORKING: recent,
        }
        return self._builder._build_messages(taken, user_message)

    def _report(self, metadata: ContextMetadata) -> None:
        body = ContextAssembled(
            context_assembly_latency_ms=metadata.assembly_latency_ms,
            context_token_count=metadata.total_tokens,
            memory_layer_usage={
                "working": metadata.working_memory_count,
                "semantic": metadata.semantic_memory_count,
                "session_summary": int(metadata.has_session_summary),
            },
            token_limit=metadata.token_limit,
            compression_applied=metadata.compression_applied,
            degraded=dict(metadata.degraded),
        )
        self._engine.report(body, self._trace_id)

    def learn(self, messages: Sequence[ChatMessage], real_tokens: int, model: str) -> None:
        """Correct the estimate by the provider's count, and log how far it was off."""
        if real_tokens <= 0:
            return
        before = self._window.learn([_as_message(message) for message in messages], (), real_tokens)
        if self._events is not None:
            # What was said is in the conversation; here only the numbers count.
            body = ModelReply(
                model=model, turn=1, text="", input_tokens=real_tokens, estimated_tokens=before
            )
            self._events.emit(body, trace_id=self._trace_id)


class _Cost:
    """Tokens of a selection. Each distinct message is counted once, however often it is tried."""

    def __init__(self, window: Window, build: Callable[[Selection], list[ChatMessage]]) -> None:
        self._window, self._build = window, build
        self._known: dict[str, int] = {}

    def __call__(self, chosen: Selection) -> int:
        return self.of(self._build(chosen))

    def of(self, messages: Sequence[ChatMessage]) -> int:
        """Tokens of a whole request."""
        return PER_REPLY + sum(map(self._tokens, messages))

    def _tokens(self, message: ChatMessage) -> int:
        text = message["content"]
        if text not in self._known:
            self._known[text] = self._window.cost(_as_message(message))
        return self._known[text]


def _as_message(message: ChatMessage) -> Message:
    return Message(cast("Role", message["role"]), message["content"])


def _chosen(requested: int | None, configured: int) -> int:
    return configured if requested is None else max(0, requested)
