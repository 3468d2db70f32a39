from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import Ended, evercontext
from tests.journeys.story import digest, script, write


def plan_file(tmp_path: Path, *tasks: dict[str, Any]) -> str:
    file = tmp_path / "plan.json"
    whole = [{"title": f"do {task['id']}", **task} for task in tasks]
    file.write_text(json.dumps({"version": 1, "task": "all of it", "tasks": whole}))
    return str(file)


def part(id: str, *turns: dict[str, Any]) -> list[dict[str, Any]]:
    when = f"Your part of it now: do {id}\\b"
    return [{"when": when, **turn} for turn in (*turns, {"text": f"{id} is done"})]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    (root / "a.txt").write_text("old a\n")
    return root


def run(root: Path, plan: str, model: str, *more: str) -> Ended:
    return evercontext("run", "--plan", plan, "-m", model, "--no-auto-test", *more, cwd=root)


BAD = {"tool_calls": [{"name": "move_file", "arguments": {"path": "none.txt", "to": "b.txt"}}]}


@pytest.mark.contract("E42", "E49", "E52")
def test_partial_success_is_said_on_the_screen_in_json_and_in_the_code(
    project: Path, tmp_path: Path
) -> None:
    plan = plan_file(
        tmp_path, {"id": "a"}, {"id": "b", "depends_on": ["a"]}, {"id": "c", "depends_on": ["b"]}
    )
    turns = [*part("a", write("a.txt", "new a\n")), *part("b", BAD)]
    shown = run(project, plan, script(tmp_path / "1", *turns))
    assert shown.code == 1
    assert "failed  1 of 3 tasks done, 1 file changed" in shown.err
    assert "skipped do c" in shown.err
    assert "go on where it stopped" in shown.err
    told = json.loads(run(project, plan, script(tmp_path / "2", *turns), "--json").out)
    assert (told["outcome"], told["partial"], told["exit_code"]) == ("failed", True, 1)
    assert (told["tasks_done"], told["tasks_total"]) == (1, 3)
    statuses = {task["id"]: task["status"] for task in told["tasks"]}
    assert statuses == {"a": "done", "b": "failed", "c": "skipped"}


@pytest.mark.contract("E54")
def test_a_failed_run_is_rolled_back_byte_for_byte(project: Path, tmp_path: Path) -> None:
    (project / "a.txt").write_bytes(b"\xef\xbb\xbfold a\r\nno end")
    before = digest(project)
    plan = plan_file(tmp_path, {"id": "a"}, {"id": "b", "depends_on": ["a"]})
    turns = [
        *part("a", write("a.txt", "new a\n"), write("deep/new.txt", "made\n")),
        *part("b", BAD),
    ]
    ended = run(project, plan, script(tmp_path / "s", *turns), "--rollback-on-failure", "--json")
    told = json.loads(ended.out)
    assert (ended.code, told["files_changed"]) == (1, [])
    assert sorted(told["files_rolled_back"]) == ["a.txt", "deep/new.txt"]
    assert digest(project) == before
    assert not (project / "deep").exists()
    again = evercontext("run", "--resume", told["trace_id"], cwd=project)
    assert (again.code, "was rolled back" in again.err) == (64, True)


@pytest.mark.contract("E54")
def test_a_run_that_ends_well_is_not_rolled_back(project: Path, tmp_path: Path) -> None:
    plan = plan_file(tmp_path, {"id": "a"}, {"id": "b"})
    turns = [*part("a", write("a.txt", "new a\n")), *part("b", write("b.txt", "b\n"))]
    ended = run(project, plan, script(tmp_path / "s", *turns), "--rollback-on-failure")
    assert ended.code == 0, ended.err
    assert (project / "a.txt").read_text() == "new a\n"


def test_a_plan_that_wants_another_needs_a_planner(project: Path, tmp_path: Path) -> None:
    plan = plan_file(tmp_path, {"id": "a", "on_error": "replan"}, {"id": "b"})
    ended = run(project, plan, script(tmp_path / "s", *part("a", BAD)))
    assert ended.code == 1
    assert "there is no planner. Name one with --planner" in ended.err


def test_a_dry_run_says_nothing_of_checks(project: Path, tmp_path: Path) -> None:
    """It said that no check is named or found, beside a project's tests."""
    (project / "test_a.py").write_text("def test_a():\n    pass\n")
    model = script(tmp_path / "s", write("b.txt", "b\n"), {"text": "Would be done."})
    ended = evercontext("run", "-t", "x", "-m", model, "--dry-run", "--json", cwd=project)
    report = json.loads(ended.out)
    assert (ended.code, report["outcome"]) == (0, "done")
    assert (report["verified"], report["note"]) == (None, None)
    assert not (project / "b.txt").exists()


def test_options_that_contradict_each_other_are_said(project: Path) -> None:
    ended = evercontext("run", "--plan", "x", "--resume", "last", cwd=project)
    assert (ended.code, "--plan and --resume contradict" in ended.err) == (64, True)
    ended = evercontext("run", "--task", "x", "--resume", "last", cwd=project)
    assert (ended.code, "Leave --task out" in ended.err) == (64, True)
    ended = evercontext("run", "--dry-run", "--resume", "last", cwd=project)
    assert (ended.code, "--dry-run and --resume contradict" in ended.err) == (64, True)
    assert evercontext("run", "--resume", "last", cwd=project).code == 1


