"""Send a user's intent to Claude with everything remembered about it (``KanaAIBridge``)."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from evercontext import settings as sources
from evercontext.context.context_request import AssembledContext, ChatMessage
from evercontext.domain.backoff import Backoff, persist
from evercontext.errors import ModelUnavailable
from evercontext.models.provider_errors import Provider
from evercontext.models.stop_reasons import stop_reason
from evercontext.settings import Settings


class Assembler(Protocol):
    """Puts a context together; ``ContextAssemblerService`` does."""

    async def assemble_context(
        self, user_message: str, user_id: str, session_id: object | None = None
    ) -> AssembledContext:
        """Return a message list that fits."""
        ...


class KanaAIBridge:
    """Sends an intent to Claude, through the context assembler where there is one."""

    def __init__(
        self,
        api_key: str | None = None,
        model: str | None = None,
        client: Any = None,
        context_assembler: Assembler | None = None,
        *,
        settings: Settings | None = None,
        backoff: Backoff | None = None,
    ) -> None:
        self._settings = settings or sources.load()
        self._backoff = backoff or Backoff(attempts=1 + self._settings.model_retries)
        key = api_key or self._settings.anthropic_api_key
        if client is None and not key:
            raise ValueError("no key for Claude: set ANTHROPIC_API_KEY, or pass api_key or client")
        self._model = model or self._settings.bridge_model
        self._client = client if client is not None else _connect(str(key), self._settings)
        self._assembler = context_assembler

    async def process_intent(self, intent: Mapping[str, Any]) -> dict[str, Any]:
        """Answer ``{content, user_id="default", session_id}``; errors come back, never raise."""
        content = intent.get("content")
        if not isinstance(content, str) or not content.strip():
            return {"status": "error", "reason": "the intent has no content"}
        try:
            messages, metadata = await self._messages(content, intent)
            reply = await self._answer(messages)
            self._learn(messages, reply)
        except Exception as problem:  # noqa: BLE001 - the caller is promised an answer
            return {"status": "error", "reason": _reason(problem)}
        stop = stop_reason(getattr(reply, "stop_reason", None))
        if stop == "filtered":
            return {"status": "error", "reason": "the answer was withheld"}
        answer: dict[str, Any] = {"status": "ok", "model": self._model, "summary": _text(reply)}
        answer |= {"truncated": True} if stop == "length" else {}
        return answer | ({"context_metadata": metadata} if metadata else {})

    async def aclose(self) -> None:
        """Close the connection, if it can be closed."""
        close = getattr(self._client, "close", None)
        closing = close() if close else None
        if inspect.isawaitable(closing):
            await closing

    async def _messages(
        self, content: str, intent: Mapping[str, Any]
    ) -> tuple[list[ChatMessage], dict[str, Any] | None]:
        if self._assembler is None:
            prompt = {"role": "system", "content": self._settings.system_prompt}
            return [prompt, {"role": "user", "content": content}], None
        context = await self._assembler.assemble_context(
            content, str(intent.get("user_id") or "default"), intent.get("session_id")
        )
        return context.messages, context.metadata.dict()

    def _learn(self, messages: Sequence[ChatMessage], reply: Any) -> None:
        """Tell the assembler what the request really cost; others than ours need not know how."""
        usage = getattr(reply, "usage", None)
        names = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
        counted = [getattr(usage, name, 0) for name in names]
        real = sum(number for number in counted if isinstance(number, int))
        learn = getattr(self._assembler, "learn", None)
        if learn is not None and real:
            learn(messages, real, self._model)

    async def _answer(self, messages: Sequence[ChatMessage]) -> Any:
        """Send the messages; an outage is tried again as for every other model."""

        async def send() -> Any:
            try:
                return await self._send(messages)
            except Exception as problem:
                if outage := _outage(problem):
                    raise outage from problem
                raise

        try:
            return await persist(send, self._backoff)
        except ModelUnavailable as outage:
            # The caller is told what the vendor said.
            raise outage.__cause__ or outage from None

    async def _send(self, messages: Sequence[ChatMessage]) -> Any:
        create = self._client.messages.create
        system, turns = for_claude(messages)
        call = {
            "model": self._model,
            "max_tokens": self._settings.bridge_max_tokens,
            "system": system,
            "messages": turns,
        }
        sampling = {"temperature": self._settings.bridge_temperature}
        # Newer clients have no such parameter, though their servers still understand it.
        named = inspect.signature(create).parameters
        direct = "temperature" in named or any(p.kind is p.VAR_KEYWORD for p in named.values())
        extra = sampling if direct else {"extra_body": sampling}
        try:
            return await create(**call, **extra)
        except Exception as problem:
            if "temperature" not in str(problem):
                raise
            # Some current models refuse every sampling option.
            return await create(**call)


def for_claude(messages: Sequence[ChatMessage]) -> tuple[str, list[ChatMessage]]:
    """System text apart; same-role neighbours merged; the first turn is the user's."""
    system = "\n\n".join(m["content"] for m in messages if m["role"] == "system")
    turns: list[ChatMessage] = []
    for message in messages:
        if message["role"] == "system":
            continue
        if turns and turns[-1]["role"] == message["role"]:
            turns[-1] = {**message, "content": f"{turns[-1]['content']}\n\n{message['content']}"}
        else:
            turns.append(dict(message))
    if turns and turns[0]["role"] != "user":
        turns.insert(0, {"role": "user", "content": "(Context from earlier follows.)"})
    return system, turns


def _connect(key: str, settings: Settings) -> Any:
    from evercontext.models.claude_client import ClaudeClient

    return ClaudeClient(key, base_url=settings.anthropic_base_url, timeout=settings.model_timeout)


def _text(reply: Any) -> str:
    blocks = getattr(reply, "content", None) or []
    return "".join(getattr(block, "text", "") or "" for block in blocks)


def _outage(problem: Exception) -> ModelUnavailable | None:
    """Return the outage that a client's error tells of: overload, a server's error, a cut line."""
    status = getattr(problem, "status_code", None)
    if isinstance(status, int):
        headers = getattr(getattr(problem, "response", problem), "headers", None)
        refusal = Provider("anthropic", "").refused(status, str(problem), headers=headers)
        return refusal if isinstance(refusal, ModelUnavailable) else None
    names = {kind.__name__ for kind in type(problem).__mro__}
    cut = "APIConnectionError" in names or isinstance(problem, ConnectionError | TimeoutError)
    return ModelUnavailable(str(problem) or "cut off") if cut else None


def _reason(problem: Exception) -> str:
    return str(problem) or type(problem).__name__
