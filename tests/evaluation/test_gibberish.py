from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from evercontext.evaluation.document_parser import Document
from evercontext.evaluation.gibberish import few_words, no_order, said_again
from evercontext.evaluation.issue import describe
from evercontext.evaluation.local_judge import judge
from evercontext.evaluation.rubric import Rubric

ROOT = Path(__file__).parents[2]
STUB = "# Tool\n\nThis tool copies files between two folders.\n"
JAPANESE_STUB = "# 道具\n\nこの道具は二つのフォルダーの間でファイルを写します。\n"
FILLER = (
    "It is important to note that this is important.",
    "This section describes the section.",
    "As mentioned above, everything is explained below.",
    "In this document we document the document.",
)
KEYWORDS = ("usage", "install", "example", "complete", "accurate", "clear", "guide", "quick")


def score(text: str) -> float:
    return Rubric.of().score(judge(text, Rubric.of()).scores)


def sections(*texts: str) -> str:
    """What the local judge likes: headings, a way to begin, code that parses."""
    parts = (f"## Example {n}\n\n{text}\n\n" for n, text in enumerate(texts))
    return f"## Usage\n\n```sh\nls\n```\n\n{''.join(parts)}"


def shuffled(chance: random.Random) -> str:
    words = re.findall(r"\b[a-z]+\b", (ROOT / "README.md").read_text(encoding="utf-8"))
    chance.shuffle(words)
    return " ".join(" ".join(words[at : at + 12]) + "." for at in range(0, len(words), 12))


def padding(kind: str) -> str:
    chance = random.Random(7)
    match kind:
        case "keywords":
            return sections(*(" ".join(chance.choices(KEYWORDS, k=60)) + "." for _ in range(14)))
        case "filler":
            return sections(*(" ".join(chance.choices(FILLER, k=8)) for _ in range(14)))
        case "numbered":
            return sections(*(f"Step {n}: it copies the folder and says so." for n in range(60)))
        case "salad":
            return sections(*(shuffled(chance) for _ in range(4)))
    raise AssertionError(kind)


@pytest.mark.contract("L11")
@pytest.mark.parametrize("kind", ["keywords", "filler", "numbered", "salad"])
def test_padding_makes_no_document_better(kind: str) -> None:
    assert score(STUB + padding(kind)) <= score(STUB)


def test_padding_makes_no_japanese_document_better() -> None:
    padded = JAPANESE_STUB + sections(*["このツールは大切です。とても便利です。" * 6] * 20)
    assert score(padded) <= score(JAPANESE_STUB)


@pytest.mark.parametrize(
    "path", sorted(ROOT.glob("docs/**/*.md")), ids=lambda path: path.relative_to(ROOT).as_posix()
)
def test_what_people_wrote_is_text(path: Path) -> None:
    document = Document.parse(path.read_text(encoding="utf-8"))
    assert [*no_order(document, None), *few_words(document, None)] == []


def test_what_is_said_again_counts_once_and_is_told_once() -> None:
    sentence = "The first column holds the name of the order. "
    document = Document.parse(f"# T\n\n{sentence * 9}\n")
    assert (document.words, document.repeated) == (81, 72)
    said = describe(document, "said again", n=89)
    assert {finding.text for finding in said_again(document, None)} == {said}
    told = [str(one) for one in judge(document.text, Rubric.of()).suggestions]
    assert told.count(f"line 1: {said}") == 1


def test_short_sentences_may_come_again() -> None:
    assert Document.parse("# T\n\n" + "See below. Yes, it does.\n\n" * 20).repeated == 0


def test_criteria_it_does_not_know_are_named() -> None:
    judged = judge(STUB, Rubric.of({"Clarity": 1, "調子": 1}))
    assert judged.not_judged == ("調子",)
    assert judged.scores["Clarity"] == judge(STUB, Rubric.of()).scores["clarity"]
