from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from evercontext.domain.message import (
    Image,
    Message,
    ToolCall,
    assistant,
    system,
    tool_result,
    user,
)
from evercontext.domain.model import (
    CallDelta,
    Delta,
    EndDelta,
    Request,
    TextDelta,
    ThoughtDelta,
    ToolSpec,
    Usage,
    complete,
)
from evercontext.errors import (
    ContextTooLong,
    ModelAuthFailed,
    ModelProblem,
    ModelRefused,
    ModelUnavailable,
    ModelUnknown,
    RateLimited,
)
from evercontext.models.anthropic import AnthropicModel, turns
from evercontext.models.tool_names import WireNames
from tests.models.wire_server import Answer, WireServer, error, sse, wire_server

LINT = ToolSpec("run.lint", "Lints.", {"type": "object", "properties": {}})
READ = ToolSpec("readFile", "Reads.", {"type": "object", "properties": {"path": {}}})
ASK = Request([system("s"), user("こんにちは")], tools=[LINT, READ])
CACHE = {"cache_control": {"type": "ephemeral"}}


@pytest_asyncio.fixture
async def server() -> AsyncIterator[WireServer]:
    async with wire_server() as running:
        yield running


@pytest_asyncio.fixture
async def model(server: WireServer) -> AsyncIterator[AnthropicModel]:
    model = AnthropicModel("claude-sonnet-5-5", api_key="sk-ant", base_url=server.url, timeout=60)
    yield model
    await model.aclose()


START = {
    "type": "message_start",
    "message": {
        "id": "msg_019Q",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-5-5",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {
            "input_tokens": 377,
            "cache_creation_input_tokens": 20,
            "cache_read_input_tokens": 100,
            "output_tokens": 1,
            "service_tier": "standard",
        },
    },
}
PING = {"type": "ping"}
STOP = {"type": "message_stop"}


def block(index: int, content: dict[str, Any], *deltas: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"type": "content_block_start", "index": index, "content_block": content},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def ended(reason: str) -> dict[str, Any]:
    return {
        "type": "message_delta",
        "delta": {"stop_reason": reason, "stop_sequence": None},
        "usage": {"output_tokens": 65},
    }


def json_delta(text: str) -> dict[str, Any]:
    return {"type": "input_json_delta", "partial_json": text}


def text_delta(text: str) -> dict[str, Any]:
    return {"type": "text_delta", "text": text}


