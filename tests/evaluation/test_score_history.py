from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from evercontext.errors import StoreProblem
from evercontext.evaluation.evaluator import Evaluator
from evercontext.evaluation.local_judge import LocalJudge
from evercontext.evaluation.rubric import Rubric
from evercontext.evaluation.score_history import EvaluationHistory, Occasion, title_of
from evercontext.events.redaction import Redactor
from evercontext.storage.opener import open_store
from evercontext.storage.store import Store
from tests import postgres


@pytest.fixture(params=["sqlite", "postgres"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    """A file, and a server: what holds for one holds for both."""
    url = postgres.new_database() if request.param == "postgres" else None
    opened = await open_store(tmp_path / "evaluations.db", url)
    yield opened
    await opened.close()


TEXT = "# 題名 Title\n\nA sentence about one thing.\n"


def evaluator(history: EvaluationHistory, project: str = "/p") -> Evaluator:
    return Evaluator(LocalJudge(), history=history, occasion=Occasion("evaluate", project=project))


async def test_every_evaluation_is_kept_with_all_it_said(store: Store, tmp_path: Path) -> None:
    history = EvaluationHistory(store, tmp_path)
    judged = await evaluator(history).evaluate(
        TEXT, Rubric.of({"tone": 1, "clarity": 3}), 5.0, trace_id="t", document="/p/a.md"
    )
    (record,) = await history.recent()
    assert record == await history.get(record.id)
    assert (record.score, record.passed) == (judged.score, judged.passed)
    assert record.rubric_scores == judged.rubric_scores
    assert record.weights == {"tone": 0.25, "clarity": 0.75}
    assert record.suggestions == tuple(str(s) for s in judged.suggestions)
    assert (record.door, record.judge, record.target) == ("evaluate", "local", 5.0)
    assert (record.document, record.project, record.trace_id) == ("/p/a.md", "/p", "t")
    assert (record.title, record.round) == ("題名 Title", None)
    assert record.to_json()["pass"] is judged.passed


async def test_a_text_of_no_project_is_its_users_alone(store: Store, tmp_path: Path) -> None:
    ann = EvaluationHistory(store, tmp_path, user="ann")
    bob = EvaluationHistory(store, tmp_path, user="bob")
    await evaluator(ann, "").evaluate("Ann's letter", trace_id="letter")
    await evaluator(ann).evaluate(TEXT, trace_id="shared", document="/p/a.md")
    letter, shared = (await ann.of_trace("letter"))[0], (await ann.of_trace("shared"))[0]
    assert (letter.title, await ann.recent("")) == ("Ann's letter", [letter])
    assert (await bob.get(letter.id), await bob.of_trace("letter")) == (None, [])
    assert (await bob.recent(""), await bob.recent()) == ([], [shared])
    assert await bob.of_document("/p/a.md") == await bob.recent("/p") == [shared]


async def test_a_document_has_its_own_history_oldest_first(store: Store, tmp_path: Path) -> None:
    history = EvaluationHistory(store, tmp_path)
    for text in ("x", TEXT, TEXT * 20):
        await evaluator(history).evaluate(text, document="/p/a.md")
    await evaluator(history, "/other").evaluate("y", document="/other/b.md")
    scores = [record.score for record in await history.of_document("/p/a.md")]
    assert len(scores) == 3
    assert scores[0] < scores[1]
    assert len(await history.of_document("/p/a.md", limit=2)) == 2
    assert (await history.of_document("/p/a.md", limit=1))[0].score == scores[-1]
    assert [r.document for r in await history.recent("/other")] == ["/other/b.md"]
    assert len(await history.recent()) == 4
    assert await history.of_document("/nowhere") == []
    assert await history.get("nothing") is None


async def test_a_version_is_read_back_by_its_record(store: Store, tmp_path: Path) -> None:
    history = EvaluationHistory(store, tmp_path)
    for number in range(2):
        await evaluator(history).evaluate(f"v{number}", iteration=number, trace_id="run-1")
        history.versions.keep("run-1", number, "a.md", f"v{number}".encode())
    await evaluator(history).evaluate("no version")
    rounds = await history.of_trace("run-1")
    assert [(r.round, history.text_of(r)) for r in rounds] == [(0, "v0"), (1, "v1")]
    newest = (await history.recent(limit=1))[0]
    assert history.text_of(newest) is None


@pytest.mark.case(135)
async def test_no_secret_is_kept(store: Store, tmp_path: Path) -> None:
    clean = Redactor(["hunter2-hunter2"]).masked
    history = EvaluationHistory(store, tmp_path, clean)
    text = "# hunter2-hunter2\n\n## hunter2-hunter2\n"
    await evaluator(history).evaluate(text, document="/p/hunter2-hunter2.md")
    (record,) = await history.of_document("/p/hunter2-hunter2.md")
    assert "hunter2" not in str(record)
    assert "hunter2" not in str(await store.fetch_all("SELECT * FROM evaluations"))


@pytest.mark.parametrize("hostile", ["\ud800", "\0", "'; DROP TABLE evaluations; --", "{{x}}"])
async def test_any_text_and_name_can_be_kept(store: Store, tmp_path: Path, hostile: str) -> None:
    history = EvaluationHistory(store, tmp_path)
    await evaluator(history).evaluate(f"# {hostile}\n", document=f"/p/{hostile}")
    assert len(await history.of_document(f"/p/{hostile}")) == 1


async def test_a_store_in_trouble_costs_the_history_alone(store: Store, tmp_path: Path) -> None:
    history = EvaluationHistory(store, tmp_path)
    await store.close()
    with pytest.raises(StoreProblem):
        await history.recent()
    assert (await evaluator(history).evaluate(TEXT)).score > 0


def test_a_document_is_called_by_its_first_words() -> None:
    assert title_of("\ufeff\n\n## The  *guide*\n\ntext") == "The *guide"
    assert title_of("Title\n=====\n") == "Title"
    assert title_of("-----\n***\n") == ""
    assert len(title_of("あ" * 500)) == 80
