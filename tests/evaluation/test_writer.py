from __future__ import annotations

from pathlib import Path

import pytest

from evercontext import testing
from evercontext.domain.model import Request
from evercontext.evaluation.improve_loop import RefusedRevision, Version
from evercontext.evaluation.rubric import Evaluation, Suggestion
from evercontext.evaluation.writer import ModelWriter
from evercontext.models.scripted import ScriptedModel

OLD = "# Old\n\nText {{suggestions}} and {{document_content}}.\n"
NEW = "# New\n\nBetter text.\n"
CODE = "# New\n\n```sh\nrun it\n```\n\nThe end.\n"


def writer(tmp_path: Path, *replies: str) -> tuple[ModelWriter, ScriptedModel]:
    turns = [{"role": "writer", "text": reply} for reply in replies]
    model = testing.scripted_model(tmp_path / "w.jsonl", turns)
    return ModelWriter(model), model


def version(content: str = OLD) -> Version:
    said = (Suggestion("say {{score}} less", 3),)
    return Version(0, content, Evaluation(4.0, {"clarity": 4.0}, False, said))


@pytest.mark.parametrize(
    ("reply", "wanted"),
    [
        (NEW, NEW),
        ("# New", "# New\n"),
        (f"```markdown\n{NEW}```", NEW),
        (f"```\n{NEW}```\n", NEW),
        (f"````md\n{CODE}````", CODE),
        (f"```markdown\n{CODE}```", CODE),
        (f"Here is the improved document:\n\n```markdown\n{NEW}```\n", NEW),
        (f"Here is the improved document:\n\n{NEW}", NEW),
        (f"改善した文書です：\n```markdown\n{NEW}```", NEW),
        # Code of the document itself is no wrapping.
        ("```sh\na\n```\n\ntext\n\n```sh\nb\n```\n", "```sh\na\n```\n\ntext\n\n```sh\nb\n```\n"),
        ("```\na\n```\n\ntext\n\n```\nb\n```\n", "```\na\n```\n\ntext\n\n```\nb\n```\n"),
        ("# Tool\n\n```\na\n```\n", "# Tool\n\n```\na\n```\n"),
        ("Run this:\n\n```sh\na\n```\n", "Run this:\n\n```sh\na\n```\n"),
    ],
)
async def test_the_document_is_taken_out_of_what_a_model_puts_around_it(
    tmp_path: Path, reply: str, wanted: str
) -> None:
    made = await writer(tmp_path, reply)[0].revise(version())
    assert made == wanted


async def test_a_model_that_leaves_lines_out_is_asked_once_more(tmp_path: Path) -> None:
    lazy = "# New\n\n... rest of the document unchanged\n"
    made = await writer(tmp_path, lazy, NEW)[0].revise(version())
    assert made == NEW
    refused = await writer(tmp_path, lazy, lazy)[0].revise(version())
    assert isinstance(refused, RefusedRevision)
    assert "... rest of the document unchanged" in refused.reasons[0]


@pytest.mark.contract("L18")
@pytest.mark.case(108)
async def test_braces_of_a_document_reach_the_writer_as_they_are(tmp_path: Path) -> None:
    heard: list[Request] = []

    class Listening(ScriptedModel):
        def stream(self, request: Request):  # type: ignore[no-untyped-def]
            heard.append(request)
            return super().stream(request)

    testing.write_script(tmp_path / "w.jsonl", [{"role": "writer", "text": NEW}])
    await ModelWriter(Listening.from_file(tmp_path / "w.jsonl")).revise(version())
    asked = heard[0].messages[0].content
    assert OLD in asked
    assert "- line 3: say {{score}} less" in asked
    assert "Score now: 4 of 10 (clarity 4)" in asked
