"""V7: what is new, what was red before, what is flaky."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from evercontext.agent.baseline import NewFailures
from evercontext.agent.verification import Checker, CheckScope, Findings, ProjectCheck
from evercontext.domain.tool import Arguments, Caller, Door, Effect, Tool, ToolResult
from evercontext.events.log import EventLog
from evercontext.tools.toolbox import Toolbox
from evercontext.workspace.failures.failure import Failure

CALLER = Caller("trace", Door.RUN)
Run = Sequence[str]


def failing(names: Run) -> tuple[Failure, ...]:
    return tuple(Failure("pytest", "assertion", "no", test=name) for name in names)


class Bench:
    """Tests that fail by a script: each run of the checks takes the next line."""

    def __init__(self, tmp_path: Path, runs: Sequence[Run], before: Run | None) -> None:
        self.left, self.looked = list(runs), 0
        self._log = EventLog(tmp_path / "traces")
        run = Tool("run.test", "", {"type": "object"}, Effect.EXECUTE, self._run)
        box = Toolbox([run], self._log)
        checker = Checker(box, self._log, lambda changed: [ProjectCheck("test")])

        async def look(caller: Caller, scope: CheckScope) -> Findings | None:
            self.looked += 1
            return None if before is None else Findings("red", failing(before))

        self.verify = NewFailures(checker, look)

    async def _run(self, arguments: Arguments, caller: Caller) -> ToolResult:
        names = self.left.pop(0)
        data: dict[str, Any] = {
            "command": ["pytest"],
            "exit_code": int(bool(names)),
            "passed": not names,
            "timed_out": False,
            "counts": {"passed": 3, "failed": len(names)},
            "output": f"{len(names)} failed, 3 passed",
            "failures": [failure.to_json() for failure in failing(names)],
        }
        return ToolResult("", {"runs": [data]})


@pytest.mark.parametrize(
    ("runs", "before", "verdict", "new", "reason"),
    [
        ([[]], ["a"], "verified", [], ""),
        ([["a", "b"]], ["a", "b"], "red before, too", [], "2 failed before, too"),
        ([["a", "b"]] * 2, ["a"], "red", ["b"], "1 failed before, too"),
        ([["a"], []], [], "verified", [], "a is flaky: red, then green without a change"),
        ([["a"], ["a"]], None, "red", ["a"], ""),
        (
            [["a", "b"], ["b"]],
            ["b"],
            "red before, too",
            [],
            "1 failed before, too; a is flaky: red, then green without a change",
        ),
    ],
)
async def test_only_what_is_new_is_red(
    tmp_path: Path,
    runs: Sequence[Run],
    before: Run | None,
    verdict: str,
    new: Run,
    reason: str,
) -> None:
    bench = Bench(tmp_path, runs, before)
    found = await bench.verify(CALLER, CheckScope())
    assert (found.verdict, found.reason) == (verdict, reason)
    assert [failure.test for failure in found.failures] == new
    assert bench.left == []


@pytest.mark.parametrize(
    ("task", "left", "verdict", "new", "reason"),
    [
        (
            "Fix the failing tests",
            ["a", "b"],
            "red",
            ["a", "b"],
            "a, b still fail, which the task asks to fix",
        ),
        (
            "test b fails, fix it",
            ["a", "b"],
            "red",
            ["b"],
            "b still fails, which the task asks to fix; 1 failed before, too",
        ),
        ("test b fails, fix it", ["a"], "red before, too", [], "1 failed before, too"),
        ("Add a function", ["a", "b"], "red before, too", [], "2 failed before, too"),
    ],
)
async def test_what_the_task_asks_to_fix_is_red_however_old_it_is(
    tmp_path: Path, task: str, left: Run, verdict: str, new: Run, reason: str
) -> None:
    bench = Bench(tmp_path, [left, left], ["a", "b"])
    findings = await bench.verify(CALLER, CheckScope(task=task))
    assert (findings.verdict, findings.reason) == (verdict, reason)
    assert [failure.test for failure in findings.failures] == new


async def test_the_state_before_is_looked_at_once_and_only_if_something_is_red(
    tmp_path: Path,
) -> None:
    bench = Bench(tmp_path, [[], ["a"], ["a"], ["a"]], [])
    assert (await bench.verify(CALLER, CheckScope())).verdict == "verified"
    assert bench.looked == 0
    assert (await bench.verify(CALLER, CheckScope())).verdict == "red"
    assert (await bench.verify(CALLER, CheckScope())).verdict == "red", "red twice is not run again"
    assert (bench.looked, bench.left) == (1, [])
