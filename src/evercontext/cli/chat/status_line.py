"""The status line: as much as fits, the least important left out first."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from evercontext.cli.terminal import columns_of, one_line
from evercontext.files.small_files import small_text

_BETWEEN = " · "
LONGEST_MODEL = 32
"""A longer name is cut: whole, it would drive the hints off a line of 80 columns."""
_LONGEST_BRANCH = 40
_LARGEST_HEAD = 4096


def fitting(parts: Sequence[tuple[int, str]], columns: int) -> str:
    """Join the parts in their order; those with the highest number go first where it is narrow."""
    left = list(parts)
    while len(left) > 1 and columns_of(_BETWEEN.join(text for _, text in left)) > columns:
        left.remove(max(left, key=lambda part: part[0]))
    return _BETWEEN.join(text for _, text in left)


def branch_of(root: Path) -> str:
    """Return the branch that is checked out, or nothing outside a repository."""
    for folder in (root, *root.parents):
        git = folder / ".git"
        if not git.is_dir():
            continue
        head = (small_text(git, "HEAD", _LARGEST_HEAD) or "").strip()
        name = head.removeprefix("ref: refs/heads/") if head.startswith("ref: ") else head[:8]
        return one_line(name)[:_LONGEST_BRANCH]
    return ""
