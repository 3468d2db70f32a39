from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from evercontext import settings as sources
from evercontext.bridge import KanaAIBridge, for_claude
from evercontext.context.assembler import ContextAssemblerService
from evercontext.context.token_estimate import TokenEstimator
from evercontext.domain.memory import RetrievalOptions, RetrievedMemory
from evercontext.memory.memory_store import MemoryStore
from evercontext.memory.messages import MessageCreate, MessageRepository
from evercontext.memory.recall import RetrievalOrchestrator
from evercontext.settings import Settings
from evercontext.storage.sqlite import SqliteStore
from tests.models.test_retry import Clock
from tests.models.wire_server import Answer, WireServer, wire_server

REPLY = {
    "id": "msg_01",
    "type": "message",
    "role": "assistant",
    "model": "claude-sonnet-5-5",
    "content": [{"type": "text", "text": "あなたの好きな色は青です。"}],
    "stop_reason": "end_turn",
    "stop_sequence": None,
    "usage": {"input_tokens": 40, "output_tokens": 12},
}


def ok() -> Answer:
    return Answer([json.dumps(REPLY).encode()])


def refused(status: int, kind: str, message: str) -> Answer:
    body = {"type": "error", "error": {"type": kind, "message": message}}
    return Answer([json.dumps(body).encode()], status=status)


@pytest.fixture
async def server() -> AsyncIterator[WireServer]:
    async with wire_server() as running:
        yield running


def configured(server: WireServer, tmp_path: Path) -> Settings:
    environment = {"ANTHROPIC_BASE_URL": server.url, "EC_HOME": str(tmp_path)}
    return sources.load(environment=environment, cwd=tmp_path)


class Remembers:
    async def retrieve(
        self, query: str, options: RetrievalOptions | None = None
    ) -> list[RetrievedMemory]:
        return [RetrievedMemory("1", "好きな色は青", 0.91)]


@pytest.mark.contract("R2", "R4", "R39", "R41", "R43")
async def test_a_past_memory_is_really_sent(server: WireServer, tmp_path: Path) -> None:
    server.will(ok())
    store = await SqliteStore.in_memory()
    messages = MessageRepository(store)
    await messages.create(MessageCreate("ann", "やあ", "user"))
    assembler = ContextAssemblerService(Remembers(), messages, None)
    bridge = KanaAIBridge(
        "sk-ant-test", context_assembler=assembler, settings=configured(server, tmp_path)
    )
    answer = await bridge.process_intent({"content": "私の好きな色は?", "user_id": "ann"})
    await bridge.aclose()
    await store.close()
    sent = server.asked[0].body
    assert (sent["max_tokens"], sent["temperature"]) == (4096, 0.5)
    assert sent["system"] == "You are Kana, the external translator for Resonant Engine."
    assert [turn["role"] for turn in sent["messages"]] == ["user", "assistant", "user"]
    assert "好きな色は青 (関連度: 0.91)" in sent["messages"][1]["content"]
    assert sent["messages"][-1]["content"].endswith("私の好きな色は?")
    assert answer["status"] == "ok"
    assert answer["summary"] == "あなたの好きな色は青です。"
    assert answer["model"] == "claude-sonnet-5-5"
    assert answer["context_metadata"]["semantic_memory_count"] == 1


@pytest.mark.contract("R40")
async def test_without_an_assembler_it_still_answers(server: WireServer, tmp_path: Path) -> None:
    server.will(ok())
    bridge = KanaAIBridge("sk-ant-test", settings=configured(server, tmp_path))
    answer = await bridge.process_intent({"content": "hello"})
    await bridge.aclose()
    assert answer["status"] == "ok"
    assert "context_metadata" not in answer
    assert server.asked[0].body["messages"] == [{"role": "user", "content": "hello"}]


@pytest.mark.contract("R42")
@pytest.mark.parametrize(
    ("status", "kind"), [(401, "authentication_error"), (529, "overloaded_error")]
)
async def test_an_api_error_is_an_answer(
    server: WireServer, tmp_path: Path, status: int, kind: str
) -> None:
    server.will(*[refused(status, kind, "no such luck")] * 6)
    bridge = KanaAIBridge(
        "sk-ant-test", settings=configured(server, tmp_path), backoff=Clock().backoff()
    )
    answer = await bridge.process_intent({"content": "hello"})
    await bridge.aclose()
    assert answer["status"] == "error"
    assert "no such luck" in answer["reason"]


@pytest.mark.contract("E40")
async def test_an_overloaded_claude_is_asked_again(server: WireServer, tmp_path: Path) -> None:
    """A9: after what the server asks for, else by growing waits."""
    busy = refused(429, "rate_limit_error", "slow down")
    server.will(busy, replace(busy, headers={"retry-after": "7"}), Answer(cut=True, status=200))
    server.will(refused(529, "overloaded_error", "busy"), ok())
    clock = Clock()
    bridge = KanaAIBridge(
        "sk-ant-test", settings=configured(server, tmp_path), backoff=clock.backoff()
    )
    answer = await bridge.process_intent({"content": "hello"})
    await bridge.aclose()
    assert answer["status"] == "ok", answer
    assert clock.slept == [0.5, 7.0, 2.0, 4.0]


