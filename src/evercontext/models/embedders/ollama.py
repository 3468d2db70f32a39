"""Embeddings of an Ollama server: ``POST /api/embed``."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from urllib.parse import urlsplit

from evercontext.domain.model import Embedded
from evercontext.errors import ModelUnknown
from evercontext.models.embedders.batches import EmbeddingWire, Sleep, checked, portions
from evercontext.models.ollama import address
from evercontext.models.provider_errors import Provider

DEFAULT = "nomic-embed-text"
_HERE = frozenset({"localhost", "127.0.0.1", "::1"})
_OPENINGS = {
    # What these models were trained to read before a document and before a question.
    "nomic-embed-text": ("search_document: ", "search_query: "),
    "embeddinggemma": ("title: none | text: ", "task: code retrieval | query: "),
    "mxbai-embed-large": ("", "Represent this sentence for searching relevant passages: "),
    "qwen3-embedding": ("", "Instruct: Find the code that answers the question\nQuery: "),
}


class OllamaEmbedder:
    """One embedding model of an Ollama server."""

    def __init__(
        self, model: str, *, endpoint: str, seconds: float = 120.0, sleep: Sleep = asyncio.sleep
    ) -> None:
        self._model = model
        base = address(endpoint)
        self._here = urlsplit(base).hostname in _HERE
        provider = Provider("ollama", model, address=base)
        self._wire = EmbeddingWire(provider, base, seconds=seconds, sleep=sleep)
        self._openings = _OPENINGS.get(model.partition(":")[0], ("", ""))

    @property
    def name(self) -> str:
        """The model, with its tag."""
        return f"ollama:{self._model}"

    @property
    def local(self) -> bool:
        """True unless the server is another machine."""
        return self._here

    def price(self, tokens: int) -> float | None:
        """Return nothing: nobody charges."""
        return 0.0

    async def aclose(self) -> None:
        """Give the connections back."""
        await self._wire.aclose()

    async def embed(self, texts: Sequence[str], *, question: bool = False) -> Embedded:
        """Return one vector per text; a text beyond the model's window is cut by the server."""
        opening = self._openings[question]
        vectors: list[list[float]] = []
        tokens = 0
        for part in portions([opening + text for text in texts]):
            try:
                answer = await self._wire.ask(
                    "/api/embed", {"model": self._model, "input": part, "truncate": True}
                )
            except ModelUnknown:
                raise ModelUnknown(
                    f"Ollama has no model {self._model!r}", fix=f"Run: ollama pull {self._model}"
                ) from None
            vectors += checked(answer.get("embeddings"), len(part), "ollama")
            tokens += int(answer.get("prompt_eval_count") or 0)
        return Embedded(vectors, tokens)
