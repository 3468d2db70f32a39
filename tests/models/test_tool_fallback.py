"""P7: servers that take no tools, by their own words; nothing is done twice."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from evercontext.domain.message import user
from evercontext.domain.model import Delta, NoticeDelta, Request, TextDelta, ToolSpec, complete
from evercontext.errors import ModelProblem, ModelRefused
from evercontext.models.openai import OpenAIModel
from evercontext.models.tool_fallback import ToolFallback, refuses_tools, were_dropped
from tests.models.wire_server import Answer, WireServer, error, sse, wire_server

ARGUMENTS = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
READ = ToolSpec("readFile", "Reads a file of the project. " * 10, ARGUMENTS)
ASK = Request([user("Read a.py")], tools=[READ])
CALL = {"tool_calls": [{"name": "readFile", "parameters": {"path": "a.py"}}]}
REFUSALS = [
    (400, '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'),
    (400, "registry.ollama.ai/library/gemma:2b does not support tools"),
    (404, "No endpoints found that support tool use. To learn more about provider routing, visit"),
    (500, "tools param requires --jinja flag"),
    (400, "`tool calling` is not supported with this model"),
    (400, "litellm.UnsupportedParamsError: x does not support parameters: ['tools'], for model=x"),
    (400, "Function calling is not enabled for models/gemma-3-27b-it"),
    (422, "Unrecognized request argument supplied: tools"),
]


@pytest_asyncio.fixture
async def server() -> AsyncIterator[WireServer]:
    async with wire_server() as running:
        yield running


@pytest_asyncio.fixture
async def model(server: WireServer) -> AsyncIterator[ToolFallback]:
    model = ToolFallback(OpenAIModel("small", base_url=f"{server.url}/v1", timeout=60))
    yield model
    await model.aclose()


def written(words: str, prompt_tokens: int = 900) -> Answer:
    choice = {"index": 0, "delta": {"content": words}, "finish_reason": "stop"}
    usage = {"prompt_tokens": prompt_tokens, "completion_tokens": 5}
    return Answer(sse({"choices": [choice]}, {"choices": [], "usage": usage}, done=True))


async def deltas_of(model: ToolFallback) -> list[Delta]:
    return [delta async for delta in model.stream(ASK)]


@pytest.mark.parametrize(("status", "message"), REFUSALS)
async def test_a_refusal_of_tools_is_answered_with_the_json_protocol(
    server: WireServer, model: ToolFallback, status: int, message: str
) -> None:
    server.will(error(status, {"error": {"message": message}}), written(json.dumps(CALL)))
    assert model.info.native_tools
    reply = await complete(model, ASK)
    assert [(call.name, call.arguments) for call in reply.tool_calls] == [
        ("readFile", {"path": "a.py"})
    ]
    assert not model.info.native_tools
    server.will(written('{"final_answer": "Read."}'))
    assert (await complete(model, ASK)).text == "Read."
    assert ["tools" in request.body for request in server.asked] == [True, False, False]


async def test_tools_that_were_left_out_of_the_prompt_are_noticed(
    server: WireServer, model: ToolFallback
) -> None:
    """llama.cpp drops them where the template has no place for them; the words are void."""
    server.will(written("Read a.py", prompt_tokens=31), written(json.dumps(CALL)))
    deltas = await deltas_of(model)
    notices = [delta for delta in deltas if isinstance(delta, NoticeDelta)]
    assert [(notice.restart, notice.text) for notice in notices] == [
        (True, "openai:small takes no tools; it is asked for JSON instead")
    ]
    assert isinstance(deltas[0], TextDelta)


async def test_a_short_prompt_is_no_sign_once_a_tool_was_called(
    server: WireServer, model: ToolFallback
) -> None:
    """Some servers count only what they had not read before."""
    function = {"name": "readFile", "arguments": '{"path": "a.py"}'}
    call = {"index": 0, "id": "c", "type": "function", "function": function}
    choice = {"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": "tool_calls"}
    first = sse({"choices": [choice], "usage": {"prompt_tokens": 12, "completion_tokens": 5}})
    server.will(Answer([*first, b"data: [DONE]\n\n"]), written("All read.", prompt_tokens=12))
    assert (await complete(model, ASK)).tool_calls
    assert (await complete(model, ASK)).text == "All read."
    assert model.info.native_tools


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (400, "Invalid schema for function 'readFile': 'path' is not of type 'object'"),
        (400, "messages with role 'tool' must be a response to a preceding message"),
        (401, "Incorrect API key; tools are not available"),
        (429, "Rate limit: tool use is not available now"),
        (404, "The model 'small' does not exist"),
    ],
)
async def test_other_refusals_stay_what_they_are(
    server: WireServer, model: ToolFallback, status: int, message: str
) -> None:
    assert not refuses_tools(status, message)
    server.will(error(status, {"error": {"message": message}}))
    with pytest.raises(ModelProblem):
        await complete(model, ASK)
    assert model.info.native_tools
    assert len(server.asked) == 1


async def test_without_tools_there_is_nothing_to_fall_back_from(
    server: WireServer, model: ToolFallback
) -> None:
    server.will(error(400, {"error": {"message": "small does not support tools"}}))
    with pytest.raises(ModelRefused):
        await complete(model, Request([user("Hello")]))
    assert model.info.native_tools


@pytest.mark.parametrize("refused", ["json_schema is not supported", "failed to parse grammar"])
async def test_a_server_without_grammars_is_asked_without_one(
    server: WireServer, model: ToolFallback, refused: str
) -> None:
    """P7: the protocol's rules stand in the prompt, too."""
    tools: dict[str, Any] = {"error": {"message": "small does not support tools"}}
    server.will(error(400, tools), error(400, {"error": {"message": refused}}))
    server.will(written(json.dumps(CALL)))
    assert (await complete(model, ASK)).tool_calls
    assert "response_format" not in server.asked[-1].body


def test_a_server_that_counts_nothing_is_believed() -> None:
    assert not were_dropped([READ], 0)
    assert not were_dropped([], 5)
    assert were_dropped([READ], 31)
    assert not were_dropped([READ], 100)
