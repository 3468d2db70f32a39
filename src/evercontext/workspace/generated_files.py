"""Count changes in installed programs and build results, which are too many to journal.

A command finds installed programs read-only, because they run later, outside, and no diff shows
them. Some folders inside are the caches of build tools, which do not start without them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from evercontext.access.shell_parser import parts_of
from evercontext.files.directory_walk import Folder, walk
from evercontext.files.path_names import printable_name

TOOL_CACHES = (".cache", ".vite", ".vite-temp", ".vitest")
"""Folders of node_modules that build tools write whenever they run."""
_MOST_OPENED = 20
_MOST_NAMED = 10
_TICK = 20_000_000
READ_ONLY = re.compile(
    r"read-only file system|EROFS|Errno (?:30|13)\b|EACCES|permission denied", re.IGNORECASE
)
HINT = (
    "{names} can only be read by commands, because programs in there run later outside the sandbox;"
    " a command that installs may write them once a person approved it (npm install, pip install)"
)

_NODE = "install i ci add update up upgrade uninstall remove rm un dedupe rebuild prune link import"
_VERBS = {
    **dict.fromkeys(("npm", "pnpm", "yarn", "bun"), _NODE),
    **dict.fromkeys(("pip", "pip3"), "install uninstall"),
    "uv": "sync add remove pip venv lock",
    **dict.fromkeys(("poetry", "pdm", "pipenv"), "install add update remove sync lock"),
    "terraform": "init",
    "tofu": "init",
    "conda": "install remove update create",
}
_INSTALLERS = frozenset({"virtualenv", "tox", "nox"})
_MODULES = frozenset({"pip", "venv", "virtualenv", "tox", "nox", "poetry", "uv"})


@dataclass(frozen=True, slots=True)
class Touched:
    """How many files of one folder a command made or changed, and some of them."""

    folder: str
    files: int
    some: tuple[str, ...]

    @property
    def text(self) -> str:
        """Say it in one line."""
        more = f" and {self.files - len(self.some):,} more" if self.files > len(self.some) else ""
        return f"{self.folder}: {', '.join(self.some)}{more}"


def installs(line: str) -> bool:
    """Tell whether a command line, as far as it can be read, installs something."""
    return any(_installs(part.words) for part in parts_of(line))


def touched(root: Path, folders: Iterable[Path], since: int) -> tuple[Touched, ...]:
    """Count what changed in these folders since an instant, by a time nobody can set back."""
    counted = (_touched(root, folder, since - _TICK) for folder in sorted(set(folders)))
    return tuple(count for count in counted if count.files)


@contextmanager
def opened_caches(environments: Sequence[Path]) -> Iterator[tuple[Path, ...]]:
    """Make the caches of build tools where they are missing; remove them if they stay empty."""
    modules = [path for path in environments if path.name == "node_modules"]
    nearest = sorted(modules, key=lambda path: len(path.parts))[:_MOST_OPENED]
    caches = [path / name for path in nearest if not path.is_symlink() for name in TOOL_CACHES]
    created = []
    for path in caches:
        with suppress(OSError):
            path.mkdir()
            created.append(path)
    try:
        yield tuple(path for path in caches if path.is_dir() and not path.is_symlink())
    finally:
        for path in created:
            with suppress(OSError):
                path.rmdir()


def _touched(root: Path, place: Path, since: int) -> Touched:
    some: list[str] = []
    files = 0

    def look(folder: Folder) -> Iterable[str]:
        nonlocal files
        for name in folder.others:
            with suppress(OSError):
                status = os.stat(name, dir_fd=folder.fd, follow_symlinks=False)
                if status.st_ctime_ns >= since:
                    files += 1
                    if len(some) < _MOST_NAMED:
                        some.append(printable_name("/".join((*folder.parts, name))))
        return folder.directories

    with suppress(OSError):
        walk(place, look)
    return Touched(printable_name(place.relative_to(root).as_posix()), files, tuple(some))


def _installs(words: Sequence[str]) -> bool:
    rest = [word for word in words if not re.fullmatch(r"\w+=.*", word)]
    if not rest:
        return False
    name, arguments = PurePosixPath(rest[0]).name, rest[1:]
    if name in ("env", "command", "exec", "nice", "time"):
        return _installs(arguments)
    if re.fullmatch(r"python[\d.]*", name) and arguments[:1] == ["-m"]:
        return arguments[1:2] != [] and arguments[1] in _MODULES
    verbs = [word for word in arguments if not word.startswith("-")]
    if name == "yarn" and not verbs:
        return True
    return name in _INSTALLERS or bool(verbs and verbs[0] in _VERBS.get(name, "").split())
