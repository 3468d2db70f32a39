"""Format changes as diffs."""

from __future__ import annotations

import re

from evercontext.domain.event import Diff
from evercontext.domain.tool import FileChange
from evercontext.tools.line_comparison import unified

_LONGEST_DIFF = 60_000
_CONTEXT = 3
_SMALL = 16_384
_FEW_PAIRS = 4_096
"""Pairs of lines that are compared in less time than it takes to hand them to a thread."""
_HUNK = re.compile(r"@@ -(\d+)(,\d+)? \+(\d+)(,\d+)? @@")


def describe(
    change: FileChange, *, applied: bool = True, longest: int | None = _LONGEST_DIFF
) -> Diff:
    """Return the diff event of one change; ``longest`` ``None``: nothing is cut."""
    lines = list(_unified(change))
    body = _modes(change) + "".join(lines)
    if longest is not None and len(body) > longest:
        body = body[:longest] + "\n… diff cut …\n"
    return Diff(
        path=change.path,
        kind=_kind(change),
        # The first two lines name the files; a line of content may look just like them.
        added=sum(line.startswith("+") for line in lines[2:]),
        removed=sum(line.startswith("-") for line in lines[2:]),
        diff=body,
        applied=applied,
    )


def describe_if_small(change: FileChange, *, applied: bool = True) -> Diff | None:
    """Return the diff event if it is a moment's work, ``None`` if it may take longer."""
    before, after = change.before or "", change.after or ""
    if len(before) + len(after) > _SMALL:
        return None
    start, old_end, new_end = _changed_region(_lines(before), _lines(after))
    if (old_end - start) * (new_end - start) > _FEW_PAIRS:
        return None
    return describe(change, applied=applied)


def _modes(change: FileChange) -> str:
    """Changed permissions, as git writes them."""
    if change.modes is None:
        return ""
    old, new = change.modes
    return f"old mode 100{old:03o}\nnew mode 100{new:03o}\n"


def _kind(change: FileChange) -> str:
    if change.before is None:
        return "created"
    return "deleted" if change.after is None else "changed"


def _unified(change: FileChange) -> list[str]:
    old, new = _lines(change.before), _lines(change.after)
    names = (
        "/dev/null" if change.before is None else f"a/{change.path}",
        "/dev/null" if change.after is None else f"b/{change.path}",
    )
    start, old_end, new_end = _changed_region(old, new)
    middle = old[start:old_end], new[start:new_end]
    return [_ended(_moved(line, start)) for line in unified(*middle, names)]


def _lines(text: str | None) -> list[str]:
    """Lines as patch and git see them, with their ends: only a line feed ends one.

    Otherwise a change of line ends would look like none, and the patch would not apply.
    """
    *lines, rest = (text or "").split("\n")
    return [*(f"{line}\n" for line in lines), *([rest] if rest else [])]


def _ended(line: str) -> str:
    return line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


def _changed_region(old: list[str], new: list[str]) -> tuple[int, int, int]:
    """Where both differ, with the context lines around: most changes are small."""
    shorter = min(len(old), len(new))
    head = 0
    while head < shorter and old[head] == new[head]:
        head += 1
    if head == len(old) == len(new):
        return 0, 0, 0
    tail = 0
    while tail < shorter - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    common = max(tail - _CONTEXT, 0)
    return max(head - _CONTEXT, 0), len(old) - common, len(new) - common


def _moved(line: str, offset: int) -> str:
    """Shift a hunk's line numbers by what was left out before it."""
    if not offset or not (hunk := _HUNK.match(line)):
        return line
    old, old_count, new, new_count = hunk.groups(default="")
    return f"@@ -{int(old) + offset}{old_count} +{int(new) + offset}{new_count} @@\n"
