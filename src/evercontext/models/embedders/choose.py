"""Choose the embedder of the code index by ``EC_EMBEDDER``."""

from __future__ import annotations

from evercontext.domain.model import Embedder
from evercontext.errors import ConfigError
from evercontext.settings import Settings


def choose_embedder(settings: Settings) -> Embedder:
    """Open the embedder that ``EC_EMBEDDER`` names beside the packaged vectors."""
    kind, _, model = settings.embedder.partition(":")
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
