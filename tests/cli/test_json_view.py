from __future__ import annotations

import io
import json
from typing import Any

from evercontext.cli.json_view import JsonView
from evercontext.cli.terminal import Screen
from evercontext.domain.event import (
    Body,
    Diff,
    Event,
    Final,
    Limit,
    ModelReply,
    Notice,
    RepairAttempt,
    Retry,
    Step,
    StepResult,
    Task,
    TaskBegan,
    Verification,
)

TRACE = "0b8ed1b2-1f6e-4a51-9d02-7f1f5f8f7c11"


def told(*bodies: tuple[Body, str | None], stream: bool = True) -> list[dict[str, Any]]:
    out = io.StringIO()
    view = JsonView(Screen(out), TRACE, stream=stream)
    for number, (body, parent) in enumerate(bodies, start=1):
        view(Event(str(number), "2026-11-15T00:00:00.000000+00:00", TRACE, body, parent))
    return [json.loads(line) for line in out.getvalue().splitlines()]


STEP = Step(
    tool="run.test",
    arguments={"command": "pytest"},
    effects=("execute",),
    door="run",
    mode="agent",
)
END = Final(status="limit", text="", exit_code=6, error="out of turns", turns=3)


def test_a_command_is_told_beside_its_result() -> None:
    result = StepResult(tool="run.test", ok=False, text="1 failed", error="process")
    found = told((STEP, None), (result, "1"))
    assert [one["type"] for one in found] == ["tool_use", "tool_result", "command"]
    assert found[1]["error"] == {"code": "process", "message": "1 failed"}
    assert found[2]["command"] == "pytest"


def test_checks_and_warnings_have_their_kind() -> None:
    check = Verification(kind="lint", command=("ruff", "check"), exit_code=0, summary="clean")
    found = told(
        (check, None),
        (Notice(level="info", text="a"), None),
        (Notice(level="warning", text="b"), None),
        (Retry(what="model call", reason="429"), None),
        (Limit(kind="turns", allowed=3, used=3), None),
    )
    assert [one["type"] for one in found] == ["verification", "message", "error", "error", "error"]
    assert found[0]["exit_code"] == 0
    assert [one.get("severity") for one in found[2:]] == ["warning", "warning", "error"]


def test_only_the_result_without_a_stream() -> None:
    task = Task(text="do", root="/p", model="m", mode="agent", door="run")
    found = told((task, None), (STEP, None), (END, None), stream=False)
    assert [one["type"] for one in found] == ["result"]
    assert found[0]["is_error"] is True
    assert found[0]["error"]["message"] == "out of turns"
    assert (found[0]["model"], found[0]["tool_calls"], found[0]["changes"]) == ("m", 1, [])


def test_odd_text_stays_one_line_of_utf8() -> None:
    reply = ModelReply(model="m", turn=1, text="日本\n\x1b \ud800")
    found = told((reply, None))
    assert found[0]["content"].startswith("日本\n\x1b ")


def test_a_command_carries_its_exit_code() -> None:
    result = StepResult(tool="run.test", ok=True, text="[exit code 3]", exit_code=3)
    found = told((STEP, None), (result, "1"))
    assert found[2]["type"] == "command"
    assert found[2]["exit_code"] == 3


def test_a_file_written_as_it_was_is_called_unchanged() -> None:
    same = Diff(path="a", kind="changed", diff="", added=0, removed=0)
    made = Diff(path="b", kind="created", diff="", added=0, removed=0)
    found = told((same, None), (made, None), (END, None), stream=False)
    assert [one["kind"] for one in found[0]["changes"]] == ["unchanged", "created"]


def test_what_a_repair_took_back_is_no_change() -> None:
    def change(path: str) -> Diff:
        return Diff(path=path, kind="changed", added=1, removed=1, diff="+x")

    def attempt(number: int, step: str) -> RepairAttempt:
        kept = step in ("better", "other")
        return RepairAttempt(
            number=number,
            by="typo",
            failures_before=2,
            failures_after=1,
            green=False,
            step=step,
            kept=kept,
        )

    check = Verification(kind="test", command=("pytest",), exit_code=1, summary="2 failed")
    bodies: list[Body] = [change("task"), check]
    for number, (path, step) in enumerate(
        [("worse", "worse"), ("good", "better"), ("trial", "other"), ("same", "same")], start=1
    ):
        bodies += [change(path), check, attempt(number, step)]
    found = told(*((body, None) for body in (*bodies, END)), stream=False)
    assert [one["path"] for one in found[0]["changes"]] == ["task", "good"]
    assert [one["step"] for one in found[0]["repairs"]] == ["worse", "better", "other", "same"]


def test_what_a_task_changes_after_a_repair_is_a_change() -> None:
    def change(path: str) -> Diff:
        return Diff(path=path, kind="changed", added=1, removed=1, diff="+x")

    check = Verification(kind="task", command=("pytest",), exit_code=1, summary="1 failed")
    better = RepairAttempt(
        number=1,
        by="typo",
        failures_before=1,
        failures_after=0,
        green=True,
        step="better",
        kept=True,
    )
    bodies: list[Body] = [
        TaskBegan(id="a", title="a"),
        change("a.py"),
        check,
        change("trial.py"),
        check,
        better,
        TaskBegan(id="b", title="b"),
        change("b.py"),
        check,
        END,
    ]
    found = told(*((body, None) for body in bodies), stream=False)
    assert [one["path"] for one in found[0]["changes"]] == ["a.py", "trial.py", "b.py"]
