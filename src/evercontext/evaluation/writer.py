"""The writer: a model that revises a document by its suggestions."""

from __future__ import annotations

import re
from importlib.resources import files

from evercontext.domain.message import assistant, user
from evercontext.domain.model import Model, Request, complete
from evercontext.domain.prompt import fill
from evercontext.evaluation.improve import Version
from evercontext.workspace.edits import find_placeholder

# Alone in a fence, or after one sentence that announces it.
_WRAPPED = re.compile(r"\A\s*(`{3,})(markdown|md|text|txt|)[ \t]*\n(.*)\n\1\s*\Z", re.DOTALL)
_ANNOUNCED = re.compile(
    r"\A\s*[^\n`#]{1,200}[:：]\s*\n\s*(`{3,})(markdown|md)[ \t]*\n(.*)\n\1\s*\Z", re.DOTALL
)
_WHOLE = 'Write the whole document out: "{line}" stands for lines that would be lost.'


class ModelWriter:
    """Revises with a model; what comes back whole in a fence is taken out of it."""

    def __init__(self, model: Model) -> None:
        self._model = model

    async def revise(self, version: Version) -> str:
        """Return the next version of a document, or the same if the model leaves lines out."""
        asked = [user(_prompt(version))]
        for _ in range(2):
            request = Request(asked, temperature=0.0, seed=0, hints={"role": "writer"})
            reply = await complete(self._model, request)
            text = _unwrapped(reply.text, version.content)
            gap = find_placeholder(version.content, text)
            if gap is None:
                return text
            asked = [*asked, assistant(reply.text), user(_WHOLE.format(line=gap))]
        return version.content


def _prompt(version: Version) -> str:
    evaluation = version.evaluation
    prompt = files("evercontext.evaluation") / "prompts" / "revision-prompt.txt"
    facts = {
        "score": f"{evaluation.score:g}",
        "scores": ", ".join(f"{k} {v:g}" for k, v in evaluation.rubric_scores.items()),
        "suggestions": "\n".join(f"- {s}" for s in evaluation.suggestions) or "- none given",
        "document_content": version.content,
    }
    return fill(prompt.read_text(encoding="utf-8"), facts)


def _unwrapped(text: str, before: str) -> str:
    """The document without the fence, and the sentence before it, that many models add."""
    wrapped = _WRAPPED.match(text) or _ANNOUNCED.match(text)
    if wrapped and not before.lstrip().startswith("```") and _is_one_block(wrapped):
        text = wrapped[3]
    return text if text.endswith("\n") or not before.endswith("\n") else f"{text}\n"


def _is_one_block(wrapped: re.Match[str]) -> bool:
    """True unless the first and the last mark belong to two blocks of code in the text itself."""
    marks = re.findall(rf"^{wrapped[1]}(.*)$", wrapped[3], re.MULTILINE)
    opening = [bool(mark.strip()) for mark in marks[::2]]
    return wrapped[2] in ("markdown", "md") or (len(marks) % 2 == 0 and all(opening))
