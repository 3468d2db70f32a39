"""The writer: a model that revises a document by its suggestions."""

from __future__ import annotations

import re
from importlib.resources import files

from evercontext.domain.message import user
from evercontext.domain.model import Model, Request, complete
from evercontext.domain.prompt import fill
from evercontext.evaluation.improve import Version

_FENCED = re.compile(r"\A\s*```[\w-]*\n(.*)\n```\s*\Z", re.DOTALL)


class ModelWriter:
    """Revises with a model; what comes back whole in a fence is taken out of it."""

    def __init__(self, model: Model) -> None:
        self._model = model

    async def revise(self, version: Version) -> str:
        """Return the next version of a document."""
        evaluation = version.evaluation
        scores = ", ".join(f"{k} {v:g}" for k, v in evaluation.rubric_scores.items())
        values = {
            "score": f"{evaluation.score:g}",
            "scores": scores,
            "suggestions": "\n".join(f"- {s}" for s in evaluation.suggestions) or "- none given",
            "document_content": version.content,
        }
        prompt = files("evercontext.evaluation") / "prompts" / "revision-prompt.txt"
        text = fill(prompt.read_text(encoding="utf-8"), values)
        request = Request([user(text)], temperature=0.0, seed=0, hints={"role": "writer"})
        reply = await complete(self._model, request)
        return _unfenced(reply.text, version.content)


def _unfenced(text: str, before: str) -> str:
    inner = _FENCED.match(text)
    text = inner[1] if inner and not before.lstrip().startswith("```") else text
    return text if text.endswith("\n") or not before.endswith("\n") else f"{text}\n"
