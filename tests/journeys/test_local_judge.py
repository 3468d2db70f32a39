"""V17: the local judge says what it judges, and nothing that it cannot know."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import Ended, evercontext

FALSE = """# The solar system

The sun is a cold planet that circles the earth once in an hour. It is made of cheese and ice.

## How to use it

Look at it at midnight, when it stands highest. Water boils there at minus four degrees.

```python
print("The moon is larger than the sun")
```

The earth has nine moons and no sea. Light stands still, and sound is faster than light in every
vacuum. Iron is lighter than air, which is why ships fly. Whales are insects that live on trees,
and trees are metals. Rain falls upwards in summer. Two and two are five, and a circle has four
corners. Paris is the capital of Japan. Humans breathe nitrogen and eat stones for breakfast.
"""

DRAWN = """# Edge

```text
client --> gateway --> ledger
              |
              +------> audit queue --> archive
```

## Usage

```python
from edge import Gateway, Ledger, Queue

async def admit(ticket, burst=250):
    allowed = ticket.weight <= burst
    await audit.put(Decision(ticket.account, allowed, now()))
    return allowed and not await ledger.frozen(ticket.account)

async def drain(queue, seconds=12.5):
    await asyncio.wait_for(queue.join(), seconds)
```

## Ledger

| column | type | note |
|---|---|---|
| account | uuid | the customer who is charged |
| weight | integer | what one ticket costs |
| seen | timestamp | when the edge saw it first |
"""

RESTRUCTURED = """=====
Heron
=====

Heron sends reports of a warehouse by mail, every morning and every evening. See the
`user guide <https://heron.example/guide>`_ for what a report holds, and :ref:`limits` for how much.

.. note::

   A mailbox that is full is tried again after a while, and given up on the next day.

Installation
============

Install the program with the package manager of your system. Then name the mailbox::

    heron install --mailbox reports
    heron status

Usage
=====

.. code-block:: python

   import heron

   heron.send("reports", rows=heron.rows("today"))

.. _limits:

Limits
------

======  =========  ==========================
What    How many   What becomes of the rest
======  =========  ==========================
rows    4096       the oldest are left out
mails   two a day  none is sent
======  =========  ==========================

.. image:: heron.svg
   :alt: The way of a report from the warehouse to the mailbox
"""

VERBS = """# Client

The client sends GET, POST and DELETE over HTTPX and waits for the answer. Caching is OFF unless the
server allows it. The QXZ header is left out. Install httpx first, and set `TTLX` if answers are
old: TTLX counts seconds. A Forward Proxy Gateway (FPG) may stand in between, and the FPG keeps no
copy of what it sends on. Each answer has a status, and a body of at most one megabyte.

## ACME usage

ACME is asked for a certificate at the first start.

```python
import httpx
httpx.get("https://example.com")
```
"""

JAPANESE = """# 検索

この道具は文書を探します。使い方は後で書く。

## 使い方

```python
search((
```
"""


def evaluate(folder: Path, name: str, text: str, *more: str) -> tuple[Ended, dict[str, Any]]:
    (folder / name).write_text(text, encoding="utf-8")
    ended = evercontext("evaluate", name, "--judge", "local", "--json", *more, cwd=folder)
    told = json.loads(ended.out) if ended.out else {}
    return ended, told


@pytest.mark.contract("L11", "L21")
def test_no_accuracy_is_given_to_what_nobody_checked(tmp_path: Path) -> None:
    ended, told = evaluate(tmp_path, "false.md", FALSE)
    scores, metadata = told["rubric_scores"], told["metadata"]
    assert metadata["not_judged"] == ["accuracy"], ended.err
    assert "whether the document is true was not judged" in metadata["note"]
    judged = 0.3 * scores["completeness"] + 0.2 * scores["clarity"] + 0.2 * scores["usability"]
    assert told["score"] == pytest.approx(judged / 0.7, abs=0.01)
    assert set(scores) == {"completeness", "accuracy", "clarity", "usability"}
    assert all(0 <= score <= 10 for score in scores.values())
    shown = evercontext("evaluate", "false.md", "--judge", "local", cwd=tmp_path).out
    assert "  accuracy      not judged\n" in shown
    assert "form alone" in shown


@pytest.mark.contract("L21")
def test_a_rubric_of_which_nothing_was_judged_does_not_pass(tmp_path: Path) -> None:
    ended, told = evaluate(tmp_path, "a.md", FALSE, "--rubric", '{"accuracy": 1}', "--target", "0")
    assert (ended.code, told["pass"]) == (4, False)
    record = json.loads(evercontext("evaluate", "--history", "--json", cwd=tmp_path).out)[0]
    assert ("accuracy" in record["not_judged"], record["pass"]) == (True, False)


def test_code_tables_and_diagrams_are_content(tmp_path: Path) -> None:
    _, told = evaluate(tmp_path, "design.md", DRAWN)
    assert told["score"] >= 8, told
    assert not any("hardly any text" in said for said in told["suggestions"])
    assert not any("name the language" in said for said in told["suggestions"])


def test_restructured_text_is_read(tmp_path: Path) -> None:
    (tmp_path / "heron.svg").write_text("<svg/>")
    _, told = evaluate(tmp_path, "heron.rst", RESTRUCTURED)
    assert told["suggestions"] == [told["suggestions"][0]], told["suggestions"]
    assert "words are little" in told["suggestions"][0]
    broken = RESTRUCTURED.replace('rows("today"))', 'rows("today")').replace("heron.svg", "no.svg")
    _, told = evaluate(tmp_path, "heron.rst", broken)
    place = RESTRUCTURED.split("\n").index(".. code-block:: python") + 1
    assert (
        f"line {place}: this python code does not parse: '(' was never closed"
        in told["suggestions"]
    )
    assert any("no.svg does not exist" in said for said in told["suggestions"])


def test_words_that_need_no_explanation_are_not_asked_about(tmp_path: Path) -> None:
    _, told = evaluate(tmp_path, "client.md", VERBS)
    asked = [said.split(": ")[1] for said in told["suggestions"] if "never explained" in said]
    assert asked == ["QXZ is never explained"]


def test_a_japanese_report_names_its_lines_in_japanese(tmp_path: Path) -> None:
    _, told = evaluate(tmp_path, "ja.md", JAPANESE)
    assert told["suggestions"]
    assert not any(said.startswith("line ") for said in told["suggestions"])
    assert any(said.startswith("7行目: この python のコード") for said in told["suggestions"])
    assert "形式だけを評価しました" in told["metadata"]["note"]
