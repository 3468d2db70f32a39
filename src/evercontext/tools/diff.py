"""Changes as people read them."""

from __future__ import annotations

import difflib

from evercontext.domain.event import Diff
from evercontext.domain.tool import FileChange

_LONGEST_DIFF = 60_000


def describe(change: FileChange, *, applied: bool = True) -> Diff:
    """Return the diff event of one change."""
    lines = list(_unified(change))
    body = "".join(lines)
    if len(body) > _LONGEST_DIFF:
        body = body[:_LONGEST_DIFF] + "\n… diff cut …\n"
    return Diff(
        path=change.path,
        kind=_kind(change),
        added=sum(line.startswith("+") and not line.startswith("+++") for line in lines),
        removed=sum(line.startswith("-") and not line.startswith("---") for line in lines),
        diff=body,
        applied=applied,
    )


def _kind(change: FileChange) -> str:
    if change.before is None:
        return "created"
    return "deleted" if change.after is None else "changed"


def _unified(change: FileChange) -> list[str]:
    old, new = change.before or "", change.after or ""
    names = (
        "/dev/null" if change.before is None else f"a/{change.path}",
        "/dev/null" if change.after is None else f"b/{change.path}",
    )
    raw = difflib.unified_diff(old.splitlines(), new.splitlines(), *names, lineterm="")
    return [f"{line}\n" for line in raw]
