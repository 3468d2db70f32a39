from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from evercontext import testing
from evercontext.cli.evaluate import command
from evercontext.cli.improve import command as improve
from evercontext.cli.scores import bar
from evercontext.errors import UsageError

GOOD = (
    "# Tidy\n\nTidy sorts the files of a folder by their kind and never deletes anything.\n\n"
    "## Usage\n\n```sh\ntidy downloads\n```\n\n"
    + "Each file is moved into a folder named after its kind. You can undo it. " * 6
    + "\n"
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("USE_MOCK_EVALUATOR", "true")
    (tmp_path / "good.md").write_text(GOOD, encoding="utf-8")
    (tmp_path / "bad.md").write_text("TODO 未定", encoding="utf-8")
    return tmp_path


@pytest.mark.contract("L11", "L21")
def test_one_document_as_json(folder: Path) -> None:
    ended = CliRunner().invoke(command, ["good.md", "--json"], standalone_mode=False)
    told = json.loads(ended.stdout)
    assert told["file"] == "good.md"
    assert told["pass"] is True
    assert told["metadata"]["model_used"] == "local"
    assert ended.return_value == 0


def test_several_documents_one_of_them_bad(folder: Path) -> None:
    ended = CliRunner().invoke(command, ["good.md", "bad.md"], standalone_mode=False)
    assert ended.return_value == 4
    assert "does not pass" in ended.stdout
    assert "stands where text should be" in ended.stdout


def test_two_documents_compared(folder: Path) -> None:
    ended = CliRunner().invoke(command, ["--compare", "bad.md", "good.md"], standalone_mode=False)
    assert "good.md is better" in ended.stdout
    assert ended.return_value == 0


@pytest.mark.parametrize(
    "arguments",
    [["missing.md"], ["/dev/zero"], ["--compare", "good.md"], ["good.md", "--rubric", "{"]],
)
def test_bad_input_is_one_line(folder: Path, arguments: list[str]) -> None:
    ended = CliRunner().invoke(command, arguments, standalone_mode=False)
    assert isinstance(ended.exception, UsageError)


def test_own_criteria_from_a_file(folder: Path) -> None:
    (folder / "rubric.json").write_text('{"tone": 1, "clarity": 3}')
    arguments = ["good.md", "--rubric", "rubric.json", "--json"]
    told = json.loads(CliRunner().invoke(command, arguments, standalone_mode=False).stdout)
    assert set(told["rubric_scores"]) == {"tone", "clarity"}


@pytest.mark.contract("L8", "L9")
def test_improve_writes_the_best_version_and_keeps_every_one(folder: Path) -> None:
    name = testing.write_script(folder / "w.jsonl", [{"role": "writer", "text": GOOD}])
    arguments = ["bad.md", "--model", name, "--in-place", "--json"]
    ended = CliRunner().invoke(improve, arguments, standalone_mode=False)
    told = json.loads(ended.stdout)
    assert (told["stop"], told["best"]) == ("passed", 1)
    assert (folder / "bad.md").read_text(encoding="utf-8").strip() == GOOD.strip()
    kept = sorted(path.name for path in Path(told["versions"]).iterdir())
    assert kept == ["00-bad.md", "01-bad.md"]
    assert (Path(told["versions"]) / "00-bad.md").read_text(encoding="utf-8") == "TODO 未定"


def test_improve_never_leaves_a_worse_document(folder: Path) -> None:
    name = testing.write_script(folder / "w.jsonl", [{"role": "writer", "text": "x"}] * 9)
    arguments = ["good.md", "--model", name, "--in-place", "--target", "10"]
    ended = CliRunner().invoke(improve, arguments, standalone_mode=False)
    assert ended.return_value == 4
    assert (folder / "good.md").read_text(encoding="utf-8") == GOOD


def test_a_bar_is_as_long_as_its_score() -> None:
    assert (bar(0, 10), bar(5, 10), bar(10, 10)) == ("░" * 10, "█" * 5 + "░" * 5, "█" * 10)
