"""The pure parts of a repair: what is better, what is protected, how mendings are put together."""

from __future__ import annotations

import pytest

from evercontext.agent.repair.comparison import Step, compare
from evercontext.agent.repair.edits import Proposal, merge, together
from evercontext.agent.repair.protection import is_protected, weakens
from evercontext.agent.repair.repair_prompt import line_of
from evercontext.agent.verification import Findings
from evercontext.workspace.failures.failure import Failure


def failing(name: str, said: str = "AssertionError", *, blocks: bool = False) -> Failure:
    return Failure("pytest", "assertion", said, "a.py", 1, test=name, blocks=blocks)


def red(*failures: Failure, passed: int = 0) -> Findings:
    return Findings("red", failures, passed)


A, B, C = failing("a"), failing("b"), failing("c")
LOADS = failing("test_a.py", "ImportError: x", blocks=True)


@pytest.mark.contract("E42")
@pytest.mark.parametrize(
    ("before", "after", "step"),
    [
        (red(A), Findings("verified"), "better"),
        (red(A, B), red(B, passed=1), "better"),
        (red(A), red(A), "same"),
        (red(A), red(failing("a", "TypeError")), "other"),
        (red(A), red(B), "worse"),
        (red(A, B), red(C), "worse"),
        (red(A), red(A, B), "worse"),
        (red(A, passed=5), red(A, passed=4), "worse"),
        (red(A, B, passed=5), red(A, passed=3), "worse"),
        (red(A), Findings("not verified"), "worse"),
        (red(A, B, passed=3), red(LOADS), "worse"),
        (red(LOADS), red(A, B, passed=4), "better"),
        (red(LOADS, failing("test_b.py", "x", blocks=True)), red(LOADS), "better"),
        (red(LOADS), red(failing("test_a.py", "NameError: y", blocks=True)), "other"),
    ],
)
def test_better_means_less_of_the_old_and_nothing_new(
    before: Findings, after: Findings, step: Step
) -> None:
    assert compare(before, after) == step


@pytest.mark.case(74)
@pytest.mark.parametrize(
    "path",
    [
        "tests/test_a.py",
        "test_a.py",
        "a/b_test.py",
        "conftest.py",
        "tests/data/x.json",
        "src/__tests__/a.js",
        "a.test.ts",
        "a.spec.tsx",
        "pkg/a_test.go",
        "tests/it.rs",
        "pyproject.toml",
        "setup.cfg",
        "package.json",
        "Cargo.toml",
        "Makefile",
        "ruff.toml",
        "vitest.config.ts",
        ".github/workflows/ci.yml",
        "x/__snapshots__/a.snap",
        ".pytest.ini",
        "pytest.toml",
        "sitecustomize.py",
        "vite.config.ts",
        ".eslintignore",
        ".gitignore",
        "./.gitignore",
        "src/.gitignore",
        "src/deep/.gitignore",
    ],
)
def test_tests_and_settings_of_checks_are_protected(path: str) -> None:
    assert is_protected(path)


@pytest.mark.parametrize(
    "path",
    [
        "src/a.py",
        "contest.py",
        "latest/a.js",
        "attest.go",
        "README.md",
        ".ruff_cache/.gitignore",
        "src/.mypy_cache/3.11/.gitignore",
        "node_modules/x/.gitignore",
        "src/x.gitignore",
    ],
)
def test_code_is_not_protected(path: str) -> None:
    assert not is_protected(path)


@pytest.mark.case(74)
@pytest.mark.parametrize(
    "line",
    [
        "x = 1  # noqa",
        "x: int = ''  # type: ignore",
        "// eslint-disable-next-line",
        "// @ts-ignore",
        "#[allow(dead_code)]",
        "#[ignore]",
        "pytest.skip('x')",
        "@unittest.skip('x')",
        "t.Skip()",
        "it.skip('x', f)",
        "import os; os._exit(0)",
        "//nolint:errcheck",
    ],
)
def test_silencing_a_check_is_noticed(line: str) -> None:
    assert weakens("a.py", "x = 1\n", f"x = 1\n{line}\n") == "it silences a check"
    assert weakens("a.py", f"{line}\n", f"{line}\ny = 2\n") is None


@pytest.mark.case(74)
@pytest.mark.parametrize(
    ("path", "there"),
    [
        ("unittest/__main__.py", True),
        ("pytest.py", True),
        ("src/json.py", True),
        ("./_pytest/x.py", True),
        ("mypy/__init__.py", True),
        ("shop/types.py", False),
        ("shop.py", False),
        ("json/data.txt", False),
        ("json", False),
    ],
)
def test_what_takes_the_place_of_a_checker_is_noticed(path: str, there: bool) -> None:
    assert (weakens(path, None, "x = 1\n") is not None) is there
    assert weakens(path, "x = 1\n", "x = 2\n") is None, "a project may have such a file"


@pytest.mark.case(74)
@pytest.mark.parametrize(
    "line",
    [
        "import unittest; unittest.TestCase.assertEqual = print",
        "from _pytest import python",
        "    import pytest",
        "sys.modules['x'] = None",
        "const t = require('node:test')",
    ],
)
def test_code_that_reaches_into_a_test_framework_is_noticed(line: str) -> None:
    said = "it reaches into what runs the checks"
    assert weakens("shop.py", "x = 1\n", f"{line}\n") == said
    assert weakens("shop.py", f"{line}\n", f"{line}\ny = 2\n") is None
    assert weakens("tests/test_own.py", "x = 1\n", f"{line}\n") is None


@pytest.mark.case(74)
def test_tests_inside_a_rust_file_are_protected_too() -> None:
    text = "fn a() {}\n\n#[cfg(test)]\nmod tests {\n    // 試験\n}\n"
    assert weakens("src/lib.rs", text, text.replace("試験", "")) is not None
    assert weakens("src/lib.rs", text, text.replace("fn a", "fn b")) is None


def test_mendings_of_one_file_are_put_together() -> None:
    old = "a\nb\nc\nd\n"
    assert merge(old, ["A\nb\nc\nd\n", "a\nb\nc\nD\n"]) == "A\nb\nc\nD\n"
    assert merge(old, ["x\na\nb\nc\nd\n", "y\na\nb\nc\nd\n"]).splitlines()[2:] == list("abcd")
    assert merge(old, ["a\nB\nc\nd\n", "a\nX\nc\nd\n"]) == "a\nB\nc\nd\n"
    assert merge(old, ["a\nB\nc\nd\n", "a\nB\nc\nd\n"]) == "a\nB\nc\nd\n"
    made = together([Proposal("x", "", {"new.py": ""}), Proposal("y", "", {"f": "1\n"})], {"f": ""})
    assert made == {"new.py": "", "f": "1\n"}


def test_a_failure_in_one_line() -> None:
    said = line_of(Failure("pytest", "name", "NameError:\n  名前", "a.py", 3, test="t"))
    assert said == "- pytest name at a.py:3 in t: NameError: 名前"
