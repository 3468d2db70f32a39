"""Fetch and report the context of a task, for every request of every entrance.

The agent, the planner, the preview, the bridge and the library recall memories here: with the same
settings, the same limit on the time, the same event. A ``Window`` counts the tokens.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evercontext.context.context_request import ContextConfig
from evercontext.context.latency_warning import LatencyWatch
from evercontext.domain.event import ContextAssembled, Notice
from evercontext.domain.memory import Retrieval, RetrievalOptions
from evercontext.events.log import EventLog

LAYER_SECONDS = 3.0
"""How long a layer may take; the request is sent without a layer that takes longer."""


@dataclass(frozen=True, slots=True)
class FetchedLayers:
    """The layers that arrived, and the reasons for missing ones."""

    results: Mapping[str, Any]
    degraded: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class ContextEngine:
    """Recalls memories for a request within the configuration, and reports the assembly."""

    retrieval: Retrieval | None
    config: ContextConfig = field(default_factory=ContextConfig)
    events: EventLog | None = None
    layer_seconds: float = LAYER_SECONDS
    watch: LatencyWatch = field(default_factory=LatencyWatch)

    async def fetch(self, layers: Mapping[str, Coroutine[Any, Any, Any]]) -> FetchedLayers:
        """Await all layers at once; a layer that fails or is late is left out, with its reason."""
        tasks = {name: asyncio.create_task(layer) for name, layer in layers.items()}
        try:
            await asyncio.wait(tasks.values(), timeout=self.layer_seconds)
            problems = {name: self._problem_of(task) for name, task in tasks.items()}
        finally:
            # A task that ignores its cancellation delays nothing.
            for task in tasks.values():
                task.cancel()
        degraded = {name: problem for name, problem in problems.items() if problem}
        results = {name: task.result() for name, task in tasks.items() if name not in degraded}
        return FetchedLayers(results, degraded)

    def _problem_of(self, task: asyncio.Task[Any]) -> str | None:
        """Return why a layer is left out: it failed, or it did not answer in time."""
        if not task.done():
            return f"no answer within {self.layer_seconds:g} s"
        if task.cancelled():
            return "cancelled"
        problem = task.exception()
        return None if problem is None else f"{type(problem).__name__}: {problem}"

    async def related(
        self,
        text: str,
        user_id: str | None,
        *,
        project: str | None = None,
        limit: int | None = None,
        min_similarity: float = 0.0,
    ) -> list[Any]:
        """Return the memories near a text, the most similar first, as many as configured."""
        most = self.config.semantic_memory_limit if limit is None else max(0, limit)
        if self.retrieval is None or not most:
            return []
        options = RetrievalOptions(
            limit=most,
            user_id=user_id,
            project=project,
            min_similarity=min_similarity,
            log_metrics=False,
            hurried=True,
        )
        response = await self.retrieval.retrieve(query=text, options=options)
        # Sources are foreign code: some answer with a response, some with the memories themselves.
        results: Sequence[Any] = getattr(response, "results", response)
        ranked = sorted(results, key=lambda memory: -float(memory.similarity))
        return [memory for memory in ranked if memory.content.strip()][:most]

    def report(self, body: ContextAssembled, trace_id: str) -> None:
        """Log an assembly, and warn when assemblies become slow."""
        if self.events is None:
            return
        self.events.emit(body, trace_id=trace_id)
        if warning := self.watch.observe(body.context_assembly_latency_ms):
            self.events.emit(Notice(level="warning", text=warning), trace_id=trace_id)
