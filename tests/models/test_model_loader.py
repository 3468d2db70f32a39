from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from evercontext.domain.message import user
from evercontext.domain.model import NoticeDelta, Request, complete
from evercontext.errors import ModelAuthFailed, ModelUnavailable, ModelUnknown
from evercontext.models.json_protocol import JsonProtocol
from evercontext.models.model_loader import available, canonical, choose, load, ready
from evercontext.settings import Settings
from tests.models import test_ollama
from tests.models.wire_server import Answer, WireServer, error, ndjson, wire_server

NOBODY = "http://127.0.0.1:9"


@pytest_asyncio.fixture
async def server() -> AsyncIterator[WireServer]:
    async with wire_server() as running:
        yield running


def settings(tmp_path: Path, **given: Any) -> Settings:
    return Settings(**{"home": tmp_path, "ollama_endpoint": NOBODY, **given})


@pytest.mark.contract("N13")
@pytest.mark.parametrize(
    ("name", "full"),
    [
        ("openai:gpt-4.1-nano", "openai:gpt-4.1-nano"),
        ("gpt-4.1-mini", "openai:gpt-4.1-mini"),
        ("o3", "openai:o3"),
        ("claude-sonnet-5-5", "anthropic:claude-sonnet-5-5"),
        ("hermes3:8b", "ollama:hermes3:8b"),
        ("ollama:hermes3:8b", "ollama:hermes3:8b"),
        ("hf.co/a/b:Q4_K_M", "ollama:hf.co/a/b:Q4_K_M"),
        ("olmo2", "ollama:olmo2"),
        ("gemini-cli", "gemini-cli"),
        ("gemini-cli:gemini-3-pro", "gemini-cli:gemini-3-pro"),
        ("codex-cli", "codex-cli"),
        ("openai", "openai:gpt-6.1-terra"),
        ("embedded", "embedded:smollm2"),
        ("scripted:C:/x.jsonl", "scripted:C:/x.jsonl"),
        (" gpt-4.1-nano ", "openai:gpt-4.1-nano"),
    ],
)
def test_names_find_their_provider(name: str, full: str) -> None:
    assert canonical(name) == full
    assert canonical(full) == full


def test_no_name_is_an_error() -> None:
    with pytest.raises(ModelUnknown):
        canonical("  ")


@pytest.mark.contract("E32", "N12")
async def test_the_choice_goes_down_the_list(tmp_path: Path, server: WireServer) -> None:
    everything = {
        "model_name": "gpt-4.1-mini",
        "openai_api_key": "k",
        "anthropic_api_key": "k",
        "ollama_endpoint": server.url,
        "origins": {"model_name": "EC_MODEL_NAME"},
    }
    server.will(Answer(ndjson({"models": [{"name": "hermes3:8b"}]})))
    chosen = []
    for _ in range(5):
        chosen.append(await choose(settings(tmp_path, **everything)))
        everything.pop(next(iter(everything)))
    assert [choice and choice.name for choice in chosen] == [
        "openai:gpt-4.1-mini",
        "openai:gpt-6.1-terra",
        "anthropic:claude-sonnet-5-5",
        "ollama:hermes3:8b",
        None,
    ]
    assert chosen[0]
    assert "EC_MODEL_NAME" in chosen[0].reason
    assert chosen[1]
    assert "OPENAI_API_KEY" in chosen[1].reason


async def test_an_ollama_without_models_is_passed_over(tmp_path: Path, server: WireServer) -> None:
    server.will(Answer(ndjson({"models": []})))
    assert await choose(settings(tmp_path, ollama_endpoint=server.url)) is None


async def test_something_else_on_the_port_is_passed_over(
    tmp_path: Path, server: WireServer
) -> None:
    server.will(Answer([b"<html>hello</html>"]))
    assert await choose(settings(tmp_path, ollama_endpoint=server.url)) is None


