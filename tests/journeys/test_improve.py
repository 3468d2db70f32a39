"""V4: `improve` leaves no document worse than it found it, and says what a rewrite would lose."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from evercontext.testing import tiny_repository, write_script
from tests.cli.command import Ended, evercontext
from tests.models.wire_server import Answer, sse, wire_server

DESIGN = """# Orchid gateway

```text
client --> [orchid-edge :7443] --> [orchid-core] --> [ledger 10.4.0.12]
                 |                       |
                 +--- audit queue -------+
```

## Admission

```python
def admit(ticket: Ticket, burst: int = 250) -> bool:
    return ticket.weight <= burst and not ledger.frozen(ticket.account)
```

## Ledger schema

| column | bytes | note |
|---|---|---|
| account | 16 | uuid |
| weight | 4 | at most 65535 |
| seen_at | 8 | microseconds |

## Retry schedule

| attempt | milliseconds |
|---|---|
| 1 | 40 |
| 2 | 160 |
| 3 | 640 |

## Shutdown

```python
async def drain(queue: AuditQueue, seconds: float = 12.5) -> None:
    await asyncio.wait_for(queue.join(), seconds)
```

## Capacity

Two edges carry 18,400 tickets in a second at 31 % load.
"""

BETTER = (
    DESIGN.replace(
        "# Orchid gateway\n",
        "# Orchid gateway\n\nThe Orchid gateway admits tickets at its edge, books them in the "
        "ledger and writes each decision to a queue. This page is for operators who run it and for "
        "engineers who change how tickets are admitted, retried or drained.\n\n## How to start\n\n"
        "```sh\norchid-edge --listen 7443\n```\n\nStart the core first, then one edge per zone. "
        "An edge that finds no core waits and tries again until it is stopped.\n",
    )
    .replace(
        "## Admission\n",
        "## Who is admitted\n\nA ticket is admitted while its weight fits the burst.\n",
    )
    .replace("## Capacity\n", "## What it carries\n")
)
"""The same design with an introduction, and two of its headings renamed."""

_HEAD, _REST = BETTER.split("## Ledger schema")
CUT = _HEAD
"""What is left of it where the model ran into its output limit: four sections are gone."""

MANUAL = """# Tidy

Tidy sorts the files of a folder by their kind. It never deletes anything and can be undone.

## Installation

Install it with the package manager of your system, or copy the program into a folder on your path.

```sh
pip install tidy
```

## Usage

Run it in the folder that you want to sort. Each file is moved into a folder named after its kind.
Pictures go into one folder, letters into another. What it does not know stays where it is. A file
with the same name gets a number. Folders are left alone, and so is all that begins with a dot.

```sh
tidy downloads --dry-run
```

## Undo

