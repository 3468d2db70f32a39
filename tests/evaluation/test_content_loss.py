from __future__ import annotations

from pathlib import Path

import pytest

from evercontext.evaluation.content_loss import losses

DOCUMENTS = Path(__file__).parent / "documents"
GUIDE = """# Heron

Heron sends reports of a warehouse by mail, every morning at 6:30 and every evening at 18:45.

## Install

```sh
heron install --mailbox reports
```

## Limits

A report has at most 4,096 rows and 25 columns. Attachments are cut at 750 kilobytes.

## Mistakes

A mailbox that is full is tried again after 90 seconds, then after 15 minutes, then given up.
"""


def most(before: str, after: str) -> list[str]:
    return [loss.text for loss in losses(before, after) if loss.most]


@pytest.mark.parametrize("stem", ["stub", "wall", "broken", "mixed.ja", "stub.ja"])
def test_what_a_writer_makes_better_loses_nothing(stem: str) -> None:
    before = (DOCUMENTS / f"{stem}.md").read_text(encoding="utf-8")
    for path in DOCUMENTS.glob(f"{stem}.[0-9].md"):
        assert losses(before, path.read_text(encoding="utf-8")) == [], path.name


@pytest.mark.parametrize(
    ("before", "after", "lost"),
    [
        (
            "4,096 rows and 25 columns. Attachments are cut at 750 kilobytes",
            "some rows, columns. Attachments are cut at some kilobytes",
            "3 of 7 numbers: 4,096, 25, 750",
        ),
        ("heron install --mailbox reports", "make", "1 of 1 code block: line 7"),
    ],
)
def test_what_is_gone_is_named(before: str, after: str, lost: str) -> None:
    assert before in GUIDE
    assert lost in [loss.text for loss in losses(GUIDE, GUIDE.replace(before, after))]


def test_code_that_was_corrected_and_numbers_written_otherwise_are_there() -> None:
    after = GUIDE.replace("4,096", "4096").replace("install --mailbox", "install  -v --mailbox")
    assert losses(GUIDE, after) == []
    few = "# Steps\n\nIt has 2 edges, 3 cores, 5 zones and 7 ledgers.\n"
    spelled = "# Steps\n\nIt has two edges, three cores, five zones and seven ledgers.\n"
    assert losses(few, spelled) == []


def test_half_of_the_sections_are_most_of_them() -> None:
    head = GUIDE.split("## Limits")[0]
    assert any("2 of 4 sections: Limits, Mistakes" in text for text in most(GUIDE, head))
    hollow = head + "## Limits\n\n## Mistakes\n"
    assert any("numbers" in text for text in most(GUIDE, hollow))


def test_renamed_sections_are_there_and_lost_ones_are_told() -> None:
    renamed = GUIDE.replace("## Limits", "## How much").replace("## Mistakes", "## If it fails")
    assert losses(GUIDE, renamed) == []
    without = GUIDE.split("## Mistakes")[0] + "## Thanks\n\nTo all.\n"
    lost = losses(GUIDE, without)
    assert any(loss.text == "1 of 4 sections: Mistakes" and not loss.most for loss in lost)


@pytest.mark.parametrize(
    "text",
    [
        "I'm sorry, but I can't assist with that request.",
        "I am unable to rewrite this document.",
        "As an AI, I must not change it.",
        "申し訳ございませんが、対応できません。",
        f"{GUIDE}\nI cannot rewrite the section on limits.\n",
    ],
)
def test_a_refusal_is_told_from_a_document(text: str) -> None:
    assert any("refusal" in reason for reason in most(GUIDE, text))
    assert any("refusal" in reason for reason in most("TODO\n", text))


def test_a_document_about_refusals_may_be_rewritten() -> None:
    before = '# Answers\n\nThe model says "I cannot help with that." where it may not help.\n'
    after = before.replace("where it may not help", "where a rule forbids its help")
    assert losses(before, after) == []


def test_a_translation_is_another_text() -> None:
    sent = "倉庫の報告を毎朝6:30と毎晩18:45に送ります。"
    japanese = f"# 鷺\n\n{sent}\n\n## 制限\n\n4,096行、25列、750キロバイトまで。\n"
    assert any("another text" in text for text in most(GUIDE, japanese))
    assert losses(japanese, japanese.replace("送ります", "送る")) == []


@pytest.mark.case(131)
@pytest.mark.parametrize(
    "piece", ["[", "# a\n", "| a |\n", "1,", "1.", "一", "あ", "\ud800", "```\na\n```\n"]
)
def test_hostile_texts_are_compared_in_bounded_work(piece: str) -> None:
    text = piece * (50_000 // len(piece))
    losses(text, text[::-1])