@pytest.mark.contract("E52", "E53")
def test_the_checks_of_a_task_decide_whether_it_is_done(project: Path, tmp_path: Path) -> None:
    plan = plan_file(
        tmp_path,
        {"id": "a", "checks": ["grep -q new a.txt"]},
        {"id": "b", "depends_on": ["a"], "checks": ["false"]},
    )
    turns = [*part("a", write("a.txt", "new a\n")), *part("b")]
    ended = run(project, plan, script(tmp_path / "s", *turns))
    assert ended.code == 4, ended.err
    assert "check task: grep -q new a.txt → exit 0" in ended.err
    assert "check task: false → exit 1" in ended.err
    assert "red  1 of 2 tasks done" in ended.err


@pytest.mark.slow
def test_what_was_undone_is_not_taken_up(project: Path, tmp_path: Path) -> None:
    plan = plan_file(tmp_path, {"id": "a"}, {"id": "b", "depends_on": ["a"]})
    turns = [*part("a", write("a.txt", "new a\n")), *part("b", BAD)]
    trace = json.loads(run(project, plan, script(tmp_path / "s", *turns), "--json").out)["trace_id"]
    assert evercontext("undo", cwd=project).code == 0
    # A model that cannot be opened would be named first, if anything opened it.
    again = evercontext("run", "--resume", trace, "-m", "script:/nowhere", cwd=project)
    assert (again.code, f"what the task {trace[:8]} did was undone" in again.err) == (64, True)
    last = evercontext("run", "--resume", "last", "-m", "script:/nowhere", cwd=project)
    assert (last.code, f"what the task {trace[:8]} did was undone, the newest" in last.err) == (
        1,
        True,
    )


@pytest.mark.slow
def test_what_was_done_and_undone_is_not_called_done_until_it_is_brought_back(
    project: Path, tmp_path: Path
) -> None:
    """V12: the journal decides what stands, the trace only what once was done."""
    model = script(tmp_path / "s", write("a.txt", "new a\n"), {"text": "ok"})
    asked = ("run", "-t", "all", "-m", model, "--no-auto-test", "--json")
    trace = json.loads(evercontext(*asked, cwd=project).out)["trace_id"]
    taken = json.loads(evercontext("undo", "--json", cwd=project).out)["trace_id"]
    resume = ("run", "--resume", trace, "-m", "script:/nowhere")
    ended = evercontext(*resume, cwd=project)
    assert (ended.code, "is done" in ended.err) == (64, False)
    assert f"what the task {trace[:8]} did was undone" in ended.err
    assert f"`evercontext undo {taken[:8]}`, or give the task again with --task" in " ".join(
        ended.err.split()
    )
    assert evercontext("undo", taken[:8], cwd=project).code == 0
    assert f"the task {trace[:8]} is done" in evercontext(*resume, cwd=project).err


@pytest.mark.slow
def test_what_was_undone_in_part_is_not_taken_up(project: Path, tmp_path: Path) -> None:
    plan = plan_file(tmp_path, {"id": "a"}, {"id": "b", "depends_on": ["a"]})
    writes = (write("a.txt", "new a\n"), write("c.txt", "c\n"))
    ended = run(
        project, plan, script(tmp_path / "s", *part("a", *writes), *part("b", BAD)), "--json"
    )
    trace = json.loads(ended.out)["trace_id"]
    (project / "a.txt").write_text("mine\n")
    assert evercontext("undo", cwd=project).code == 0
    again = evercontext("run", "--resume", trace, "-m", "script:/nowhere", cwd=project)
    assert (again.code, "a part of what the task" in again.err) == (64, True)


@pytest.mark.slow
def test_last_is_the_last_task_of_this_project_that_did_not_end_well(
    project: Path, tmp_path: Path
) -> None:
    plan = plan_file(tmp_path, {"id": "a"}, {"id": "b", "depends_on": ["a"]})
    turns = [*part("a", write("a.txt", "new a\n")), *part("b", BAD)]
    assert run(project, plan, script(tmp_path / "1", *turns)).code == 1
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    assert run(elsewhere, plan, script(tmp_path / "2", *turns)).code == 1
    ok = script(tmp_path / "3", {"text": "ok"})
    assert evercontext("run", "-t", "another", "-m", ok, cwd=project).code == 0
    rest = script(tmp_path / "4", *part("b", write("b.txt", "b\n")))
    ended = evercontext("run", "--resume", "last", "-m", rest, "--no-auto-test", cwd=project)
    assert ended.code == 0, ended.err
    assert "is done, so an older one is taken up" in ended.err
    assert "all of it" in ended.err.splitlines()[1]
    listed = json.loads(evercontext("trace", "list", "--json", cwd=project).out)
    assert [one["status"] for one in listed if one["root"] == str(project)] == ["done", "done"]


@pytest.mark.contract("E42")
def test_the_time_of_a_task_ends_the_checks_of_its_plan_too(project: Path, tmp_path: Path) -> None:
    plan = plan_file(tmp_path, {"id": "a", "checks": ["sleep 1000"]}, {"id": "b"})
    model = script(tmp_path / "s", *part("a", write("a.txt", "new a\n")), *part("b"))
    ended = run(project, plan, model, "--timeout", "5", "--json")
    told = json.loads(ended.out)
    assert (ended.code, told["outcome"], told["tasks_done"]) == (6, "limit", 0), ended.err
