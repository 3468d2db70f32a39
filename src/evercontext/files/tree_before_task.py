"""Lay out the tree as it was before a task in a folder of its own."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from stat import S_ISREG

from evercontext.errors import NotFound, TooLarge
from evercontext.files.generated_directories import GENERATED, INSTALLED
from evercontext.files.journal import Journal
from evercontext.files.os_errors import explained

MOST_FILES = 20_000
MOST_BYTES = 256 << 20


def lay_out_before(
    root: Path, journal: Journal, trace_id: str, target: Path, skip: Callable[[str], bool]
) -> list[str]:
    """Copy a tree into ``target`` as it was before a task; return the names of its files.

    ``skip`` says which names are left out. TooLarge if that would be too much, NotFound if an old
    content was not kept.
    """
    with explained():
        old = _old_contents(journal, trace_id)
        names = sorted(_copied(root, target, old, skip))
        for name, content in old.items():
            if content is not None:
                place = target / name
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(content)
        return sorted({*names, *(name for name, content in old.items() if content is not None)})


def _old_contents(journal: Journal, trace_id: str) -> dict[str, bytes | None]:
    """What the files that a task changed held before it; ``None``: they were not there."""
    history = journal.history()
    old: dict[str, bytes | None] = {}
    for entry in history.entries:
        # What was more likely changed by the user meanwhile is no change of the task.
        if entry.trace_id != trace_id or entry.path in old or entry.unsure:
            continue
        content = journal.blob(entry.before, history) if entry.before else None
        if entry.before and content is None:
            raise NotFound(f"what {entry.path} held before was not kept")
        old[entry.path] = content
    return old


def _copied(
    root: Path, target: Path, left_out: dict[str, bytes | None], skip: Callable[[str], bool]
) -> Iterator[str]:
    files = size = 0
    waiting = [""]
    while waiting:
        below = waiting.pop()
        (target / below).mkdir(parents=True, exist_ok=True)
        with os.scandir(root / below) as listed:
            entries = list(listed)
        for entry in entries:
            name = f"{below}/{entry.name}" if below else entry.name
            if skip(entry.name) or name in left_out:
                continue
            if entry.is_symlink():
                (target / name).symlink_to(Path(entry.path).readlink())
            elif entry.name in INSTALLED:
                (target / name).symlink_to(entry.path)
            elif entry.is_dir() and entry.name not in GENERATED:
                waiting.append(name)
            elif S_ISREG(mode := entry.stat(follow_symlinks=False).st_mode):
                files, size = files + 1, size + entry.stat(follow_symlinks=False).st_size
                if files > MOST_FILES or size > MOST_BYTES:
                    raise TooLarge("the tree is too large to be copied")
                shutil.copyfile(entry.path, target / name, follow_symlinks=False)
                (target / name).chmod(mode & 0o777 | 0o200)
                yield name
