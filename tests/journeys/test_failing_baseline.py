"""V7: a project that was red before: only what is new is reported, repaired and judged."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from evercontext.process.sandbox import Layer, choose
from evercontext.testing import tiny_repository
from tests.cli.command import Ended, evercontext
from tests.journeys.story import script, write

pytestmark = pytest.mark.skipif(choose("auto") is Layer.NONE, reason="no sandbox here")

OLD_FAILURES = "def test_old():\n    assert 1 == 2\n\n\ndef test_older():\n    assert 2 == 3\n"
TEST_TOTAL = "from shop import total\n\n\ndef test_total():\n    assert total([1, 2]) == 3\n"
RIGHT = "def total(items):\n    return sum(items)\n"
WRONG = "def total(items):\n    return max(items)\n"
BROKEN = "def total(items):\n    return sum(itms)\n"
SAID = {"text": "Done."}


@pytest.fixture(autouse=True)
def _own_pytest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VIRTUAL_ENV", sys.prefix)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    files = {"shop.py": RIGHT, "test_shop.py": TEST_TOTAL, "test_old.py": OLD_FAILURES}
    return tiny_repository(tmp_path / "project", files)


def run(
    project: Path, *turns: dict[str, Any], task: str = "do it", more: tuple[str, ...] = ()
) -> tuple[Ended, Any]:
    model = script(project.parent / "s.jsonl", *turns)
    ended = evercontext("run", "-t", task, "-m", model, "--json", *more, cwd=project)
    return ended, json.loads(ended.out)


@pytest.mark.contract("E35")
def test_what_was_red_before_is_told_and_not_blamed(project: Path) -> None:
    ended, told = run(project, write("new.py", "x = 1\n"), SAID)
    assert ended.code == 0, ended.err
    assert (told["outcome"], told["verified"]) == ("done", "red before, too")
    assert told["note"] == "2 failed before, too"
    assert "repairs" not in told, "no repair is spent on what is not its own"
    assert json.loads(evercontext("kpi", "--json", cwd=project).out)["task_success"]["hits"] == 1
    shown = evercontext("trace", "show", cwd=project)
    assert "red before, too" in shown.out
    assert shown.out.count("step run.test (before the change)") == 1, "one look was at that state"
    assert shown.out.count("step run.test\n") == 1


@pytest.mark.contract("E35", "E41")
@pytest.mark.slow
def test_what_is_new_is_red_or_repaired(project: Path) -> None:
    ended, told = run(project, write("shop.py", WRONG), SAID, more=("--repair-rounds", "0"))
    assert (ended.code, told["verified"], told["note"]) == (4, "red", "2 failed before, too")
    (project / "shop.py").write_text(RIGHT)
    ended, told = run(project, write("shop.py", BROKEN), SAID)
    assert ended.code == 0, ended.err
    assert (project / "shop.py").read_text() == RIGHT, "its own slip is repaired"
    assert told["verified"] == "red before, too"


@pytest.mark.slow
def test_the_state_before_is_checked_once_and_only_if_something_is_red(project: Path) -> None:
    looks = "before the change: 2 failed"
    ended, _ = run(project, write("new.py", "x = 1\n"), SAID)
    assert evercontext("trace", "show", cwd=project).out.count(looks) == 1
    (project / "test_old.py").unlink()
    ended, told = run(project, write("newer.py", "x = 1\n"), SAID)
    assert (ended.code, told["verified"]) == (0, "verified with fewer tests")
    assert "before the change" not in evercontext("trace", "show", cwd=project).out


def test_all_of_it_is_judged_where_that_is_asked_for(project: Path) -> None:
    more = ("--repair-all", "--repair-rounds", "0")
    ended, told = run(project, write("new.py", "x = 1\n"), SAID, more=more)
    assert (ended.code, told["verified"]) == (4, "red")


@pytest.mark.contract("E35")
@pytest.mark.slow
def test_what_the_task_asks_to_fix_must_be_fixed(project: Path) -> None:
    """V7: "Fix the failing test" that left it failing was "done", exit 0."""
    asked, rounds = "Fix the failing test test_old", ("--repair-rounds", "0")
    ended, report = run(project, write("new.py", "x = 1\n"), SAID, task=asked, more=rounds)
    assert (ended.code, report["outcome"], report["verified"]) == (4, "red", "red")
    assert "test_old still fails, which the task asks to fix" in report["note"]
    ended, report = run(project, SAID, task=asked, more=rounds)
    assert (ended.code, report["verified"]) == (4, "red"), "nothing was changed at all"
    mended = OLD_FAILURES.replace("1 == 2", "1 == 1")
    ended, report = run(project, write("test_old.py", mended), SAID, task=asked, more=rounds)
    assert (ended.code, report["verified"]) == (0, "red before, too"), "test_older: not asked for"
    assert report["note"] == "1 failed before, too"


FLAKY = """
import pathlib

def test_flaky():
    runs = pathlib.Path(__file__).with_name("runs.txt")
    number = len(runs.read_text()) if runs.exists() else 0
    runs.write_text("x" * (number + 1))
    assert number % 2, "every other time"
"""


def test_a_flaky_test_is_blamed_on_nobody(tmp_path: Path) -> None:
    files = {"test_flaky.py": FLAKY, "runs.txt": "x" * 2, ".gitignore": "runs.txt\n"}
    project = tiny_repository(tmp_path / "project", files)
    ended, told = run(project, write("new.py", "x = 1\n"), SAID)
    assert ended.code == 0, ended.err
    assert told["verified"] in ("verified", "red before, too")


@pytest.mark.slow
def test_in_a_repository_of_several_packages_the_changed_ones_are_checked(tmp_path: Path) -> None:
    files = {
        "packages/a/pyproject.toml": "[project]\nname = 'a'\nversion = '1'\n",
        "packages/a/shop.py": RIGHT,
        "packages/a/tests/test_shop.py": f"import sys; sys.path.insert(0, '.')\n{TEST_TOTAL}",
        "packages/b/pyproject.toml": "[project]\nname = 'b'\nversion = '1'\n",
        "packages/b/tests/test_b.py": OLD_FAILURES,
    }
    project = tiny_repository(tmp_path / "project", files)
    ended, told = run(project, write("packages/a/new.py", "x = 1\n"), SAID)
    assert ended.code == 0, ended.err
    assert told["verified"] == "verified"
    more = ("--repair-rounds", "0")
    ended, told = run(project, write("packages/a/shop.py", WRONG), SAID, more=more)
    assert (ended.code, told["verified"], told["note"]) == (4, "red", None)
