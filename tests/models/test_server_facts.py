from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from evercontext.models.provider_errors import Provider
from evercontext.models.server_facts import ServerFacts, ask_server
from tests.models.wire_server import Answer, WireServer, error, wire_server


@pytest_asyncio.fixture
async def server() -> AsyncIterator[WireServer]:
    async with wire_server() as running:
        yield running


def answer(body: Any) -> Answer:
    return Answer([json.dumps(body).encode()])


async def ask(server: WireServer, model: str = "small") -> ServerFacts:
    return await ask_server(Provider("openai", model, address=f"{server.url}/v1"), {})


async def test_llama_cpp_tells_its_window_and_whether_its_template_has_tools(
    server: WireServer,
) -> None:
    """P7, P8."""
    entry = {"id": "any.gguf", "owned_by": "llamacpp", "meta": {"n_ctx": 4096, "n_ctx_train": 8192}}
    props = {
        "default_generation_settings": {"n_ctx": 2048},
        "chat_template_caps": {"supports_tools": False},
    }
    server.will(answer({"data": [entry]}), answer(props))
    assert await ask(server) == ServerFacts(window=2048, tools=False)
    assert [request.path for request in server.asked] == ["/v1/models", "/props"]


@pytest.mark.parametrize(
    ("entry", "facts"),
    [
        ({"owned_by": "vllm", "max_model_len": 4096}, ServerFacts(4096)),
        ({"loaded_context_length": 4096, "max_context_length": 131_072}, ServerFacts(4096)),
        (
            {"context_length": 32_000, "supported_parameters": ["stop", "seed"]},
            ServerFacts(32_000, tools=False),
        ),
        ({"supported_parameters": ["tools"]}, ServerFacts(tools=True)),
        ({"capabilities": ["tool_use"]}, ServerFacts(tools=True)),
        ({"capabilities": ["completion"], "context_length": "4096"}, ServerFacts()),
    ],
)
async def test_other_servers_have_other_words(
    server: WireServer, entry: dict[str, Any], facts: ServerFacts
) -> None:
    server.will(answer({"data": [{"id": "other"}, {"id": "small", **entry}]}))
    assert await ask(server) == facts


@pytest.mark.parametrize(
    "reply",
    [error(404, {}), error(500, {}), Answer([b"<html>"]), answer([]), answer({"data": "x"})],
)
async def test_a_server_that_tells_nothing_is_believed(server: WireServer, reply: Answer) -> None:
    server.will(reply)
    assert await ask(server) == ServerFacts()


async def test_several_models_and_none_of_that_name(server: WireServer) -> None:
    server.will(answer({"data": [{"id": "a", "max_model_len": 1}, {"id": "b"}]}))
    assert await ask(server) == ServerFacts()
