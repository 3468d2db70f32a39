"""The context engine as a library: what the design's examples call, called from outside."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from enum import Enum
from types import SimpleNamespace
from typing import Any

import pytest

import evercontext
from evercontext import (
    AssembledContext,
    AssemblyOptions,
    ContextAssemblerService,
    ContextConfig,
    ContextMetadata,
    ContextValidator,
    EventLog,
    KanaAIBridge,
    MemoryStore,
    MemoryType,
    MessageBuilder,
    MessageCreate,
    MessageRepository,
    RetrievalOptions,
    RetrievalOrchestrator,
    SessionRepository,
    SourceType,
    SqliteStore,
    TokenEstimator,
)


@pytest.fixture
async def store() -> AsyncIterator[SqliteStore]:
    opened = await SqliteStore.in_memory()
    yield opened
    await opened.close()


def assembler(store: SqliteStore, **more: Any) -> ContextAssemblerService:
    return ContextAssemblerService(
        retrieval_orchestrator=RetrievalOrchestrator(store),
        message_repository=MessageRepository(store),
        session_repository=SessionRepository(store),
        config=ContextConfig(),
        **more,
    )


@pytest.mark.contract("R4", "R24", "R25", "R45", "R54")
async def test_a_talk_and_a_memory_come_back_in_the_next_request(store: SqliteStore) -> None:
    """C7: the design's own flow, from two messages and a memory to a message list."""
    messages, memories = MessageRepository(store), MemoryStore(store)
    question, reply = "月光エンジンって何?", "月光エンジンは満ち欠けで動く仕組みです。"
    await messages.create(MessageCreate(user_id="ann", content=question, message_type="user"))
    await messages.create(MessageCreate(user_id="ann", content=reply, message_type="kana"))
    note = "記憶はpgvectorを使って保存する"
    await memories.save_memory(note, MemoryType.LONGTERM, source_type="decision")
    current = "記憶の保存について詳しく教えて"
    assembled = await assembler(store).assemble_context(user_message=current, user_id="ann")
    roles = [message["role"] for message in assembled.messages]
    assert roles == ["system", "assistant", "user", "assistant", "user"]
    texts = [message["content"] for message in assembled.messages]
    assert "関連する過去の記憶" in texts[1]
    assert note in texts[1]
    assert texts[2:] == [question, reply, current]
    assert assembled.metadata.working_memory_count == 2
    assert assembled.metadata.total_tokens > 0


@pytest.mark.contract("R45", "R54")
async def test_retrieval_answers_with_results(store: SqliteStore) -> None:
    memories = MemoryStore(store)
    await memories.save_memory("The deploy key is in the vault", source_type=SourceType.DECISION)
    options = RetrievalOptions(limit=3, log_metrics=False)
    response = await RetrievalOrchestrator(store).retrieve(query="deploy key", options=options)
    [best] = response.results
    assert best.content == "The deploy key is in the vault"
    assert 0 < best.similarity <= 1
    assert list(response) == response.results


class Speaker(Enum):
    KANA = "kana"


@pytest.mark.contract("R33", "R45")
async def test_the_newest_message_is_listed_first_and_sent_last(store: SqliteStore) -> None:
    messages = MessageRepository(store)
    for text, kind in (("one", "USER"), ("two", Speaker.KANA), ("three", "system"), ("4", "Yuno")):
        await messages.create(MessageCreate("ann", text, kind))
    listed, total = await messages.list(user_id="ann", limit=3)
    assert [(row.content, row.message_type) for row in listed] == [
        ("4", "yuno"),
        ("three", "system"),
        ("two", "kana"),
    ]
    assert total == 4
    sent = (await assembler(store).assemble_context("five", "ann")).messages
    assert [message["content"] for message in sent[1:]] == ["one", "two", "4", "five"]


class ForeignResponse:
    """What somebody else's orchestrator answers: a response with results, and no list."""

    results = (SimpleNamespace(content="from elsewhere", similarity=0.9),)


class ForeignOrchestrator:
    async def retrieve(self, query: str, options: RetrievalOptions) -> ForeignResponse:
        assert (options.limit, options.log_metrics) == (5, False)
        return ForeignResponse()


class HangingSource:
    """Answers never, and does not even end when it is cancelled."""

    async def retrieve(self, query: str, options: Any) -> Any:
        while True:
            try:
                await asyncio.sleep(3600)
            except asyncio.CancelledError:
                if self.released:
                    raise

    released = False


