"""Parse failures of pytest and unittest, and bare tracebacks."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from evercontext.workspace.failures.failure import Failure, blocks, cut, inside, kind_of, located

_HEADER = re.compile(r"^_{2,} (.+?) _{2,}$")
_RULE = re.compile(r"^={3,} (.+?) ={3,}$")
_SUMMARY = re.compile(r"^(FAILED|ERROR) (\S.*?)(?: - (.*))?$")
_FRAME = re.compile(r"^(\S[^:\n]{0,500}):(\d+):(?: in .*| [\w.]*(?:: .*)?)?$")
_ONE_LINE = re.compile(r"^(\S[^:\n]{0,500}):(\d+): (.+)$")
_FILE = re.compile(r'^\s*File "([^"]{1,1000})", line (\d+)')
_RAISED = re.compile(r"^([A-Za-z_][\w.]*)(?:: (.*))?$")
_CONFTEST = re.compile(r"^ImportError while loading conftest '(.+)'\.$")
_COLLECTING = "ERROR collecting "
_UNITTEST = re.compile(r"^(ERROR|FAIL): (\S+) \(([^)]*)\)(.*)$")
_ERRORS = ("Error", "Exception", "Warning", "Interrupt", "Exit", "Group", "Iteration", "Failed")
_LONGEST_LINE = 2_000


@dataclass(slots=True)
class _Section:
    """What pytest says of one test."""

    title: str
    errors: bool
    lines: list[str] = field(default_factory=list)


def read_pytest(text: str, root: str) -> list[Failure]:
    """Return the failures of a pytest run, in any traceback style."""
    lines = [line[:_LONGEST_LINE] for line in text.splitlines()]
    summaries = [m for line in lines if (m := _SUMMARY.match(line))]
    sections = list(_sections(lines))
    failures: list[Failure] = []
    for word, errors in (("ERROR", True), ("FAILED", False)):
        ids = [(m[2], m[3] or "") for m in summaries if m[1] == word]
        described = [section for section in sections if section.errors is errors]
        failures += _paired(ids, described, root)
    return failures or _conftest(lines, root)


def _sections(lines: Sequence[str]) -> Iterator[_Section]:
    part, section = "", None
    for line in lines:
        if rule := _RULE.match(line):
            part, section = rule[1], None
        elif part in ("ERRORS", "FAILURES") and (header := _HEADER.match(line)):
            section = _Section(header[1], part == "ERRORS")
            yield section
        elif part == "FAILURES" and section is None and _ONE_LINE.match(line):
            yield _Section("", False, [line])
        elif section is not None:
            section.lines.append(line)


def _paired(ids: list[tuple[str, str]], described: list[_Section], root: str) -> Iterator[Failure]:
    """Both lists have the same order; where one is cut, names decide."""
    left = list(described)
    for test, summary in ids:
        section = next(
            (
                candidate
                for candidate in left
                if not candidate.title or _is_about(candidate.title, test)
            ),
            None,
        )
        if section:
            left.remove(section)
        yield _failure(test, summary, section, root)


def _is_about(title: str, test: str) -> bool:
    if title.startswith(_COLLECTING):
        return title.removeprefix(_COLLECTING) == test
    name = re.sub(r"^ERROR at (?:setup|teardown) of ", "", title)
    return name == ".".join(test.split("::")[1:])


def _failure(test: str, summary: str, section: _Section | None, root: str) -> Failure:
    lines = section.lines if section else []
    raised, message = _message(lines) if lines else ("", "")
    if not message:
        raised, message = _split_raised(summary)
    collecting = "::" not in test
    failure = Failure(
        "pytest",
        kind_of(raised or "AssertionError") if raised or not collecting else "error",
        cut(message or summary or "failed"),
        test=inside(test, root) or test,
        code=raised or None,
        blocks=collecting,
    )
    frames = list(_frames(lines))
    failure = located(failure, frames, root)
    return failure if failure.file else replace(failure, file=inside(test.split("::")[0], root))


def _message(lines: Sequence[str]) -> tuple[str, str]:
    """The class and the words of what was raised last."""
    if len(lines) == 1 and (short := _ONE_LINE.match(lines[0])):
        return _split_raised(short[3])
    marked = [line[1:].strip("\n") for line in lines if re.match(r"^E(?:\s|$)", line)]
    if not marked:
        return _traceback_end(lines)
    texts = [line.strip() for line in marked if line.strip()]
    for number in range(len(texts) - 1, -1, -1):
        raised, _ = _split_raised(texts[number])
        if raised and not texts[number].startswith("assert "):
            return raised, "\n".join(texts[number : number + 12])
    return ("AssertionError" if texts and texts[0].startswith("assert") else ""), "\n".join(texts)


def _traceback_end(lines: Sequence[str]) -> tuple[str, str]:
    for number in range(len(lines) - 1, -1, -1):
        raised, _ = _split_raised(lines[number])
        if raised and not lines[number].startswith("assert "):
            words = itertools.takewhile(lambda line: not line.startswith("="), lines[number:])
            return raised, "\n".join(list(words)[:12])
    return "", ""


def _split_raised(line: str) -> tuple[str, str]:
    """``NameError: name 'x' is not defined`` → its class, and the whole line."""
    match = _RAISED.match(line)
    if match is None or not match[1].endswith(_ERRORS):
        return ("AssertionError", line) if line.startswith("assert ") else ("", line)
    return match[1].rpartition(".")[2], line


def _frames(lines: Sequence[str]) -> Iterator[tuple[str, int]]:
    for line in lines:
        bare = line[1:] if line.startswith("E ") else line
        match = _FILE.match(bare) or _FRAME.match(line)
        if match:
            yield match[1], int(match[2])


def _conftest(lines: Sequence[str], root: str) -> list[Failure]:
    for number, line in enumerate(lines):
        if match := _CONFTEST.match(line):
            rest = lines[number + 1 :]
            raised, message = _message(rest)
            test = inside(match[1], root)
            kind = kind_of(raised)
            failure = Failure("pytest", kind, cut(message), test=test, code=raised, blocks=True)
            return [located(failure, _frames(rest), root)]
    return []


def read_unittest(text: str, root: str) -> list[Failure]:
    """Return the failures of a run of ``python -m unittest``."""
    lines = [line[:_LONGEST_LINE] for line in text.splitlines()]
    return [_unittest_failure(block, root) for block in blocks(lines, _UNITTEST.match)]


def _unittest_failure(lines: Sequence[str], root: str) -> Failure:
    head = _UNITTEST.match(lines[0])
    assert head is not None
    loading = "_FailedTest" in head[3]
    name = head[2] if loading or not head[3] else head[3]
    if not loading and not name.endswith(head[2]):
        name = f"{name}.{head[2]}"  # before Python 3.11 the method is not repeated
    body = lines[2:]
    end = next((n for n, line in enumerate(body) if line.startswith("-----")), len(body))
    raised, message = _traceback_end(body[:end])
    failure = Failure(
        "unittest",
        kind_of(raised),
        cut(message),
        test=name + head[4].rstrip(),
        code=raised or None,
        blocks=loading,
    )
    return located(failure, _frames(body[:end]), root)


def read_traceback(text: str, root: str) -> list[Failure]:
    """Return the last traceback of a program that no test runner watched."""
    at = text.rfind("Traceback (most recent call last):")
    lines = [line[:_LONGEST_LINE] for line in text[max(at, 0) :].splitlines()]
    if at < 0 and not any(_FILE.match(line) for line in lines):
        return []
    raised, message = _traceback_end(lines)
    if not raised:
        return []
    failure = Failure("python", kind_of(raised), cut(message), code=raised, blocks=True)
    return [located(failure, _frames(lines), root)]
