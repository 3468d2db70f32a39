from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.command import Ended, evercontext
from tests.journeys.story import script, write

PLAN = {"tasks": [{"id": "a", "title": "first"}, {"id": "b", "title": "次", "depends_on": ["a"]}]}
TURNS = [
    {"role": "planner", "text": json.dumps(PLAN)},
    {"when": "now: first", **write("a.txt", "a\n")},
    {"when": "now: first", "text": "one"},
    {"when": "now: (次|then this)", **write("b.txt", "b\n")},
    {"when": "now: (次|then this)", "text": "two"},
]


def chat(tmp_path: Path, lines: str, *more: str, **env: str) -> Ended:
    project = tmp_path / "project"
    project.mkdir(exist_ok=True)
    model = script(tmp_path / "s.jsonl", *TURNS)
    return evercontext("chat", "--yes", "-m", model, *more, cwd=project, stdin=lines, env=env)


@pytest.mark.contract("E52")
def test_a_plan_is_shown_and_done_task_by_task(tmp_path: Path) -> None:
    ended = chat(tmp_path, "/tasks do both\n1\n")
    assert ended.code == 0, ended.err
    assert "  └─ a  first\n     └─ b  次\n" in ended.out
    assert "now first" in ended.out
    assert "done  2 of 2 tasks done, 2 files changed" in ended.out
    assert (tmp_path / "project" / "b.txt").exists()


def test_it_is_changed_first_and_a_change_that_makes_no_sense_is_not_taken(tmp_path: Path) -> None:
    editor = tmp_path / "editor"
    editor.write_text(f"""#!/bin/sh
if [ -e {tmp_path}/once ]; then sed -i 's/次/then this/' "$1"; else
touch {tmp_path}/once; sed -i 's/"id": "a"/"id": "z"/' "$1"; fi
""")
    editor.chmod(0o755)
    ended = chat(tmp_path, "/tasks do both\n2\n2\n1\n", EDITOR=str(editor))
    assert "depends on 'a', which is not in the plan" in ended.out
    assert "now then this" in ended.out
    assert ended.code == 0


@pytest.mark.slow
def test_no_and_plan_mode_do_nothing(tmp_path: Path) -> None:
    assert "nothing was done" in chat(tmp_path, "/tasks do both\n3\n").out
    assert "plan mode changes nothing" in chat(tmp_path, "/tasks do both\n", "--plan").out
    assert "/tasks GOAL plans" in chat(tmp_path, "/tasks\n").out
    assert list((tmp_path / "project").iterdir()) == []


@pytest.mark.slow
def test_a_plan_file_is_done_too(tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text(json.dumps(PLAN))
    ended = chat(tmp_path, f"/tasks {tmp_path}/plan.json\n1\n")
    assert "2 of 2 tasks done" in ended.out
    assert "/tasks" in chat(tmp_path, "/help\n").out
