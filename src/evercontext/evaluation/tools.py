"""Define the two evaluation tools that any client can call."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Annotated, Any

from pydantic import Field

from evercontext.domain.tool import Caller, Effect, Tool, ToolResult
from evercontext.evaluation.evaluator import Evaluator
from evercontext.evaluation.rubric import Evaluation, Rubric
from evercontext.tools.tool_decorator import tool

SECONDS = 400.0
"""Three attempts of two minutes each, and the waits between them."""

GetEvaluator = Callable[[], Awaitable[Evaluator]]
Content = Annotated[str, Field(description="The document, as text (Markdown is understood).")]
Weights = Annotated[
    dict[str, Any] | None,
    Field(description="Weights of completeness, accuracy, clarity and usability."),
]
Target = Annotated[float | None, Field(description="The score at which it passes (0 to 10).")]


def evaluation_tools(get_evaluator: GetEvaluator, seconds: float = SECONDS) -> list[Tool]:
    """Return ``evaluate_document`` and ``get_improvement_suggestions``.

    ``seconds`` is what all attempts of the slowest judge may take.
    """

    async def judged(
        content: str, rubric: dict[str, Any] | None, target: float | None, caller: Caller
    ) -> Evaluation:
        evaluator = await get_evaluator()
        weights = Rubric.of(rubric)
        return await evaluator.evaluate(content, weights, target, trace_id=caller.trace_id)

    @tool(Effect.READ | Effect.NETWORK, timeout=seconds)
    async def evaluate_document(
        caller: Caller, content: Content, rubric: Weights = None, target_score: Target = None
    ) -> ToolResult:
        """Judge a document by a rubric: a score from 0 to 10, whether it passes, what to improve.

        Apply the suggestions and evaluate again until it passes. Criteria in metadata.not_judged
        were not judged: the local judge looks at form, never at truth.
        """
        evaluation = await judged(content, rubric, target_score, caller)
        return _result(evaluation.to_json())

    @tool(Effect.READ | Effect.NETWORK, timeout=seconds)
    async def get_improvement_suggestions(
        caller: Caller, content: Content, rubric: Weights = None
    ) -> ToolResult:
        """Say what to improve in a document, the most important first, with lines where known."""
        evaluation = await judged(content, rubric, None, caller)
        result = evaluation.to_json()
        return _result({"suggestions": result["suggestions"], "score": result["score"]})

    return [evaluate_document, get_improvement_suggestions]


def _result(data: dict[str, Any]) -> ToolResult:
    return ToolResult(json.dumps(data, ensure_ascii=False), data=data)
