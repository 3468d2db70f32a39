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
    NoticeDelta,
    Request,
    TextDelta,
    ThoughtDelta,
    ToolSpec,
    Usage,
    complete,
)
from evercontext.errors import (
    ContextTooLong,
    ModelProblem,
    ModelRefused,
    ModelUnavailable,
    ModelUnknown,
    RateLimited,
)
from evercontext.models.ollama import OllamaModel, address
from tests.models.wire_server import Answer, WireServer, error, ndjson, wire_server

READ = ToolSpec("readFile", "Reads.", {"type": "object", "properties": {"path": {}}})
ASK = Request([system("s"), user("こんにちは")], tools=[READ], temperature=0.0, seed=7)


@pytest_asyncio.fixture
async def server() -> AsyncIterator[WireServer]:
    async with wire_server() as running:
        yield running


@pytest_asyncio.fixture
async def model(server: WireServer) -> AsyncIterator[OllamaModel]:
    model = OllamaModel("qwen3:8b", endpoint=server.url, num_ctx=16_384, timeout=60)
    yield model
    await model.aclose()


def show(context: int = 40_960, **more: Any) -> Answer:
    body = {
        "modelfile": "FROM /blobs/sha256-1",
        "template": '{{- range .Messages }}<|im_start|>{{ .Role }}\n{{ if eq .Role "tool" }}',
        "details": {"family": "qwen3", "parameter_size": "8.2B"},
        "model_info": {"general.architecture": "qwen3", "qwen3.context_length": context},
        "capabilities": ["completion", "tools", "thinking"],
        **more,
    }
    return Answer(ndjson(body))


def line(message: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "model": "qwen3:8b",
        "created_at": "2026-08-04T08:52:19.385406455-07:00",
        "message": {"role": "assistant", "content": "", **message},
        "done": False,
        **more,
    }


def last(reason: str = "stop", prompt: int = 26) -> dict[str, Any]:
    return line(
        {},
        done=True,
        done_reason=reason,
        total_duration=4883583458,
        prompt_eval_count=prompt,
        eval_count=282,
    )


def called(name: str, arguments: Any) -> dict[str, Any]:
    return line({"tool_calls": [{"function": {"name": name, "arguments": arguments}}]})


TEXT = ndjson(
    line({"thinking": "hm"}), line({"content": "Hello"}), line({"content": " 世界"}), last()
)
CALLS = ndjson(called("readFile", {"path": "あ.py"}), called("run.lint", {}), last())


async def collect(model: OllamaModel, request: Request, into: list[Delta]) -> None:
    async for delta in model.stream(request):
        into.append(delta)


async def test_text_streams_and_usage_is_counted(server: WireServer, model: OllamaModel) -> None:
    server.will(show(), Answer(TEXT))
    got: list[Delta] = []
    await collect(model, ASK, got)
    assert got == [
        ThoughtDelta("hm"),
        TextDelta("Hello"),
        TextDelta(" 世界"),
        EndDelta("end", Usage(26, 282), "qwen3:8b"),
    ]
    assert [asked.path for asked in server.asked] == ["/api/show", "/api/chat"]
    body = server.asked[1].body
    assert body["options"] == {"num_ctx": 16_384, "temperature": 0.0, "seed": 7}
    assert body["messages"][1] == {"role": "user", "content": "こんにちは"}
    assert body["tools"][0]["function"]["name"] == "readFile"


@pytest.mark.contract("E32")
@pytest.mark.parametrize(
    ("context", "cap", "window"), [(40_960, 16_384, 16_384), (8192, 16_384, 8192), (8192, 0, 8192)]
)
async def test_the_context_asked_for_is_the_window_shown(
    server: WireServer, context: int, cap: int, window: int
) -> None:
    model = OllamaModel("m", endpoint=server.url, num_ctx=cap)
    server.will(show(context), Answer(TEXT))
    await complete(model, ASK)
    assert model.info.window == window
    assert server.asked[1].body["options"]["num_ctx"] == window
    await model.aclose()


async def test_calls_come_whole(server: WireServer, model: OllamaModel) -> None:
    server.will(show(), Answer(CALLS))
    reply = await complete(model, ASK)
    assert [(call.name, dict(call.arguments)) for call in reply.tool_calls] == [
        ("readFile", {"path": "あ.py"}),
        ("run.lint", {}),
    ]
    assert reply.stop == "tool_calls"
    assert len({call.id for call in reply.tool_calls}) == 2


async def test_a_printed_call_is_made(server: WireServer, model: OllamaModel) -> None:
    printed = ['{"name": "read', 'File", "arguments": {"pa', 'th": "a.py"}}']
    server.will(show(), Answer(ndjson(*(line({"content": part}) for part in printed), last())))
    reply = await complete(model, ASK)
    assert reply.text == ""
    assert [dict(call.arguments) for call in reply.tool_calls] == [{"path": "a.py"}]
    assert reply.stop == "tool_calls"


async def test_history_goes_out_in_the_wire_shape(server: WireServer, model: OllamaModel) -> None:
    call = ToolCall("c", "readFile", {"path": "a"})
    history = [user("go"), assistant("", (call,)), tool_result(call, "x")]
    server.will(show(), Answer(TEXT))
    await complete(model, Request(history, tools=[READ]))
    assert server.asked[1].body["messages"][1:] == [
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"function": {"name": "readFile", "arguments": {"path": "a"}}}],
        },
        {"role": "tool", "content": "x", "tool_name": "readFile"},
    ]


async def test_a_model_without_tools_is_not_sent_any(
    server: WireServer, model: OllamaModel
) -> None:
    server.will(show(capabilities=["completion"], template="{{ .Prompt }}"), Answer(TEXT))
    await complete(model, ASK)
    assert "tools" not in server.asked[1].body
    assert model.info.native_tools is False
    assert (await model.describe()).tool_role is False


