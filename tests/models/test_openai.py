from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from evercontext.domain.message import ToolCall, assistant, system, tool_result, user
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
from evercontext.models.json_protocol import JsonProtocol
from evercontext.models.openai import OpenAIModel
from tests.models.wire_server import Answer, WireServer, error, sse, wire_server

LINT = ToolSpec("run.lint", "Lints.", {"type": "object", "properties": {}})
READ = ToolSpec("readFile", "Reads.", {"type": "object", "properties": {"path": {}}})
ASK = Request([system("s"), user("こんにちは")], tools=[LINT, READ], temperature=0.0, seed=7)


@pytest_asyncio.fixture
async def server() -> AsyncIterator[WireServer]:
    async with wire_server() as running:
        yield running


@pytest_asyncio.fixture
async def model(server: WireServer) -> AsyncIterator[OpenAIModel]:
    model = OpenAIModel("gpt-4.1-nano", api_key="sk-x", base_url=f"{server.url}/v1", timeout=60)
    yield model
    await model.aclose()


def chunk(delta: dict[str, Any] | None = None, finish: str | None = None) -> dict[str, Any]:
    return {
        "id": "chatcmpl-BXa1",
        "object": "chat.completion.chunk",
        "created": 1747526400,
        "model": "gpt-4.1-nano-2025-04-14",
        "service_tier": "default",
        "system_fingerprint": "fp_1",
        "choices": [{"index": 0, "delta": delta or {}, "logprobs": None, "finish_reason": finish}],
        "usage": None,
    }


def usage() -> dict[str, Any]:
    counted = {
        "prompt_tokens": 80,
        "completion_tokens": 12,
        "total_tokens": 92,
        "prompt_tokens_details": {"cached_tokens": 64, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 0},
    }
    return {**chunk(), "choices": [], "usage": counted}


def fragment(index: int, arguments: str, **first: Any) -> dict[str, Any]:
    function = {**({"name": first["name"]} if first else {}), "arguments": arguments}
    opened = {"id": first["id"], "type": "function"} if first else {}
    return chunk({"tool_calls": [{"index": index, **opened, "function": function}]})


TEXT = sse(
    chunk({"role": "assistant", "content": "", "refusal": None}),
    chunk({"content": "Hello"}),
    chunk({"content": " 世界"}),
    chunk(finish="stop"),
    usage(),
    done=True,
)
CALLS = sse(
    chunk({"role": "assistant", "content": None}),
    fragment(0, "", id="call_a", name="readFile"),
    fragment(0, '{"pa'),
    fragment(0, 'th": "あ.py"}'),
    fragment(1, "", id="call_b", name="run__lint"),
    fragment(1, "{}"),
    chunk(finish="tool_calls"),
    usage(),
    done=True,
)


async def collect(model: OpenAIModel, request: Request, into: list[Delta]) -> None:
    async for delta in model.stream(request):
        into.append(delta)


@pytest.mark.contract("N5", "N12")
async def test_text_streams_and_usage_is_counted(server: WireServer, model: OpenAIModel) -> None:
    server.will(Answer(TEXT, headers={"content-type": "text/event-stream"}))
    got: list[Delta] = []
    await collect(model, ASK, got)
    assert got == [
        TextDelta("Hello"),
        TextDelta(" 世界"),
        EndDelta("end", Usage(80, 12, 64), "gpt-4.1-nano-2025-04-14"),
    ]
    asked = server.asked[0]
    assert asked.path == "/v1/chat/completions"
    assert asked.headers["authorization"] == "Bearer sk-x"
    assert asked.body["stream_options"] == {"include_usage": True}
    assert asked.body["messages"][1] == {"role": "user", "content": "こんにちは"}
    assert (asked.body["temperature"], asked.body["seed"]) == (0.0, 7)


@pytest.mark.contract("N5")
async def test_parallel_calls_are_folded_from_fragments(
    server: WireServer, model: OpenAIModel
) -> None:
    server.will(Answer(CALLS))
    reply = await complete(model, ASK)
    assert reply.tool_calls == (
        ToolCall("call_a", "readFile", {"path": "あ.py"}),
        ToolCall("call_b", "run.lint", {}),
    )
    assert reply.stop == "tool_calls"
    sent = [tool["function"]["name"] for tool in server.asked[0].body["tools"]]
    assert sent == ["run__lint", "readFile"]


async def test_history_goes_out_in_the_wire_shape(server: WireServer, model: OpenAIModel) -> None:
    call = ToolCall("call_b", "run.lint", {"path": "あ"})
    history = [user("go"), assistant("", (call,)), tool_result(call, "clean")]
    server.will(Answer(TEXT))
    await complete(model, Request(history, tools=[LINT]))
    _, own, result = server.asked[0].body["messages"]
    assert own == {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {
                "id": "call_b",
                "type": "function",
                "function": {"name": "run__lint", "arguments": '{"path": "あ"}'},
            }
        ],
    }
    assert result == {"role": "tool", "content": "clean", "tool_call_id": "call_b"}


