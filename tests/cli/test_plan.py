from __future__ import annotations

import json
import os
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

from evercontext.cli.plan_file import LONGEST_PLAN, read_plan
from evercontext.cli.task_text import whole_task
from evercontext.domain.event import Evidence, Final, Plan, Recalled
from evercontext.errors import InvalidPlan
from evercontext.events.log_index import Ledger
from evercontext.events.log_reader import read, segments
from evercontext.models.vendors.gemini import Gemini
from tests.cli.command import Ended, evercontext, home
from tests.models.vendors.stage import Stage

PLAN = {
    "version": 1,
    "tasks": [
        {"id": "api", "title": "ルートを追加する", "depends_on": ["model"], "files": ["api.py"]},
        {"id": "model", "title": "Add the entity", "files": ["user.py"], "on_error": "continue"},
        {"id": "docs", "title": "Say so", "depends_on": ["model", "api"], "checks": ["true"]},
    ],
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    (root / "user.py").write_text("def load_user(name):\n    return name\n")
    return root


def planner(tmp_path: Path, *turns: dict[str, Any]) -> str:
    path = tmp_path / "planner.jsonl"
    path.write_text("".join(json.dumps({"role": "planner", **turn}) + "\n" for turn in turns))
    return f"scripted:{path}"


def plan(root: Path, model: str, *more: str, **env: str) -> Ended:
    given = ("--planner", model, "-m", "embedded:smollm2")
    return evercontext("plan", "-t", "load a user", *given, *more, cwd=root, env=env)


@pytest.mark.contract("E52")
def test_a_plan_is_shown_as_a_tree_and_nothing_is_written(project: Path, tmp_path: Path) -> None:
    ended = plan(project, planner(tmp_path, {"text": json.dumps(PLAN)}))
    assert ended.code == 0, ended.err
    assert ended.out.splitlines()[1:] == [
        "└─ model  Add the entity",
        "      files: user.py",
        "      on error: continue",
        "   └─ api  ルートを追加する",
        "         files: api.py",
        "      └─ docs  Say so",
        "            also after: model",
        "            checks: true",
    ]
    assert sorted(path.name for path in project.iterdir()) == ["user.py"]


@pytest.mark.contract("E8", "E46")
def test_evidence_and_memory_go_into_the_plan_and_into_the_trace(
    project: Path, tmp_path: Path
) -> None:
    evercontext("memory", "add", "load_user must stay pure, said the owner", cwd=project)
    turn = {"text": json.dumps(PLAN), "when": r"<search_results>[\s\S]*user\.py L1-L2"}
    ended = plan(project, planner(tmp_path, turn))
    assert ended.code == 0, ended.err
    bodies = [event.body for place in segments(home() / "traces") for event in read(place)]
    evidence = next(body for body in bodies if isinstance(body, Evidence))
    assert (evidence.query, evidence.paths) == ("load a user", ("user.py",))
    recalled = next(body for body in bodies if isinstance(body, Recalled))
    assert len(recalled.memories) == 1
    kinds = [type(body).__name__ for body in bodies]
    assert kinds.index("Evidence") < kinds.index("Plan") < kinds.index("Final")


@pytest.mark.contract("E48", "E52")
@pytest.mark.slow
def test_the_end_of_planning_counts_the_tasks_and_the_replies(
    project: Path, tmp_path: Path
) -> None:
    """Three tasks of which none is done, after two replies; a plan that never came has none."""
    bad, good = {"text": "no plan"}, {"text": json.dumps(PLAN)}
    assert plan(project, planner(tmp_path, bad, good)).code == 0
    assert plan(project, planner(tmp_path, good)).code == 0, "from the cache"
    assert plan(project, planner(tmp_path, bad, bad), "--no-cache").code == 1
    bodies = [event.body for place in segments(home() / "traces") for event in read(place)]
    finals = [body for body in bodies if isinstance(body, Final)]
    counts = sorted((body.exit_code, body.turns, body.tasks, body.tasks_done) for body in finals)
    assert counts == [(0, 0, 3, 0), (0, 2, 3, 0), (1, 2, 0, 0)]
    ledger = Ledger(home() / "traces")
    ledger.refresh()
    shown = sorted((run.exit_code, run.turns, run.input_tokens) for run in ledger.tasks())
    assert shown == sorted((body.exit_code, body.turns, body.input_tokens) for body in finals)


@pytest.mark.slow
@pytest.mark.contract("E45")
def test_the_same_task_in_the_same_tree_is_planned_once(project: Path, tmp_path: Path) -> None:
    other = {"tasks": [{"id": "other", "title": "Another way"}]}
    script = planner(tmp_path, {"text": json.dumps(PLAN)})
    first = plan(project, script, "--json")
    os.utime(project / "user.py", (1, 1))
    assert plan(project, script, "--json").out == first.out
    planner(tmp_path, {"text": json.dumps(other)})
    assert plan(project, script, "--json").out == first.out, "the cache is asked, not the model"
    assert "other" in plan(project, script, "--no-cache").out
    (project / "user.py").write_text("changed = True\n")
    assert "other" in plan(project, script).out
    bodies = [event.body for place in segments(home() / "traces") for event in read(place)]
    assert [body.source for body in bodies if isinstance(body, Plan)].count("cache") == 2


@pytest.mark.slow
def test_a_written_plan_is_one_that_run_carries_out(project: Path, tmp_path: Path) -> None:
    one = {"tasks": [{"id": "a", "title": "only this"}]}
    written = tmp_path / "plan.json"
    ended = plan(project, planner(tmp_path, {"text": json.dumps(one)}), "-o", str(written))
    assert ended.code == 0, ended.err
    assert json.loads(written.read_text())["task"] == "load a user"
    script = tmp_path / "do.jsonl"
    script.write_text('{"when": "load a user", "text": "done it"}\n')
    done = evercontext("run", "--plan", str(written), "-m", f"scripted:{script}", cwd=project)
    assert (done.code, done.out.strip()) == (0, "done it")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "holds no JSON object"),
        ('{"tasks": [{"id": "a", "title": "x", "depends_on": ["a"]}]}', "wait for each other: a"),
        ('{"tasks": [{"id": "a"}], "extra": 1}', "unknown key 'extra'; tasks[0] needs a text"),
        ("\xff", "not UTF-8"),
    ],
)
@pytest.mark.contract("E52")
def test_a_plan_file_that_is_wrong_is_refused_readably(
    project: Path, tmp_path: Path, content: str, said: str
) -> None:
    file = tmp_path / "plan.json"
    file.write_bytes(content.encode("latin-1"))
    ended = evercontext("run", "-t", "x", "--plan", str(file), cwd=project)
    assert ended.code == 1
    assert said in ended.err
    assert ended.err.count("\n") == 1