def tool_use(call_id: str, name: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": name, "input": {}}


THINKING = [
    {"type": "thinking_delta", "thinking": "Let me "},
    {"type": "thinking_delta", "thinking": "see."},
    {"type": "signature_delta", "signature": "EqQBCg=="},
]
TEXT = sse(
    START,
    *block(0, {"type": "text", "text": ""}, text_delta("Hello"), text_delta(" 世界")),
    PING,
    ended("end_turn"),
    STOP,
    event_names=True,
)
CALLS = sse(
    START,
    *block(0, {"type": "thinking", "thinking": "", "signature": ""}, *THINKING),
    PING,
    *block(1, {"type": "text", "text": ""}, text_delta("Looking.")),
    *block(
        2,
        tool_use("toolu_01", "readFile"),
        json_delta(""),
        json_delta('{"pa'),
        json_delta('th": "あ.py"}'),
    ),
    *block(3, tool_use("toolu_02", "run__lint")),
    ended("tool_use"),
    STOP,
    event_names=True,
)


async def collect(model: AnthropicModel, request: Request, into: list[Delta]) -> None:
    async for delta in model.stream(request):
        into.append(delta)


async def test_text_streams_and_usage_is_counted(server: WireServer, model: AnthropicModel) -> None:
    server.will(Answer(TEXT, headers={"content-type": "text/event-stream"}))
    got: list[Delta] = []
    await collect(model, ASK, got)
    assert got == [
        TextDelta("Hello"),
        TextDelta(" 世界"),
        EndDelta("end", Usage(497, 65, 100), "claude-sonnet-5-5"),
    ]
    asked = server.asked[0]
    assert asked.path == "/v1/messages"
    assert asked.headers["authorization"] == "Bearer sk-ant"
    assert asked.body["stream"] is True


@pytest.mark.contract("R41")
async def test_the_request_has_the_shape_claude_wants(
    server: WireServer, model: AnthropicModel
) -> None:
    server.will(Answer(TEXT))
    history = [system("one"), assistant("hi"), user("a"), user("b"), system("two")]
    request = Request(history, tools=[LINT, READ], max_output_tokens=4096, temperature=0.5)
    await complete(model, request)
    body = server.asked[0].body
    assert body["system"] == [{"type": "text", "text": "one\n\ntwo", **CACHE}]
    assert [turn["role"] for turn in body["messages"]] == ["user", "assistant", "user"]
    assert body["messages"][2]["content"] == [
        {"type": "text", "text": "a"},
        {"type": "text", "text": "b", **CACHE},
    ]
    assert [tool["name"] for tool in body["tools"]] == ["run__lint", "readFile"]
    assert [("cache_control" in tool) for tool in body["tools"]] == [False, True]
    assert (body["max_tokens"], body["temperature"]) == (4096, 0.5)


@pytest.mark.contract("R41")
async def test_a_model_without_sampling_is_asked_without_it(
    server: WireServer, model: AnthropicModel
) -> None:
    refusal = {
        "type": "error",
        "error": {
            "type": "invalid_request_error",
            "message": "`temperature` is deprecated for this model.",
        },
    }
    server.will(error(400, refusal), Answer(TEXT), Answer(TEXT))
    request = Request([user("a")], temperature=0.5)
    await complete(model, request)
    await complete(model, request)
    assert ["temperature" in asked.body for asked in server.asked] == [True, False, False]


async def test_thinking_and_calls_come_and_go_back_verbatim(
    server: WireServer, model: AnthropicModel
) -> None:
    server.will(Answer(CALLS), Answer(TEXT))
    got: list[Delta] = []
    await collect(model, ASK, got)
    assert [d for d in got if isinstance(d, ThoughtDelta)] == [
        ThoughtDelta("Let me "),
        ThoughtDelta("see."),
    ]
    first = ToolCall("toolu_01", "readFile", {"path": "あ.py"})
    second = ToolCall("toolu_02", "run.lint", {})
    assert [d.call for d in got if isinstance(d, CallDelta)] == [first, second]
    end = got[-1]
    assert isinstance(end, EndDelta)
    assert end.stop == "tool_calls"
    own = Message("assistant", "Looking.", (first, second), extras=end.extras)
    results = [tool_result(first, "x = 1"), tool_result(second, "")]
    await complete(model, Request([user("go"), own, *results], tools=[LINT, READ]))
    _, said, back = server.asked[1].body["messages"]
    assert said["content"] == [
        {"type": "thinking", "thinking": "Let me see.", "signature": "EqQBCg=="},
        {"type": "text", "text": "Looking."},
        {"type": "tool_use", "id": "toolu_01", "name": "readFile", "input": {"path": "あ.py"}},
        {"type": "tool_use", "id": "toolu_02", "name": "run__lint", "input": {}},
    ]
    assert back == {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "toolu_01", "content": "x = 1"},
            {"type": "tool_result", "tool_use_id": "toolu_02", **CACHE},
        ],
    }


def test_results_come_before_other_words_of_the_turn() -> None:
    call = ToolCall("t1", "readFile", {})
    history = [user("a"), assistant("", (call,)), user("wait"), tool_result(call, "r"), user(" ")]
    *_, last = turns(history, WireNames([]), "m")
    assert [block["type"] for block in last["content"]] == ["tool_result", "text"]


def test_thinking_of_another_model_is_left_out() -> None:
    kept = {"model": "old", "content": [{"type": "thinking", "thinking": "x", "signature": "s"}]}
    said = Message("assistant", "hello", extras={"anthropic": kept})
    assert turns([user("a"), said], WireNames([]), "new")[1]["content"] == [
        {"type": "text", "text": "hello"}
    ]


async def test_malformed_arguments_are_handed_on(server: WireServer, model: AnthropicModel) -> None:
    events = [
        START,
        *block(0, tool_use("t", "readFile"), json_delta('{"path')),
        ended("max_tokens"),
        STOP,
    ]
    server.will(Answer(sse(*events, event_names=True)))
    reply = await complete(model, ASK)
    assert reply.tool_calls == (ToolCall("t", "readFile", {}, malformed='{"path'),)
    assert reply.stop == "length"


async def test_a_refusal_is_said(server: WireServer, model: AnthropicModel) -> None:
    server.will(Answer(sse(START, ended("refusal"), STOP, event_names=True)))
    assert (await complete(model, ASK)).stop == "filtered"


def problem(kind: str, message: str = "m") -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}