async def test_servers_that_number_every_call_zero(server: WireServer, model: OpenAIModel) -> None:
    server.will(
        Answer(
            sse(
                fragment(0, '{"path": "a"}', id="x1", name="readFile"),
                fragment(0, '{"path": "b"}', id="x2", name="readFile"),
                chunk(finish="stop"),
                done=True,
            )
        )
    )
    reply = await complete(model, ASK)
    assert [dict(call.arguments) for call in reply.tool_calls] == [{"path": "a"}, {"path": "b"}]
    assert reply.stop == "tool_calls"


async def test_malformed_arguments_are_handed_on(server: WireServer, model: OpenAIModel) -> None:
    broken = fragment(0, '{"path": "a', id="c", name="readFile")
    server.will(Answer(sse(broken, chunk(finish="length"), done=True)))
    reply = await complete(model, ASK)
    assert reply.tool_calls == (ToolCall("c", "readFile", {}, malformed='{"path": "a'),)
    assert reply.stop == "length"


async def test_reasoning_is_thought_not_text(server: WireServer, model: OpenAIModel) -> None:
    server.will(
        Answer(
            sse(
                chunk({"role": "assistant", "reasoning_content": "hm"}),
                chunk({"content": "yes"}),
                chunk(finish="stop"),
                done=True,
            )
        )
    )
    got: list[Delta] = []
    await collect(model, ASK, got)
    assert got[:2] == [ThoughtDelta("hm"), TextDelta("yes")]


async def test_a_call_printed_by_a_local_model_is_made(
    server: WireServer, model: OpenAIModel
) -> None:
    printed = '{"name": "readFile", "arguments": {"path": "a.py"}}'
    server.will(Answer(sse(chunk({"content": printed}), chunk(finish="stop"), done=True)))
    reply = await complete(model, ASK)
    assert reply.text == ""
    assert [dict(call.arguments) for call in reply.tool_calls] == [{"path": "a.py"}]


def problem(message: str, kind: str, code: str | None, param: str | None = None) -> dict[str, Any]:
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


ERRORS: list[tuple[Answer, type[ModelProblem]]] = [
    (
        error(
            401,
            problem(
                "Incorrect API key provided: sk-x****.", "invalid_request_error", "invalid_api_key"
            ),
        ),
        ModelAuthFailed,
    ),
    (error(403, problem("Country not supported", "request_forbidden", None)), ModelAuthFailed),
    (
        error(
            404,
            problem("The model `x` does not exist", "invalid_request_error", "model_not_found"),
        ),
        ModelUnknown,
    ),
    (
        error(
            429,
            problem("Rate limit reached", "requests", "rate_limit_exceeded"),
            retry_after="20",
        ),
        RateLimited,
    ),
    (
        error(
            400,
            problem(
                "This model's maximum context length is 4097 tokens. However, your messages"
                " resulted in 4363 tokens.",
                "invalid_request_error",
                "context_length_exceeded",
                "messages",
            ),
        ),
        ContextTooLong,
    ),
    (
        error(400, problem("Invalid value: 'x'.", "invalid_request_error", "invalid_value")),
        ModelRefused,
    ),
    (error(422, {"detail": [{"msg": "field required"}]}), ModelRefused),
    (error(500, problem("The server had an error", "server_error", None)), ModelUnavailable),
    (Answer([b"<html>Bad gateway</html>"], 502), ModelUnavailable),
    (error(503, problem("overloaded", "server_error", None)), ModelUnavailable),
]


@pytest.mark.contract("E40")
@pytest.mark.parametrize(("answer", "kind"), ERRORS, ids=lambda value: str(value)[:40])
async def test_every_refusal_has_its_error(
    server: WireServer, model: OpenAIModel, answer: Answer, kind: type[ModelProblem]
) -> None:
    server.will(answer)
    with pytest.raises(ModelProblem) as caught:
        await complete(model, ASK)
    assert type(caught.value) is kind
    assert "\n" not in str(caught.value)
    assert "sk-x" not in str(caught.value)
    assert len(server.asked) == 1, "the SDK must not retry by itself"
    if isinstance(caught.value, RateLimited):
        assert caught.value.retry_after == 20


