"""Parse the output of any check into failures."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import PurePosixPath

from evercontext.workspace.check_counts import plain
from evercontext.workspace.failures import go_and_rust, javascript, linters, python
from evercontext.workspace.failures.failure import Failure, cut

MOST_FAILURES = 200
LONGEST_OUTPUT = 1 << 20
_LONGEST_LINE = 4_000

Read = Callable[[str, str], list[Failure]]

_READERS: tuple[tuple[re.Pattern[str], Read], ...] = (
    (
        re.compile(r"^(?:=+ )?(?:FAILURES|ERRORS|short test summary|\d+ \w+.* in [\d.]+s)", re.M),
        python.read_pytest,
    ),
    (re.compile(r"^(?:FAILED|ERROR) \S+(?:::|\.py)|loading conftest '", re.M), python.read_pytest),
    (re.compile(r"^(?:ERROR|FAIL): \S+ \(", re.M), python.read_unittest),
    (re.compile(r"^\s*not ok \d+ - |^✖ failing tests:", re.M), javascript.read_node),
    (re.compile(r"^ FAIL {2}\S+", re.M), javascript.read_vitest),
    (
        re.compile(r"^\s*--> \S+:\d+:\d+$|^test \S+ \.\.\. FAILED$", re.M),
        go_and_rust.read_rust,
    ),
    (re.compile(r"\.go:\d+:|^\s*--- FAIL: ", re.M), go_and_rust.read_go),
    (re.compile(r": error: ", re.M), linters.read_mypy),
    (re.compile(r'^\S+:\d+:\d+: \S+ |^\s*--> \S+:\d+:\d+$|"filename"', re.M), linters.read_ruff),
    (
        re.compile(r"would reformat|^Diff in |^\[warn\] |^\S+\.go$", re.M | re.I),
        linters.read_formatters,
    ),
)
_LAST: tuple[Read, ...] = (python.read_traceback, javascript.read_crash, linters.read_generic)


def read_failures(output: str | bytes, root: str) -> tuple[Failure, ...]:
    """Return what a check's output says went wrong; nothing if it is of no known kind.

    ``root`` is the resolved root: absolute paths below it become relative, others are dropped.
    """
    raw = output if isinstance(output, bytes) else output.encode("utf-8", "replace")
    text = plain(raw[-LONGEST_OUTPUT:])
    text = "\n".join(line[:_LONGEST_LINE] for line in text.split("\n"))
    failures: list[Failure] = []
    for hint, read in _READERS:
        if hint.search(text):
            failures += [failure for failure in read(text, root) if failure not in failures]
    for read in _LAST:
        failures = failures or read(text, root)
    return tuple(failures[:MOST_FAILURES])


def unreadable_failure(command: Sequence[str], output: str) -> Failure:
    """Return the failure of a check whose output has no known format."""
    name = PurePosixPath(command[0]).name if command else "check"
    lines = [line for line in output.strip().splitlines() if line.strip()]
    ending = "\n".join(lines[-12:]) or "it failed and said nothing"
    return Failure(name, "error", cut(ending), test=f"{name} as a whole", blocks=True)
