from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evercontext.evaluation.document_checks import examine
from evercontext.evaluation.document_parser import Document
from evercontext.evaluation.judge_messages import _PHRASES, phrase
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
        ("Run it in", "ここはTODOです。Run it in", "stands where text should be"),
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


HOSTILE = [
    "[",
    "[](",
    "[a]( ",
    "](",
    " #",
    " ",
    "# a\n\nb\n\n",
    "a\n\n",
    "a b. ",
    "あ。",
    "`a ",
    "| a |\n",
    "a ",
    "\u0327\u0301",
    "```\na\n```\n",
    "```\n\n",
    "TODO ",
    "[a](#b) ",
    "# a\n",
    "- a\n",
    "(",
    "ABCD ",
    "a\n-----\n",
    "\t",
    "\r\n",
    "\0",
    "😀",
    "`",
    "http://a ",
    "x",
    "\ud800",
]


@pytest.mark.case(131)
@pytest.mark.parametrize("piece", HOSTILE)
def test_hostile_documents_are_judged_in_bounded_work(piece: str) -> None:
    """Work that grew with the square of the text would not end within the test's limit."""
    for start in ("", "# ", "a"):
        assert 0 <= score(start + piece * (100_000 // len(piece))) <= 10


@pytest.mark.case(131)
@pytest.mark.parametrize(
    "code",
    [
        "python\n" + "(" * 5000,
        "python\n" + "not " * 4000,
        "python\na" + ".b" * 9000,
        "python\n" + "-" * 19_000 + "1",
        "json\n" + "[" * 19_000,
        "toml\na=" + "[" * 19_000,
        "python\n\0",
        "python\n\ud800",
        "json\n" + "9" * 5000,
    ],
)
def test_hostile_code_is_only_code_that_does_not_parse(code: str) -> None:
    assert 0 <= score(f"# T\n\n```{code}\n```\n") <= 10


def test_rows_of_a_table_are_no_endless_sentence() -> None:
    table = "| name | what it does |\n|---|---|\n" + "| `a` | it sorts files by kind |\n" * 30
    assert not any("words: make two" in text for text, _ in findings(GOOD + "\n" + table))


def test_badges_and_links_with_titles_are_read() -> None:
    badge = '[![build](https://x.example/b.svg)](https://x.example) and [a]( <b_(c).md> "title")'
    links = Document.parse(f"# T\n\n{badge}\n").links
    assert [(link.target, link.image) for link in links] == [
        ("https://x.example/b.svg", True),
        ("b_(c).md", False),
    ]


def test_a_heading_keeps_what_belongs_to_its_name() -> None:
    titles = [h.text for h in Document.parse("# C#\n\n## Use ##\n\n### \n\n#### F# #\n").headings]
    assert titles == ["C#", "Use", "", "F#"]


@pytest.mark.parametrize("name", ["x" * 300, "a\0b", "//", "~/a.md"])
def test_links_that_no_file_can_be(tmp_path: Path, name: str) -> None:
    assert score(GOOD + f"\n[a]({name}) is there.\n") > 0
    findings(GOOD + f"\n[a]({name}) is there.\n", tmp_path)


def test_promises_are_no_text() -> None:
    assert score("TODO\n\n未定\n\nto be written\n") == 0 or score("TODO") == 0
    assert score("準備中") == 0


@pytest.mark.parametrize("text", ["word " * 5000, "all of it is the same. " * 2000])
def test_a_long_text_of_few_words_does_not_pass(text: str) -> None:
    assert score(f"# Title\n\n## Usage\n\n{text}\n") < 7


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("作成中", "「作成中」のままです: 本文を書いてください"),
        ("# 題名\n\n[案内]() を読んでください。\n", "リンク「案内」に行き先がありません"),
        ("# 題名\n\n## 使い方\n\n## 例\n\n例です。\n", "「使い方」の節が空です"),
        ("# 題名 {n}\n\n## {what}\n\n## 例\n", "「{what}」の節が空です"),
        ("説明\n\n```python\nf((\n```\n説明です", "この python のコードは構文が正しくありません"),
    ],
)
def test_a_japanese_document_is_answered_in_japanese(text: str, said: str) -> None:
    text += "\nこの文書は日本語で書かれています。"
    told = [text for text, _ in findings(text)]
    assert any(one.startswith(said) for one in told), told
    assert not any(one.isascii() for one in told)


def test_every_phrase_is_there_in_both_languages() -> None:
    facts = {"n": 1, "what": "{x}", "why": "y", "more": 2, "next": 3}
    for name in _PHRASES:
        english, japanese = (phrase(language, name, **facts) for language in (False, True))
        assert english.isascii()
        assert not japanese.isascii()
        assert ("{x}" in english) == ("{x}" in japanese)


@pytest.mark.parametrize(
    ("heading", "begins"),
    [
        ("Try it", True),
        ("Trying it out", True),
        ("First steps", True),
        ("Using Tidy", True),
        ("A walkthrough", True),
        ("Demo", True),
        ("Tidy in action", True),
        ("Use", True),
        ("試す", True),
        ("お試し", True),
        ("クイックスタート", True),
        ("セットアップ", True),
        ("動かしてみる", True),
        ("入門", True),
        ("チュートリアル", True),
        ("使ってみる", True),
        ("Country codes", False),
        ("Reused parts", False),
        ("試験", False),
        ("Licence", False),
        ("Demography", False),
        ("設計", False),
    ],
)
def test_headings_that_say_how_to_begin(heading: str, begins: bool) -> None:
    words = "It sorts the files of a folder by their kind and can be undone. " * 12
    document = f"# Tidy\n\n{words}\n\n## {heading}\n\n{words}\n"
    said = [text for text, _ in findings(document)]
    assert any("how to begin" in text for text in said) is not begins