The last run is written down beside the files, so that a friend can follow what was done and take
it back with one word. See [usage](#usage) for what is moved and what is not.
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return tiny_repository(tmp_path / "project", {"design.md": DESIGN})


def writer(project: Path, *texts: str) -> str:
    turns = [{"role": "writer", "text": text} for text in texts]
    return write_script(project.parent / "writer.jsonl", turns)


def improve(project: Path, model: str, *more: str, **env: str) -> tuple[Ended, dict[str, Any]]:
    arguments = ("design.md", "--in-place", "--judge", "local", "--model", model, *more)
    ended = evercontext("improve", *arguments, "--json", cwd=project, env=env)
    return ended, json.loads(ended.out) if ended.out else {}


NO = "I cannot help with that."
REFUSALS = (NO, "申し訳ありませんが、この文書の書き換えはお手伝いできません。")


@pytest.mark.contract("L8", "L9")
@pytest.mark.parametrize("reply", [*REFUSALS, MANUAL, CUT], ids=["no", "no.ja", "manual", "cut"])
def test_a_text_that_is_not_the_document_any_more_is_not_taken(project: Path, reply: str) -> None:
    """V4: however well the local judge thinks of it, and also when it is sent a second time."""
    before = (project / "design.md").read_bytes()
    ended, told = improve(project, writer(project, reply, reply), "--target", "10")
    assert (ended.code, told["best"], told["written"]) == (4, 0, None), ended.err
    assert told["stop"] == "the writer's text was not taken"
    assert told["not_taken"]["reasons"]
    assert Path(told["not_taken"]["text"]).read_text(encoding="utf-8").strip() == reply.strip()
    assert (project / "design.md").read_bytes() == before


@pytest.mark.parametrize("stub", ["# Orchid\n\nTODO\n", DESIGN], ids=["stub", "design"])
def test_a_refusal_is_never_a_document(project: Path, stub: str) -> None:
    """V4: where there is hardly anything to lose, too."""
    (project / "design.md").write_text(stub)
    ended, told = improve(project, writer(project, NO, NO), "--target", "10")
    assert (ended.code, told["written"]) == (4, None)
    assert NO in told["not_taken"]["reasons"][0]
    assert (project / "design.md").read_text() == stub


def test_what_would_be_lost_is_named_on_the_screen(project: Path) -> None:
    arguments = ("design.md", "--in-place", "--judge", "local", "--target", "10")
    ended = evercontext("improve", *arguments, "--model", writer(project, CUT, CUT), cwd=project)
    shown = " ".join(ended.out.split())
    assert "not taken: it would lose 4 of 6 sections: Ledger schema, Retry schedule" in shown
    assert "not taken: it would lose 1 of 1 code block" not in shown
    assert "the text that was not taken:" in shown


def test_the_writer_is_told_once_what_it_lost(project: Path) -> None:
    """V4: and a second try that brings it back is taken."""
    second = {"role": "writer", "when": "Ledger schema, Retry schedule", "text": BETTER}
    turns = [{"role": "writer", "text": CUT}, second]
    model = write_script(project.parent / "writer.jsonl", turns)
    ended, told = improve(project, model, "--max-iterations", "1", "--target", "10")
    assert (told["best"], told["lost"]) == (1, []), ended.err
    assert (project / "design.md").read_text() == BETTER


def chunk(text: str, finish: str) -> Answer:
    piece: dict[str, Any] = {"id": "c", "object": "chat.completion.chunk", "model": "gpt-x"}
    parts = [({"role": "assistant", "content": text}, None), ({}, finish)]
    chunks = [
        {**piece, "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}
        for delta, reason in parts
    ]
    return Answer(sse(*chunks, done=True))


@pytest.mark.parametrize(
    ("finish", "reason"), [("length", "cut off at the output limit"), ("content_filter", "filter")]
)
async def test_a_reply_that_ended_early_is_never_taken(
    project: Path, finish: str, reason: str
) -> None:
    """V4: not even one that looks whole: the provider says that it is not."""
    async with wire_server() as server:
        env = {"OPENAI_API_KEY": "sk-x", "OPENAI_BASE_URL": f"{server.url}/v1"}
        server.will(chunk(BETTER, finish))
        more = ("openai:gpt-4.1-mini", "--target", "10")
        ended, told = await asyncio.to_thread(improve, project, *more, **env)
    assert (ended.code, told["written"]) == (4, None), ended.err
    assert reason in told["not_taken"]["reasons"][0]
    assert (project / "design.md").read_text() == DESIGN


def _tables_first() -> str:
    """Sections in another order, one merged into another, tables become lists."""
    title, admission, ledger, _retry, shutdown, capacity = DESIGN.split("\n## ")
    rows = "".join(
        f"- attempt {n}: after {ms} milliseconds\n" for n, ms in ((1, 40), (2, 160), (3, 640))
    )
    opening = (
        "Orchid admits tickets at the edge and books them in the ledger, as the picture shows."
    )
    return "\n## ".join(
        [
            f"{title}\n{opening}\n",
            f"Usage: {capacity}",
            ledger,
            admission,
            f"Stopping and trying again\n\nAn edge tries three times.\n\n{rows}\n{shutdown}",
        ]
    )


@pytest.mark.parametrize(
    "reply",
    [BETTER, _tables_first(), f"Here it is:\n\n{BETTER}"],
    ids=["introduced", "reordered", "announced"],
)
def test_a_restructured_document_is_taken(project: Path, reply: str) -> None:
    """V4: the same facts in another order, under other names, are the same document."""
    more = ("--max-iterations", "1", "--target", "10")
    ended, told = improve(project, writer(project, reply), *more)
    assert (told["best"], told["not_taken"]) == (1, None), (ended.err, ended.out)
    assert (project / "design.md").read_text() == reply.removeprefix("Here it is:\n\n")