async def test_somebody_elses_orchestrator_can_be_plugged_in(store: SqliteStore) -> None:
    service = ContextAssemblerService(
        ForeignOrchestrator(),
        MessageRepository(store),
        SessionRepository(store),
        ContextConfig(),
    )
    assembled = await service.assemble_context("what?", "ann")
    assert "from elsewhere" in assembled.messages[1]["content"]
    assert assembled.metadata.degraded == {}


@pytest.mark.contract("R19")
async def test_a_layer_that_hangs_does_not_hang_the_answer(store: SqliteStore) -> None:
    """C7: it waited for ever."""
    await MessageRepository(store).create(MessageCreate("ann", "before", "user"))
    source = HangingSource()
    service = ContextAssemblerService(
        source,
        MessageRepository(store),
        SessionRepository(store),
        ContextConfig(),
        layer_seconds=0.3,
    )
    before = asyncio.all_tasks()
    assembled = await service.assemble_context("now", "ann")
    assert assembled.metadata.degraded == {"semantic": "no answer within 0.3 s"}
    assert [message["content"] for message in assembled.messages[1:]] == ["before", "now"]
    source.released = True
    for task in asyncio.all_tasks() - before:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@pytest.mark.contract("R20", "R22", "R23", "R27")
def test_records_are_written_by_the_names_that_pydantic_has() -> None:
    metadata = ContextMetadata(2, 1, True, 90, 800, False, 1.5, {"semantic": "gone"})
    context = AssembledContext([{"role": "user", "content": "x"}], metadata)
    assert context.dict() == context.model_dump()
    assert context.dict()["metadata"] == metadata.dict()
    assert metadata.dict()["degraded"] == {"semantic": "gone"}
    assert ContextConfig().dict()["max_tokens"] == 100_000
    assert AssemblyOptions(working_memory_limit=3).model_dump()["working_memory_limit"] == 3


@pytest.mark.contract("R37", "R44")
def test_the_parts_stand_alone() -> None:
    assert 10 <= TokenEstimator().estimate([{"role": "user", "content": "こんにちは"}]) <= 30
    layers = {
        "working": [SimpleNamespace(message_type="KANA", content="before")],
        "semantic": [SimpleNamespace(content="a memory", similarity=0.8)],
        "session_summary": "以前の話",
    }
    messages = MessageBuilder(ContextConfig())._build_messages(layers)
    assert "以前の話" in messages[0]["content"]
    assert any("関連する過去の記憶" in message["content"] for message in messages)
    assert messages[-1] == {"role": "assistant", "content": "before"}
    with pytest.raises(ValueError, match="First message must be system"):
        ContextValidator()._validate_context([{"role": "user", "content": "x"}], 100)


class Overloaded(Exception):
    status_code = 529


class Claude:
    """A client that is overloaded at first."""

    def __init__(self) -> None:
        self.messages, self.calls = self, list[dict[str, Any]]()

    async def create(self, **call: Any) -> Any:
        self.calls.append(call)
        if len(self.calls) == 1:
            raise Overloaded("overloaded")
        return SimpleNamespace(content=[SimpleNamespace(text="はい")], stop_reason="end_turn")


@pytest.mark.contract("R38", "R39", "R42", "R43")
async def test_the_bridge_sends_what_is_remembered_and_tries_again(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EC_MODEL_RETRIES", "1")
    await MemoryStore(store).save_memory("Ann drinks green tea", MemoryType.LONGTERM)
    client = Claude()
    bridge = KanaAIBridge(client=client, context_assembler=assembler(store))
    answer = await bridge.process_intent({"content": "What does Ann drink?", "user_id": "ann"})
    assert (answer["status"], answer["summary"]) == ("ok", "はい")
    assert answer["context_metadata"]["semantic_memory_count"] == 1
    assert len(client.calls) == 2
    assert "green tea" in str(client.calls[1]["messages"])


def test_everything_that_is_exported_is_there() -> None:
    for name in evercontext.__all__:
        assert getattr(evercontext, name) is not None
    assert {"EventLog", "SourceType", "SqliteStore", "PostgresStore"} <= set(evercontext.__all__)
    assert EventLog.__module__ == "evercontext.events.log"
