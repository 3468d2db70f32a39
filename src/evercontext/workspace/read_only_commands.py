"""Recognise commands that only read: tests, linters, listings.

While one of them runs, a file that was there already and changes was more likely changed by the
user. Only what is known counts; everything else may have written whatever changed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from evercontext.access.shell_parser import CommandPart, parts_of

_PROGRAMS = """
    pytest tox nox mypy pyright pylint flake8 nosetests jest vitest mocha
    ls cat head tail wc grep rg ag pwd sleep true false test which date id uname du df stat file
    cd echo printf diff cmp
"""
_ALWAYS = frozenset(_PROGRAMS.split())
_QUESTIONS = frozenset(
    [
        "ls",
        "cat",
        "head",
        "tail",
        "wc",
        "grep",
        "rg",
        "ag",
        "test",
        "[",
        "which",
        "stat",
        "file",
        "diff",
        "cmp",
    ]
)
"""Programs whose bad exit code is an answer: not there, not the same."""
_WITH_WORD = {
    "git": frozenset(("status", "log", "diff", "show", "blame", "branch", "rev-parse", "ls-files")),
    "npm": frozenset(("test", "t")),
    "yarn": frozenset(("test",)),
    "pnpm": frozenset(("test",)),
    "go": frozenset(("test", "vet", "list", "version")),
    "cargo": frozenset(("test", "check", "clippy", "tree")),
    "make": frozenset(("test", "check", "lint")),
    "ruff": frozenset(("check",)),
    "npx": frozenset(("jest", "vitest", "tsc", "eslint")),
}
_MODULES = frozenset(("pytest", "unittest", "mypy", "tox", "nox", "pylint", "flake8"))
_REWRITING = re.compile(r"fix|write|update|format|in-place|^-[iuw]$", re.IGNORECASE)


def rewrites(argv: Sequence[str]) -> bool:
    """True for a check that says it changes files: ``--fix``, ``--snapshot-update``."""
    return any(_REWRITING.search(word) for word in argv)


def only_looks(line: str) -> bool:
    """True if every command of a shell line is known to leave files as they are."""
    parts = parts_of(line)
    return bool(parts) and all(_looks(part) for part in parts)


def only_asks(line: str) -> bool:
    """True if every command of a shell line answers a question by its exit code, as grep does."""
    parts = parts_of(line)
    programs = [part.words[0].rpartition("/")[2] if part.words else "" for part in parts]
    return bool(parts) and all(program in _QUESTIONS for program in programs)


def _looks(part: CommandPart) -> bool:
    words = [word for word in part.words if "=" not in word or word.startswith("-")]
    if part.unclear or part.redirects or not words or rewrites(words[1:]):
        return False
    program = words[0].rpartition("/")[2]
    following = next((word for word in words[1:] if not word.startswith("-")), "")
    if re.fullmatch(r"python[\d.]*", program):
        return words[1:2] == ["-m"] and words[2:3] != [] and words[2] in _MODULES
    return program in _ALWAYS or following in _WITH_WORD.get(program, ())
