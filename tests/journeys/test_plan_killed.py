"""A plan whose process is killed in the middle, taken up again, and taken back."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from evercontext import testing
from evercontext.agent.plan import validate
from evercontext.agent.plan_sources import PlanChoice
from evercontext.domain.event import Diff, Event
from evercontext.process.sandbox import Layer, choose
from tests.cli.command import EVERCONTEXT, evercontext
from tests.journeys.story import call, digest, script, write

pytestmark = pytest.mark.contract("E54")

WAIT = {"tool_calls": [call("run_command", command="sleep 50")]}


def part(id: str, *turns: dict[str, Any]) -> list[dict[str, Any]]:
    when = f"Your part of it now: do {id}\\b"
    return [{"when": when, **turn} for turn in (*turns, {"text": f"{id} is done"})]


def plan(tmp_path: Path) -> Path:
    tasks = [
        {"id": i, "title": f"do {i}", "depends_on": list(needs)}
        for i, needs in (("a", ""), ("b", "a"), ("c", "b"))
    ]
    file = tmp_path / "plan.json"
    file.write_text(json.dumps({"task": "three steps", "tasks": tasks}))
    return file


def killed_when(seen: Path, tmp_path: Path, *arguments: str, cwd: Path) -> None:
    """Run the command until a file appears, then kill it without any warning."""
    said = tmp_path / "said"
    with said.open("wb") as out:
        running = subprocess.Popen(
            [EVERCONTEXT, *arguments],
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
        )
        try:
            while not seen.exists():
                assert running.poll() is None, said.read_text()
                time.sleep(0.02)
        finally:
            os.killpg(running.pid, signal.SIGKILL)
            assert running.wait() == -signal.SIGKILL


@pytest.mark.slow
@pytest.mark.case(81)
@pytest.mark.skipif(choose("auto") is Layer.NONE, reason="no cage here")
def test_a_plan_cut_by_kill_9_is_finished_and_nothing_is_done_twice(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "log.txt").write_text("")
    before = digest(project)
    model = script(
        tmp_path / "1",
        *part("a", write("log.txt", "a\n", "append")),
        *part("b", write("b.txt", "half\n"), WAIT),
    )
    killed_when(
        project / "b.txt", tmp_path, "run", "--plan", str(plan(tmp_path)), "-m", model, cwd=project
    )
    assert (project / "log.txt").read_text() == "a\n"
    rest = script(
        tmp_path / "2",
        *part("b", {"when": "cut off in the middle", **write("b.txt", "whole\n")}),
        *part("c", write("log.txt", "c\n", "append")),
    )
    ended = evercontext("run", "--resume", "last", "-m", rest, "--json", cwd=project)
    assert ended.code == 0, ended.err
    told = json.loads(ended.out)
    assert (told["tasks_done"], told["tasks_total"]) == (3, 3)
    assert sorted(told["files_changed"]) == ["b.txt", "log.txt"]
    assert (project / "log.txt").read_text() == "a\nc\n", "the first task was not done again"
    assert (project / "b.txt").read_text() == "whole\n"
    again = evercontext("run", "--resume", told["trace_id"][:8], "-m", rest, cwd=project)
    assert (again.code, "is done" in again.err) == (64, True)
    assert evercontext("undo", told["trace_id"], cwd=project).code == 0
    assert digest(project) == before, "both runs are one trace and are taken back together"


@pytest.mark.case(80)
async def test_a_rollback_keeps_what_the_user_wrote_meanwhile(tmp_path: Path) -> None:
    root = tmp_path / "project"
    root.mkdir()
    for name in ("mine.txt", "theirs.txt"):
        (root / name).write_text("old\n")
    bad = {"tool_calls": [call("move_file", path="nowhere.txt", to="x.txt")]}
    model = script(
        tmp_path / "s",
        *part("a", write("mine.txt", "new\n"), write("theirs.txt", "new\n"), bad),
    )

    def edit(event: Event) -> None:
        if isinstance(event.body, Diff) and event.body.path == "mine.txt":
            (root / "mine.txt").write_text("by hand\n")

    tasks = [{"id": "a", "title": "do a"}, {"id": "b", "title": "do b"}]
    choice = PlanChoice(plan=validate({"tasks": tasks}))
    async with testing.house(tmp_path, rollback_on_failure=True, parallel_tasks=1) as app:
        app.events.subscribe(edit)
        report = await app.run_task("x", model_name=model, choice=choice)
    assert report.outcome.word == "failed"
    assert (root / "mine.txt").read_text() == "by hand\n"
    assert (root / "theirs.txt").read_text() == "old\n"
    assert report.final.rolled_back == ("theirs.txt",)
    assert report.final.changed == ("mine.txt",)