@pytest.mark.parametrize(
    ("stop", "status", "truncated"),
    [("max_tokens", "ok", True), ("refusal", "error", None), ("end_turn", "ok", None)],
)
async def test_an_answer_that_is_not_whole_says_so(
    server: WireServer, tmp_path: Path, stop: str, status: str, truncated: bool | None
) -> None:
    """P6"""
    server.will(Answer([json.dumps({**REPLY, "stop_reason": stop}).encode()]))
    bridge = KanaAIBridge("sk-ant-test", settings=configured(server, tmp_path))
    answer = await bridge.process_intent({"content": "hello"})
    await bridge.aclose()
    assert (answer["status"], answer.get("truncated")) == (status, truncated)


async def test_a_model_that_refuses_sampling_is_asked_without(
    server: WireServer, tmp_path: Path
) -> None:
    server.will(refused(400, "invalid_request_error", "temperature is not supported"), ok())
    bridge = KanaAIBridge("sk-ant-test", settings=configured(server, tmp_path))
    answer = await bridge.process_intent({"content": "hello"})
    await bridge.aclose()
    assert answer["status"] == "ok"
    assert "temperature" not in server.asked[1].body


@pytest.mark.contract("R38")
def test_no_key_and_no_client_names_the_variable(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="ANTHROPIC_API_KEY"):
        KanaAIBridge(settings=sources.load(environment={}, cwd=tmp_path))


@pytest.mark.parametrize("intent", [{}, {"content": ""}, {"content": 5}])
async def test_an_intent_without_content_is_an_error(
    server: WireServer, tmp_path: Path, intent: dict[str, object]
) -> None:
    bridge = KanaAIBridge("sk-ant-test", settings=configured(server, tmp_path))
    answer = await bridge.process_intent(intent)
    await bridge.aclose()
    assert answer["status"] == "error"
    assert server.asked == []


@pytest.mark.contract("R43")
def test_claude_gets_system_apart_and_roles_in_turn() -> None:
    system, turns = for_claude(
        [
            {"role": "system", "content": "s"},
            {"role": "assistant", "content": "memories"},
            {"role": "user", "content": "a"},
            {"role": "user", "content": "b"},
        ]
    )
    assert system == "s"
    assert [turn["role"] for turn in turns] == ["user", "assistant", "user"]
    assert turns[-1]["content"] == "a\n\nb"


@pytest.mark.contract("R2", "R4", "R54")
async def test_a_kept_memory_is_found_and_sent(server: WireServer, tmp_path: Path) -> None:
    server.will(ok())
    store = await SqliteStore.open(tmp_path / "memory.db")
    memories = MemoryStore(store)
    await memories.save_memory("好きな色は青です", user_id="ann")
    await memories.save_memory("好きな色は赤です", user_id="bob")
    assembler = ContextAssemblerService(
        RetrievalOrchestrator(store), MessageRepository(store), None
    )
    bridge = KanaAIBridge(
        "sk-ant-test", context_assembler=assembler, settings=configured(server, tmp_path)
    )
    answer = await bridge.process_intent({"content": "好きな色は？", "user_id": "ann"})
    await bridge.aclose()
    await store.close()
    assert answer["status"] == "ok"
    assert answer["context_metadata"]["semantic_memory_count"] == 1
    sent = json.dumps(server.asked[0].body, ensure_ascii=False)
    assert "好きな色は青です" in sent
    assert "赤" not in sent


@pytest.mark.slow
@pytest.mark.contract("R48")
async def test_the_guide_works_as_it_is_written(server: WireServer, tmp_path: Path) -> None:
    server.will(ok())
    page = (Path(__file__).parent.parent / "docs/how-to/bridge.md").read_text("utf-8")
    code = page.partition("```python\n")[2].partition("```")[0]
    environment = {
        "PATH": os.environ["PATH"],
        "ANTHROPIC_API_KEY": "sk-ant-test",
        "ANTHROPIC_BASE_URL": server.url,
        "EC_HOME": str(tmp_path / "home"),
    }
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        code,
        cwd=tmp_path,
        env=environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    printed, problems = await child.communicate()
    assert printed.decode().startswith("ok "), problems.decode()
    assert "favourite colour is blue" in json.dumps(server.asked[0].body)


@pytest.mark.contract("R52")
async def test_what_a_reply_cost_corrects_the_estimate(server: WireServer, tmp_path: Path) -> None:
    server.will(ok())
    estimator = TokenEstimator("claude-sonnet-5-5")
    assembler = ContextAssemblerService(Remembers(), None, None, estimator=estimator)
    bridge = KanaAIBridge(
        "sk-ant-test", context_assembler=assembler, settings=configured(server, tmp_path)
    )
    await bridge.process_intent({"content": "私の好きな色は?", "user_id": "ann"})
    await bridge.aclose()
    assert estimator.calibration.seen == 1
