"""Let a model revise a document by the judge's suggestions."""

from __future__ import annotations

import asyncio
import re
from importlib.resources import files

from evercontext.domain.message import assistant, user
from evercontext.domain.model import Model, Request, StopReason, complete
from evercontext.domain.prompt_template import fill
from evercontext.evaluation.content_loss import losses
from evercontext.evaluation.improve_loop import RefusedRevision, Version
from evercontext.evaluation.rubric import Evaluation
from evercontext.workspace.search_and_replace import find_placeholder

# Alone in a fence, or after one sentence that announces it.
_WRAPPED = re.compile(r"\A\s*(`{3,})(markdown|md|text|txt|)[ \t]*\n(.*)\n\1\s*\Z", re.DOTALL)
_ANNOUNCED = re.compile(
    r"\A\s*[^\n`#]{1,200}[:：]\s*\n\s*(`{3,})(markdown|md)[ \t]*\n(.*)\n\1\s*\Z", re.DOTALL
)
_OPENING = re.compile(r"\A\s*([^\n`#]{1,200}[:：])[ \t]*\n\s*(?=#)")
_AGAIN = (
    "This text is not taken: {reasons}. Write the whole document out; keep every section, code "
    "block and number of it. Answer with the document and nothing else."
)
_UNFINISHED: dict[StopReason, str] = {
    "length": "the reply was cut off at the output limit of the model: name a model that writes "
    "longer ones, or split the document",
    "filtered": "the reply was withheld by the filter of the model's provider",
}


class ModelWriter:
    """Revises with a model; what comes back whole in a fence is taken out of it."""

    def __init__(self, model: Model, original: str = "") -> None:
        """``original`` is the document as it was found: no round may lose most of it."""
        self._model, self._original = model, original

    async def revise(self, version: Version) -> str | RefusedRevision:
        """Return the next version of a document; after two tries the reasons for having none."""
        messages = [user(_prompt(version))]
        refused = RefusedRevision("", ())
        for _ in range(2):
            request = Request(messages, temperature=0.0, seed=0, hints={"role": "writer"})
            reply = await complete(self._model, request)
            if reply.stop in _UNFINISHED:
                return RefusedRevision(reply.text, (_UNFINISHED[reply.stop],))
            text = _unwrapped(reply.text, version.content)
            # A long document takes a moment, in which others want to be served.
            reasons = await asyncio.to_thread(_reasons, self._original, version.content, text)
            if not reasons:
                return text
            refused = RefusedRevision(text, reasons)
            again = _AGAIN.format(reasons="; ".join(reasons))
            messages = [*messages, assistant(reply.text), user(again)]
        return refused


def _reasons(original: str, before: str, text: str) -> tuple[str, ...]:
    """Why a text cannot stand for the document: lines left out, or most of it lost."""
    if not text.strip():
        return ()
    if gap := find_placeholder(before, text):
        return (f'"{gap}" stands for lines that would be lost',)
    lost = [loss for old in dict.fromkeys((original, before)) for loss in losses(old, text)]
    return tuple(dict.fromkeys(f"it would lose {loss.text}" for loss in lost if loss.most))


def _prompt(version: Version) -> str:
    evaluation = version.evaluation
    prompt = files("evercontext.evaluation") / "prompts" / "revision-prompt.txt"
    facts = {
        "score": f"{evaluation.score:g}",
        "scores": ", ".join(f"{k} {v:g}" for k, v in _judged(evaluation).items()),
        "suggestions": "\n".join(f"- {s}" for s in evaluation.suggestions) or "- none given",
        "document_content": version.content,
    }
    return fill(prompt.read_text(encoding="utf-8"), facts)


def _judged(evaluation: Evaluation) -> dict[str, float]:
    skipped = evaluation.metadata.get("not_judged", ())
    return {k: v for k, v in evaluation.rubric_scores.items() if k not in skipped}


def _unwrapped(text: str, before: str) -> str:
    """The document without the fence, and the sentence before it, that many models add."""
    wrapped = _WRAPPED.match(text) or _ANNOUNCED.match(text)
    if wrapped and not before.lstrip().startswith("```") and _is_one_block(wrapped):
        text = wrapped[3]
    elif (opening := _OPENING.match(text)) and opening[1] not in before:
        text = text[opening.end() :]
    return text if text.endswith("\n") or not before.endswith("\n") else f"{text}\n"


def _is_one_block(wrapped: re.Match[str]) -> bool:
    """True unless the first and the last mark belong to two blocks of code in the text itself."""
    marks = re.findall(rf"^{wrapped[1]}(.*)$", wrapped[3], re.MULTILINE)
    opening = [bool(mark.strip()) for mark in marks[::2]]
    return wrapped[2] in ("markdown", "md") or (len(marks) % 2 == 0 and all(opening))
