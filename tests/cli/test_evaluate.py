from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from evercontext import settings as sources
from evercontext import testing
from evercontext.cli.evaluate import command
from evercontext.cli.evaluation_history import bar
from evercontext.cli.improve import command as improve
from evercontext.cli.terminal import columns_of
from evercontext.errors import JudgeProblem, UsageError
from evercontext.models.vendors.codex import Codex
from evercontext.process.sandbox import available
from tests.models.vendors.stage import Stage

GOOD = (
    "# Tidy\n\nTidy sorts the files of a folder by their kind and never deletes anything.\n\n"
    "## Usage\n\n```sh\ntidy downloads\n```\n\n"
    "Each file is moved into a folder named after its kind. You can undo it. Pictures go into one "
    "folder, letters into another. What it does not know stays where it is. A file with the same "
    "name gets a number. Folders are left alone, and so is everything that begins with a dot. The "
    "last run is written down beside the files, so that a friend can follow what was done.\n"
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
    assert "「TODO」のままです" in ended.stdout


def test_two_documents_compared(folder: Path) -> None:
    ended = CliRunner().invoke(command, ["--compare", "bad.md", "good.md"], standalone_mode=False)
    assert "good.md is better" in ended.stdout
    assert ended.return_value == 0


def test_a_comparison_as_json_says_where(folder: Path) -> None:
    arguments = ["--compare", "good.md", "bad.md", "--json"]
    told = json.loads(CliRunner().invoke(command, arguments, standalone_mode=False).stdout)
    assert told["better"] == "good.md"
    assert told["gain"] < 0
    assert set(told["gains"]) == {"completeness", "accuracy", "clarity", "usability"}
    assert [document["file"] for document in told["documents"]] == ["good.md", "bad.md"]


def test_a_document_compared_with_itself_is_equal(folder: Path) -> None:
    arguments = ["--compare", "good.md", "good.md"]
    ended = CliRunner().invoke(command, arguments, standalone_mode=False)
    assert "they are equal (+0.00)" in ended.stdout


def test_the_history_of_a_document_and_of_a_project(folder: Path) -> None:
    run = CliRunner()
    for text in ("TODO 未定", GOOD):
        (folder / "bad.md").write_text(text, encoding="utf-8")
        run.invoke(command, ["bad.md", "good.md"], standalone_mode=False)
    shown = run.invoke(command, ["--history", "bad.md"], standalone_mode=False).stdout
    head, *lines = shown.splitlines()
    assert head.startswith("bad.md  ▁")
    assert [line.split()[3] for line in lines] == ["0.0", lines[1].split()[3]]
    assert "evaluate, judged by local" in lines[0]
    shown = run.invoke(command, ["--history"], standalone_mode=False).stdout
    assert [line.split()[0] for line in shown.splitlines()] == ["bad.md", "good.md"]
    assert "2 times" in shown
    told = run.invoke(command, ["--history", "bad.md", "--json"], standalone_mode=False).stdout
    assert [record["pass"] for record in json.loads(told)] == [False, True]


def test_nothing_judged_yet_is_said(folder: Path) -> None:
    run = CliRunner()
    assert "nothing was judged" in run.invoke(command, ["--history"], standalone_mode=False).stdout
    never = run.invoke(command, ["--history", "good.md"], standalone_mode=False).stdout
    assert "good.md  was never judged" in never
    told = run.invoke(command, ["--history", "--json"], standalone_mode=False).stdout
    assert json.loads(told) == []


def test_a_broken_store_costs_the_history_alone(folder: Path) -> None:
    database = sources.load({"root": str(folder)}, cwd=folder).database
    database.parent.mkdir(parents=True)
    database.mkdir()
    ended = CliRunner().invoke(command, ["good.md"], standalone_mode=False)
    assert ended.return_value == 0
    assert "evaluations are not kept" in ended.stderr


@pytest.mark.parametrize(
    ("encoding", "said"),
    [("cp932", "iconv -f CP932"), ("euc_jp", "iconv -f EUC-JP"), ("utf-16", "iconv -f UTF-16")],
)
def test_another_encoding_is_named_with_its_way_out(folder: Path, encoding: str, said: str) -> None:
    (folder / "old.md").write_bytes("# 文書\n\nこれは古い文書です。\n".encode(encoding))
    ended = CliRunner().invoke(command, ["old.md"], standalone_mode=False)
    assert isinstance(ended.exception, UsageError)
    assert said in str(ended.exception)


def test_a_byte_order_mark_and_windows_lines_change_no_score(folder: Path) -> None:
    raw = "\ufeff" + GOOD.replace("\n", "\r\n")
    (folder / "windows.md").write_bytes(raw.encode())
    arguments = ["good.md", "windows.md", "--json"]
    one, two = json.loads(CliRunner().invoke(command, arguments, standalone_mode=False).stdout)
    assert (one["score"], one["suggestions"]) == (two["score"], two["suggestions"])


@pytest.mark.parametrize(
    "arguments",
    [
        ["missing.md"],
        ["/dev/zero"],
        ["--compare", "good.md"],
        ["good.md", "--rubric", "{"],
        [],
        ["--compare", "--history", "good.md", "bad.md"],
        ["binary.md"],
        ["."],
        ["good.md", "--rubric", '{"clarity": NaN}'],
        ["good.md", "--rubric", "[" * 100_000],
        ["good.md", "--rubric", '{"a": ' * 100_000],
        ["good.md", "--rubric", "good.md"],
    ],
)
def test_bad_input_is_one_line(folder: Path, arguments: list[str]) -> None:
    (folder / "binary.md").write_bytes(b"a\0b")
    ended = CliRunner().invoke(command, arguments, standalone_mode=False)
    assert isinstance(ended.exception, UsageError)


@pytest.mark.parametrize("target", ["nan", "11", "-1", "x"])
def test_a_target_out_of_range_is_bad_usage(folder: Path, target: str) -> None:
    for one in (command, improve):
        ended = CliRunner().invoke(one, ["good.md", f"--target={target}"])
        assert "Invalid value for '--target'" in ended.stderr


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


def test_the_guide_is_true(folder: Path) -> None:
    """Its rubric is taken, and its commands do what it says they do."""
    page = Path(__file__).parent.parent.parent / "docs" / "how-to" / "judge-a-document.md"
    text = page.read_text(encoding="utf-8")
    rubric = text.split("```json\n")[1].split("```")[0]
    (folder / "README.md").write_text("TODO", encoding="utf-8")
    arguments = ["README.md", "--rubric", rubric, "--json"]
    told = json.loads(CliRunner().invoke(command, arguments, standalone_mode=False).stdout)
    assert list(told["rubric_scores"]) == ["completeness", "accuracy", "clarity", "tone"]
    name = testing.write_script(folder / "w.jsonl", [{"role": "writer", "text": GOOD}])
    arguments = ["README.md", "--model", name, "--json"]
    made = json.loads(CliRunner().invoke(improve, arguments, standalone_mode=False).stdout)
    assert made["written"] == str(folder / "README.md.improved")
    assert (Path(made["versions"]) / "00-README.md").read_text(encoding="utf-8") == "TODO"
    assert Path(made["versions"]).parent.name == "versions"


def test_criteria_that_a_judge_does_not_know_are_named_and_bars_stay_in_line(folder: Path) -> None:
    rubric = json.dumps({"とても長い名前の基準がここにあります": 1, "Clarity": 1})
    ended = CliRunner().invoke(command, ["good.md", "--rubric", rubric], standalone_mode=False)
    unknown, known, note = ended.stdout.splitlines()[1:4]
    assert columns_of(unknown.split("not judged")[0]) == columns_of(known.split("█")[0])
    assert note.strip().startswith("this judge looks at form alone")
    told = CliRunner().invoke(command, ["good.md", "--rubric", rubric, "--json"]).stdout
    assert json.loads(told)["metadata"]["not_judged"] == ["とても長い名前の基準がここにあります"]


def judged(text: str = "ok", score: int = 9) -> str:
    names = ("completeness", "accuracy", "clarity", "usability")
    return json.dumps({"rubric_scores": dict.fromkeys(names, score), "suggestions": [text]})


@pytest.fixture
def codex(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    """A Codex on PATH that nobody asked for, and no other model."""
    if not any(entry.works for entry in available()):
        pytest.skip("no sandbox works here")
    stage = Stage(folder, Codex())
    monkeypatch.delenv("USE_MOCK_EVALUATOR")
    monkeypatch.setenv("EC_OLLAMA_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("PATH", f"{stage.bin}:{os.environ['PATH']}")
    return stage


@pytest.mark.contract("L10")
def test_codex_judges_with_the_arguments_of_its_version_and_says_why(codex: Stage) -> None:
    """C1: 0.166 has no --full-auto, and none takes a folder without git."""
    codex.installs(codex.says(judged()))
    ended = CliRunner().invoke(command, ["good.md", "--json"], standalone_mode=False)
    told = json.loads(ended.stdout)
    assert told["score"] == 9.0
    assert told["metadata"]["model_used"] == "codex"
    assert told["metadata"]["judge_reason"] == "codex is installed"
    shown = CliRunner().invoke(command, ["good.md"], standalone_mode=False).stdout
    assert "judged by codex (codex is installed)" in shown


@pytest.mark.contract("L10")
@pytest.mark.parametrize(
    ("play", "reason"),
    [
        ({"version": "codex-cli 0.20.0\n"}, "0.20.0 cannot be used: it is too old"),
        ({"code": 2, "stderr": "error: unexpected argument '--json' found"}, "its arguments"),
        ({"code": 1, "stderr": "error: 401 Unauthorized"}, "codex refused the login (401)"),
    ],
)
def test_a_codex_that_nobody_asked_for_and_that_fails_is_passed_over(
    codex: Stage, play: dict[str, Any], reason: str
) -> None:
    """C1: installing Codex does not break `evaluate`."""
    codex.installs(**play)
    ended = CliRunner().invoke(command, ["good.md", "--json"], standalone_mode=False)
    metadata = json.loads(ended.stdout)["metadata"]
    assert metadata["model_used"] == "local"
    assert "codex was passed over: " in metadata["judge_reason"]
    assert reason in metadata["judge_reason"]


def test_a_codex_that_was_asked_for_and_fails_is_an_error(codex: Stage) -> None:
    """C1."""
    codex.installs(code=1, stderr="error: 401 Unauthorized")
    ended = CliRunner().invoke(command, ["good.md", "--judge", "codex"], standalone_mode=False)
    assert isinstance(ended.exception, JudgeProblem)
    assert "Run: codex login" in str(ended.exception)
