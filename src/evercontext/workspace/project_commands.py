"""Detect the commands with which a project lints, tests and formats."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal

from evercontext.files.small_files import small_text
from evercontext.workspace.interpreters import environment_of

Kind = Literal["lint", "test", "format"]
Command = tuple[str, ...]
_ROOT = PurePosixPath(".")

_SYNTAX = Path(__file__).with_name("compile_check.py")
_CHECK = {"lint": ("check", "."), "format": ("format", ".")}
_GO: dict[Kind, Command] = {
    "lint": ("go", "vet", "./..."),
    "test": ("go", "test", "./..."),
    "format": ("gofmt", "-l", "-w", "."),
}
_RUST: dict[Kind, Command] = {
    "lint": ("cargo", "clippy", "--offline", "--quiet"),
    "test": ("cargo", "test", "--offline"),
    "format": ("cargo", "fmt"),
}
_MAKE: dict[Kind, tuple[str, ...]] = {
    "lint": ("lint", "check"),
    "test": ("test", "tests", "check"),
    "format": ("format", "fmt"),
}


_MANIFESTS = ("pyproject.toml", "setup.py", "setup.cfg", "package.json", "go.mod", "Cargo.toml")
"""Files that make a directory a package of its own."""


def packages(root: Path, kind: Kind, changed: Iterable[str], env: Mapping[str, str]) -> list[str]:
    """Return the nearest packages of changed files that have a command of this kind."""
    nearest: dict[str, None] = {}
    for name in changed:
        path = PurePosixPath(name)
        for folder in (path, *path.parents):
            place = root / folder
            if folder == _ROOT or any((place / manifest).is_file() for manifest in _MANIFESTS):
                outer = None if folder == _ROOT else root
                if ProjectCommands(place, env, outer).commands(kind):
                    nearest[str(folder)] = None
                    break
    return list(nearest)


@dataclass(frozen=True, slots=True)
class ProjectCommands:
    """A project's root, and where its programs are looked for."""

    root: Path
    environment: Mapping[str, str]
    outer: Path | None = None
    """The root of the repository, where this is one of its packages."""

    def commands(self, kind: Kind) -> list[Command]:
        """Return the commands of every language found; a Makefile speaks if none is."""
        candidates = [self._python(kind), self._node(kind), self._go(kind), self._rust(kind)]
        commands = [command for command in candidates if command]
        if not commands and (from_makefile := self._make(kind)):
            commands = [from_makefile]
        return commands

    def program(self, name: str) -> str | None:
        """Return the program that a command of this project would start."""
        outer = environment_of(self.outer or self.root, self.environment)
        path = environment_of(self.root, outer).get("PATH", "")
        return shutil.which(name, path=path)

    def _has(self, *patterns: str) -> bool:
        # A pipe or a device of that name tells nothing of the project.
        matches = (path for pattern in patterns for path in self.root.glob(pattern))
        return any(path.is_file() or path.is_dir() for path in matches)

    def _text(self, name: str) -> str:
        return small_text(self.root, name) or ""

    def _python(self, kind: Kind) -> Command | None:
        if not self._has("pyproject.toml", "setup.py", "setup.cfg", "tox.ini", "*.py", "*/*.py"):
            return None
        python = self.program("python") or self.program("python3")
        return self._python_tests(python) if kind == "test" else self._python_style(kind, python)

    def _python_tests(self, python: str | None) -> Command | None:
        if not self._has("tests", "test", "test_*.py", "*_test.py", "*/test_*.py", "conftest.py"):
            return None
        if pytest := self.program("pytest"):
            # By the same Python, which then finds the modules of the root, too.
            same = python and Path(python).parent == Path(pytest).parent
            return (python, "-m", "pytest", "-q") if python and same else (pytest, "-q")
        return (python, "-m", "unittest", "discover") if python else None

    def _python_style(self, kind: Kind, python: str | None) -> Command | None:
        settings = self._text("pyproject.toml")
        if kind == "format" and "[tool.black]" in settings and (black := self.program("black")):
            return (black, ".")
        if ruff := self.program("ruff"):
            return (ruff, *_CHECK[kind])
        if kind == "lint" and python:
            return (python, str(_SYNTAX), ".")
        return None

    def _node(self, kind: Kind) -> Command | None:
        try:
            scripts = json.loads(self._text("package.json") or "{}").get("scripts", {})
        except (ValueError, AttributeError):
            return None
        names = ("format", "fmt", "prettier") if kind == "format" else (kind,)
        for name in names:
            line = scripts.get(name) if isinstance(scripts, dict) else None
            if isinstance(line, str) and "no test specified" not in line:
                return (self._package_manager(), "run", name)
        return None

    def _package_manager(self) -> str:
        locks = {"pnpm-lock.yaml": "pnpm", "yarn.lock": "yarn", "bun.lock": "bun"}
        return next((name for lock, name in locks.items() if self._has(lock)), "npm")

    def _go(self, kind: Kind) -> Command | None:
        return _GO[kind] if self._has("go.mod") else None

    def _rust(self, kind: Kind) -> Command | None:
        return _RUST[kind] if self._has("Cargo.toml") else None

    def _make(self, kind: Kind) -> Command | None:
        text = self._text("Makefile") or self._text("makefile") or self._text("GNUmakefile")
        targets = set(re.findall(r"^([A-Za-z][\w-]*)\s*:(?!=)", text, re.MULTILINE))
        return next((("make", name) for name in _MAKE[kind] if name in targets), None)
