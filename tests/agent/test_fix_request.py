from __future__ import annotations

import pytest

from evercontext.agent.fix_request import asks_for_fix, failures_to_fix
from evercontext.workspace.failures.failure import Failure

TOTAL = Failure("pytest", "assertion", "no", test="tests/test_shop.py::test_total[1-2]")
OTHER = Failure("pytest", "assertion", "no", test="tests/test_mail.py::TestMail::test_send")
STYLE = Failure("ruff", "lint", "unused import", file="shop.py", code="F401")
EVERY = (TOTAL, OTHER, STYLE)


@pytest.mark.parametrize(
    ("task", "expected"),
    [
        ("Fix the failing test", (TOTAL, OTHER)),
        ("Please fix all of the 2 broken unit tests in shop", (TOTAL, OTHER)),
        ("Rename x to y and fix the bug behind the failing tests", (TOTAL, OTHER)),
        ("make the test suite pass again", (TOTAL, OTHER)),
        ("Work on it until CI is green", EVERY),
        ("Add total(). All checks must pass.", EVERY),
        ("fix the lint errors", (STYLE,)),
        ("失敗しているテストを直して", (TOTAL, OTHER)),
        ("テストが通るようにしてください", (TOTAL, OTHER)),
        ("test_total fails. Fix it.", (TOTAL,)),
        ("Make test_send green", (OTHER,)),
        ("Repair what tests/test_mail.py reports", (OTHER,)),
        ("test_totalを修正して", (TOTAL,)),
    ],
)
def test_failures_that_a_task_asks_to_fix(task: str, expected: tuple[Failure, ...]) -> None:
    """V7"""
    assert failures_to_fix(task, EVERY) == {failure.key for failure in expected}


@pytest.mark.parametrize(
    "task",
    [
        "",
        "Fix the typo in README.md and run the tests",
        "Fix a bug that the tests do not cover",
        "Add tests for total()",
        "Why do the tests fail?",
        "Explain why the tests do not pass",
        "Add a docstring to test_total",
        "バグを修正してテストを実行して",
        "テストを追加してバグを修正して",
    ],
)
def test_other_tasks_ask_for_no_old_failure(task: str) -> None:
    """V7: what was red before is not repaired unless somebody asks for it."""
    assert not asks_for_fix(task)
    assert failures_to_fix(task, EVERY) == frozenset()
