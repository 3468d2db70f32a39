"""Define the issues that checks of the local judge report."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from evercontext.evaluation.document_parser import Document
from evercontext.evaluation.judge_messages import phrase


@dataclass(frozen=True, slots=True)
class Issue:
    """One thing to improve. ``weight`` is the share of the criterion's score that it costs."""

    criterion: str
    line: int
    weight: float
    text: str


Check = Callable[[Document, Path | None], Iterator[Issue]]


def describe(document: Document, name: str, **facts: object) -> str:
    """Return a message about a document in the document's language."""
    return phrase(document.japanese, name, **facts)
