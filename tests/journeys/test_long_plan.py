"""A plan on a real project, from its making to its undoing, every word held against the disk."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evercontext.domain.event import (
    Body,
    Diff,
    Final,
    ModelReply,
    RepairAttempt,
    Step,
    StepResult,
    TaskEnded,
    Verification,
)
from evercontext.events.log_reader import read, segments
from evercontext.process.sandbox import Layer, choose
from tests.cli.command import Ended, evercontext, home
from tests.journeys.model_server import ModelServer, model_server
from tests.journeys.model_server import Step as Answer
from tests.journeys.repositories import git, repository, with_its_tests
from tests.journeys.story import call, digest

MODEL = ("-m", "gpt-4.1-mini")
BEFORE = "    def get_namespace(\n"
WRONG = '''    def from_pairs(self, pairs: t.Iterable[tuple[str, t.Any]]) -> bool:
        """Update the config from pairs, ignoring non-upper keys."""
        for key, value in pairs:
            if key.islower():
                self[key] = value
        return True

'''
RIGHT = WRONG.replace("islower", "isupper")
TEST = """

def test_config_from_pairs():
    app = flask.Flask(__name__)
    assert app.config.from_pairs([("PAIR", "値"), ("low", 2)])
    assert app.config["PAIR"] == "値"
    assert "low" not in app.config
