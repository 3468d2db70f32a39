from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from evercontext import testing
from evercontext.agent.plan import implicit
from evercontext.agent.plan_sources import PlanChoice
from evercontext.agent.resumption import alone, take_up
from evercontext.domain.event import (
    Body,
    Diff,
    Event,
    Final,
    Notice,
    Plan,
    Task,
    TaskBegan,
    TaskEnded,
)
from evercontext.errors import NotFound, UsageError


def trace(*bodies: Body) -> list[Event]:
    return [Event(f"{n:04}", "2026-01-01", "abcdef12", body) for n, body in enumerate(bodies)]


BEGUN = Task(text="do it", root="/somewhere", model="m", mode="agent", door="run")
TASKS = Plan(tasks=tuple({"id": i, "title": i} for i in "abc"), source="p")


def test_what_was_done_is_finished_and_what_was_begun_was_cut_off() -> None:
    diff = Diff(path="x.py", kind="changed", added=1, removed=0, diff="")
    done = TaskEnded(id="a", title="a", status="done")
    begun = [TaskBegan(id=id, title=id) for id in "ab"]
    found = take_up("abcdef12", trace(BEGUN, TASKS, begun[0], diff, done, begun[1]))
    planned = found.planned()
    assert (set(planned.finished), set(planned.interrupted)) == ({"a"}, {"b"})
    assert [task.id for task in planned.plan.tasks] == ["a", "b", "c"]
    assert found.files() == ("x.py",)


def test_only_the_last_plan_counts() -> None:
    other = Plan(tasks=({"id": "a", "title": "another a"},), source="p")
    done = TaskEnded(id="a", title="a", status="done")
    assert take_up("abcdef12", trace(BEGUN, TASKS, done, other)).planned().finished == frozenset()


def test_a_task_that_is_done_or_elsewhere_is_not_taken_up(tmp_path: Path) -> None:
    final = Final(status="done", text="", exit_code=0)
    with pytest.raises(UsageError, match="is done"):
        take_up("abcdef12", trace(BEGUN, TASKS, final)).check(Path("/somewhere"), tmp_path)
    with pytest.raises(UsageError, match="was run in /somewhere"):
        take_up("abcdef12", trace(BEGUN, TASKS)).check(Path("/elsewhere"), tmp_path)
    turn = dataclasses.replace(BEGUN, door="chat")
    with pytest.raises(UsageError, match="turn of a conversation"):
        take_up("abcdef12", trace(turn)).check(Path("/somewhere"), tmp_path)
    with pytest.raises(NotFound):
        take_up("abcdef12", trace(Notice(level="info", text="x")))
    again = take_up("abcdef12", trace(BEGUN, final, BEGUN))
    again.check(Path("/somewhere"), tmp_path)


def test_a_trace_is_held_by_one_run_at_a_time(tmp_path: Path) -> None:
    with alone(tmp_path, "abcdef12"):
        with alone(tmp_path, "12abcdef"):
            pass
        with pytest.raises(UsageError, match="still running"), alone(tmp_path, "abcdef12"):
            pass
    with alone(tmp_path, "abcdef12"):
        pass


@pytest.mark.contract("E8")
async def test_a_replan_sees_the_failure_and_the_evidence(tmp_path: Path) -> None:
    root = tmp_path / "project"
    root.mkdir()
    (root / "user.py").write_text("def load_user():\n    pass\n")
    move = {"name": "move_file", "arguments": {"path": "none", "to": "some"}}
    bad = {"tool_calls": [move]}
    plan = '{"tasks": [{"id": "a", "title": "first", "on_error": "replan"}]}'
    again = '{"tasks": [{"id": "b", "title": "second"}]}'
    model = testing.write_script(tmp_path / "s.jsonl", [bad, {"text": "gave up"}, {"text": "ok"}])
    planner = testing.write_script(
        tmp_path / "p.jsonl",
        [
            {"text": plan, "when": "user.py"},
            {"text": again, "when": "failed here:\nfirst"},
        ],
    )
    async with testing.house(tmp_path, planner=planner) as app:
        report = await app.run_task("load the user", model_name=model)
    assert (report.outcome.word, report.text) == ("done", "ok")


async def test_a_plan_of_a_file_needs_no_planner(tmp_path: Path) -> None:
    model = testing.write_script(tmp_path / "s.jsonl", [{"text": "ok"}])
    async with testing.house(tmp_path) as app:
        choice = PlanChoice(plan=implicit("from a file"))
        report = await app.run_task("x", model_name=model, choice=choice)
    assert report.text == "ok"


async def test_planning_alone_ends_its_trace_also_when_it_fails(tmp_path: Path) -> None:
    heard: list[Event] = []
    script = testing.write_script(tmp_path / "p.jsonl", [{"error": "model_refused"}])
    async with testing.house(tmp_path, planner=script, model_name=script) as app:
        app.events.subscribe(heard.append)
        with pytest.raises(Exception, match="the script says"):
            await app.plan_task("x")
    final = heard[-1].body
    assert isinstance(final, Final)
    assert final.exit_code == 1


async def test_the_whole_task_is_searched_for_the_plan(tmp_path: Path) -> None:
    """25.1: only its first 1,000 characters were, and a trace at the end of an issue was lost."""
    root = tmp_path / "project"
    (root / "billing").mkdir(parents=True)
    (root / "billing" / "ledger.py").write_text("def post_entry(entry):\n    return entry.sum\n")
    for number in range(9):
        text = f"def m{number}():\n    return 'we start'\n"
        (root / f"m{number}.py").write_text(text)
    task = (
        "It fails when we start\n\n"
        + "Nothing else was changed here. " * 60
        + '\n  File "/srv/billing/ledger.py", line 2, in post_entry\n'
    )
    plan = '{"tasks": [{"id": "a", "title": "first"}]}'
    planner = testing.write_script(
        tmp_path / "p.jsonl",
        [
            {"text": plan, "when": "billing/ledger.py L1-L2"},
        ],
    )
    async with testing.house(tmp_path, planner=planner, model_name=planner) as app:
        planned = await app.plan_task(task)
    assert [one.title for one in planned.plan.tasks] == ["first"]
