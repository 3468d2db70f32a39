"""List a directory, within limits."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from evercontext.errors import FileProblem, PolicyError
from evercontext.files.contained_paths import Parts, Root, SafePath
from evercontext.files.generated_directories import GENERATED
from evercontext.files.os_errors import explained
from evercontext.files.path_names import TEMPORARY, printable_name
from evercontext.files.policy import FilePolicy, extension

MAX_ITEMS = 1000
MOST_ITEMS = 20_000
"""No answer is longer, whatever is asked for."""
_MAX_DEPTH = 64


Check = Callable[[], None]
"""Asked before each entry; raises if nobody waits for the rest any more."""


def go_on() -> None:
    """Somebody always waits."""


@dataclass(frozen=True, slots=True)
class DirectoryEntry:
    """One line of a listing. ``name`` is relative to the directory that was listed."""

    name: str
    is_dir: bool
    size: int | None = None


@dataclass(frozen=True, slots=True)
class Listing:
    """A directory's entries in order; ``truncated`` says that there are more."""

    path: str
    entries: tuple[DirectoryEntry, ...]
    truncated: bool


def list_directory(
    root: Root,
    path: str,
    policy: FilePolicy,
    *,
    extensions: Iterable[str] | None = None,
    max_items: int | None = None,
    recursive: bool = False,
    check: Check = go_on,
) -> Listing:
    """List a directory; kinds that the policy refuses and protected places are left out."""
    limit = min(max(max_items if max_items is not None else MAX_ITEMS, 0), MOST_ITEMS)
    kinds = None if extensions is None else frozenset("." + e.lstrip("*.") for e in extensions)
    parts, fd = root.directory(path, policy)
    with explained():
        entries = _walk(root, parts, fd, policy, kinds, recursive, check)
        listed: list[DirectoryEntry] = []
        truncated = False
        for entry, _ in entries:
            if len(listed) == limit:
                truncated = True
                break
            listed.append(entry)
        entries.close()
    return Listing("/".join(parts) or ".", tuple(listed), truncated)


def walk_files(
    root: Root, path: str, policy: FilePolicy, check: Check = go_on
) -> Iterator[tuple[str, SafePath | None]]:
    """Yield the path of every file below a directory that the policy allows, and where it is.

    The place is open until the next file is asked for; a link has none.
    """
    parts, fd = root.directory(path, policy)
    prefix = "".join(f"{part}/" for part in parts)
    for entry, place in _walk(root, parts, fd, policy, None, True, check, prefix):
        if not entry.is_dir:
            yield entry.name, place


def _walk(
    root: Root,
    parts: Parts,
    fd: int,
    policy: FilePolicy,
    kinds: frozenset[str] | None,
    recursive: bool,
    check: Check,
    prefix: str = "",
) -> Generator[tuple[DirectoryEntry, SafePath | None], None, None]:
    below: list[str] = []
    try:
        for name in sorted(root.kernel.names(fd)):
            check()
            entry, is_link = _describe(root, parts, fd, name, policy)
            if entry is None or not _is_listed(entry, name, policy, kinds):
                continue
            place = None if is_link else SafePath(root, (*parts, name), fd, (), False)
            yield DirectoryEntry(prefix + entry.name, entry.is_dir, entry.size), place
            if recursive and entry.is_dir and not is_link and name not in GENERATED:
                below.append(name)
    finally:
        root.kernel.close(fd)
    if len(parts) >= _MAX_DEPTH:
        return
    for name in below:
        with suppress(OSError):  # gone or swapped since it was listed
            inner = root.beneath.open(root.fd, (*parts, name), os.O_RDONLY)
            into = f"{prefix}{printable_name(name)}/"
            yield from _walk(root, (*parts, name), inner, policy, kinds, recursive, check, into)


def _is_listed(
    entry: DirectoryEntry, name: str, policy: FilePolicy, kinds: frozenset[str] | None
) -> bool:
    if entry.is_dir:
        return True
    return policy.allows_kind(name) and (kinds is None or extension(name) in kinds)


def _describe(
    root: Root, parts: Parts, fd: int, name: str, policy: FilePolicy
) -> tuple[DirectoryEntry | None, bool]:
    if TEMPORARY.fullmatch(name) or policy.protects(name):
        return None, False
    try:
        status = root.kernel.lstat(name, fd)
    except FileNotFoundError:
        return None, False
    if stat.S_ISLNK(status.st_mode):
        return _describe_link(root, (*parts, name), policy), True
    is_dir = stat.S_ISDIR(status.st_mode)
    return DirectoryEntry(printable_name(name), is_dir, None if is_dir else status.st_size), False


def _describe_link(root: Root, parts: Parts, policy: FilePolicy) -> DirectoryEntry:
    """Describe what a link leads to; of one that leads out only the name is told."""
    name = printable_name(parts[-1])
    try:
        with root.follow(parts, policy.check_directory) as safe:
            status = root.kernel.lstat(safe.name, safe.dir_fd)
    except (OSError, PolicyError, FileProblem):
        return DirectoryEntry(name, False)
    is_dir = stat.S_ISDIR(status.st_mode)
    return DirectoryEntry(name, is_dir, None if is_dir else status.st_size)
