from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from evercontext.agent.planner import Planner
from evercontext.agent.system_prompt import Surroundings
from evercontext.context.assembler import ContextAssemblerService
from evercontext.context.context_request import ContextConfig
from evercontext.context.conversation_window import Window
from evercontext.context.engine import ContextEngine
from evercontext.context.token_estimate import TokenEstimator
from evercontext.domain.event import ContextAssembled
from evercontext.domain.memory import RetrievalOptions, RetrievedMemory
from evercontext.domain.message import user
from evercontext.domain.tool import Caller, Door, Mode
from evercontext.errors import ContextTooLong
from evercontext.models.scripted import ScriptedModel
from evercontext.testing import application

PLAN = '{"tasks": [{"id": "one", "title": "do it"}]}'


class Memories:
    """A source of memories that answers as it is told to."""

    def __init__(self, *similarities: float, problem: Exception | None = None) -> None:
        self._memories = [RetrievedMemory(str(s), f"memory {s}", s) for s in similarities]
        self._problem = problem
        self.options: list[RetrievalOptions | None] = []

    async def retrieve(
        self, query: str, options: RetrievalOptions | None = None
    ) -> Sequence[RetrievedMemory]:
        self.options.append(options)
        if self._problem:
            raise self._problem
        return self._memories


async def test_as_many_memories_as_configured_the_most_similar_first() -> None:
    source = Memories(0.2, 0.9, 0.5)
    engine = ContextEngine(source, ContextConfig(semantic_memory_limit=2))
    assert [m.id for m in await engine.related("text", "ann", project="p")] == ["0.9", "0.5"]
    [options] = source.options
    assert options is not None
    assert (options.limit, options.user_id, options.project) == (2, "ann", "p")
    assert await engine.related("text", "ann", limit=0) == []


async def test_a_layer_that_fails_or_is_late_is_left_out_with_its_reason() -> None:
    engine = ContextEngine(None, layer_seconds=0.05)

    async def answer() -> str:
        return "here"

    async def fail() -> str:
        raise OSError("disk gone")

    fetched = await engine.fetch({"a": answer(), "b": fail(), "c": asyncio.Event().wait()})
    assert fetched.results == {"a": "here"}
    assert fetched.degraded == {"b": "OSError: disk gone", "c": "no answer within 0.05 s"}


@pytest.mark.contract("R4")
async def test_the_setting_limits_the_memories_of_a_task_a_preview_and_the_library(
    tmp_path: Path,
) -> None:
    async with application(tmp_path, semantic_memory_limit=1) as app:
        for bird in ("heron", "stork", "crane"):
            await app.memory.memories.save_memory(
                f"The {bird} nests near the river in May", project=app.memory.project
            )
        question = "Which birds nest near the river in May?"
        caller = Caller("t", Door.RUN, Mode.AGENT, app.principal)
        assert len(await app.memory.related(question, caller)) == 1
        message = await app.memory.remind(question, caller)
        assert message is not None
        assert message.content.count("nests") == 1
        script = tmp_path / "script.jsonl"
        script.write_text('{"text": "done"}\n')
        preview = await app.preview(question, f"scripted:{script}")
        [layer] = [layer for layer in preview.layers if layer.name == "memories"]
        assert len(layer.reasons) == 1
        library = ContextAssemblerService(
            app.memory.retrieval, None, None, ContextConfig.of(app.settings)
        )
        context = await library.assemble_context(question, app.settings.user or "")
        assert context.metadata.semantic_memory_count <= 1


async def test_a_failing_source_costs_a_task_its_memories_and_is_reported(tmp_path: Path) -> None:
    async with application(tmp_path) as app:
        app.memory._engine.retrieval = Memories(problem=RuntimeError("no index"))
        reports: list[ContextAssembled] = []
        app.events.subscribe(
            lambda event: (
                reports.append(event.body) if isinstance(event.body, ContextAssembled) else None
            )
        )
        caller = Caller("t", Door.RUN, Mode.AGENT, app.principal)
        assert await app.memory.remind("anything", caller) is None
        assert [dict(report.degraded) for report in reports] == [
            {"semantic": "RuntimeError: no index"}
        ]


def _planner(tmp_path: Path, tokens: int) -> Planner:
    path = tmp_path / "script.jsonl"
    path.write_text(json.dumps({"role": "planner", "text": PLAN}) + "\n")
    model = ScriptedModel.from_file(path)
    return Planner(model, window=Window(tokens, tokens // 4, TokenEstimator("gpt-4o")))


async def test_a_planner_leaves_out_evidence_that_does_not_fit_its_window(tmp_path: Path) -> None:
    planner = _planner(tmp_path, 4_000)
    evidence = [user("word " * 6_000)]
    made = await planner.make("do it", Surroundings("app", ("a.py",)), evidence=evidence)
    assert made.plan.tasks[0].id == "one"


async def test_a_task_that_alone_is_larger_than_the_planners_window_is_refused(
    tmp_path: Path,
) -> None:
    with pytest.raises(ContextTooLong):
        await _planner(tmp_path, 4_000).make("word " * 6_000, Surroundings("app", ()))