"""
NOTES = "# 調査メモ\n\nConfig is a dict; from_mapping takes upper-case keys only.\n"
CHANGE = "-   ``Config.from_pairs`` takes pairs.\n"


def bodies(trace_id: str) -> list[Body]:
    events = [event for place in segments(home() / "traces") for event in read(place)]
    return [event.body for event in events if event.trace_id == trace_id]


def looking(project: Path, turns: int) -> Iterator[Answer]:
    """So many turns that only look, each at another place."""
    files = sorted(path for path in (project / "src/flask").glob("*.py"))
    for number in range(turns):
        path = str(files[number % len(files)].relative_to(project))
        first = 1 + 10 * (number // len(files))
        if number % 5 == 4:
            yield [call("searchInDirectory", directory="src", keyword=f"def {path[10:13]}")]
        else:
            yield [call("readFile", path=path, start_line=first, end_line=first + 9)]


def one_edit(path: str, old: str, new: str) -> Answer:
    return [call("replaceInFile", path=path, edits=[{"old": old, "new": new}])]


def script(model: ModelServer, project: Path) -> None:
    """Three tasks: look around, build it wrongly and repair it, write it down."""
    looks = looking(project, 60)
    config, changes = "src/flask/config.py", "CHANGES.rst"
    model.will(*(next(looks) for _ in range(20)))
    model.will([call("writeFile", path="docs/notes.md", content=NOTES)], "Noted in docs/notes.md.")
    model.will(*(next(looks) for _ in range(15)))
    model.will(
        [call("readFile", path=config, start_line=320, end_line=335)],
        one_edit(config, BEFORE, WRONG + BEFORE),
        [call("write_file", path="tests/test_config.py", content=TEST, mode="append")],
        "Built; all tests pass!",
    )
    model.will(  # the repair, in a conversation of its own
        [call("searchInDirectory", directory="src/flask", keyword="islower")],
        one_edit(config, "key.islower()", "key.isupper()"),
        [call("readFile", path=config, start_line=320, end_line=340)],
        one_edit(config, "key.islower()", "key.isupper()"),
        "It takes upper-case keys now.",
    )
    model.will(*(next(looks) for _ in range(12)))
    model.will(
        [call("readFile", path=changes, start_line=1, end_line=12)],
        lambda messages: one_edit(changes, _first_point(project), CHANGE + _first_point(project)),
        "Written down in CHANGES.rst.",
    )


def _first_point(project: Path) -> str:
    text = (project / "CHANGES.rst").read_text()
    return next(line for line in text.splitlines(keepends=True) if line.startswith("-   "))


def plan_of(check: str) -> str:
    tasks = [
        {"id": "look", "title": "Look around and note it", "files": ["docs/notes.md"]},
        {
            "id": "build",
            "title": "Add Config.from_pairs",
            "depends_on": ["look"],
            "checks": [check],
            "files": ["src/flask/config.py", "tests/test_config.py"],
        },
        {"id": "tell", "title": "Write it down", "depends_on": ["build"], "files": ["CHANGES.rst"]},
    ]
    return json.dumps({"version": 1, "tasks": tasks})


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.skipif(choose("auto") is Layer.NONE, reason="no sandbox here")
@pytest.mark.contract("E35", "E41", "E48", "E52", "E54", "N28")
def test_a_plan_from_its_making_to_its_undoing(tmp_path: Path) -> None:
    project = repository("flask", tmp_path)
    check = with_its_tests(project, "tests/test_config.py")
    before = digest(project)
    with model_server() as model:

        def run(*arguments: str) -> Ended:
            return evercontext(*arguments, cwd=project, env=model.settings)

        model.plans.append(plan_of(check))
        planned = run("plan", "-t", "add Config.from_pairs", *MODEL, "-o", str(tmp_path / "p"))
        assert planned.code == 0, planned.err
        assert digest(project) == before, "planning changes nothing"
        assert all(f"─ {id}  " in planned.out for id in ("look", "build", "tell")), planned.out
        script(model, project)
        ended = run(
            "run",
            "--plan",
            str(tmp_path / "p"),
            *MODEL,
            "--json",
            "--no-auto-test",
            "--max-turns",
            "200",
        )
        assert model.steps == [], ended.err
        told = json.loads(ended.out)
        _check_verdict(ended, told, len(model.asked))
        _check_disk(project, before, told)
        _check_log(told)
        _check_figures(run, told)
        _check_undo(run, project, before, told)
        _check_resume(run, project, told["trace_id"], check, model, tmp_path)


def _check_verdict(ended: Ended, told: dict[str, Any], replies: int) -> None:
    assert (ended.code, told["exit_code"], told["outcome"]) == (0, 0, "done"), told
    assert told["verified"] == "verified"
    assert (told["tasks_done"], told["tasks_total"], told["partial"]) == (3, 3, False)
    assert [task["status"] for task in told["tasks"]] == ["done"] * 3
    assert told["num_turns"] == replies >= 60
    assert "Built; all tests pass!" in told["result"]


def _check_disk(project: Path, before: dict[str, str], told: dict[str, Any]) -> None:
    """What is said to have changed is what changed: by content, and by git."""
    old, new = _files(before), _files(digest(project))
    changed = {path for path in old | new if old.get(path) != new.get(path)}
    assert (
        changed
        == set(told["files_changed"])
        == {"docs/notes.md", "src/flask/config.py", "tests/test_config.py", "CHANGES.rst"}
    )
    status = git(project, "status", "--porcelain").splitlines()
    assert {line[3:] for line in status} == changed
    assert (project / "docs/notes.md").read_text() == NOTES
    config = git(project, "show", "HEAD:src/flask/config.py").replace(BEFORE, RIGHT + BEFORE)
    assert (project / "src/flask/config.py").read_text() == config
    tests = git(project, "show", "HEAD:tests/test_config.py") + TEST
    assert (project / "tests/test_config.py").read_text() == tests
    kinds = {change["path"]: change["kind"] for change in told["changes"]}
    assert kinds["docs/notes.md"] == "created"
    sums = {
        path: (
            sum(c["added"] for c in told["changes"] if c["path"] == path),
            sum(c["removed"] for c in told["changes"] if c["path"] == path),
        )
        for path in changed
    }
    counted = git(project, "diff", "--numstat").splitlines()
    for added, removed, path in (line.split("\t") for line in counted):
        # A line that was written wrongly and repaired is counted both times.
        assert sums[path][0] - sums[path][1] == int(added) - int(removed), path


def _check_log(told: dict[str, Any]) -> None:
    log = bodies(told["trace_id"])
    assert sum(isinstance(body, ModelReply) for body in log) == told["num_turns"]
    assert sum(isinstance(body, Step) for body in log) == told["tool_calls"]
    (final,) = [body for body in log if isinstance(body, Final)]
    assert (list(final.changed), final.verified) == (told["files_changed"], told["verified"])
    ends = [(body.id, body.status) for body in log if isinstance(body, TaskEnded)]
    assert ends == [("look", "done"), ("build", "red"), ("build", "done"), ("tell", "done")]
    refused = [
        body
        for body in log
        if isinstance(body, StepResult) and not body.ok and body.error == "changed"
    ]
    assert len(refused) == 1, "the repair had not seen the line yet"
    assert {body.path for body in log if isinstance(body, Diff)} == set(told["files_changed"])
    checks = [body for body in log if isinstance(body, Verification)]
    assert {check.verdict for check in checks} == {"red", "verified"}
    for check in checks:
        # What is said of a check is what it printed.
        assert (check.counts["passed"], check.counts.get("failed", 0)) == (
            (20, 0) if check.exit_code == 0 else (19, 1)
        ), check
        assert f"{check.counts['passed']} passed" in check.summary
    repairs = [body for body in log if isinstance(body, RepairAttempt)]
    assert len(repairs) == len(told["repairs"]) >= 1


def _check_figures(run: Any, told: dict[str, Any]) -> None:
    figures = json.loads(run("kpi", "--json").out)
    # The plan alone is a trace of its own, and no task.
    assert (figures["tasks"], figures["task_success"]["hits"]) == (1, 1)
    assert (figures["auto_recovery"]["hits"], figures["auto_recovery"]["of"]) == (1, 1)
    assert figures["partial_failure"]["hits"] == 0
    assert figures["mean_recovery_steps"] == len(told["repairs"])
    listed = run("trace", "list").out
    assert told["trace_id"][:8] in listed


def _check_undo(run: Any, project: Path, before: dict[str, str], told: dict[str, Any]) -> None:
    ended = run("undo", told["trace_id"][:8], "--json")
    taken = json.loads(ended.out)
    assert ended.code == 0
    assert sorted([*taken["restored"], *taken["removed"]]) == sorted(told["files_changed"])
    assert taken["removed"] == ["docs/notes.md"]
    assert taken["kept"] == []
    assert _files(digest(project)) == _files(before)
    assert git(project, "status", "--porcelain") == ""


def _files(tree: dict[str, str]) -> dict[str, str]:
    """Without what git and the index keep for themselves."""
    own = (".git/", ".evercontext/")
    return {path: content for path, content in tree.items() if not path.startswith(own)}


def _check_resume(
    run: Any, project: Path, trace_id: str, check: str, model: ModelServer, tmp_path: Path
) -> None:
    """What is done and taken back is not taken up; what was cut off is, once."""
    again = run("run", "--resume", trace_id[:8], *MODEL)
    assert (again.code, again.out) == (64, "")
    assert "was undone" in again.err, again.err
    assert git(project, "status", "--porcelain") == ""
    plan = tmp_path / "p"
    model.will([call("writeFile", path="docs/notes.md", content=NOTES)], "Noted.")
    model.will([call("readFile", path="src/flask/config.py", start_line=320, end_line=335)])
    cut = run("run", "--plan", str(plan), *MODEL, "--json", "--no-auto-test", "--max-turns", "3")
    first = json.loads(cut.out)
    assert (cut.code, first["outcome"], first["partial"]) == (6, "limit", True)
    assert first["files_changed"] == ["docs/notes.md"]
    model.will(
        [call("readFile", path="src/flask/config.py", start_line=320, end_line=335)],
        one_edit("src/flask/config.py", BEFORE, RIGHT + BEFORE),
        [call("write_file", path="tests/test_config.py", content=TEST, mode="append")],
        "Built.",
        "Nothing to write down.",
    )
    rest = run("run", "--resume", "last", *MODEL, "--json", "--no-auto-test")
    second = json.loads(rest.out)
    assert model.steps == [], rest.err
    assert (rest.code, second["trace_id"], second["verified"]) == (0, first["trace_id"], "verified")
    assert (second["tasks_done"], second["tasks_total"]) == (3, 3)
    status = {line[3:] for line in git(project, "status", "--porcelain").splitlines()}
    assert set(second["files_changed"]) == status
    assert len(status) == 3
