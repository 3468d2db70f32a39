"""Which embedder the code index uses, by ``EC_EMBEDDER``."""

from __future__ import annotations

from evercontext.domain.model import Embedder
from evercontext.errors import ConfigError
from evercontext.settings import Settings

STATIC, NONE = "static", "none"


def choose_embedder(settings: Settings) -> Embedder | None:
    """Return the embedder that was asked for; ``None`` where the index needs no other one."""
    kind, _, model = settings.embedder.partition(":")
    if kind in (STATIC, NONE) and not model:
        return None
    if kind == "minilm" and not model:
        from evercontext.models.embedders.minilm import MiniLM

        return MiniLM(settings.home)
    if kind == "openai":
        from evercontext.models.embedders import openai

        return openai.OpenAIEmbedder(
            model or openai.DEFAULT,
            api_key=settings.openai_api_key,
            base_url=settings.openai_base_url,
        )
    if kind == "ollama":
        from evercontext.models.embedders import ollama

        return ollama.OllamaEmbedder(
            model or ollama.DEFAULT,
            endpoint=settings.ollama_endpoint,
            seconds=settings.model_timeout,
        )
    raise ConfigError(
        f"EC_EMBEDDER is {settings.embedder!r}",
        fix="Use static, none, minilm, openai[:MODEL] or ollama[:MODEL]",
    )


def uses_vectors(settings: Settings) -> bool:
    """Tell whether anything is ranked by meaning."""
    return settings.embedder != NONE
