"""The whole road: a task breaks something, the checks are red, it is mended or taken back."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from evercontext import testing
from evercontext.agent.project_repair import checks_and_repair
from evercontext.agent.task_report import TaskReport
from evercontext.app.conversations import open_conversation
from evercontext.domain.event import Approval, Body, Event, Notice, RepairAttempt, Verification
from evercontext.domain.outcome import Outcome
from evercontext.events.kpi import compute
from evercontext.process.sandbox import choose, limitation
from evercontext.tools.approval_gate import ApprovalAnswer, ApprovalQuestion, Gate, ask_for_writes

TEST = """import unittest

from shop.cart import total


class TotalTest(unittest.TestCase):
    def test_total(self):
        assert total('[1, 2]') == 3
"""
PYTEST = f"{sys.prefix}/bin/pytest -q -p no:asyncio -p no:xdist -p no:anyio -p no:timeout"
UNITTEST = f"{sys.executable} -m unittest discover -q -s tests -t ."
"""Starts ten times as quickly as pytest with all the plugins that are installed here."""
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
    def warnings(self) -> list[Notice]:
        return [notice for notice in self.bodies(Notice) if notice.level == "warning"]

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
    standing = {"shop/__init__.py": "", "tests/__init__.py": "", "tests/test_cart.py": TEST}
    standing["conftest.py"] = ""
    for name, content in {**standing, **(files or {})}.items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(content, encoding="utf-8")
    name = testing.write_script(folder / "s.jsonl", turns)
    events: list[Event] = []
    async with testing.house(folder, **{"test_cmd": UNITTEST, **flags}) as app:
        app.events.subscribe(events.append)
        report = await app.run_task("add a total", model_name=name, gate=gate)
    return Ran(report, events, project)


@pytest.mark.slow
@pytest.mark.contract("E41", "E47", "E51")
async def test_a_missing_import_is_found_and_the_tests_run_again(tmp_path: Path) -> None:
    bad = GOOD.removeprefix("import json\n\n\n")
    ran = await run(tmp_path, write("shop/cart.py", bad), SAID, test_cmd=PYTEST)
    assert (ran.report.outcome, ran.report.final.verified) == (Outcome.DONE, "verified")
    assert ran.repairs == [("missing import", 1, 0, True, "better")]
    assert ran.text("shop/cart.py") == GOOD
    assert ran.report.final.changed == ("shop/cart.py",)
    kinds = [(check.kind, check.exit_code) for check in ran.bodies(Verification)]
    assert kinds == [("test", 1), ("test", 0)]
    figures = compute(ran.events)
    assert (figures.auto_recovery.rate, figures.mean_recovery_steps) == (1.0, 1.0)


async def test_two_slips_in_one_function_are_mended_one_after_the_other(tmp_path: Path) -> None:
    bad = "def total(text):\n    numbers = json.loads(text)\n    return sum(nubmers)\n"
    ran = await run(tmp_path, write("shop/cart.py", bad), SAID)
    assert ran.repairs == [
        ("missing import", 1, 1, False, "other"),
        ("typo", 1, 0, True, "better"),
    ]
    assert ran.report.outcome is Outcome.DONE


@pytest.mark.contract("E41", "E42")
async def test_what_does_not_help_is_taken_back_byte_for_byte(tmp_path: Path) -> None:
    # A name that exists is near, and is not what was meant.
    bad = "totals = 4\n\n\ndef total(text):\n    return totalss\n"
    ran = await run(tmp_path, write("shop/cart.py", bad), SAID, repair_rounds=0)
    assert ran.repairs == [("typo", 1, 1, False, "other")]
    assert ran.text("shop/cart.py") == bad
    assert (ran.report.outcome, ran.report.final.exit_code) == (Outcome.RED, 4)
    assert "0 of 1 failures fixed" in ran.warnings[-1].text


@pytest.mark.contract("E41", "E47")
async def test_the_model_is_shown_the_failure_and_mends_it(tmp_path: Path) -> None:
    wrong = GOOD.replace("sum(", "max(")
    read = {"tool_calls": [{"name": "read_file", "arguments": {"path": "shop/cart.py"}}]}
    shown = r"(?s)unittest assertion at tests/test_cart.py:8.*> +8 .*assert total"
    ran = await run(
        tmp_path,
        write("shop/cart.py", wrong),
        SAID,
        {"role": "repair", "when": shown, **read},
        {"role": "repair", **write("shop/cart.py", GOOD)},
        {"role": "repair", "text": "It must be the sum."},
    )
    assert [after for _, *after in ran.repairs] == [[1, 0, True, "better"]]
    assert (ran.report.outcome, ran.text("shop/cart.py")) == (Outcome.DONE, GOOD)


@pytest.mark.contract("E42")
async def test_the_model_stops_after_its_rounds_and_nothing_is_left_worse(tmp_path: Path) -> None:
    wrong = GOOD.replace("sum(", "max(")
    worse = "def total(text):\n    raise SystemError\n"
    rounds = [
        turn
        for number in range(2)
        for turn in (
            {"role": "repair", **write("shop/cart.py", f"{worse}# {number}\n")},
            {"role": "repair", "text": "Mended!"},
        )
    ]
    other = TEST.replace("[1, 2]", "[3]")
    ran = await run(
        tmp_path,
        write("shop/cart.py", wrong),
        SAID,
        *rounds,
        repair_rounds=2,
        files={"tests/test_two.py": other},
    )
    assert [step for *_, step in ran.repairs] == ["worse", "worse"]
    assert ran.text("shop/cart.py") == wrong
    assert ran.report.outcome is Outcome.RED
    assert ran.warnings[-1].text.endswith("1 left after 2 tries")
    figures = compute(ran.events)
    assert (figures.auto_recovery.of, figures.auto_recovery.hits) == (1, 0)


async def test_a_script_without_turns_leaves_the_checks_red(tmp_path: Path) -> None:
    ran = await run(tmp_path, write("shop/cart.py", GOOD.replace("sum(", "max(")), SAID)
    assert ran.report.outcome is Outcome.RED
    assert any("the repair stopped" in notice.text for notice in ran.warnings)


async def test_a_model_that_leaves_it_alone_is_not_asked_again(tmp_path: Path) -> None:
    leaves = {"role": "repair", "text": "This was red before and is not mine."}
    ran = await run(tmp_path, write("shop/cart.py", GOOD.replace("sum(", "max(")), SAID, leaves)
    assert [step for *_, step in ran.repairs] == ["same"]
    assert not any("stopped" in notice.text for notice in ran.warnings)
    assert ran.report.outcome is Outcome.RED


async def test_it_can_be_turned_off(tmp_path: Path) -> None:
    bad = GOOD.removeprefix("import json\n\n\n")
    ran = await run(tmp_path, write("shop/cart.py", bad), SAID, repair=False)
    assert (ran.repairs, ran.report.outcome, ran.text("shop/cart.py")) == ([], Outcome.RED, bad)


WEAK = TEST.replace("== 3", "== 2")


@pytest.mark.case(74)
async def test_a_test_is_not_changed_so_that_it_passes(tmp_path: Path) -> None:
    wrong = GOOD.replace("sum(", "max(")
    ran = await run(
        tmp_path,
        write("shop/cart.py", wrong),
        SAID,
        {"role": "repair", **write("tests/test_cart.py", WEAK)},
        {"role": "repair", "when": "stay as they are during a repair", "text": "It is refused."},
        repair_rounds=1,
    )
    assert ran.text("tests/test_cart.py") == TEST
    assert ran.report.outcome is Outcome.RED
    denied = ran.bodies(Approval)[0]
    assert (denied.allowed, denied.by) == (False, "protected tests")


@pytest.mark.case(74)
@pytest.mark.parametrize(
    ("command", "tool"),
    [
        (command, "run_command")
        for command in (
            "rm tests/test_cart.py",
            "sed -i 's/== 3/== 2/' tests/test_cart.py",
            "printf 'collect_ignore = [\"tests\"]\\n' > conftest.py",
            "printf '[pytest]\\naddopts = --co\\n' > pytest.ini",
            "mv tests/test_cart.py tests/cart.txt",
            "echo cart.py > shop/.gitignore",
            "mkdir unittest && echo 'print(\"OK\")' > unittest/__main__.py",
        )
    ]
    + [("cp conftest.py tests/test_cart.py", "run.test")],
)
async def test_a_command_that_touches_tests_is_rejected_and_restored(
    tmp_path: Path, command: str, tool: str
) -> None:
    if "pytest.ini" in command or "mkdir" in command:
        # Without mounts the sandbox lets nothing be created there: nothing has to be restored.
        reason = limitation(choose("auto"))
        if reason is not None:
            pytest.skip(reason)
    call = {"tool_calls": [{"name": tool, "arguments": {"command": command}}]}
    wrong = GOOD.replace("sum(", "max(")
    ran = await run(
        tmp_path,
        write("shop/cart.py", wrong),
        SAID,
        {"role": "repair", **call},
        {"role": "repair", "text": "Green."},
        repair_rounds=1,
    )
    assert [step for *_, step in ran.repairs] == ["rejected"]
    assert ran.text("tests/test_cart.py") == TEST
    assert ran.text("conftest.py") == ""
    assert sorted(path.name for path in ran.project.iterdir() if path.suffix == ".ini") == []
    assert ran.report.outcome is Outcome.RED
    assert "rejected and restored" in ran.warnings[0].text


@pytest.mark.case(74)
async def test_a_check_is_not_silenced_in_the_code_either(tmp_path: Path) -> None:
    wrong = GOOD.replace("sum(", "max(")
    silent = "import unittest\n\n\ndef total(text):\n    raise unittest.SkipTest('later')\n"
    ran = await run(
        tmp_path,
        write("shop/cart.py", wrong),
        SAID,
        {"role": "repair", **write("shop/cart.py", silent)},
        {"role": "repair", "text": "Green."},
        repair_rounds=1,
    )
    assert [step for *_, step in ran.repairs] == ["rejected"]
    assert ran.text("shop/cart.py") == wrong


async def test_a_repair_after_which_fewer_tests_run_is_not_called_verified(tmp_path: Path) -> None:
    test = (
        "import unittest\nfrom shop.cart import CASES, total\n\n\n"
        "class T(unittest.TestCase):\n    pass\n\n\n"
        "for n, (text, want) in enumerate(CASES):\n"
        "    def test(self, text=text, want=want):\n        assert total(text) == want\n"
        "    setattr(T, f'test_{n}', test)\n"
    )
    cases = "\n\nCASES = [('[1]', 1), ('[1, 2]', 3)]\n"
    wrong = GOOD.replace("sum(", "max(")
    easier = {
        "role": "repair",
        **write("shop/cart.py", wrong + cases.replace(", ('[1, 2]', 3)", "")),
    }
    ran = await run(
        tmp_path,
        write("shop/cart.py", wrong + cases),
        SAID,
        easier,
        {"role": "repair", "text": "Green."},
        files={"tests/test_cart.py": test},
        repair_rounds=1,
    )
    assert [check.summary for check in ran.bodies(Verification)][-1] == (
        "1 passed, 0 failed, 0 skipped; 2 ran before"
    )
    assert ran.report.final.verified == "verified with fewer tests"


async def test_a_test_that_the_task_itself_wrote_may_be_mended(tmp_path: Path) -> None:
    wrong = TEST.replace("== 3", "== 4")
    right = wrong.replace("4", "3")
    ran = await run(
        tmp_path,
        write("tests/test_new.py", wrong),
        SAID,
        {"role": "repair", **write("tests/test_new.py", right)},
        {"role": "repair", "text": "One is one."},
        files={"shop/cart.py": GOOD},
    )
    assert (ran.report.outcome, ran.text("tests/test_new.py")) == (Outcome.DONE, right)


async def test_what_is_asked_for_elsewhere_is_asked_for_here(tmp_path: Path) -> None:
    asked: list[str] = []

    async def no_fixers(question: ApprovalQuestion) -> ApprovalAnswer:
        asked.append(question.tool.name)
        return ApprovalAnswer(len(asked) == 1, "test")

    bad = GOOD.removeprefix("import json\n\n\n")
    ran = await run(
        tmp_path,
        write("shop/cart.py", bad),
        SAID,
        repair_rounds=0,
        gate=Gate(ask_for_writes, no_fixers),
    )
    assert asked == ["write_file", "write_file"]
    assert ran.text("shop/cart.py") == bad
    assert ran.report.outcome is Outcome.RED


async def test_lint_of_files_that_the_task_did_not_touch_is_left_alone(tmp_path: Path) -> None:
    old = "import os\n"
    ran = await run(
        tmp_path,
        write("shop/cart.py", "import sys\n" + GOOD),
        SAID,
        files={"shop/old.py": old},
        lint_cmd=f"{sys.prefix}/bin/ruff check --select F401 .",
        repair_rounds=0,
    )
    assert ran.text("shop/old.py") == old
    assert ran.text("shop/cart.py") == GOOD
    assert ran.repairs == [("unused import", 1, 0, True, "better")]
    assert (ran.report.outcome, ran.report.final.verified) == (Outcome.DONE, "red before, too")


@pytest.mark.case(69)
async def test_a_test_that_writes_outside_is_a_failing_test_and_no_loop(tmp_path: Path) -> None:
    evil = TEST.replace("assert total('[1, 2]') == 3", "open('.git/config', 'w').write('x')")
    ran = await run(
        tmp_path,
        write("shop/cart.py", GOOD),
        SAID,
        repair_rounds=0,
        files={"tests/test_evil.py": evil, ".git/config": "[core]\n"},
    )
    assert ran.text(".git/config") == "[core]\n"
    assert (ran.report.outcome, ran.repairs) == (Outcome.RED, [])
    assert len(ran.bodies(Verification)) == 2, "once more, in case it is flaky"


async def test_a_conversation_mends_too_where_that_is_wanted(tmp_path: Path) -> None:
    bad = GOOD.removeprefix("import json\n\n\n")
    project = tmp_path / "project"
    (project / "tests").mkdir(parents=True)
    (project / "tests" / "__init__.py").write_text("")
    (project / "tests" / "test_cart.py").write_text(TEST)
    name = testing.write_script(tmp_path / "s.jsonl", [write("shop/cart.py", bad), SAID])
    flags = {"test_cmd": UNITTEST, "model_name": name, "repair": True}
    async with testing.house(tmp_path, **flags) as app:
        talk = await open_conversation(app)
        talk.verify, talk.repair = checks_and_repair(
            app.checks(detect=True), app.settings, app.workspace, by_default=False, tiny=False
        )
        report = await talk.turn("add a total")
        await talk.end()
    assert (report.outcome, report.final.verified) == (Outcome.DONE, "verified")
    assert (project / "shop" / "cart.py").read_text() == GOOD


SLOWLY = "if [ -e shop/seen ]; then touch shop/again; exec sleep 1000; fi; touch shop/seen; "
"""A check that is quick the first time only."""


@pytest.mark.contract("E42")
async def test_what_is_stopped_among_its_checks_is_taken_back(tmp_path: Path) -> None:
    bad = GOOD.replace("import json\n\n\n", "")
    slow = f"sh -c '{SLOWLY}{UNITTEST}'"
    work = asyncio.create_task(run(tmp_path, write("shop/cart.py", bad), SAID, test_cmd=slow))
    project = tmp_path / "project"
    while not (project / "shop/again").exists():
        assert not work.done()
        await asyncio.sleep(0.05)
    assert (project / "shop/cart.py").read_text() == GOOD, "the fixer had mended it already"
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert (project / "shop/cart.py").read_text() == bad
