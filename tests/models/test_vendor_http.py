from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from evercontext.domain.message import user
from evercontext.domain.model import Request, complete
from evercontext.errors import BadReply, ModelUnavailable
from evercontext.models import vendor_http
from evercontext.models.anthropic import AnthropicModel
from evercontext.models.ollama import OllamaModel
from evercontext.models.openai import OpenAIModel
from evercontext.models.vendor_http import vendor_headers
from tests.models import test_anthropic, test_openai
from tests.models.wire_server import Answer, WireServer, sse, wire_server

ASK = Request([user("go")])
SEPARATORS = "a\u2028b\u2029c\x85d\x1ce"


@pytest_asyncio.fixture
async def server() -> AsyncIterator[WireServer]:
    async with wire_server() as running:
        yield running


async def test_only_a_newline_ends_a_line(server: WireServer) -> None:
    """JSON may hold U+2028 and the like as they are: an event is not cut there."""
    server.will(
        Answer(
            sse(
                test_openai.chunk({"content": SEPARATORS}),
                test_openai.chunk(finish="stop"),
                done=True,
            )
        )
    )
    model = OpenAIModel("m", base_url=server.url)
    assert (await complete(model, ASK)).text == SEPARATORS
    await model.aclose()


async def test_only_a_newline_ends_a_line_of_ollama(server: WireServer) -> None:
    said = {"model": "m", "message": {"role": "assistant", "content": SEPARATORS}, "done": True}
    server.will(
        Answer([b'{"model_info": {"x.context_length": 4096}, "capabilities": []}']),
        Answer([json.dumps(said, ensure_ascii=False).encode() + b"\n"]),
    )
    model = OllamaModel("m", endpoint=server.url)
    assert (await complete(model, ASK)).text == SEPARATORS
    await model.aclose()


async def test_events_cut_anywhere_are_put_together(server: WireServer) -> None:
    raw = b"".join(test_openai.TEXT).replace(b"\n", b"\r\n")
    server.will(Answer([raw[i : i + 7] for i in range(0, len(raw), 7)]))
    model = OpenAIModel("m", base_url=server.url)
    assert (await complete(model, ASK)).text == "Hello 世界"
    await model.aclose()


async def test_an_object_of_another_shape_is_not_the_protocol(server: WireServer) -> None:
    odd = [b'data: {"choices": [{"delta": "x"}]}\n\n', b'data: {"choices": 3}\n\n', b"data: 3\n\n"]
    for line in odd:
        server.will(Answer([line]))
        model = OpenAIModel("m", base_url=server.url)
        with pytest.raises(ModelUnavailable, match="not its protocol"):
            await complete(model, ASK)
        await model.aclose()
    server.will(Answer([b'data: {"type": "content_block_delta", "index": 4, "delta": {}}\n\n']))
    claude = AnthropicModel("m", base_url=server.url)
    with pytest.raises(ModelUnavailable, match="not its protocol"):
        await complete(claude, ASK)
    await claude.aclose()


async def test_headers_that_the_vendors_variables_ask_for(
    server: WireServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_ORG_ID", "org-1")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-1")
    monkeypatch.setenv("ANTHROPIC_CUSTOM_HEADERS", "X-Team: blue\nnonsense")
    server.will(Answer(test_openai.TEXT), Answer(test_anthropic.TEXT))
    model = OpenAIModel("m", base_url=server.url)
    claude = AnthropicModel("m", base_url=server.url)
    await complete(model, ASK)
    await complete(claude, ASK)
    first, second = server.asked
    assert first.headers["openai-organization"] == "org-1"
    assert first.headers["openai-project"] == "proj-1"
    assert second.headers["x-team"] == "blue"
    assert second.headers["anthropic-version"] == "2026-10-21"
    assert vendor_headers("OPENAI", {}) == {}
    await model.aclose()
    await claude.aclose()


async def test_a_host_behind_a_dead_proxy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """S7: which host could not be reached, and which variable names the proxy."""
    monkeypatch.setenv("HTTPS_PROXY", "http://me:secret@127.0.0.1:9")
    model = OpenAIModel("m", api_key="k" * 20)
    with pytest.raises(ModelUnavailable) as caught:
        await complete(model, ASK)
    await model.aclose()
    said = str(caught.value)
    assert "api.openai.com" in said
    assert "127.0.0.1:9" in said
    assert "HTTPS_PROXY" in said
    assert "secret" not in said


def test_no_vendor_sdk_is_needed() -> None:
    hidden = "import sys; sys.modules['openai'] = sys.modules['anthropic'] = None; "
    use = (
        "from evercontext.models.openai import OpenAIModel; OpenAIModel('m', api_key='k');"
        "from evercontext.models.anthropic import AnthropicModel; AnthropicModel('m', api_key='k');"
        "from evercontext.bridge import KanaAIBridge; KanaAIBridge('k')"
    )
    subprocess.run([sys.executable, "-c", hidden + use], check=True, timeout=60)


async def test_an_answer_without_an_end_is_cut_off(
    server: WireServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """X15: 1.1 to 2.0 GB in 25 seconds."""
    monkeypatch.setattr(vendor_http, "LARGEST_REPLY", 100_000)
    flood = sse(test_openai.chunk({"content": "x" * 1000}))
    server.will(Answer([*flood] * 500), Answer([b" " * 1000] * 500))
    model = OpenAIModel("m", base_url=server.url)
    with pytest.raises(BadReply, match="in one answer"):
        await complete(model, ASK)
    await model.aclose()
