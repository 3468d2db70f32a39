from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest

from evercontext.domain.event import (
    Audit,
    Body,
    Event,
    Evidence,
    Final,
    Plan,
    Renamed,
    RepairAttempt,
    StepResult,
    Task,
)
from evercontext.events.kpi import compute, is_telling


class Log:
    """A recorded log, written by hand."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._ids = itertools.count()

    def add(self, trace: str, *bodies: Body) -> None:
        for body in bodies:
            self.events.append(Event(f"{next(self._ids):08d}", "2026-01-01", trace, body))

    def task(self, trace: str, *bodies: Body, text: str = "t", **final: object) -> None:
        told = {"status": "done", "text": "", "exit_code": 0, "duration_ms": 100, **final}
        begin = Task(text=text, root="r", model="m", mode="agent", door="run")
        self.add(trace, begin, *bodies, Final(**told))  # type: ignore[arg-type]


def plan(*ids: str, source: str = "planner") -> Plan:
    return Plan(tasks=tuple({"id": i} for i in ids), source=source)


def failed(code: str) -> StepResult:
    return StepResult(tool="write_file", ok=False, text="", error=code)


@pytest.mark.contract("E48")
def test_success_latency_and_refusals() -> None:
    log = Log()
    for n in range(19):
        log.task(f"t{n}", duration_ms=10 * (n + 1))
    log.task("bad", failed("path_escapes_root"), failed("not_found"), exit_code=2, duration_ms=5000)
    log.add("rest", Audit(method="POST", path="x", size=0, status=403, door="rest"))
    log.add("open", Task(text="still running", root="r", model="m", mode="agent", door="run"))
    kpis = compute(reversed(log.events))
    assert (kpis.tasks, kpis.task_success.hits, kpis.task_success.rate) == (20, 19, 0.95)
    assert kpis.latency_p95_ms == 190
    assert kpis.policy_refusals == 2


@pytest.mark.contract("E49")
def test_plans_made_anew_are_compared_and_cached_ones_shown_apart() -> None:
    log = Log()
    log.task("a", plan("x", "y"), text="same")
    log.task("b", plan("x", "y"), text="same")
    log.task("c", plan("y"), text="same")
    log.task("d", plan("x", "y", source="cache"), text="same")
    log.task("e", plan("task", source="implicit"), text="same")
    log.task("f", plan("z"), text="other")
    kpis = compute(log.events)
    assert (kpis.plan_reproduction.hits, kpis.plan_reproduction.of) == (1, 2)
    assert kpis.plan_cache_hits == 1


@pytest.mark.contract("E49")
def test_another_tree_may_have_another_plan_and_planning_alone_is_no_task() -> None:
    log = Log()
    for tree, ids in (("1", "x"), ("2", "y"), ("2", "y")):
        made = Plan(tasks=({"id": ids},), source="planner", tree=tree)
        begin = Task(text="same", root="r", model="m", mode="plan", door="run")
        log.add(f"{tree}{len(log.events)}", begin, made, Final(status="done", text="", exit_code=0))
    kpis = compute(log.events)
    assert (kpis.plan_reproduction.hits, kpis.plan_reproduction.of) == (1, 1)
    assert (kpis.tasks, kpis.latency_p95_ms) == (0, None)


@pytest.mark.contract("E49")
def test_plans_of_a_file_or_an_editor_say_nothing_about_the_planner() -> None:
    log = Log()
    for number, source in enumerate(("file", "edited", "resume", "file")):
        log.task(str(number), plan(str(number), source=source), text="same")
    assert compute(log.events).plan_reproduction.of == 0


def test_what_is_not_telling_changes_no_figure() -> None:
    path = Path(__file__).parent / "recorded.jsonl"
    whole = [Event.from_json(json.loads(line)) for line in path.read_text().splitlines()]
    telling = [event for event in whole if is_telling(event)]
    assert compute(telling) == compute(whole)
    assert len(telling) < len(whole) / 2


@pytest.mark.contract("E49")
def test_partial_failures_are_plans_ended_with_some_tasks_done() -> None:
    log = Log()
    log.task("a", tasks=3, tasks_done=3)
    log.task("b", tasks=3, tasks_done=1, exit_code=1)
    log.task("c", tasks=3, tasks_done=0, exit_code=1)
    log.task("d", tasks=1, tasks_done=0, exit_code=1)
    assert compute(log.events).partial_failure.rate == pytest.approx(1 / 3)


@pytest.mark.contract("E50")
def test_evidence_and_renames() -> None:
    log = Log()
    found = Evidence(query="q", paths=("a", "b", "c", "d", "e", "f"))
    log.task("hit", found, changed=("e",))
    log.task("miss", found, changed=("f",))
    log.task("nothing changed", found)
    log.task("nothing shown", changed=("a",))
    log.add("i", Renamed(old="a", new="b", found_only_under_new_path=True))
    log.add("i", Renamed(old="c", new="d", found_only_under_new_path=False))
    kpis = compute(log.events)
    assert (kpis.evidence_match.hits, kpis.evidence_match.of) == (1, 2)
    assert compute(log.events, at=6).evidence_match.hits == 2
    assert kpis.rename_accuracy.rate == 0.5


@pytest.mark.contract("E51")
def test_recovery_rate_and_steps() -> None:
    def attempt(number: int, after: int) -> RepairAttempt:
        return RepairAttempt(
            number=number, by="ruff", failures_before=3, failures_after=after, green=after == 0
        )

    log = Log()
    log.task("one", attempt(1, 0))
    log.task("two", attempt(1, 2), attempt(2, 0))
    log.task("never", attempt(1, 2), attempt(2, 2), exit_code=4)
    kpis = compute(log.events)
    assert kpis.auto_recovery.rate == pytest.approx(2 / 3)
    assert kpis.mean_recovery_steps == 1.5


def test_an_empty_log_has_no_rates() -> None:
    told = compute([]).to_json()
    assert told["tasks"] == 0
    assert told["task_success"] == {"hits": 0, "of": 0, "rate": None}
    assert told["latency_p95_ms"] is None
    json.dumps(told)
