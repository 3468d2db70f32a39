from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evercontext.context.assembler import ContextAssemblerService
from evercontext.context.context_check import ContextValidator
from evercontext.context.context_request import (
    AssemblyOptions,
    ContextConfig,
    ContextOverflowError,
    MemoryLayer,
)
from evercontext.context.layer_messages import MessageBuilder
from evercontext.context.token_estimate import TokenEstimator
from evercontext.domain.event import ContextAssembled, Event, ModelReply, Notice
from evercontext.domain.memory import RetrievalOptions, RetrievedMemory
from evercontext.events import log_reader
from evercontext.events.log import EventLog
from evercontext.memory.messages import MessageCreate, MessageRepository
from evercontext.memory.sessions import SessionRepository
from evercontext.storage.sqlite import SqliteStore


class Recalled:
    """Memories that are always found; what the real orchestrator returns."""

    def __init__(self, *memories: RetrievedMemory) -> None:
        self.memories, self.asked = memories, list[RetrievalOptions | None]()

    async def retrieve(
        self, query: str, options: RetrievalOptions | None = None
    ) -> Sequence[RetrievedMemory]:
        self.asked.append(options)
        return self.memories[: options.limit if options else 5]


class Broken:
    async def retrieve(self, query: str, options: Any = None) -> Sequence[RetrievedMemory]:
        raise ConnectionError("the memory is gone")

    async def list(self, *, user_id: str, limit: int) -> tuple[Sequence[Any], int]:
        raise ConnectionError("gone")

    async def get_by_id(self, id: object) -> Any:
        raise ConnectionError("gone")


def memory(n: int, similarity: float = 0.5, text: str = "memory") -> RetrievedMemory:
    return RetrievedMemory(str(n), f"{text} {n}", similarity)


@pytest.mark.contract("R20")
@pytest.mark.parametrize(
    "wrong",
    [
        {"working_memory_limit": 0},
        {"working_memory_limit": 51},
        {"semantic_memory_limit": 21},
        {"max_tokens": 999},
        {"token_safety_margin": 0.49},
        {"token_safety_margin": 0.96},
        {"system_prompt": " "},
    ],
)
def test_a_configuration_out_of_range_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        ContextConfig(**wrong)


@pytest.mark.contract("R20", "R35")
def test_the_defaults_are_those_of_the_contract() -> None:
    config = ContextConfig()
    assert config.system_prompt == "You are Kana, the external translator for Resonant Engine."
    limits = (config.working_memory_limit, config.semantic_memory_limit, config.max_tokens)
    assert limits == (10, 5, 100_000)
    assert config.token_limit == 80_000


@pytest.mark.contract("R12", "R21", "R31", "R32", "R33", "R44")
def test_the_order_and_the_japanese_titles() -> None:
    layers = {
        MemoryLayer.SESSION_SUMMARY: "昨日は検索を直した",
        MemoryLayer.SEMANTIC: [memory(1, 0.87, "好きな色は青")],
        MemoryLayer.WORKING: [
            {"role": "user", "content": "やあ"},
            {"role": "kana", "content": "こんにちは"},
            {"role": "system", "content": "not part of it"},
        ],
    }
    messages = MessageBuilder(ContextConfig())._build_messages(layers, "続けて")
    assert [m["role"] for m in messages] == ["system", "assistant", "user", "assistant", "user"]
    assert "## セッション要約\n昨日は検索を直した" in messages[0]["content"]
    assert messages[1]["content"].startswith("## 関連する過去の記憶")
    assert "好きな色は青 1 (関連度: 0.87)" in messages[1]["content"]
    assert messages[-1]["content"] == "続けて"


@pytest.mark.contract("R31")
def test_english_users_get_english_titles() -> None:
    layers = {MemoryLayer.SESSION_SUMMARY: "done", MemoryLayer.SEMANTIC: [memory(1, 0.5)]}
    messages = MessageBuilder()._build_messages(layers, "go on")
    assert "## Session summary" in messages[0]["content"]
    assert "(relevance: 0.50)" in messages[1]["content"]


