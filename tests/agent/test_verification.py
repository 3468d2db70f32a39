from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from evercontext import testing
from evercontext.domain.event import Event, Verification
from evercontext.domain.outcome import Outcome

GOOD = "def test_one() -> None:\n    assert 1 + 1 == 2\n"
WRITE: dict[str, Any] = {
    "name": "write_file",
    "arguments": {"path": "a.py", "content": "x = 1\n", "mode": "create"},
}
SAID: dict[str, Any] = {"text": "Done, and all tests pass!"}


@pytest.fixture(autouse=True)
def _own_pytest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VIRTUAL_ENV", sys.prefix)


async def checked(
    folder: Path, tests: str | None, turns: list[dict[str, Any]], **flags: Any
) -> tuple[Outcome, str | None, list[Verification]]:
    project = folder / "project"
    project.mkdir(exist_ok=True)
    if tests is not None:
        (project / "test_it.py").write_text(tests)
    name = testing.write_script(folder / "s.jsonl", turns)
    seen: list[Verification] = []

    def note(event: Event) -> None:
        if isinstance(event.body, Verification):
            seen.append(event.body)

    async with testing.house(folder, **flags) as app:
        app.events.subscribe(note)
        report = await app.run_task("x", model_name=name)
    return report.outcome, report.final.verified, seen


@pytest.mark.contract("E35")
async def test_a_false_claim_of_success_ends_red(tmp_path: Path) -> None:
    wrong = {"path": "test_it.py", "content": GOOD.replace("2", "3"), "mode": "overwrite"}
    turns = [{"tool_calls": [{"name": "write_file", "arguments": wrong}]}, SAID]
    outcome, verified, seen = await checked(tmp_path, GOOD, turns, repair=False)
    assert (outcome, verified) == (Outcome.RED, "red")
    assert {(check.kind, check.exit_code, check.verdict) for check in seen} == {("test", 1, "red")}


async def test_green_tests_verify(tmp_path: Path) -> None:
    outcome, verified, seen = await checked(tmp_path, GOOD, [{"tool_calls": [WRITE]}, SAID])
    assert (outcome, verified) == (Outcome.DONE, "verified")
    assert seen[0].exit_code == 0
    assert "1 passed" in seen[0].summary


async def test_nothing_to_run_is_not_verified(tmp_path: Path) -> None:
    outcome, verified, seen = await checked(tmp_path, None, [{"tool_calls": [WRITE]}, SAID])
    assert (outcome, verified, seen) == (Outcome.DONE, "not verified", [])


async def test_the_agents_own_run_verifies_nothing(tmp_path: Path) -> None:
    own = {"name": "run.test", "arguments": {"command": "true"}}
    turns = [{"tool_calls": [WRITE]}, {"tool_calls": [own]}, SAID]
    outcome, verified, _ = await checked(tmp_path, None, turns, auto_test=False)
    assert (outcome, verified) == (Outcome.DONE, "not verified")


async def test_the_users_command_decides(tmp_path: Path) -> None:
    turns = [{"tool_calls": [WRITE]}, SAID]
    command = "sh -c 'test ! -e a.py'"
    outcome, _, seen = await checked(tmp_path, GOOD, turns, test_cmd=command, lint_cmd="true")
    assert outcome is Outcome.RED
    assert [(check.kind, check.exit_code) for check in seen] == [("lint", 0), ("test", 1)]


async def test_a_check_that_is_not_installed_verifies_nothing(tmp_path: Path) -> None:
    turns = [{"tool_calls": [WRITE]}, SAID]
    outcome, verified, _ = await checked(tmp_path, None, turns, test_cmd="no-such-program-here")
    assert (outcome, verified) == (Outcome.DONE, "not verified")


async def test_without_a_change_nothing_is_run(tmp_path: Path) -> None:
    outcome, verified, seen = await checked(tmp_path, GOOD, [SAID])
    assert (outcome, verified, seen) == (Outcome.DONE, None, [])


def edited(path: str, content: str) -> dict[str, Any]:
    arguments = {"path": path, "content": content, "mode": "overwrite"}
    return {"tool_calls": [{"name": "write_file", "arguments": arguments}]}


BOTH = GOOD + GOOD.replace("test_one", "test_two")
SKIPPING = "import pytest\n\n\n@pytest.mark.skip\n" + BOTH


@pytest.mark.slow
@pytest.mark.parametrize("weaker", [GOOD, SKIPPING], ids=["fewer", "skipped"])
async def test_green_with_fewer_tests_than_the_time_before_is_said(
    tmp_path: Path, weaker: str
) -> None:
    _, verified, _ = await checked(tmp_path, BOTH, [edited("a.py", "x = 1\n"), SAID])
    assert verified == "verified"
    turns = [edited("test_it.py", weaker), SAID]
    outcome, verified, seen = await checked(tmp_path, None, turns)
    assert (outcome, verified) == (Outcome.DONE, "verified with fewer tests")
    assert seen[0].summary.endswith("; 2 ran before")
    assert seen[0].counts["passed"] == 1
    # As many as the last time again: that is what was said then.
    _, verified, _ = await checked(tmp_path, None, [edited("b.py", "y = 1\n"), SAID])
    assert verified == "verified"


async def test_where_every_test_is_skipped_nothing_is_verified(tmp_path: Path) -> None:
    skipped = SKIPPING.replace(BOTH, GOOD)
    outcome, verified, seen = await checked(tmp_path, skipped, [edited("a.py", "x = 1\n"), SAID])
    assert (outcome, verified) == (Outcome.DONE, "not verified")
    assert seen[0].summary == "test: no test ran"


@pytest.mark.slow
async def test_the_tests_of_another_project_are_no_measure(tmp_path: Path) -> None:
    await checked(tmp_path, BOTH, [edited("a.py", "x = 1\n"), SAID])
    (tmp_path / "project").rename(tmp_path / "elsewhere")
    elsewhere = tmp_path / "other"
    elsewhere.mkdir()
    _, verified, _ = await checked(elsewhere, GOOD, [edited("a.py", "x = 1\n"), SAID])
    assert verified == "verified"


@pytest.mark.contract("E42")
async def test_the_time_of_a_task_ends_its_checks_too(tmp_path: Path) -> None:
    async with asyncio.timeout(60):  # far from the end of the command
        outcome, _, seen = await checked(
            tmp_path, None, [{"tool_calls": [WRITE]}, SAID], test_cmd="sleep 1000", timeout=5.0
        )
    assert (outcome, seen) == (Outcome.LIMIT, [])


@pytest.mark.case(74)
async def test_a_runner_that_the_project_brings_itself_verifies_nothing(tmp_path: Path) -> None:
    turns = [edited("unittest/__init__.py", ""), edited("unittest/__main__.py", "print('OK')\n")]
    outcome, verified, seen = await checked(
        tmp_path, None, [*turns, SAID], test_cmd=f"{sys.executable} -m unittest"
    )
    assert (outcome, verified) == (Outcome.DONE, "not verified")
    assert seen[0].summary == "unittest/__init__.py stands in the place of the test runner"
