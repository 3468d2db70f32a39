"""One evaluation: attempts, waits, and every state on the way as an event."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

from evercontext.domain.backoff import Backoff, persist
from evercontext.domain.event import EvaluationState, Notice
from evercontext.errors import (
    EverContextError,
    JudgeProblem,
    ModelUnavailable,
    StoreProblem,
    TooLarge,
)
from evercontext.evaluation.history import EvaluationHistory, Occasion
from evercontext.evaluation.judges import RETRYABLE, Judge
from evercontext.evaluation.rubric import Evaluation, Judgement, Rubric, check_target, weigh
from evercontext.events.log import EventLog

BACKOFF = Backoff(attempts=3, first_wait=1.0, jitter=0.0)
"""At most three attempts, a second and then two apart (L12, L14)."""
RETRIED = (*RETRYABLE, ModelUnavailable)
LARGEST = 1_048_576
Sleep = Callable[[float], Awaitable[None]]


class Evaluator:
    """Judges documents, with patience where patience helps."""

    def __init__(
        self,
        judge: Judge,
        *,
        target: float = 8.0,
        events: EventLog | None = None,
        history: EvaluationHistory | None = None,
        occasion: Occasion | None = None,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self.judge, self.target = judge, target
        self._events, self._history, self._sleep = events, history, sleep
        self._occasion = occasion or Occasion()

    async def evaluate(
        self,
        content: str,
        rubric: Rubric | None = None,
        target: float | None = None,
        *,
        iteration: int | None = None,
        trace_id: str = "evaluation",
        base: Path | None = None,
        document: str = "",
    ) -> Evaluation:
        """Judge a document; bad input is refused before anybody is asked.

        ``document`` is its path, where it has one: the name under which the history knows it.
        """
        if len(content.encode("utf-8", "replace")) > LARGEST:
            raise TooLarge(f"too large: more than {LARGEST} bytes")
        weights, wanted = rubric or Rubric.of(), check_target(target, self.target)
        started = time.monotonic()
        self._state("evaluating", trace_id)
        judgement = await self._judge(content, weights, trace_id, base)
        self._state("computing the score", trace_id)
        metadata: dict[str, object] = {
            "evaluation_time": round((time.monotonic() - started) * 1000)
        }
        if iteration is not None:
            metadata["iteration"] = iteration
        evaluation = weigh(judgement, weights, wanted, metadata)
        occasion = replace(self._occasion, document=document)
        await self._keep(content, evaluation, weights, wanted, occasion, trace_id)
        self._state("done" if evaluation.passed else "needs improvement", trace_id)
        return evaluation

    async def _judge(
        self, content: str, rubric: Rubric, trace_id: str, base: Path | None
    ) -> Judgement:
        attempt = 0

        async def judge() -> Judgement:
            nonlocal attempt
            attempt += 1
            try:
                return await self.judge.judge(content, rubric, base, tell)
            except RETRIED as problem:
                self._state("error handling", trace_id, attempt, str(problem))
                raise

        def tell(state: str, detail: str = "") -> None:
            self._state(state, trace_id, attempt, detail)

        try:
            backoff = replace(BACKOFF, sleep=self._sleep)
            return await persist(
                judge, backoff, retryable=RETRIED, tell=lambda *_: tell("retrying")
            )
        except RETRIED as problem:
            tell("failed")
            times = f"{attempt} time{'' if attempt == 1 else 's'}"
            raise JudgeProblem(f"the judge failed {times}, at last: {problem}") from problem
        except EverContextError as problem:
            tell("failed", str(problem))
            raise

    async def _keep(
        self,
        content: str,
        evaluation: Evaluation,
        rubric: Rubric,
        target: float,
        occasion: Occasion,
        trace_id: str,
    ) -> None:
        if self._history is None:
            return
        try:
            await self._history.add(
                content, evaluation, rubric, target, occasion=occasion, trace_id=trace_id
            )
        except StoreProblem as problem:
            # A store in trouble costs the memory of a judgement, not the judgement.
            if self._events:
                told = Notice(level="warning", text=f"this evaluation was not kept: {problem}")
                self._events.emit(told, trace_id=trace_id)

    def _state(self, state: str, trace_id: str, attempt: int = 0, detail: str = "") -> None:
        if self._events:
            body = EvaluationState(state=state, attempt=attempt, detail=detail)
            self._events.emit(body, trace_id=trace_id)