@pytest.mark.contract("R14", "R37")
@pytest.mark.parametrize(
    ("messages", "said"),
    [
        ([], "Messages cannot be empty"),
        ([{"role": "user", "content": "x"}], "First message must be system prompt"),
        ([{"role": "system", "content": "x"}], "Last message must be user message"),
        (
            [{"role": "system", "content": "x"}, {"role": "user"}],
            "Message 1 missing role or content",
        ),
        (
            [{"role": "system", "content": "x"}, {"role": "user", "content": " "}],
            "Message 1 has empty content",
        ),
    ],
)
def test_what_the_validator_says(messages: list[dict[str, str]], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        ContextValidator()._validate_context(messages, 10)


@pytest.mark.contract("R1", "R11", "R22", "R23", "R24", "R25", "R26", "R28", "R29", "R30", "R45")
async def test_three_layers_from_the_real_store(tmp_path: Path) -> None:
    store = await SqliteStore.open(tmp_path / "m.db")
    messages, sessions = MessageRepository(store), SessionRepository(store)
    session = await sessions.create(tmp_path, "m")
    await sessions.set_summary(session.id, "We chose SQLite.")
    for n in range(14):
        kind = "user" if n % 2 == 0 else "kana"
        await messages.create(MessageCreate("ann", f"message {n}", kind))
    await messages.create(MessageCreate("bob", "bob's secret", "user"))
    recalled = Recalled(memory(1, 0.3), memory(2, 0.9))
    service = ContextAssemblerService(recalled, messages, sessions)
    context = await service.assemble_context("what next?", "ann", session.id)
    await store.close()
    text = "\n".join(m["content"] for m in context.messages)
    assert "We chose SQLite." in context.messages[0]["content"]
    assert text.index("memory 2") < text.index("memory 1 ")
    assert "message 4" in text
    assert "message 3\n" not in text
    assert "bob" not in text
    data = context.metadata
    assert (data.working_memory_count, data.semantic_memory_count) == (10, 2)
    assert data.has_session_summary
    assert not data.compression_applied
    assert recalled.asked[0] == RetrievalOptions(
        limit=5, user_id="ann", log_metrics=False, hurried=True
    )


async def test_the_summary_of_another_users_session_is_not_told() -> None:
    store = await SqliteStore.in_memory()
    sessions = SessionRepository(store)
    session = await sessions.create(Path("/p"), "m", user_id="bob")
    await sessions.set_summary(session.id, "Bob likes owls.")
    service = ContextAssemblerService(None, None, sessions)
    told = {
        who: (await service.assemble_context("birds?", who, session.id)).metadata
        for who in ("ann", "bob")
    }
    await store.close()
    assert told["bob"].has_session_summary
    assert not told["ann"].has_session_summary


async def test_a_message_saved_before_it_is_sent_is_not_sent_twice() -> None:
    store = await SqliteStore.in_memory()
    messages = MessageRepository(store)
    await messages.create(MessageCreate("ann", "hello", "user"))
    context = await ContextAssemblerService(None, messages, None).assemble_context("hello", "ann")
    await store.close()
    assert [m["role"] for m in context.messages] == ["system", "user"]


@pytest.mark.contract("R19")
async def test_a_failing_layer_is_named_and_never_kills_the_answer() -> None:
    service = ContextAssemblerService(Broken(), Broken(), Broken())
    context = await service.assemble_context("hello", "ann", "s1")
    assert set(context.metadata.degraded) == {"working", "semantic", "session_summary"}
    assert context.messages[-1]["content"] == "hello"


@pytest.mark.contract("R27")
async def test_options_leave_layers_out() -> None:
    options = AssemblyOptions(semantic_memory_limit=1)
    service = ContextAssemblerService(Recalled(memory(1), memory(2)), None, None)
    one = await service.assemble_context("x", "ann", options=options)
    assert one.metadata.semantic_memory_count == 1
    none = await service.assemble_context(
        "x", "ann", options=AssemblyOptions(include_semantic_memory=False)
    )
    assert none.metadata.semantic_memory_count == 0


@pytest.mark.contract("R3", "R36")
async def test_a_small_window_is_packed_and_says_so() -> None:
    config = ContextConfig(max_tokens=1000)
    service = ContextAssemblerService(
        Recalled(*[memory(n, text="word " * 200) for n in range(5)]), None, None, config
    )
    context = await service.assemble_context("short question", "ann")
    assert context.metadata.compression_applied
    assert context.metadata.semantic_memory_count < 5
    assert context.metadata.total_tokens <= config.token_limit


@pytest.mark.contract("R19")
async def test_more_than_the_window_is_an_error_not_a_cut_question() -> None:
    service = ContextAssemblerService(None, None, None, ContextConfig(max_tokens=1000))
    with pytest.raises(ContextOverflowError):
        await service.assemble_context("long " * 5000, "ann")
    with pytest.raises(ValueError, match="empty"):
        await service.assemble_context("  ", "ann")


@pytest.mark.contract("R9")
async def test_metrics_reach_the_event_log(tmp_path: Path) -> None:
    log, heard = EventLog(tmp_path), list[Event]()
    log.subscribe(heard.append)
    service = ContextAssemblerService(None, None, None, events=log)
    await service.assemble_context("x", "ann")
    log.close()
    body = heard[0].body
    assert isinstance(body, ContextAssembled)
    assert body.context_token_count > 0
    assert body.memory_layer_usage == {"working": 0, "semantic": 0, "session_summary": 0}


@pytest.mark.contract("R3")
@settings(max_examples=60)
@given(
    st.lists(st.text(max_size=3000), max_size=8),
    st.text(min_size=1, max_size=4000).filter(str.strip),
    st.integers(1000, 4000),
)
def test_no_assembly_ever_exceeds_its_limit(memories: list[str], asked: str, window: int) -> None:
    found = [RetrievedMemory(str(i), text, i / 10) for i, text in enumerate(memories)]
    config = ContextConfig(max_tokens=window)
    service = ContextAssemblerService(Recalled(*found), None, None, config)
    try:
        context = asyncio.run(service.assemble_context(asked, "ann"))
    except ContextOverflowError:
        return
    assert context.metadata.total_tokens <= config.token_limit
    assert context.messages[-1]["content"] == asked


@pytest.mark.contract("R13", "R52")
async def test_the_tokens_told_are_those_counted_and_what_replies_teach_changes_them(
    tmp_path: Path,
) -> None:
    log = EventLog(tmp_path)
    estimator = TokenEstimator("claude-sonnet-5-5")
    recalled = Recalled(memory(1, 0.9))
    service = ContextAssemblerService(recalled, None, None, estimator=estimator, events=log)
    first = await service.assemble_context("what next?", "ann")
    assert first.metadata.total_tokens == estimator.estimate(first.messages)
    service.learn(first.messages, 2 * first.metadata.total_tokens, "claude-sonnet-5-5")
    again = await service.assemble_context("what next?", "ann")
    log.close()
    assert again.messages == first.messages
    assert again.metadata.total_tokens > 1.5 * first.metadata.total_tokens
    events = [e for place in log_reader.segments(tmp_path) for e in log_reader.read(place)]
    [counted] = [e.body for e in events if isinstance(e.body, ModelReply)]
    assert counted.input_tokens == 2 * counted.estimated_tokens


class Slow:
    async def retrieve(
        self, query: str, options: RetrievalOptions | None = None
    ) -> list[RetrievedMemory]:
        await asyncio.sleep(0.11)
        return []


@pytest.mark.contract("R52")
async def test_slow_assemblies_are_warned_of_in_the_log(tmp_path: Path) -> None:
    log = EventLog(tmp_path)
    service = ContextAssemblerService(Slow(), None, None, events=log)
    await asyncio.gather(*(service.assemble_context("what next?", "ann") for _ in range(25)))
    log.close()
    events = [e for place in log_reader.segments(tmp_path) for e in log_reader.read(place)]
    [notice] = [e.body for e in events if isinstance(e.body, Notice)]
    assert notice.level == "warning"
    assert "100 ms is the goal" in notice.text