async def test_an_old_server_shows_tools_in_its_template(
    server: WireServer, model: OllamaModel
) -> None:
    server.will(show(capabilities=None, template="{{ if .Tools }}{{ .Role }}"))
    shown = await model.describe()
    assert (shown.tools, shown.tool_role) == (True, True)


async def test_a_prompt_that_fills_the_window_is_said(
    server: WireServer, model: OllamaModel
) -> None:
    server.will(show(), Answer(ndjson(line({"content": "x"}), last(prompt=16_384))))
    got: list[Delta] = []
    await collect(model, ASK, got)
    notices = [delta.text for delta in got if isinstance(delta, NoticeDelta)]
    assert "16384 tokens" in notices[0]


async def test_the_length_limit_is_told(server: WireServer, model: OllamaModel) -> None:
    server.will(show(), Answer(ndjson(line({"content": "x"}), last("length"))))
    assert (await complete(model, ASK)).stop == "length"


async def test_chat_models_are_listed(server: WireServer, model: OllamaModel) -> None:
    found = [
        {"name": "nomic-embed-text:latest", "details": {"family": "nomic-bert"}},
        {"name": "all-minilm:22m", "details": {"family": "bert"}},
        {"name": "hermes3:8b", "details": {"family": "llama"}},
        {"name": "qwen3:8b"},
    ]
    server.will(Answer(ndjson({"models": found})))
    assert await model.installed() == ["hermes3:8b", "qwen3:8b"]


ERRORS: list[tuple[Answer, type[ModelProblem]]] = [
    (error(404, {"error": "model 'x' not found"}), ModelUnknown),
    (error(400, {"error": "registry.ollama.ai/x does not support tools"}), ModelRefused),
    (error(400, {"error": "the input length exceeds the context length"}), ContextTooLong),
    (error(429, {"error": "slow"}, retry_after="20"), RateLimited),
    (error(500, {"error": "model requires more system memory"}), ModelUnavailable),
    (Answer([b"<html>"], 502), ModelUnavailable),
]


@pytest.mark.contract("E40")
@pytest.mark.parametrize(("answer", "kind"), ERRORS, ids=lambda value: str(value)[:40])
@pytest.mark.parametrize("at", ["show", "chat"])
async def test_every_refusal_has_its_error(
    server: WireServer, model: OllamaModel, answer: Answer, kind: type[ModelProblem], at: str
) -> None:
    server.will(*([answer] if at == "show" else [show(), answer]))
    with pytest.raises(ModelProblem) as caught:
        await complete(model, ASK)
    assert type(caught.value) is kind
    assert "\n" not in str(caught.value)


async def test_a_missing_model_says_how_to_get_it(server: WireServer, model: OllamaModel) -> None:
    server.will(error(404, {"error": "model 'qwen3:8b' not found"}))
    with pytest.raises(ModelUnknown, match="ollama pull qwen3:8b"):
        await model.describe()


@pytest.mark.contract("E40")
@pytest.mark.parametrize(
    "answer",
    [
        Answer(CALLS[:-3], cut=True),
        Answer(ndjson(called("readFile", {}))),
        Answer([*ndjson(called("readFile", {})), b"{garbage\n"]),
        Answer(ndjson(called("readFile", {}), {"error": "an error was encountered"})),
        Answer([b"[1, 2]\n"]),
        Answer([]),
    ],
    ids=["cut", "ended early", "garbage", "error line", "list", "empty"],
)
async def test_a_broken_stream_yields_no_call(
    server: WireServer, model: OllamaModel, answer: Answer
) -> None:
    server.will(show(), answer)
    got: list[Delta] = []
    with pytest.raises(ModelUnavailable):
        await collect(model, ASK, got)
    assert not any(isinstance(delta, CallDelta | EndDelta) for delta in got)


async def test_a_silent_server_is_given_up(server: WireServer) -> None:
    quiet = OllamaModel("m", endpoint=server.url, timeout=0.2)
    server.will(show(), Answer(TEXT[:3], stall=True))
    with pytest.raises(ModelUnavailable, match="said nothing"):
        await complete(quiet, ASK)
    await quiet.aclose()


async def test_nobody_listening() -> None:
    async with wire_server() as server:
        port = server.port
    gone = OllamaModel("m", endpoint=f"127.0.0.1:{port}")
    with pytest.raises(ModelUnavailable, match="ollama serve"):
        await complete(gone, ASK)
    await gone.aclose()


def test_endpoints_as_people_write_them() -> None:
    assert address("localhost:11434") == "http://localhost:11434"
    assert address("https://host/") == "https://host"


@pytest.mark.parametrize(
    ("name", "able", "sent"),
    [("gpt-oss:20b", "thinking", "low"), ("qwen3:8b", "thinking", True), ("a", "tools", None)],
)
async def test_effort_is_asked_of_models_that_think(
    server: WireServer, name: str, able: str, sent: object
) -> None:
    """A7."""
    server.will(show(capabilities=["completion", able]), Answer(TEXT))
    model = OllamaModel(name, endpoint=server.url)
    await complete(model, Request([user("a")], effort="low"))
    await model.aclose()
    assert server.asked[1].body.get("think") == sent


async def test_pictures_go_to_models_that_see(server: WireServer) -> None:
    """A7."""
    server.will(show(capabilities=["completion", "vision"]), Answer(TEXT))
    model = OllamaModel("llava", endpoint=server.url)
    image = Image("a.png", "image/png", b"\x89PNG")
    await complete(model, Request([Message("user", "what is it?", images=(image,))]))
    await model.aclose()
    assert model.info.images
    assert server.asked[1].body["messages"][0]["images"] == ["iVBORw=="]
