from __future__ import annotations

import pytest

from evercontext.evaluation.abbreviations import unexplained
from evercontext.evaluation.document_parser import Document


def asked(text: str) -> list[str]:
    return [finding.text.split()[0] for finding in unexplained(Document.parse(text), None)]


@pytest.mark.parametrize(
    "text",
    [
        "Send GET or DELETE.",
        "It is OFF.",
        "QXZ is short for something.",
        "The QXZ (a header).",
        "A quick xenon zone, QXZ.",
        "Set `qxz` first. QXZ is read once.",
        "# About QXZ\n\nQXZ helps.",
        "```sh\nqxz run\n```\n\nStart QXZ.",
        "The Qxz tool. QXZ again.",
        "QXZ とは道具です。",
    ],
)
def test_what_is_common_or_defined_is_not_asked_about(text: str) -> None:
    assert asked(text) == []


def test_what_nobody_can_know_is_asked_about_once() -> None:
    assert asked("Mind the QXZ. The QXZ and the DLQ matter.") == ["QXZ", "DLQ"]
