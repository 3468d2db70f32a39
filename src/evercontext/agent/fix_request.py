"""Read from the text of a task which failing checks it asks to have fixed."""

from __future__ import annotations

import re
from collections.abc import Collection

from evercontext.workspace.failures.failure import Failure

_TESTS = r"(?:unit[ -]?)?tests?(?:[ -](?:suites?|cases?|files?))?|specs?|test[ -]?suites?"
_LINT = r"lint(?:er|ing)?|ruff|eslint|flake8|formatting"
_ALL = r"checks?|CI|builds?|pipelines?"
_CHECKS = rf"(?:{_TESTS}|{_LINT}|{_ALL})"
_FIX = r"(?:fix|repair|correct|resolve|solve|debug)(?:e[sd]|s|ing)?"
_FAILING = r"(?:failing|failed|broken|red|remaining|flaky)"
_BESIDE = (
    rf"(?:the|all|of|these|those|this|that|my|our|its|every|any|two|three|four|five|\d+|existing"
    rf"|old|other|last|python|integration|{_FAILING})"
)
_ENGLISH = re.compile(
    rf"\b{_FIX}\b(?:\s+{_BESIDE}){{0,6}}\s+(?P<fixed>{_CHECKS})\b"
    rf"|\b{_FIX}\b[^.;\n]*\b{_FAILING}\s+(?:\w+\s+){{0,2}}(?P<failing>{_CHECKS})\b"
    rf"|\b(?:make|get|ensure|sure|until|so|should|must|have|needs?)\b[^.;\n]*?"
    rf"\b(?P<passing>{_CHECKS})\b(?:\s+(?!not\b|never\b)\w+){{0,3}}\s+(?:pass(?:es|ing)?|green)\b"
    rf"|\b(?P<must>{_CHECKS})\s+(?:must|should|need to|have to)\s+(?:all\s+)?(?:pass|be\s+green)\b",
    re.IGNORECASE,
)
_JAPANESE = re.compile(
    r"(?P<fixed>テスト|リント|チェック|検査|CI)"
    r"(?:(?!追加|書|作|実行)[^。、\n]){0,15}(?:直|修正|通る|通す|通し|通って|成功させ)"
)
_ANY_FIX = re.compile(
    rf"\b(?:{_FIX}|pass(?:es|ing)?|green|fail(?:s|ing|ed|ure|ures)?|broken|red)\b"
    r"|直|修正|通る|通す|通し|通って|失敗|落ち",
    re.IGNORECASE,
)
_LINT_WORD = re.compile(rf"{_LINT}|リント", re.IGNORECASE)
_TESTS_WORD = re.compile(rf"{_TESTS}|テスト", re.IGNORECASE)


def asks_for_fix(task: str) -> bool:
    """True if the task asks for failing checks to be fixed, without naming each of them."""
    return _kind(task) is not None


def failures_to_fix(task: str, failures: Collection[Failure]) -> frozenset[tuple[str, ...]]:
    """Return the keys of failures that the task asks to fix: named ones, else all of a kind.

    Failures that nobody asked about belong to the state before the task.
    """
    if _ANY_FIX.search(task):
        named = frozenset(failure.key for failure in failures if _names(task, failure))
        if named:
            return named
    kind = _kind(task)
    if kind is None:
        return frozenset()
    return frozenset(failure.key for failure in failures if kind in ("all", _kind_of(failure)))


def _kind(task: str) -> str | None:
    """Return the kind of checks that the task asks to fix: ``tests``, ``lint``, ``all`` or none."""
    match = _ENGLISH.search(task) or _JAPANESE.search(task)
    if match is None:
        return None
    words = next(text for text in match.groupdict().values() if text)
    if _LINT_WORD.fullmatch(words):
        return "lint"
    return "tests" if _TESTS_WORD.fullmatch(words) else "all"


def _kind_of(failure: Failure) -> str:
    return "lint" if failure.kind in ("lint", "format") else "tests"


def _names(task: str, failure: Failure) -> bool:
    """True if the task names the failing test, or the file of the tests that fail."""
    names = set()
    if failure.test:
        file, _, rest = failure.test.partition("::")
        # "test_total[1-2]" is named by "test_total", too.
        names = {failure.test, rest, rest.rpartition("::")[2], rest.partition("[")[0]}
        names |= {rest.rpartition("::")[2].partition("[")[0], file, file.rpartition("/")[2]}
    return any(
        re.search(rf"(?<![A-Za-z0-9_.]){re.escape(name)}(?![A-Za-z0-9_])", task)
        for name in names
        if name
    )
