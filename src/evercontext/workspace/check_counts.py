"""Read counts from the output of a check, as far as they are easy to read."""

from __future__ import annotations

import re
from collections.abc import Mapping

TAIL_LINES = 120
TAIL_CHARACTERS = 12_000

_WORDS = "passed|failed|skipped|errors?|xfailed|xpassed|warnings?|deselected"
_PYTEST = re.compile(rf"^=*\s*((?:\d+ (?:{_WORDS})(?:, )?)+|no tests ran)(?: in [\d.]+s.*)?$", re.M)
_PLURALS = {"error": "errors", "warning": "warnings"}
_PAIR = re.compile(rf"(\d+) ({_WORDS})")
_UNITTEST = re.compile(r"^Ran (\d+) tests? in", re.M)
_UNITTEST_ENDED = re.compile(r"^(?:FAILED|OK) \((.*)\)$", re.M)
_CARGO = re.compile(r"^test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored", re.M)
_GO = re.compile(r"^(ok|FAIL)\s+\S+\s+(?:[\d.]+s|\(cached\))", re.M)
_JEST = re.compile(r"^Tests:?\s+(.*)$", re.M)
_JEST_PAIR = re.compile(r"(\d+) (passed|failed|skipped|todo)")
_TAP = re.compile(r"^(?:#|ℹ) (pass|fail|skipped) (\d+)$", re.M)
_RUFF = re.compile(r"^Found (\d+) errors?", re.M)
_RAN = ("passed", "failed", "xfailed", "xpassed", "packages_passed", "packages_failed")
_NOTHING = re.compile(
    r"^(?:no tests ran\b|Ran 0 tests\b|NO TESTS RAN|No tests found|No test files found"
    r"|No tests executed|No test is available|0 examples, 0 failures|\s*0 passing\b"
    r"|(?:#|ℹ) tests 0\s*$|Tests:?\s+0 total|Error: no test specified)",
    re.M | re.I,
)
_GO_NO_FILES = re.compile(r"^\?\s+\S+\s+\[no test files\]", re.M)
_GO_EMPTY = re.compile(r"^ok\s.*\[no tests to run\]", re.M)
_MISSING = re.compile(
    r"^(?:bwrap: execvp \S+: No such file or directory|\S*python[\d.]*: No module named \S+"
    r"|npm (?:ERR!|error) Missing script: .*)\s*$",
    re.M,
)
_NOT_FOUND = (126, 127)
"""Exit codes of a shell that could not start a program."""
_NO_TESTS = 5
"""What pytest, and unittest since Python 3.12, say when there was nothing to run."""
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?")
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def plain(output: bytes) -> str:
    """Return output as text that changes nothing in a terminal."""
    text = output.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n")
    return _CONTROLS.sub(lambda c: f"\\x{ord(c[0]):02x}", _ESCAPES.sub("", text))


def spell(counted: Mapping[str, int]) -> str:
    """Return counts as a person reads them."""
    words = {plural: word for word, plural in _PLURALS.items()}
    return ", ".join(
        f"{number} {words.get(word, word) if number == 1 else word}"
        for word, number in counted.items()
    )


def tail(text: str) -> str:
    """Return the end of a text, where checks say what went wrong."""
    lines = text.rstrip().splitlines()
    ending = "\n".join(lines[-TAIL_LINES:])[-TAIL_CHARACTERS:]
    missing = len(text.rstrip()) - len(ending)
    return f"… [{missing} characters before]\n{ending}" if missing > 0 else ending


def counts(text: str) -> dict[str, int]:
    """Return how many passed, failed, were skipped; nothing if the output is of no known kind."""
    for read in (_pytest, _unittest, _cargo, _jest, _tap, _go, _ruff):
        if numbers := read(text):
            return numbers
    return {}


def ran(numbers: Mapping[str, int]) -> int:
    """Return how many tests really ran: what is left out or skipped proves nothing."""
    return sum(numbers.get(word, 0) for word in _RAN)


def unproved(text: str, code: int | None, command: str, *, tests: bool) -> str | None:
    """Return why a check that ended proves nothing: it could not start, or found no tests."""
    if code in _NOT_FOUND or (code and _MISSING.search(text)):
        lines = text.strip().splitlines()
        return f"could not start: {lines[-1][:200] if lines else 'its program is not there'}"
    numbers = counts(text)
    empty = len(_GO_EMPTY.findall(text))
    if ran(numbers) > empty or numbers.get("errors"):
        return None
    if code == _NO_TESTS and re.search(r"pytest|unittest", command):
        return "there are no tests"
    if _NOTHING.search(text) or (code == 0 and (empty or _GO_NO_FILES.search(text))):
        return "there are no tests"
    if tests and code == 0 and numbers:
        return "no test ran"
    return None


def _pytest(text: str) -> dict[str, int]:
    last = None
    for last in _PYTEST.finditer(text):  # noqa: B007 - the last line is the summary
        pass
    if last is None:
        return {}
    if last[1] == "no tests ran":
        return {"passed": 0}
    return {_PLURALS.get(word, word): int(number) for number, word in _PAIR.findall(last[1])}


def _unittest(text: str) -> dict[str, int]:
    ran = _UNITTEST.search(text)
    if ran is None:
        return {}
    ended = _UNITTEST_ENDED.search(text)
    parts = dict(re.findall(r"(failures|errors|skipped)=(\d+)", ended[1])) if ended else {}
    failed = int(parts.get("failures", 0)) + int(parts.get("errors", 0))
    skipped = int(parts.get("skipped", 0))
    return {"passed": int(ran[1]) - failed - skipped, "failed": failed, "skipped": skipped}


def _cargo(text: str) -> dict[str, int]:
    rows = [tuple(map(int, match)) for match in _CARGO.findall(text)]
    if not rows:
        return {}
    passed, failed, skipped = (sum(column) for column in zip(*rows, strict=True))
    return {"passed": passed, "failed": failed, "skipped": skipped}


def _go(text: str) -> dict[str, int]:
    words = _GO.findall(text)
    if not words:
        return {}
    return {"packages_passed": words.count("ok"), "packages_failed": words.count("FAIL")}


def _jest(text: str) -> dict[str, int]:
    line = _JEST.search(text)
    return {word: int(number) for number, word in _JEST_PAIR.findall(line[1])} if line else {}


def _tap(text: str) -> dict[str, int]:
    names = {"pass": "passed", "fail": "failed", "skipped": "skipped"}
    return {names[word]: int(number) for word, number in _TAP.findall(text)}


def _ruff(text: str) -> dict[str, int]:
    match = _RUFF.search(text)
    return {"problems": int(match[1])} if match else {}
