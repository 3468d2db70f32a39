"""Protect tests and the configuration of checks from repairs (case 74).

A check that was changed so that it passes says nothing. While a repair is under way, calls that
would change such a file are answered with no, and whatever was changed in spite of that, by a
command say, is found in the journal afterwards and taken back.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Collection
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import PurePosixPath

from evercontext.domain.tool import Arguments, Caller, Tool
from evercontext.files.generated_directories import GENERATED
from evercontext.tools.approval_gate import ApprovalAnswer, ApprovalQuestion, Gate, Verdict

_FOLDERS = frozenset(
    ("test", "tests", "testing", "__tests__", "spec", "specs", "e2e", "testdata", "__snapshots__")
)
_TESTS = """
    test_*.py *_test.py conftest.py *.test.[jt]s *.test.[jt]sx *.spec.[jt]s *.spec.[jt]sx
    *.test.[cm][jt]s *.spec.[cm][jt]s *_test.go *_test.rs *_spec.rb *.snap
"""
_SETTINGS = """
    pyproject.toml pytest.ini .pytest.ini pytest.toml .pytest.toml sitecustomize.py usercustomize.py
    .ignore .eslintignore .prettierignore .mocharc* vite.config.* tox.ini setup.cfg noxfile.py
    mypy.ini .mypy.ini ruff.toml .ruff.toml .flake8 .pylintrc .coveragerc package.json
    tsconfig*.json jsconfig.json vitest.config.* jest.config.* eslint.config.* .eslintrc*
    .prettierrc* prettier.config.* Cargo.toml clippy.toml .clippy.toml rustfmt.toml .rustfmt.toml
    go.mod go.work .golangci.* Makefile makefile GNUmakefile justfile Taskfile.*
    .pre-commit-config.yaml
"""
_DECIDING = (*_TESTS.split(), *_SETTINGS.split())
_SILENCERS = re.compile(
    r"#\s*noqa|#\s*type:\s*ignore|#\s*pyright:\s*ignore|#\s*ruff:\s*noqa|#\s*pragma:\s*no cover"
    r"|eslint-disable|@ts-(?:ignore|nocheck|expect-error)|//\s*nolint|#!?\[allow\("
    r"|pytest\.(?:skip|xfail|importorskip)|mark\.(?:skip|xfail)|unittest\.skip|SkipTest"
    r"|#\[ignore|\bt\.Skip|\b(?:it|test|describe)\.(?:skip|todo)|\bos\._exit\(|\bsys\.exit\(0\)"
)
_FRAMEWORKS = re.compile(
    r"^\s*(?:import|from)\s+(?:unittest|_?pytest|doctest|nose)\b|\bsys\.modules\b"
    r"|[\"'](?:node:test|vitest|@jest/[\w-]+|mocha)[\"']",
    re.MULTILINE,
)
"""Code that a program does not need and that changes how its tests are judged."""
_RUNNERS = frozenset(
    (
        "pytest",
        "_pytest",
        "pluggy",
        "iniconfig",
        "mypy",
        "ruff",
        "coverage",
        "xdist",
        "nose",
        "hypothesis",
        "tox",
        "flake8",
        "pylint",
    )
)
_RUST_TESTS = re.compile(r"^#\[cfg\(test\)\].*", re.MULTILINE | re.DOTALL)
REASON = "tests and the settings of checks stay as they are during a repair; fix the code"


def is_protected(path: str) -> bool:
    """True for tests, their expected data, and the configuration of a check."""
    folders = PurePosixPath(path).parts[:-1]
    return decides(path) or bool(_FOLDERS & set(folders)) or ".github" in folders


def decides(path: str) -> bool:
    """True for a file that its name alone makes a test or the settings of a check."""
    name = PurePosixPath(path).name
    return _hides(path) or any(fnmatch(name, pattern) for pattern in _DECIDING)


def _hides(path: str) -> bool:
    """True for a file that makes linters skip the files that git ignores.

    Caches and environments bring one of their own, and hold nothing that a linter looks at.
    """
    *folders, name = PurePosixPath(path).parts or ("",)
    generated = any(folder.startswith(".") or folder in GENERATED for folder in folders)
    return name == ".gitignore" and not generated


def weakens(path: str, before: str | None, after: str | None) -> str | None:
    """Say how a change to any file makes a check see less, if it does."""
    old, new = before or "", after or ""
    if before is None and _takes_a_place(path):
        return "it takes the place of what the checks run"
    if not is_protected(path) and len(_FRAMEWORKS.findall(new)) > len(_FRAMEWORKS.findall(old)):
        return "it reaches into what runs the checks"
    if len(_SILENCERS.findall(new)) > len(_SILENCERS.findall(old)):
        return "it silences a check"
    if path.endswith(".rs") and _RUST_TESTS.findall(old) != _RUST_TESTS.findall(new):
        return "it changes the tests inside the file"
    return None


def _takes_a_place(path: str) -> bool:
    """True for a module that Python would find before the one of its own library, or a checker."""
    parts = [part for part in PurePosixPath(path).parts if part not in (".", "src", "lib")]
    name = PurePosixPath(parts[0]).stem if parts else ""
    is_module = path.endswith((".py", ".pyi", ".so")) and (len(parts) > 1 or "." in parts[0])
    return is_module and (name in sys.stdlib_module_names or name in _RUNNERS)


@dataclass(frozen=True, slots=True)
class Guard:
    """Return a gate that refuses changes of protected files and is otherwise the same."""

    inner: Gate
    own: Collection[str] = ()
    """Tests that the task itself made: they are its work, not its judge."""

    @property
    def gate(self) -> Gate:
        """The gate, for a toolbox."""
        return Gate(self._policy, self._ask)

    def _policy(self, tool: Tool, arguments: Arguments, caller: Caller) -> Verdict:
        if tool.writes and self._named(arguments):
            return "ask"
        return self.inner.policy(tool, arguments, caller)

    async def _ask(self, question: ApprovalQuestion) -> ApprovalAnswer:
        if question.tool.writes and self._named(question.arguments):
            return ApprovalAnswer(False, "protected tests", REASON)
        return await self.inner.ask(question)

    def _named(self, arguments: Arguments) -> bool:
        paths = (arguments.get("path"), arguments.get("to"))
        return any(isinstance(path, str) and self.covers(path) for path in paths)

    def covers(self, path: str) -> bool:
        """True if this file may not change."""
        return is_protected(path) and _plain(path) not in self.own


def _plain(path: str) -> str:
    return "/".join(part for part in PurePosixPath(path).parts if part != ".")


Covers = Callable[[str], bool]