ERRORS: list[tuple[Answer, type[ModelProblem]]] = [
    (error(401, problem("authentication_error", "invalid x-api-key")), ModelAuthFailed),
    (error(403, problem("permission_error")), ModelAuthFailed),
    (error(404, problem("not_found_error", "model: claude-x")), ModelUnknown),
    (error(413, problem("request_too_large")), ContextTooLong),
    (error(429, problem("rate_limit_error"), retry_after="20"), RateLimited),
    (
        error(
            400,
            problem("invalid_request_error", "prompt is too long: 213462 tokens > 200000 maximum"),
        ),
        ContextTooLong,
    ),
    (
        error(400, problem("invalid_request_error", "messages.0: unexpected role")),
        ModelRefused,
    ),
    (error(500, problem("api_error")), ModelUnavailable),
    (error(529, problem("overloaded_error", "Overloaded")), ModelUnavailable),
    (Answer([b"<html/>"], 502), ModelUnavailable),
]


@pytest.mark.contract("E40")
@pytest.mark.parametrize(("answer", "kind"), ERRORS, ids=lambda value: str(value)[:40])
async def test_every_refusal_has_its_error(
    server: WireServer, model: AnthropicModel, answer: Answer, kind: type[ModelProblem]
) -> None:
    server.will(answer)
    with pytest.raises(ModelProblem) as caught:
        await complete(model, ASK)
    assert type(caught.value) is kind
    assert "\n" not in str(caught.value)
    assert len(server.asked) == 1, "the SDK must not retry by itself"
    if isinstance(caught.value, RateLimited):
        assert caught.value.retry_after == 20


@pytest.mark.contract("E40")
@pytest.mark.parametrize(
    "answer",
    [
        Answer(CALLS[:-3], cut=True),
        Answer(CALLS[:-1]),
        Answer([*CALLS[:-4], b"event: content_block_delta\ndata: {garbage}\n\n"]),
        Answer([*CALLS[:-4], *sse(problem("overloaded_error"), event_names=True)]),
        Answer([b"<html>hello</html>"]),
    ],
    ids=["cut", "ended early", "garbage", "error event", "html"],
)
async def test_a_broken_stream_yields_no_call(
    server: WireServer, model: AnthropicModel, answer: Answer
) -> None:
    server.will(answer)
    got: list[Delta] = []
    with pytest.raises(ModelUnavailable):
        await collect(model, ASK, got)
    assert not any(isinstance(delta, CallDelta | EndDelta) for delta in got)


async def test_a_silent_server_is_given_up(server: WireServer) -> None:
    quiet = AnthropicModel("m", base_url=server.url, timeout=0.2)
    server.will(Answer(TEXT[:2], stall=True))
    with pytest.raises(ModelUnavailable):
        await complete(quiet, ASK)
    await quiet.aclose()


def test_no_key_names_the_setting() -> None:
    with pytest.raises(ModelAuthFailed, match="ANTHROPIC_API_KEY"):
        AnthropicModel("claude-sonnet-5-5")


async def test_input_tokens_that_come_with_the_end_are_counted(
    server: WireServer, model: AnthropicModel
) -> None:
    """P16: gateways know them only after the answer."""
    events = [
        {"type": "message_start", "message": {"model": "m", "usage": {"input_tokens": 0}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hi"}},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn"},
            "usage": {"input_tokens": 40, "cache_read_input_tokens": 60, "output_tokens": 7},
        },
        {"type": "message_stop"},
    ]
    server.will(Answer(sse(*events, event_names=True)))
    assert (await complete(model, Request([user("Hello")]))).usage == Usage(100, 7, 60)


async def test_effort_turns_thinking_on_and_is_left_out_where_it_is_refused(
    server: WireServer, model: AnthropicModel
) -> None:
    """A7."""
    server.will(Answer(TEXT))
    request = Request([user("a")], temperature=0.0, effort="low")
    await complete(model, request)
    body = server.asked[0].body
    assert body["thinking"] == {"type": "adaptive"}
    assert body["output_config"] == {"effort": "low"}
    assert "temperature" not in body, "thinking and sampling exclude each other"
    problem = {"type": "invalid_request_error", "message": "output_config: not supported"}
    server.will(error(400, {"type": "error", "error": problem}), Answer(TEXT), Answer(TEXT))
    await complete(model, request)
    await complete(model, request)
    assert ["thinking" in asked.body for asked in server.asked[1:]] == [True, False, False]


async def test_pictures_go_out_as_blocks(server: WireServer, model: AnthropicModel) -> None:
    """A7."""
    server.will(Answer(TEXT))
    image = Image("a.png", "image/png", b"\x89PNG")
    await complete(model, Request([Message("user", "what is it?", images=(image,))]))
    picture, words = server.asked[0].body["messages"][0]["content"]
    assert picture == {
        "type": "image",
        "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw=="},
    }
    assert words["text"] == "what is it?"
    assert model.info.images
