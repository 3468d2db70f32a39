from __future__ import annotations

import json
from pathlib import Path

import pytest

from evercontext.process.sandbox import available
from tests.cli.command import Ended, evercontext
from tests.journeys.story import digest, script, write


@pytest.fixture
def project(tmp_path: Path) -> Path:
    project = tmp_path / "project"
    project.mkdir()
    (project / "old.txt").write_text("old\n")
    return project


@pytest.fixture
def trace(project: Path, tmp_path: Path) -> str:
    """A task that changed one file and made another."""
    model = script(
        tmp_path / "s.jsonl",
        write("old.txt", "new\n"),
        write("made/here.txt", "made\n"),
        {"text": "Done."},
    )
    ended = evercontext("run", "-t", "x", "-m", model, "--json", cwd=project)
    assert ended.code == 0, ended.err
    return str(json.loads(ended.out)["trace_id"])


def undo(project: Path, *arguments: str) -> Ended:
    return evercontext("undo", *arguments, cwd=project)


@pytest.mark.contract("E54")
def test_a_task_is_taken_back_and_brought_back(project: Path, trace: str) -> None:
    after = digest(project)
    ended = undo(project, trace[:8])
    assert ended.code == 0, ended.err
    assert "restored  old.txt" in ended.out
    assert "removed  made/here.txt" in ended.out
    assert (project / "old.txt").read_text() == "old\n"
    assert [path.name for path in project.iterdir()] == ["old.txt"]
    again = ended.err.split()[-1]
    assert undo(project, again).code == 0
    assert digest(project) == after


@pytest.mark.contract("E54")
def test_what_the_user_changed_since_is_kept(project: Path, trace: str) -> None:
    (project / "old.txt").write_text("mine\n")
    told = json.loads(undo(project, "--json").out)
    assert told["removed"] == ["made/here.txt"]
    assert [kept["path"] for kept in told["kept"]] == ["old.txt"]
    assert (project / "old.txt").read_text() == "mine\n"


def test_a_dry_run_changes_nothing(project: Path, trace: str) -> None:
    before = digest(project)
    ended = undo(project, "--dry-run")
    assert ended.code == 0
    assert "would be restored  old.txt" in ended.out
    assert digest(project) == before


@pytest.mark.slow
def test_the_list_knows_what_was_undone(project: Path, trace: str) -> None:
    assert trace[:8] in undo(project, "--list").out
    undo(project)
    listed = {one["trace_id"]: one for one in json.loads(undo(project, "--list", "--json").out)}
    assert listed[trace]["undone"] is True
    assert len(listed) == 2


def test_nothing_to_undo(project: Path) -> None:
    ended = undo(project)
    assert ended.code == 1
    assert "nothing to undo" in ended.err
    assert undo(project, "ffff").code == 1
    assert "nothing to undo" in undo(project, "--list").err


@pytest.mark.slow
@pytest.mark.contract("E54", "E55")
def test_a_task_that_wrote_what_was_there_already_is_nothing_to_take_back(
    project: Path, trace: str, tmp_path: Path
) -> None:
    model = script(tmp_path / "again.jsonl", write("old.txt", "new\n"), {"text": "Done."})
    ended = evercontext("run", "-t", "x", "-m", model, "--json", cwd=project)
    again = json.loads(ended.out)["trace_id"]
    assert again[:8] not in undo(project, "--list").out
    assert (undo(project, again).code, (project / "old.txt").read_text()) == (1, "new\n")
    assert "restored  old.txt" in undo(project).out
    assert (project / "old.txt").read_text() == "old\n"


@pytest.mark.skipif(
    not any(finding.works for finding in available()), reason="no sandbox works on this machine"
)
def test_permissions_that_a_command_changed_are_shown_and_taken_back(
    project: Path, tmp_path: Path
) -> None:
    """X4: a `chmod` was "0 files changed", and undo left it."""
    (project / "old.txt").chmod(0o644)
    call = {"name": "run_command", "arguments": {"command": "chmod 755 old.txt"}}
    model = script(tmp_path / "mode.jsonl", {"tool_calls": [call]}, {"text": "Done."})
    ended = evercontext("run", "-t", "x", "-m", model, cwd=project)
    assert "old.txt changed +0 -0, mode 644 → 755" in ended.err
    assert "1 file changed" in ended.err
    assert "restored  old.txt" in undo(project).out
    assert (project / "old.txt").stat().st_mode & 0o777 == 0o644


@pytest.mark.skipif(
    not any(finding.works for finding in available()), reason="no sandbox works on this machine"
)
def test_what_no_undo_brings_back_is_not_promised(project: Path, tmp_path: Path) -> None:
    (project / "sub").mkdir()
    command = "mkdir sub/docs sub/.next; ln -s ../old.txt sub/link"
    call = {"name": "run_command", "arguments": {"command": command}}
    model = script(tmp_path / "made.jsonl", {"tool_calls": [call]}, {"text": "Done."})
    ended = evercontext("run", "-t", "x", "-m", model, "--yes", cwd=project)
    assert ended.code == 0, ended.err
    ended = undo(project)
    assert ended.code == 0, ended.err
    assert list((project / "sub").iterdir()) == []
    assert "(move it back by hand)" in ended.out
    assert "bring it back" not in ended.err
