"""What a check of the local judge finds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from evercontext.evaluation.document import Document
from evercontext.evaluation.phrases import phrase


@dataclass(frozen=True, slots=True)
class Finding:
    """Something to do better. ``weight`` is the share of the criterion's score that it costs."""

    criterion: str
    line: int
    weight: float
    text: str


Check = Callable[[Document, Path | None], Iterator[Finding]]


def say(document: Document, name: str, **facts: object) -> str:
    """One sentence about a document, in its language."""
    return phrase(document.japanese, name, **facts)
