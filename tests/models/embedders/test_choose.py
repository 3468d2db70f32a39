from __future__ import annotations

from pathlib import Path

import pytest

from evercontext.errors import ConfigError, ModelAuthFailed, ModelUnknown
from evercontext.models.embedders.choose import choose_embedder
from evercontext.settings import Settings


def _settings(tmp_path: Path, embedder: str, **more: str) -> Settings:
    return Settings(home=tmp_path, embedder=embedder, **more)  # type: ignore[arg-type]


@pytest.mark.contract("E38")
@pytest.mark.parametrize(
    ("value", "name", "local"),
    [
        ("openai", "openai:text-embedding-3-small:512", False),
        ("openai:text-embedding-ada-002", "openai:text-embedding-ada-002", False),
        ("ollama", "ollama:nomic-embed-text", True),
        ("ollama:mxbai-embed-large:335m", "ollama:mxbai-embed-large:335m", True),
    ],
)
async def test_a_value_names_an_embedder(
    tmp_path: Path, value: str, name: str, local: bool
) -> None:
    chosen = choose_embedder(_settings(tmp_path, value, openai_api_key="made-up"))
    assert (chosen.name, chosen.local) == (name, local)
    await chosen.aclose()


def test_what_is_missing_is_named_with_its_remedy(tmp_path: Path) -> None:
    with pytest.raises(ModelUnknown, match="evercontext model pull minilm"):
        choose_embedder(_settings(tmp_path, "minilm"))
    with pytest.raises(ModelAuthFailed, match="OPENAI_API_KEY"):
        choose_embedder(_settings(tmp_path, "openai"))
    for value in ("", "word2vec", "static:x", "none:x", "minilm:x", "OPENAI"):
        with pytest.raises(ConfigError, match="EC_EMBEDDER"):
            choose_embedder(_settings(tmp_path, value))
