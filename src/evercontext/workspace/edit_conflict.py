"""Show two conflicting changes of one file side by side."""

from __future__ import annotations

from evercontext.tools.line_comparison import unified

_MOST_LINES = 40


def show_three_ways(base: str, theirs: str, ours: str) -> str:
    """Return what changed in the file since it was read, and what the refused edit wanted."""
    return (
        f"Changed in the file since it was read:\n{_diff(base, theirs)}\n"
        f"Wanted by this edit, and not written:\n{_diff(base, ours)}"
    )


def _diff(old: str, new: str) -> str:
    changes = unified(old.splitlines(), new.splitlines(), ("", ""), context=1)
    lines = [line.removesuffix("\n") for line in changes][2:]
    if len(lines) > _MOST_LINES:
        lines = [*lines[:_MOST_LINES], f"… {len(lines) - _MOST_LINES} more lines"]
    return "\n".join(lines) or "(only line endings or the end of the file)"
