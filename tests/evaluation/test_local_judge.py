from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evercontext.evaluation.checks import examine
from evercontext.evaluation.document import Document
from evercontext.evaluation.local_judge import judge
from evercontext.evaluation.rubric import Rubric

GOOD = """# Tidy

Tidy sorts the files of a folder by their kind. It never deletes anything and can be undone.

## Installation

```sh
pip install tidy
```

## Usage

Run it in the folder you want to sort. Each file is moved into a folder named after its kind.

```python
import tidy

tidy.sort("downloads", dry_run=True)
```

- `dry_run` shows what would happen.
- `undo` takes the last run back.

See [the guide](#usage) for more. Questions are welcome in the issue tracker.
"""


def findings(text: str, base: Path | None = None) -> list[tuple[str, int]]:
    return [(finding.text, finding.line) for finding in examine(Document.parse(text), base)]


def score(text: str) -> float:
    return Rubric.of().score(judge(text, Rubric.of()).scores)


@pytest.mark.contract("L11")
def test_the_same_document_always_gets_the_same_judgement() -> None:
    assert judge(GOOD, Rubric.of()) == judge(GOOD, Rubric.of())


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("# Tidy\n", "", "no title"),
        ("tidy.sort(", "tidy.sort((", "does not parse"),
        ("(#usage)", "(#nowhere)", "no heading fits"),
        ("[the guide](#usage)", "[the guide]()", "has no target"),
        ("Run it in", "TODO Run it in", "stands where text should be"),
        ("issue tracker.\n", "issue tracker and also the", "does not end"),
        ("```\n\n- `dry", "\n\n- `dry", "never closed"),
        ("## Usage\n", "## Usage\n\n## Options\n", "is empty"),
        ("## Usage", "#### Usage", "use level"),
        ("dry_run=True)\n", "dry_run=True)\n# caf\u00c3\u00a9\n", "garbled"),
    ],
)
def test_each_kind_of_damage_is_found_and_costs(before: str, after: str, said: str) -> None:
    assert before in GOOD
    damaged = GOOD.replace(before, after, 1)
    assert any(said in text for text, _ in findings(damaged)), findings(damaged)
    assert not any(said in text for text, _ in findings(GOOD))
    assert score(damaged) < score(GOOD)


def test_a_finding_names_its_line() -> None:
    text = GOOD.replace('tidy.sort("downloads"', 'tidy.sort(("downloads"')
    place = next(line for said, line in findings(text) if "does not parse" in said)
    assert text.split("\n")[place - 1] == "```python"


def test_repeated_text_is_found() -> None:
    paragraph = "It never deletes anything and can be undone by anybody at any time.\n\n"
    assert any("word for word" in text for text, _ in findings(GOOD + "\n" + paragraph * 2))


def test_files_beside_the_document_are_looked_for(tmp_path: Path) -> None:
    (tmp_path / "there.md").write_text("x")
    text = GOOD + "\n[a](there.md) and [b](missing.md) and [c](https://example.com/x.md).\n"
    said = [text for text, _ in findings(text, tmp_path)]
    assert "the file missing.md does not exist" in said
    assert not any("there.md" in text for text in said)


def test_japanese_is_read_as_japanese() -> None:
    long = "この文書は" + "とても長い一文で読者を困らせるために書かれており" * 6 + "ます。"
    text = f"# 題名\n\n{long}\n\n短い文です。これは説明である。\n"
    said = [text for text, _ in findings(text)]
    assert any("文字あります" in text for text in said)
    assert any("混ざっています" in text for text in said)


def test_an_empty_document_gets_nothing() -> None:
    assert score("") == 0
    assert score("   \n\n") == 0


def test_criteria_it_does_not_know_get_the_mean() -> None:
    judged = judge(GOOD, Rubric.of({"tone": 1, "clarity": 1}))
    assert 0 < judged.scores["tone"] <= 10


@given(st.text(max_size=500))
def test_any_text_is_judged_without_failing(text: str) -> None:
    assert 0 <= score(text) <= 10


@pytest.mark.case(131)
def test_hostile_documents_are_judged_in_bounded_work() -> None:
    for text in ("[" * 20_000, "```python\n" + "(" * 5_000 + "\n```", "#" * 50_000, "a " * 100_000):
        assert 0 <= score(text) <= 10