async def test_what_is_there_is_listed(tmp_path: Path, server: WireServer) -> None:
    server.will(Answer(ndjson({"models": [{"name": "hermes3:8b"}]})))
    found = await available(settings(tmp_path, openai_api_key="k", ollama_endpoint=server.url))
    lines = {line.name: line for line in found}
    assert lines["openai:gpt-4.1-nano"].ready
    assert not lines["anthropic:claude-sonnet-5-5"].ready
    assert "ANTHROPIC_API_KEY" in lines["anthropic:claude-sonnet-5-5"].note
    assert lines["ollama:hermes3:8b"].ready
    assert not lines["embedded:smollm2"].ready
    assert {"gemini-cli", "codex-cli"} <= set(lines)


@pytest.mark.contract("N12")
async def test_wrong_names_and_keys_are_told_at_once(tmp_path: Path, server: WireServer) -> None:
    plain = settings(tmp_path)
    with pytest.raises(ModelAuthFailed, match="OPENAI_API_KEY"):
        await load("gpt-4.1-nano", plain)
    with pytest.raises(ModelAuthFailed, match="ANTHROPIC_API_KEY"):
        await load("claude-sonnet-5-5", plain)
    with pytest.raises(ModelUnavailable, match="ollama serve"):
        await load("hermes3:8b", plain)
    with pytest.raises(ModelUnknown, match="scripted:FILE"):
        await load("scripted:", plain)
    with pytest.raises(ModelUnknown):
        await load("embedded:gpt-9", plain)
    server.will(error(404, {"error": "not found"}))
    with pytest.raises(ModelUnknown, match="ollama pull nope"):
        await load("nope", settings(tmp_path, ollama_endpoint=server.url))


@pytest.mark.parametrize("tools", [True, False])
async def test_an_ollama_model_without_tools_speaks_json(
    tmp_path: Path, server: WireServer, tools: bool
) -> None:
    able = ["completion", "tools"] if tools else ["completion"]
    server.will(test_ollama.show(capabilities=able))
    model = await load("ollama:m", settings(tmp_path, ollama_endpoint=server.url))
    assert isinstance(model, JsonProtocol) is not tools
    assert model.info.native_tools is tools
    assert model.info.window == 16_384
    await model.aclose()


async def test_text_only_models_are_wrapped(tmp_path: Path) -> None:
    for name in ("gemini-cli", "codex-cli", "embedded:smollm2"):
        model = await load(name, settings(tmp_path))
        assert isinstance(model, JsonProtocol)
        assert canonical(model.info.name) == name
        await model.aclose()


async def test_ready_retries_and_falls_back(tmp_path: Path, server: WireServer) -> None:
    script = tmp_path / "s.jsonl"
    script.write_text('{"text": "from the script"}\n')
    server.will(error(503, {}, retry_after="0"), error(429, {}, retry_after="99"))
    given = settings(
        tmp_path, openai_base_url=server.url, fallback_models=("ollama:nope", f"scripted:{script}")
    )
    model = await ready(given, "openai:gpt-4.1-nano")
    got = [delta async for delta in model.stream(Request([user("go")]))]
    notices = [delta.text for delta in got if isinstance(delta, NoticeDelta)]
    assert len(server.asked) == 2
    assert "trying again" in notices[0]
    assert "ollama:nope steps in" in notices[1]
    assert "trying again" in notices[2], "also one that could not be opened"
    assert f"scripted:{script} steps in" in notices[3]
    await model.aclose()


async def test_ready_without_a_chain(tmp_path: Path) -> None:
    script = tmp_path / "s.jsonl"
    script.write_text('{"text": "hi"}\n')
    model = await ready(settings(tmp_path, model_name=f"scripted:{script}"))
    assert (await complete(model, Request([user("go")]))).text == "hi"


def test_nothing_heavy_is_imported_before_it_is_used() -> None:
    code = (
        "import sys, evercontext.models.model_loader, evercontext.models.openai,"
        " evercontext.models.anthropic, evercontext.models.ollama,"
        " evercontext.models.vendor_cli, evercontext.models.scripted\n"
        "heavy = {'openai', 'anthropic', 'ollama', 'httpx2', 'httpx', 'pydantic', 'json_repair'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
