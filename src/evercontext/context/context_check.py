"""Check a context right before it is sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evercontext.context.context_request import ContextConfig, ContextOverflowError


class ContextValidator:
    """Refuses a message list that no chat API would take."""

    def __init__(self, config: ContextConfig | None = None) -> None:
        self._config = config or ContextConfig()

    def _validate_context(self, messages: Sequence[Mapping[str, Any]], tokens: int) -> None:
        if not messages:
            raise ValueError("Messages cannot be empty")
        for i, message in enumerate(messages):
            if "role" not in message or "content" not in message:
                raise ValueError(f"Message {i} missing role or content")
            if not str(message["content"] or "").strip():
                raise ValueError(f"Message {i} has empty content")
        if messages[0]["role"] != "system":
            raise ValueError("First message must be system prompt")
        if messages[-1]["role"] != "user":
            raise ValueError("Last message must be user message")
        if tokens > self._config.token_limit:
            raise ContextOverflowError(
                f"{tokens} tokens are more than the limit of {self._config.token_limit}"
            )