async def test_an_unknown_model_is_told_with_the_nearest_names(server: WireServer) -> None:
    """V9"""
    server.will(error(404, problem("no such model", "invalid_request_error", "model_not_found")))
    model = OpenAIModel("gpt-5x", api_key="sk-x", base_url=f"{server.url}/v1")
    with pytest.raises(ModelUnknown, match=r"such names: openai:gpt-5"):
        await complete(model, ASK)
    await model.aclose()


@pytest.mark.contract("E40")
@pytest.mark.parametrize(
    "answer",
    [
        Answer(CALLS[:4], cut=True),
        Answer(CALLS[:4]),
        Answer([*CALLS[:4], b"data: {garb"], cut=True),
        Answer([*CALLS[:4], b"data: {garbage}\n\n"]),
        Answer([b"<html>hello</html>"]),
        Answer([]),
    ],
    ids=["cut", "ended early", "cut in a line", "garbage", "html", "empty"],
)
async def test_a_broken_stream_yields_no_call(
    server: WireServer, model: OpenAIModel, answer: Answer
) -> None:
    server.will(answer)
    got: list[Delta] = []
    with pytest.raises(ModelUnavailable):
        await collect(model, ASK, got)
    assert not any(isinstance(delta, CallDelta | EndDelta) for delta in got)


async def test_an_error_inside_the_stream(server: WireServer, model: OpenAIModel) -> None:
    failed = problem("slow down", "requests", "rate_limit_exceeded")
    server.will(Answer(sse(chunk({"content": "He"}), failed)))
    with pytest.raises(RateLimited):
        await complete(model, ASK)


async def test_a_silent_server_is_given_up(server: WireServer) -> None:
    quiet = OpenAIModel("m", base_url=server.url, timeout=0.2)
    server.will(Answer(TEXT[:2], stall=True))
    with pytest.raises(ModelUnavailable, match="said nothing"):
        await complete(quiet, ASK)
    await quiet.aclose()


async def test_nobody_listening(server: WireServer) -> None:
    listener = await asyncio.start_server(lambda r, w: None, "127.0.0.1", 0)
    port = listener.sockets[0].getsockname()[1]
    listener.close()
    await listener.wait_closed()
    gone = OpenAIModel("m", base_url=f"http://127.0.0.1:{port}")
    with pytest.raises(ModelUnavailable, match="cannot be reached"):
        await complete(gone, ASK)
    await gone.aclose()


async def test_an_option_the_model_refuses_is_left_out_from_then_on(
    server: WireServer, model: OpenAIModel
) -> None:
    refusal = problem(
        "Unsupported value: 'temperature' does not support 0 with this model.",
        "invalid_request_error",
        "unsupported_value",
        "temperature",
    )
    server.will(error(400, refusal), Answer(TEXT), Answer(TEXT))
    await complete(model, ASK)
    await complete(model, ASK)
    assert ["temperature" in asked.body for asked in server.asked] == [True, False, False]


@pytest.mark.contract("N12", "N13")
def test_no_key_for_openai_itself_names_the_setting() -> None:
    with pytest.raises(ModelAuthFailed, match="OPENAI_API_KEY"):
        OpenAIModel("gpt-4.1-nano")
    assert OpenAIModel("gpt-4.1-mini", api_key="k").info.window == 1_047_576
    assert OpenAIModel("gpt-4.1-mini", api_key="k", context_window=5).info.window == 5


@pytest.mark.contract("E13")
async def test_a_server_without_tools_speaks_json(server: WireServer) -> None:
    inner = OpenAIModel("m", base_url=server.url, native_tools=False)
    server.will(
        Answer(sse(chunk({"content": '{"final_answer": "ok"}'}), chunk(finish="stop"), done=True))
    )
    assert (await complete(JsonProtocol(inner), ASK)).text == "ok"
    body = server.asked[0].body
    assert "tools" not in body
    assert body["response_format"]["json_schema"]["schema"]["additionalProperties"] is False
    await inner.aclose()


async def test_leaving_early_frees_the_connection(server: WireServer, model: OpenAIModel) -> None:
    server.will(Answer(TEXT[:2], stall=True), Answer(TEXT))
    async for _ in model.stream(ASK):
        break
    assert (await complete(model, ASK)).text == "Hello 世界"


async def test_effort_is_asked_for_and_left_out_where_it_is_refused(
    server: WireServer, model: OpenAIModel
) -> None:
    """A7: a model that cannot reason still answers."""
    refused = {"error": {"message": "Unrecognized request argument", "param": "reasoning_effort"}}
    text = Answer(sse(chunk({"content": "hi"}), chunk({}, "stop"), done=True))
    server.will(error(400, refused), text, text)
    request = Request([user("a")], effort="high")
    await complete(model, request)
    await complete(model, request)
    assert [asked.body.get("reasoning_effort") for asked in server.asked] == ["high", None, None]
