"""What every model owes its callers, asked of each of them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
import pytest_asyncio

from evercontext.domain.message import user
from evercontext.domain.model import CallDelta, Delta, EndDelta, Model, Request, ToolSpec, complete
from evercontext.errors import ModelUnavailable
from evercontext.models.anthropic import AnthropicModel
from evercontext.models.json_protocol import JsonProtocol
from evercontext.models.model_loader import canonical
from evercontext.models.ollama import OllamaModel
from evercontext.models.openai import OpenAIModel
from evercontext.models.retry import Retrying
from evercontext.models.scripted import ScriptedModel
from evercontext.models.vendors.codex import Codex
from tests.models import test_anthropic, test_ollama, test_openai
from tests.models.vendors.stage import Stage, codex_says
from tests.models.wire_server import Answer, WireServer, ndjson, wire_server

TOOLS = [
    ToolSpec("readFile", "Reads.", {"type": "object", "properties": {"path": {}}}),
    ToolSpec("run.lint", "Lints.", {"type": "object", "properties": {}}),
]
ASK = Request([user("go")], tools=TOOLS)
HERMES_TEXT = '{"final_answer": "Hello 世界"}'
HERMES_CALLS = json.dumps(
    {
        "tool_calls": [
            {"name": "readFile", "parameters": {"path": "あ.py"}},
            {"name": "run.lint", "parameters": {}},
        ]
    }
)

Make = Callable[[str], Awaitable[Model]]


@pytest_asyncio.fixture(
    params=["openai", "anthropic", "ollama", "ollama-json", "scripted", "scripted-raw", "codex"]
)
async def make(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Make]:
    """Return a maker of one provider's model that will answer with ``text``, ``calls`` or fail."""
    opened: list[Model] = []
    async with wire_server() as server:

        async def build(answer: str) -> Model:
            model = KINDS[request.param](answer, server, tmp_path)
            opened.append(model)
            return model

        yield build
        for model in opened:
            await model.aclose()


def _openai(answer: str, server: WireServer, folder: Path) -> Model:
    wire = {
        "text": Answer(test_openai.TEXT),
        "calls": Answer(test_openai.CALLS),
        "cut": Answer(test_openai.CALLS[:5], cut=True),
    }
    server.will(wire[answer])
    return OpenAIModel("gpt-4.1-nano", base_url=server.url)


def _anthropic(answer: str, server: WireServer, folder: Path) -> Model:
    wire = {
        "text": Answer(test_anthropic.TEXT),
        "calls": Answer(test_anthropic.CALLS),
        "cut": Answer(test_anthropic.CALLS[:-2], cut=True),
    }
    server.will(wire[answer])
    return AnthropicModel("claude-sonnet-5-5", base_url=server.url)


def _ollama(answer: str, server: WireServer, folder: Path) -> Model:
    wire = {
        "text": Answer(test_ollama.TEXT),
        "calls": Answer(test_ollama.CALLS),
        "cut": Answer(test_ollama.CALLS[:-2], cut=True),
    }
    server.will(test_ollama.show(), wire[answer])
    return OllamaModel("hermes3:8b", endpoint=server.url)


def _ollama_json(answer: str, server: WireServer, folder: Path) -> Model:
    text = HERMES_TEXT if answer == "text" else HERMES_CALLS
    lines = [test_ollama.line({"content": text}), test_ollama.last()]
    cut = answer == "cut"
    reply = Answer(ndjson(*(lines[:1] if cut else lines)), cut=cut)
    server.will(test_ollama.show(capabilities=["completion"]), reply)
    return JsonProtocol(OllamaModel("hermes3:8b", endpoint=server.url))


def _scripted(answer: str, server: WireServer, folder: Path) -> Model:
    calls = [
        {"name": "readFile", "arguments": {"path": "あ.py"}},
        {"name": "run.lint", "arguments": {}},
    ]
    turns = {
        "text": {"text": "Hello 世界"},
        "calls": {"tool_calls": calls},
        "cut": {"error": "model_unavailable"},
    }
    path = folder / f"{answer}.jsonl"
    path.write_text(json.dumps(turns[answer]))
    return ScriptedModel.from_file(path)


def _scripted_raw(answer: str, server: WireServer, folder: Path) -> Model:
    raw = HERMES_TEXT if answer == "text" else HERMES_CALLS
    turns = [{"raw": "no"}, {"error": "ModelUnavailable"}] if answer == "cut" else [{"raw": raw}]
    path = folder / f"{answer}.jsonl"
    path.write_text("\n".join(json.dumps(turn) for turn in turns))
    return ScriptedModel.from_file(path)


def _codex(answer: str, server: WireServer, folder: Path) -> Model:
    stage = Stage(folder, Codex())
    said = codex_says(HERMES_TEXT if answer == "text" else HERMES_CALLS)
    return JsonProtocol(stage.plays(said[:-200] if answer == "cut" else said))


KINDS: dict[str, Callable[[str, WireServer, Path], Model]] = {
    "openai": _openai,
    "anthropic": _anthropic,
    "ollama": _ollama,
    "ollama-json": _ollama_json,
    "scripted": _scripted,
    "scripted-raw": _scripted_raw,
    "codex": _codex,
}


async def test_a_text_ends_with_one_end(make: Make) -> None:
    model = await make("text")
    got = [delta async for delta in model.stream(ASK)]
    assert [type(delta) is EndDelta for delta in got] == [False] * (len(got) - 1) + [True]


async def test_the_text_is_whole(make: Make) -> None:
    reply = await complete(await make("text"), ASK)
    assert (reply.text, reply.tool_calls, reply.stop) == ("Hello 世界", (), "end")
    assert reply.model


@pytest.mark.contract("N5")
async def test_calls_are_whole_and_under_their_own_names(make: Make) -> None:
    reply = await complete(await make("calls"), ASK)
    assert [(call.name, dict(call.arguments), call.malformed) for call in reply.tool_calls] == [
        ("readFile", {"path": "あ.py"}, None),
        ("run.lint", {}, None),
    ]
    assert reply.stop == "tool_calls"
    assert len({call.id for call in reply.tool_calls}) == 2
    assert json.dumps(dict(reply.extras)), "extras are kept in the history as JSON"


@pytest.mark.contract("E40")
async def test_a_failure_yields_neither_call_nor_end(make: Make) -> None:
    got: list[Delta] = []

    async def listen(model: Model) -> None:
        async for delta in model.stream(ASK):
            got.append(delta)

    with pytest.raises(ModelUnavailable):
        await listen(await make("cut"))
    assert not any(isinstance(delta, CallDelta | EndDelta) for delta in got)


async def test_the_name_says_how_to_load_it_again(make: Make) -> None:
    info = (await make("text")).info
    assert canonical(info.name) == info.name
    assert info.window > 0
    assert not info.bare_name.startswith(("openai:", "anthropic:", "ollama:", "scripted:"))


async def test_closing_twice_is_harmless(make: Make) -> None:
    model = await make("text")
    await complete(model, ASK)
    await model.aclose()
    await model.aclose()


async def test_a_wrapped_model_is_the_same_model(make: Make) -> None:
    model = Retrying(await make("text"))
    assert (await complete(model, ASK)).text == "Hello 世界"
