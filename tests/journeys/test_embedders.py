"""Another embedder, chosen by a variable and served over its own protocol by a server nearby."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import evercontext, home
from tests.index.world import SHOP, write
from tests.listening import Asked, Listener, listening

CANARY = "sk-" + "c4n4ry7x" * 4


def _vector(text: str) -> list[float]:
    """A vector of the words of a text, without any model."""
    numbers = [0.0] * 32
    for word in text.lower().replace("_", " ").split():
        numbers[hashlib.sha256(word.encode()).digest()[0] % 32] += 1.0
    return numbers


def _embedded(asked: Asked) -> dict[str, Any]:
    body = asked.body
    vectors = [_vector(text) for text in body["input"]]
    if asked.path != "/v1/embeddings":
        return {"model": body["model"], "embeddings": vectors, "prompt_eval_count": 77}
    data = [{"index": i, "embedding": v} for i, v in enumerate(vectors)]
    usage = {"prompt_tokens": 1234, "total_tokens": 1234}
    return {"object": "list", "data": data, "model": body["model"], "usage": usage}


@pytest.fixture
def server() -> Iterator[Listener]:
    with listening(_embedded) as server:
        yield server


@pytest.mark.slow
@pytest.mark.contract("E38")
@pytest.mark.parametrize("kind", ["openai", "ollama"])
def test_code_is_ranked_by_the_chosen_embedder(tmp_path: Path, server: Listener, kind: str) -> None:
    write(tmp_path, {**SHOP, "config.py": f"API_KEY = '{CANARY}'\n"})
    url = f"http://127.0.0.1:{server.server_port}"
    chosen = {"EC_EMBEDDER": kind, "OPENAI_API_KEY": "made-up-key-for-tests"}
    chosen |= {"OPENAI_BASE_URL": f"{url}/v1", "EC_OLLAMA_ENDPOINT": url}
    told = evercontext("index", cwd=tmp_path, env=chosen)
    assert told.code == 0, told.err
    assert f"chunks embedded by {kind}:" in told.out
    assert ("1,234 tokens" if kind == "openai" else "77 tokens") in told.out
    as_json = evercontext("index", "--json", cwd=tmp_path, env=chosen)
    assert json.loads(as_json.out)["embedder"]["chunks"] == 0
    found = evercontext("search", "charge a credit card", "--json", cwd=tmp_path, env=chosen)
    assert json.loads(found.out)["chunks"][0]["path"] == "shop/payment.py"
    assert found.err == ""
    assert len(server.asked) == 2, "one request for all chunks, one for the question"
    last = server.asked[-1]
    assert last.path == ("/v1/embeddings" if kind == "openai" else "/api/embed")
    assert last.body["input"][0].endswith("charge a credit card")
    assert "c4n4ry" not in repr([(asked.path, asked.body) for asked in server.asked])


@pytest.mark.slow
@pytest.mark.contract("E38")
def test_without_its_server_the_packaged_vectors_rank_and_say_so(tmp_path: Path) -> None:
    write(tmp_path, SHOP)
    chosen = {"EC_EMBEDDER": "ollama", "EC_OLLAMA_ENDPOINT": "http://127.0.0.1:9"}
    told = evercontext("index", cwd=tmp_path, env=chosen)
    assert told.code == 0
    assert "5 files indexed" in told.out
    assert "warning: ollama:nomic-embed-text: ollama cannot be reached" in told.err
    found = evercontext("search", "charge a credit card", cwd=tmp_path, env=chosen)
    assert found.code == 0
    assert "shop/payment.py" in found.out.splitlines()[0]
    assert "run evercontext index" in found.err
    missing = evercontext("search", "cart", cwd=tmp_path, env={"EC_EMBEDDER": "minilm"})
    assert missing.code == 0
    assert "evercontext model pull minilm" in missing.err
    wrong = evercontext("search", "cart", cwd=tmp_path, env={"EC_EMBEDDER": "word2vec"})
    assert wrong.code == 1
    assert "EC_EMBEDDER" in wrong.err


@pytest.mark.case(139)
def test_a_project_cannot_choose_who_is_sent_the_code(tmp_path: Path, server: Listener) -> None:
    write(tmp_path, SHOP)
    toml = f'embedder = "ollama"\nollama_endpoint = "http://127.0.0.1:{server.server_port}"\n'
    write(tmp_path, {"evercontext.toml": toml})
    evercontext("config", "trust", "--yes", cwd=tmp_path)
    assert evercontext("index", cwd=tmp_path).code == 0
    assert evercontext("search", "cart", cwd=tmp_path).code == 0
    assert server.asked == []
    assert home().exists()
