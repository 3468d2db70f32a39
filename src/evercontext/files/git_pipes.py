"""Find pipes among the files git reads: git would wait there forever."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from evercontext.files.generated_directories import ENVIRONMENTS
from evercontext.files.git_directories import enclosing, resolve
from evercontext.files.path_names import printable_name

_READ_IN_TREE = frozenset({".gitignore", ".gitattributes", ".gitmodules", ".mailmap"})
_MOST_SEEN = 500_000
_ENDLESS = (stat.S_ISFIFO, stat.S_ISCHR, stat.S_ISBLK)


def pipe_for_git(folder: Path, environment: Mapping[str, str]) -> str | None:
    """Name a pipe or device that git would read when it is asked in a folder, if there is one."""
    top = next(enclosing(folder), None)
    resolved = resolve(top, environment) if top else None
    if top is None or resolved is None:
        return None
    pipe = next(_endless(top, resolved.directories, resolved.sources), None)
    if pipe is None:
        return None
    return printable_name(str(pipe.relative_to(top) if top in pipe.parents else pipe))


def _endless(
    top: Path, directories: tuple[Path, ...], sources: Mapping[Path, object]
) -> Iterator[Path]:
    yield from filter(_is_endless, sources)
    for directory in dict.fromkeys(directories):
        yield from filter(_is_endless, _odd(directory))
    # Git follows no link to a file like .gitignore.
    read = (file for file in _odd(top, ENVIRONMENTS) if file.name in _READ_IN_TREE)
    yield from (file for file in read if not file.is_symlink() and _is_endless(file))


def _odd(folder: Path, beside: Collection[str] = ()) -> Iterator[Path]:
    """Yield what is neither a directory nor a plain file below a folder, but not in ``beside``."""
    pending, seen = [os.fspath(folder)], 0
    while pending and seen < _MOST_SEEN:
        try:
            with os.scandir(pending.pop()) as entries:
                for entry in entries:
                    seen += 1
                    if entry.is_dir(follow_symlinks=False):
                        skipped = entry.name == ".git" or entry.name in beside
                        pending += [] if skipped else [entry.path]
                    elif not entry.is_file(follow_symlinks=False):
                        yield Path(entry.path)
        except OSError:
            continue


def _is_endless(file: Path) -> bool:
    try:
        mode = file.stat().st_mode
    except (OSError, ValueError):
        return False
    return any(is_kind(mode) for is_kind in _ENDLESS)
