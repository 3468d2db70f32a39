"""V5, F7: at a small window only what the model was really sent counts as read."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from evercontext.testing import tiny_repository
from tests.cli.command import evercontext
from tests.journeys.model_server import ModelServer, model_server
from tests.journeys.story import call

pytestmark = pytest.mark.contract("N28")

LINES = [
    f"value_{n:04} = compute({n}, 'some words that make the line longer')\n" for n in range(1, 1136)
]
TEXT = "".join(LINES)
SMALL = {"EC_CONTEXT_WINDOW": "16000"}


def run(model: ModelServer, project: Path) -> dict[str, Any]:
    ended = evercontext(
        "run",
        "-t",
        "change big.py",
        "-m",
        "gpt-4.1-mini",
        "--json",
        "--no-auto-test",
        cwd=project,
        env=SMALL | model.settings,
    )
    assert model.steps == [], ended.err
    told: dict[str, Any] = json.loads(ended.out)
    return told


@pytest.fixture
def project(tmp_path: Path) -> Path:
    assert len(TEXT) > 72_000
    return tiny_repository(tmp_path / "project", {"big.py": TEXT})


def next_page(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Read on as the newest result says."""
    found = re.search(r"read on with start_line=(\d+)", str(messages[-1]["content"]))
    assert found, messages[-1]
    return [call("readFile", path="big.py", start_line=int(found[1]))]


def test_a_file_seen_in_part_is_not_replaced_whole(project: Path) -> None:
    """V5: pages that the window left out since are not before the model, either."""
    whole = [call("editFile", path="big.py", new_content="value = 1\n")]
    with model_server() as model:
        read = [call("readFile", path="big.py")]
        model.will(read, whole, next_page_after_refusal, next_page, next_page, next_page, whole)
        model.will("I could not replace it.")
        told = run(model, project)
    assert (project / "big.py").read_text() == TEXT
    assert told["files_changed"] == []
    results = [m["content"] for m in model.asked[-1]["messages"] if m["role"] == "tool"]
    assert any("left out to fit the window" in result for result in results)
    assert "value_0001" not in json.dumps(results), "the first page was left out"
    for refusal in (model.last_result(2), model.last_result(-1)):
        assert re.search(r"only lines \d+-\d+ of 1135 in big.py are in your context", refusal)
        assert "replaceInFile" in refusal
        assert "start_line" in refusal


def test_a_file_that_the_window_cut_is_not_replaced_whole(tmp_path: Path) -> None:
    """V5: one read brings all of it, the window shows the model a part of that."""
    text = "".join(LINES[:800])
    project = tiny_repository(tmp_path / "other", {"big.py": text})
    with model_server() as model:
        model.will(
            [call("readFile", path="big.py")],
            [call("editFile", path="big.py", new_content="value = 1\n")],
            "I could not replace it.",
        )
        report = run(model, project)
    assert (project / "big.py").read_text() == text
    assert (report["outcome"], report["files_changed"]) == ("failed", [])
    assert "are in your context" in model.last_result(-1)


def next_page_after_refusal(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    shown = [m for m in messages if m["role"] == "tool" and "read on with" in m["content"]]
    return next_page(shown)


def test_one_line_of_a_long_file_is_replaced_after_one_page(project: Path) -> None:
    """F7: a page that was asked for, its lines replaced, and the next lines right after."""
    first, second, far = LINES[700], LINES[701], LINES[100]
    with model_server() as model:
        model.will(
            [call("readFile", path="big.py", start_line=695, end_line=710)],
            [call("replaceInFile", path="big.py", edits=[{"old": first, "new": "a\nb\n"}])],
            [call("replaceInFile", path="big.py", edits=[{"old": f"b\n{second}", "new": "c\n"}])],
            [call("replaceInFile", path="big.py", edits=[{"old": far, "new": "unseen\n"}])],
            "Two lines were replaced.",
        )
        told = run(model, project)
    assert (project / "big.py").read_text() == TEXT.replace(f"{first}{second}", "a\nc\n")
    assert told["files_changed"] == ["big.py"]
    assert "at line 101 of big.py, which was not shown yet" in model.last_result()
    assert "Read lines 96-106" in model.last_result()


def test_every_page_comes_whole_and_leads_to_the_next(project: Path) -> None:
    """F7: nothing is cut out of a page, so that reading on misses no line."""
    seen: list[str] = []

    def read_on(messages: list[dict[str, Any]]) -> list[dict[str, Any]] | str:
        result = json.loads(messages[-1]["content"])["result"]
        seen.append(re.sub(r"\A\[lines.*?\]\n", "", result))
        if "read on with" not in result:
            return "I have read all of it."
        model.steps.insert(0, read_on)
        return next_page(messages)

    with model_server() as model:
        model.will([call("readFile", path="big.py")], read_on)
        told = run(model, project)
    assert told["outcome"] == "done"
    assert "".join(seen) == TEXT
    assert len(seen) > 2


def test_a_line_longer_than_a_page_comes_in_pieces(tmp_path: Path) -> None:
    """F7: and the whole of it must be there before it is replaced."""
    line = "".join(f"word{n} " for n in range(12_000))
    project = tiny_repository(tmp_path / "project", {"data.txt": line})
    with model_server() as model:
        model.will(
            [call("readFile", path="data.txt")],
            lambda messages: [call("readFile", path="data.txt", **_offset(messages))],
            [call("editFile", path="data.txt", new_content="short\n")],
            [call("replaceInFile", path="data.txt", edits=[{"old": "word5 ", "new": "five "}])],
            "Done.",
        )
        run(model, project)
    assert "are in your context" in model.last_result(3)
    assert (project / "data.txt").read_text() == line.replace("word5 ", "five ", 1)


def _offset(messages: list[dict[str, Any]]) -> dict[str, int]:
    found = re.search(r"start_line=(\d+), offset=(\d+)\]", str(messages[-1]["content"]))
    assert found, messages[-1]
    return {"start_line": int(found[1]), "offset": int(found[2])}


@pytest.mark.slow
def test_overwriting_what_was_read_in_part_is_refused(project: Path) -> None:
    """V5: write_file may replace what was never read (E55), not what is half known."""
    new = {"path": "big.py", "content": "value = 1\n", "mode": "overwrite"}
    with model_server() as model:
        model.will([call("readFile", path="big.py")], [call("write_file", **new)], "I could not.")
        told = run(model, project)
        assert told["files_changed"] == []
        assert "edit_file" in model.last_result()
        assert (project / "big.py").read_text() == TEXT
        model.will([call("write_file", **new)], "Done.")
        assert run(model, project)["files_changed"] == ["big.py"]


def test_a_read_in_the_same_answer_was_not_seen(project: Path) -> None:
    """V5: who reads and replaces in one answer writes blindly."""
    (project / "small.py").write_text("x = 1\n")
    edit = call("editFile", path="small.py", new_content="y = 2\n")
    with model_server() as model:
        model.will([call("readFile", path="small.py"), edit], [edit], "Done.")
        told = run(model, project)
    results = [m["content"] for m in model.asked[-1]["messages"] if m["role"] == "tool"]
    assert [json.loads(result)["ok"] for result in results] == [True, False, True]
    assert told["files_changed"] == ["small.py"]
