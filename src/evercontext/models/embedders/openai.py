"""Embeddings of OpenAI and of servers that speak like it: ``POST /embeddings``."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from evercontext.domain.model import Embedded
from evercontext.errors import BadReply
from evercontext.models.embedders.batches import EmbeddingWire, Sleep, checked, portions
from evercontext.models.provider_errors import Provider

BASE = "https://api.openai.com/v1"
DEFAULT = "text-embedding-3-small"
_SHORTENED = 512
"""Length asked of models that can shorten their vectors: a third of the size, hardly worse."""
_PRICES = {
    "text-embedding-3-small": 0.02,
    "text-embedding-3-large": 0.13,
    "text-embedding-ada-002": 0.10,
}
"""US dollars for a million tokens, by OpenAI's list."""


class OpenAIEmbedder:
    """One embedding model of an OpenAI-compatible server."""

    local = False

    def __init__(
        self,
        model: str,
        *,
        api_key: str | None,
        base_url: str | None = None,
        seconds: float = 60.0,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        provider = Provider("openai", model, "OPENAI_API_KEY", base_url or BASE)
        if not api_key and not base_url:
            raise provider.no_key()
        self._model = model
        self._shortened = model.startswith("text-embedding-3")
        self._own_server = base_url is not None
        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        base = (base_url or BASE).rstrip("/")
        self._wire = EmbeddingWire(provider, base, headers=headers, seconds=seconds, sleep=sleep)

    @property
    def name(self) -> str:
        """Model and, where it was chosen, the length."""
        return f"openai:{self._model}" + (f":{_SHORTENED}" if self._shortened else "")

    def price(self, tokens: int) -> float | None:
        """Return US dollars by OpenAI's list; ``None`` for another server's models."""
        listed = None if self._own_server else _PRICES.get(self._model)
        return None if listed is None else tokens * listed / 1e6

    async def aclose(self) -> None:
        """Give the connections back."""
        await self._wire.aclose()

    async def embed(self, texts: Sequence[str], *, question: bool = False) -> Embedded:
        """Return one vector per text; questions are read like documents."""
        vectors: list[list[float]] = []
        tokens = 0
        for part in portions(texts):
            body: dict[str, Any] = {"model": self._model, "input": part, "encoding_format": "float"}
            if self._shortened:
                body["dimensions"] = _SHORTENED
            answer = await self._wire.ask("/embeddings", body)
            vectors += checked(_in_order(answer.get("data")), len(part), "openai")
            tokens += int((answer.get("usage") or {}).get("prompt_tokens") or 0)
        return Embedded(vectors, tokens)


def _in_order(data: Any) -> list[Any]:
    """Return the vectors in the order of the texts: the protocol numbers them."""
    if not isinstance(data, list) or not all(isinstance(row, dict) for row in data):
        raise BadReply("openai answered without data")
    placed = {row.get("index", i): row.get("embedding") for i, row in enumerate(data)}
    if sorted(placed, key=str) != sorted(range(len(data)), key=str):
        raise BadReply("openai numbered its vectors wrongly")
    return [placed[i] for i in range(len(data))]