def editor(tmp_path: Path, body: str) -> str:
    path = tmp_path / "editor"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def test_the_plan_is_edited_and_validated_again(project: Path, tmp_path: Path) -> None:
    script = planner(tmp_path, {"text": json.dumps(PLAN)}, {"text": json.dumps(PLAN)})
    change = editor(tmp_path, """sed -i 's/Say so/Say it aloud/' "$1" """)
    ended = plan(project, script, "--edit", EDITOR=change)
    assert "Say it aloud" in ended.out, ended.err
    bodies = [event.body for place in segments(home() / "traces") for event in read(place)]
    assert [body.source for body in bodies if isinstance(body, Plan)] == [script, "edited"]
    broken = editor(tmp_path, """sed -i 's/"id": "model"/"id": "nowhere"/' "$1" """)
    ended = plan(project, script, "--edit", EDITOR=broken)
    assert ended.code == 1
    assert "depends on 'model', which is not in the plan" in ended.err


def test_an_editor_that_fails_ends_the_trace_and_names_the_fix(
    project: Path, tmp_path: Path
) -> None:
    script = planner(tmp_path, {"text": json.dumps(PLAN)})
    ended = plan(project, script, "--edit", EDITOR=editor(tmp_path, "exit 1"))
    assert ended.code == 64
    assert "Set EDITOR" in ended.err
    bodies = [event.body for place in segments(home() / "traces") for event in read(place)]
    assert isinstance(bodies[-1], Final)


def gemini(tmp_path: Path, *, answers_from: int = 1, sleep: float = 0) -> dict[str, str]:
    """Put a gemini on PATH that notes each question; return the environment it needs."""
    stage, asked = Stage(tmp_path, Gemini()), str(tmp_path / "asked")
    counting = (
        f"with open({asked!r}, 'a') as file: file.write('asked\\n')\n"
        f"if len(open({asked!r}).readlines()) < {answers_from}: sys.exit(503 % 256)"
    )
    stage.installs(stage.says(json.dumps(PLAN)), extra=counting, sleep=sleep)
    # The note is written outside its private home.
    return {
        "PATH": f"{stage.bin}:{os.environ['PATH']}",
        "GEMINI_API_KEY": "k",
        "EC_SANDBOX": "none",
        "EC_MODEL_RETRIES": "1",
    }


@pytest.mark.contract("E3", "E40")
def test_gemini_is_asked_once_more_when_it_fails(project: Path, tmp_path: Path) -> None:
    ended = plan(project, "gemini-cli", **gemini(tmp_path, answers_from=2))
    assert ended.code == 0, ended.err
    assert "Add the entity" in ended.out
    assert (tmp_path / "asked").read_text() == "asked\nasked\n"


@pytest.mark.contract("E3", "E40")
def test_gemini_that_hangs_is_cut_and_tried_once_more(project: Path, tmp_path: Path) -> None:
    ended = plan(project, "gemini-cli", **gemini(tmp_path, sleep=600), EC_MODEL_TIMEOUT="3")
    assert ended.code == 75
    assert "gemini did not finish" in ended.err
    assert (tmp_path / "asked").read_text() == "asked\nasked\n"


def test_a_huge_file_is_no_plan(tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_bytes(b" " * (LONGEST_PLAN + 1))
    with pytest.raises(InvalidPlan, match="more than 1 MiB"):
        read_plan(str(tmp_path / "plan.json"))


def test_a_task_is_text_in_one_spelling(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    assert whole_task("か\u3099 ") == "が"
