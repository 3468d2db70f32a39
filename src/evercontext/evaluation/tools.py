"""Define the two evaluation tools that any client can call."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

from evercontext.domain.tool import Arguments, Caller, Effect, Tool, ToolResult
from evercontext.evaluation.evaluator import Evaluator
from evercontext.evaluation.rubric import Evaluation, Rubric
from evercontext.workspace.parameter_schema import parameters, string

SECONDS = 400.0
"""Three attempts of two minutes each, and the waits between them."""

GetEvaluator = Callable[[], Awaitable[Evaluator]]
# Written out: a model of pydantic for two tools would cost every start a tenth of a second.
_CONTENT = string("The document, as text (Markdown is understood).")
_RUBRIC = {
    "anyOf": [{"additionalProperties": True, "type": "object"}, {"type": "null"}],
    "default": None,
    "description": "Weights of completeness, accuracy, clarity and usability.",
}
_TARGET = {
    "anyOf": [{"type": "number"}, {"type": "null"}],
    "default": None,
    "description": "The score at which it passes (0 to 10).",
}
_EVALUATE = (
    "Judge a document by a rubric: a score from 0 to 10, whether it passes, what to improve.\n\n"
    "Apply the suggestions and evaluate again until it passes. Criteria in metadata.not_judged\n"
    "were not judged: the local judge looks at form, never at truth."
)
_SUGGEST = "Say what to improve in a document, the most important first, with lines where known."


def evaluation_tools(get_evaluator: GetEvaluator, seconds: float = SECONDS) -> list[Tool]:
    """Return ``evaluate_document`` and ``get_improvement_suggestions``.

    ``seconds`` is what all attempts of the slowest judge may take.
    """

    async def evaluation_of(arguments: Arguments, caller: Caller) -> Evaluation:
        evaluator = await get_evaluator()
        rubric, target = Rubric.of(arguments.get("rubric")), arguments.get("target_score")
        return await evaluator.evaluate(
            arguments["content"], rubric, target, trace_id=caller.trace_id
        )

    async def evaluate(arguments: Arguments, caller: Caller) -> ToolResult:
        return _result((await evaluation_of(arguments, caller)).to_json())

    async def suggest(arguments: Arguments, caller: Caller) -> ToolResult:
        result = (await evaluation_of(arguments, caller)).to_json()
        return _result({"suggestions": result["suggestions"], "score": result["score"]})

    return [
        Tool(
            name="evaluate_document",
            description=_EVALUATE,
            arguments=parameters(
                {"content": _CONTENT, "rubric": _RUBRIC, "target_score": _TARGET},
                required=["content"],
            ),
            effects=Effect.READ | Effect.NETWORK,
            run=evaluate,
            timeout=seconds,
        ),
        Tool(
            name="get_improvement_suggestions",
            description=_SUGGEST,
            arguments=parameters({"content": _CONTENT, "rubric": _RUBRIC}, required=["content"]),
            effects=Effect.READ | Effect.NETWORK,
            run=suggest,
            timeout=seconds,
        ),
    ]


def _result(data: dict[str, Any]) -> ToolResult:
    return ToolResult(json.dumps(data, ensure_ascii=False), data=data)
