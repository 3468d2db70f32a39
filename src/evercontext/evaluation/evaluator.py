"""Run one evaluation: attempts, waits, and an event for every state."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path

from evercontext.domain.backoff import Backoff, persist
from evercontext.domain.event import EvaluationState, Notice
from evercontext.errors import (
    Busy,
    EverContextError,
    JudgeProblem,
    ModelProblem,
    ModelUnavailable,
    StoreProblem,
    TooLarge,
)
from evercontext.evaluation.judges import RETRYABLE, Candidate, Judge
from evercontext.evaluation.rubric import Evaluation, Judgement, Rubric, check_target, weigh
from evercontext.evaluation.score_history import EvaluationHistory, Occasion
from evercontext.events.log import EventLog

BACKOFF = Backoff(attempts=3, first_wait=1.0, jitter=0.0)
"""At most three attempts, a second and then two apart (L12, L14)."""
RETRIED = (*RETRYABLE, ModelUnavailable)
LARGEST = 1_048_576
MOST_JUDGING = 4
"""Judges at work at a time, for all clients together."""
MOST_DOCUMENTS = 64
"""Documents that are judged or wait for it; the next is refused."""
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
        reason: str = "",
        others: Sequence[Candidate] = (),
    ) -> None:
        """``reason``: why this judge; ``others`` take over, in order, if it cannot judge."""
        self.judge, self.target, self.reason = judge, target, reason
        self._others = list(others)
        self._changing = asyncio.Lock()
        self._judging = asyncio.Semaphore(MOST_JUDGING)
        self._documents = 0
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
        if self._documents >= MOST_DOCUMENTS:
            raise Busy("too many documents wait for the judge", fix="Try again in a moment")
        self._documents += 1
        try:
            return await self._evaluate(
                content, rubric, target, iteration, trace_id, base, document
            )
        finally:
            self._documents -= 1

    async def _evaluate(
        self,
        content: str,
        rubric: Rubric | None,
        target: float | None,
        iteration: int | None,
        trace_id: str,
        base: Path | None,
        document: str,
    ) -> Evaluation:
        weights, aim = rubric or Rubric.of(), check_target(target, self.target)
        started = time.monotonic()
        if self._events:
            root = self._occasion.project or ""
            begun = EvaluationState(state="evaluating", document=document, root=root)
            self._events.emit(begun, trace_id=trace_id)
        judgement = await self._judge(content, weights, trace_id, base)
        self._state("computing the score", trace_id)
        metadata: dict[str, object] = {
            "evaluation_time": round((time.monotonic() - started) * 1000)
        }
        if self.reason:
            metadata["judge_reason"] = self.reason
        if iteration is not None:
            metadata["iteration"] = iteration
        evaluation = weigh(judgement, weights, aim, metadata)
        occasion = replace(self._occasion, document=document)
        await self._keep(content, evaluation, weights, aim, occasion, trace_id)
        self._state("done" if evaluation.passed else "needs improvement", trace_id)
        return evaluation

    async def _judge(
        self, content: str, rubric: Rubric, trace_id: str, base: Path | None
    ) -> Judgement:
        """Ask the judge; one that nobody named and that fails is passed over."""
        while True:
            judge = self.judge
            try:
                return await self._attempt(judge, content, rubric, trace_id, base)
            except (JudgeProblem, ModelProblem) as problem:
                async with self._changing:
                    # Another evaluation may have found it out meanwhile.
                    if judge is self.judge and not self._others:
                        raise
                    if judge is self.judge:
                        await self._pass_over(problem, trace_id)

    async def _pass_over(self, problem: EverContextError, trace_id: str) -> None:
        candidate = self._others.pop(0)
        failed = f"{self.judge.name} was passed over: {problem.message}"
        self.judge = await candidate.open()
        self.reason = f"{candidate.reason}; {failed}"
        if self._events:
            text = f"{failed}; {candidate.name} judges"
            self._events.emit(Notice(level="warning", text=text), trace_id=trace_id)

    async def _attempt(
        self, judge: Judge, content: str, rubric: Rubric, trace_id: str, base: Path | None
    ) -> Judgement:
        attempt = 0

        async def ask() -> Judgement:
            nonlocal attempt
            attempt += 1
            try:
                # A judge is a process or a connection: many clients share a few of them.
                async with self._judging:
                    return await judge.judge(content, rubric, base, tell)
            except RETRIED as problem:
                self._state("error handling", trace_id, attempt, str(problem))
                raise

        def tell(state: str, detail: str = "") -> None:
            self._state(state, trace_id, attempt, detail)

        try:
            backoff = replace(BACKOFF, sleep=self._sleep)
            return await persist(ask, backoff, retryable=RETRIED, tell=lambda *_: tell("retrying"))
        except RETRIED as problem:
            tell("failed")
            times = "once" if attempt == 1 else f"{attempt} times"
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
                notice = Notice(level="warning", text=f"this evaluation was not kept: {problem}")
                self._events.emit(notice, trace_id=trace_id)

    def _state(self, state: str, trace_id: str, attempt: int = 0, detail: str = "") -> None:
        if self._events:
            body = EvaluationState(state=state, attempt=attempt, detail=detail)
            self._events.emit(body, trace_id=trace_id)
