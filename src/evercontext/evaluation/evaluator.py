"""One evaluation: attempts, waits, and every state on the way as an event."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from evercontext.domain.event import EvaluationState
from evercontext.errors import EverContextError, JudgeProblem, ModelUnavailable
from evercontext.evaluation.judges import RETRYABLE, Judge
from evercontext.evaluation.rubric import Evaluation, Judgement, Rubric, check_target, weigh
from evercontext.events.log import EventLog

ATTEMPTS = 3
WAITS = (1.0, 2.0, 4.0)
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
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self.judge, self.target = judge, target
        self._events, self._sleep = events, sleep

    async def evaluate(
        self,
        content: str,
        rubric: Rubric | None = None,
        target: float | None = None,
        *,
        iteration: int | None = None,
        trace_id: str = "evaluation",
        base: Path | None = None,
    ) -> Evaluation:
        """Judge a document; bad input is refused before anybody is asked."""
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
        self._state("done" if evaluation.passed else "needs improvement", trace_id)
        return evaluation

    async def _judge(
        self, content: str, rubric: Rubric, trace_id: str, base: Path | None
    ) -> Judgement:
        for attempt in range(ATTEMPTS):
            self._state("judge running", trace_id, attempt + 1)
            try:
                return await self.judge.judge(content, rubric, base)
            except (*RETRYABLE, ModelUnavailable) as problem:
                self._state("error handling", trace_id, attempt + 1, str(problem))
                if attempt == ATTEMPTS - 1:
                    self._state("failed", trace_id, attempt + 1)
                    raise JudgeProblem(
                        f"the judge failed {ATTEMPTS} times, at last: {problem}"
                    ) from problem
                self._state("retrying", trace_id, attempt + 1)
                await self._sleep(WAITS[attempt])
            except EverContextError as problem:
                self._state("failed", trace_id, attempt + 1, str(problem))
                raise
        raise AssertionError("the last attempt returns or raises")

    def _state(self, state: str, trace_id: str, attempt: int = 0, detail: str = "") -> None:
        if self._events:
            body = EvaluationState(state=state, attempt=attempt, detail=detail)
            self._events.emit(body, trace_id=trace_id)
