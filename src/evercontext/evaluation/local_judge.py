"""Judge a document offline and deterministically, by rules."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path

from evercontext.evaluation.document_checks import SHORT_WORDS, examine, written
from evercontext.evaluation.document_parser import Document
from evercontext.evaluation.issue import Issue
from evercontext.evaluation.judge_messages import phrase
from evercontext.evaluation.judges import Tell, silent
from evercontext.evaluation.rubric import (
    DEFAULT_WEIGHTS,
    FORM,
    LOCAL,
    Judgement,
    Rubric,
    Suggestion,
    beyond_form,
)

MOST_SUGGESTIONS = 20
_FEW_WORDS = 400
_LEAST = 0.3
_QUICK = 20_000


class LocalJudge:
    """Judges by form: structure, wording, links, code that parses. Nothing else is judged."""

    name = LOCAL

    async def judge(
        self, content: str, rubric: Rubric, base: Path | None = None, tell: Tell = silent
    ) -> Judgement:
        """Return scores and suggestions; the same document always gets the same."""
        tell("judge running")
        if len(content) <= _QUICK:
            return judge(content, rubric, base)
        # A long document takes a second or two, in which others want to be served.
        return await asyncio.to_thread(judge, content, rubric, base)


def judge(content: str, rubric: Rubric, base: Path | None = None) -> Judgement:
    """The judgement of a document."""
    document = Document.parse(content)
    findings = examine(document, base)
    known = {name: _score(name, findings, document) for name in FORM}
    mean = _mean(known, rubric)
    scores = {name: known.get(name.lower(), mean) for name in rubric.weights}
    # What costs several criteria is said once.
    distinct: dict[tuple[int, str], Issue] = {}
    for finding in findings:
        distinct.setdefault((finding.line, finding.text), finding)
    ranked = list(distinct.values())[:MOST_SUGGESTIONS]
    japanese = document.japanese
    suggestions = tuple(
        Suggestion(finding.text, finding.line, finding.criterion, japanese) for finding in ranked
    )
    skipped = beyond_form(rubric.weights)
    return Judgement(scores, suggestions, LOCAL, skipped, phrase(japanese, "form"))


def _mean(known: Mapping[str, float], rubric: Rubric) -> float:
    """What the judged criteria come to by their weights, or by the usual ones if they have none."""
    for weights in (rubric.weights, DEFAULT_WEIGHTS):
        parts = {name: weight for name, weight in weights.items() if name.lower() in known}
        if total := sum(parts.values()):
            mean = sum(weight * known[name.lower()] for name, weight in parts.items()) / total
            return round(mean, 2)
    raise AssertionError("the usual weights are not 0")


def _score(criterion: str, findings: Sequence[Issue], document: Document) -> float:
    """Each finding takes its share of what is left; in a long text a small one weighs less."""
    words = written(document)
    if not words and not document.fences:
        return 0.0
    # Hardly any text can hardly be clear.
    left = min(1.0, _LEAST + (1 - _LEAST) * words / SHORT_WORDS)
    spread = (1 + document.content / _FEW_WORDS) ** 0.5
    for finding in findings:
        if finding.criterion == criterion:
            weight = finding.weight if finding.line == 1 else finding.weight / spread
            left *= 1 - min(weight, 0.9)
    return round(10 * left, 1)
