"""The whole road: a task breaks something, the checks are red, it is mended or taken back."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from evercontext import testing
from evercontext.agent.task import TaskReport
from evercontext.domain.event import Body, Event, RepairAttempt, Verification
from evercontext.domain.outcome import Outcome
from evercontext.events.kpi import compute
from evercontext.tools.approval import Gate

TEST = "from shop.cart import total\n\n\ndef test_total():\n    assert total('[1, 2]') == 3\n"
GOOD = "import json\n\n\ndef total(text):\n    return sum(json.loads(text))\n"
SAID: dict[str, Any] = {"text": "Done."}


@pytest.fixture(autouse=True)
def _own_pytest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VIRTUAL_ENV", sys.prefix)


@dataclass
class Ran:
    report: TaskReport
    events: list[Event]
    project: Path

    def bodies(self, kind: type[Body]) -> list[Any]:
        return [event.body for event in self.events if isinstance(event.body, kind)]

    @property
    def repairs(self) -> list[tuple[str, int, int, bool, str]]:
        return [
            (one.by, one.failures_before, one.failures_after, one.green, one.step)
            for one in self.bodies(RepairAttempt)
        ]

    def text(self, path: str) -> str:
        return (self.project / path).read_text(encoding="utf-8")


def write(path: str, content: str) -> dict[str, Any]:
    arguments = {"path": path, "content": content, "mode": "overwrite"}
    return {"tool_calls": [{"name": "write_file", "arguments": arguments}]}


async def run(
    folder: Path,
    *turns: dict[str, Any],
    files: Mapping[str, str] | None = None,
    gate: Gate | None = None,
    **flags: Any,
) -> Ran:
    project = folder / "project"
    standing = {"shop/__init__.py": "", "tests/test_cart.py": TEST, "conftest.py": ""}
    for name, content in {**standing, **(files or {})}.items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(content, encoding="utf-8")
    name = testing.write_script(folder / "s.jsonl", turns)
    events: list[Event] = []
    async with testing.house(folder, **flags) as app:
        app.events.subscribe(events.append)
        report = await app.run_task("add a total", model_name=name, gate=gate)
    return Ran(report, events, project)


@pytest.mark.contract("E41", "E47", "E51")
async def test_a_missing_import_is_found_and_the_tests_run_again(tmp_path: Path) -> None:
    ran = await run(tmp_path, write("shop/cart.py", GOOD.removeprefix("import json\n\n\n")), SAID)
    assert (ran.report.outcome, ran.report.final.verified) == (Outcome.DONE, "verified")
    assert ran.repairs == [("missing import", 1, 0, True, "better")]
    assert ran.text("shop/cart.py") == GOOD
    assert ran.report.final.changed == ("shop/cart.py",)
    kinds = [(check.kind, check.exit_code) for check in ran.bodies(Verification)]
    assert kinds == [("test", 1), ("test", 0)]
    figures = compute(ran.events)
    assert (figures.auto_recovery.rate, figures.mean_recovery_steps) == (1.0, 1.0)
