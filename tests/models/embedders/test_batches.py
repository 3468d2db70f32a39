from __future__ import annotations

import json
from typing import Any

import pytest

from evercontext.errors import BadReply, ModelAuthFailed, ModelUnavailable, ModelUnknown
from evercontext.models.embedders.batches import LONGEST_TEXT, MOST_TEXTS, portions
from evercontext.models.embedders.ollama import OllamaEmbedder
from evercontext.models.embedders.openai import OpenAIEmbedder
from tests.models.wire_server import Answer, WireServer, error, wire_server

KEY = "sk-made-up-for-this-test"


def _openai(*vectors: list[float], tokens: int = 7) -> Answer:
    """What OpenAI answers; here last vector first, because only the index counts."""
    data = [
        {"object": "embedding", "index": i, "embedding": vector} for i, vector in enumerate(vectors)
    ]
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    body = {"object": "list", "data": data[::-1], "model": "text-embedding-3-small", "usage": usage}
    return Answer([json.dumps(body).encode()])


def _ollama(*vectors: list[float]) -> Answer:
    body = {
        "model": "nomic-embed-text",
        "embeddings": list(vectors),
        "total_duration": 14143917,
        "load_duration": 1019500,
        "prompt_eval_count": 8,
    }
    return Answer([json.dumps(body).encode()])


class _Slept(list[float]):
    async def __call__(self, seconds: float) -> None:
        self.append(seconds)


def _embedder(server: WireServer, slept: _Slept, model: str = "text-embedding-3-small") -> Any:
    return OpenAIEmbedder(model, api_key=KEY, base_url=f"{server.url}/v1", seconds=5, sleep=slept)


@pytest.mark.contract("E38")
async def test_openai_speaks_its_protocol() -> None:
    async with wire_server() as server:
        server.will(_openai([1.0, 0.0], [0.0, 1.0]))
        embedder = _embedder(server, _Slept())
        found = await embedder.embed(["first", ""])
        await embedder.aclose()
    assert found.vectors == [[1.0, 0.0], [0.0, 1.0]]
    assert found.tokens == 7
    (asked,) = server.asked
    assert (asked.method, asked.path) == ("POST", "/v1/embeddings")
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert asked.body == {
        "model": "text-embedding-3-small",
        "input": ["first", " "],
        "encoding_format": "float",
        "dimensions": 512,
    }


@pytest.mark.contract("E38")
async def test_ollama_speaks_its_protocol_and_questions_are_marked() -> None:
    async with wire_server() as server:
        server.will(_ollama([0.5, 0.5]), _ollama([0.25, 0.75]))
        embedder = OllamaEmbedder("nomic-embed-text", endpoint=server.url, seconds=5)
        document = await embedder.embed(["def f(): pass"])
        question = await embedder.embed(["what does f do"], question=True)
        await embedder.aclose()
    assert (document.vectors, question.vectors) == ([[0.5, 0.5]], [[0.25, 0.75]])
    assert [asked.path for asked in server.asked] == ["/api/embed"] * 2
    assert server.asked[0].body == {
        "model": "nomic-embed-text",
        "input": ["search_document: def f(): pass"],
        "truncate": True,
    }
    assert server.asked[1].body["input"] == ["search_query: what does f do"]


async def test_many_texts_become_several_requests_in_order() -> None:
    texts = [f"text {i}" for i in range(MOST_TEXTS + 4)]
    async with wire_server() as server:
        server.will(
            _openai(*[[float(i), 1.0] for i in range(MOST_TEXTS)]),
            _openai(*[[float(i), 1.0] for i in range(MOST_TEXTS, MOST_TEXTS + 4)]),
        )
        embedder = _embedder(server, _Slept())
        found = await embedder.embed(texts)
        await embedder.aclose()
    assert [row[0] for row in found.vectors] == [float(i) for i in range(MOST_TEXTS + 4)]
    assert found.tokens == 14
    assert [len(part) for part in portions(["x" * 50_000] * 30)] == [15, 15]
    assert all(len(text) == LONGEST_TEXT for part in portions(["x" * 50_000]) for text in part)


async def test_a_busy_server_is_asked_again_as_it_wishes() -> None:
    async with wire_server() as server:
        limited = error(429, {"error": {"message": "slow down"}}, retry_after="3")
        server.will(limited, error(503, {"error": "starting"}), _openai([1.0]))
        slept = _Slept()
        embedder = _embedder(server, slept)
        assert (await embedder.embed(["x"])).vectors == [[1.0]]
        await embedder.aclose()
    assert slept == [3.0, 2.0]


async def test_who_does_not_answer_is_given_up_after_three_attempts() -> None:
    slept = _Slept()
    embedder = OllamaEmbedder("m", endpoint="http://127.0.0.1:9", sleep=slept)
    with pytest.raises(ModelUnavailable, match="cannot be reached"):
        await embedder.embed(["x"])
    await embedder.aclose()
    assert slept == [1.0, 2.0]
    assert embedder.local
    assert not OllamaEmbedder("m", endpoint="http://10.0.0.7:11434").local


async def test_silence_is_an_outage_too() -> None:
    async with wire_server() as server:
        server.will(*[Answer(stall=True)] * 3)
        embedder = OllamaEmbedder("m", endpoint=server.url, seconds=0.2, sleep=_Slept())
        with pytest.raises(ModelUnavailable, match="said nothing"):
            await embedder.embed(["x"])
        await embedder.aclose()


async def test_a_wrong_key_and_a_missing_model_are_not_asked_twice() -> None:
    async with wire_server() as server:
        server.will(
            error(401, {"error": {"message": f"Incorrect API key provided: {KEY}"}}),
            error(404, {"error": 'model "m" not found, try pulling it first'}),
        )
        openai = _embedder(server, _Slept())
        with pytest.raises(ModelAuthFailed) as refused:
            await openai.embed(["x"])
        ollama = OllamaEmbedder("m", endpoint=server.url, sleep=_Slept())
        with pytest.raises(ModelUnknown, match="ollama pull m"):
            await ollama.embed(["x"])
        await openai.aclose()
        await ollama.aclose()
    assert KEY not in str(refused.value)
    assert len(server.asked) == 2


@pytest.mark.parametrize(
    "answer",
    [
        Answer([b"<html>proxy</html>"]),
        Answer([b"[]"]),
        _openai([1.0, 2.0]),
        _openai([1.0], [1.0, 2.0]),
        Answer([b'{"data": [{"index": 0, "embedding": [1]}, {"index": 0, "embedding": [1]}]}']),
        Answer([b'{"data": [{"index": 0, "embedding": ["x"]}, {"index": 1, "embedding": [1]}]}']),
        Answer([b'{"data": [{"index": 0, "embedding": [NaN]}, {"index": 1, "embedding": [1]}]}']),
    ],
)
async def test_an_answer_that_is_not_the_protocol_is_refused(answer: Answer) -> None:
    async with wire_server() as server:
        server.will(answer)
        embedder = _embedder(server, _Slept())
        with pytest.raises(BadReply):
            await embedder.embed(["a", "b"])
        await embedder.aclose()


def test_only_a_listed_model_at_openai_itself_has_a_price() -> None:
    at_openai = OpenAIEmbedder("text-embedding-3-small", api_key=KEY)
    elsewhere = OpenAIEmbedder("text-embedding-3-small", api_key=None, base_url="http://here/v1")
    assert at_openai.price(1_000_000) == pytest.approx(0.02)
    assert elsewhere.price(1_000_000) is None
    with pytest.raises(ModelAuthFailed, match="OPENAI_API_KEY"):
        OpenAIEmbedder("text-embedding-3-small", api_key=None)
