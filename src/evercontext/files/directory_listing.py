"""What is in a directory, within limits."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from evercontext.errors import FileProblem, PolicyError
from evercontext.files.generated_directories import GENERATED
from evercontext.files.os_errors import explained
from evercontext.files.path_names import TEMPORARY, printable_name
from evercontext.files.paths import Parts, Root
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
class Entry:
    """One line of a listing. ``name`` is relative to the directory that was listed."""

    name: str
    is_dir: bool
    size: int | None = None


@dataclass(frozen=True, slots=True)
class Listing:
    """A directory's entries in order; ``truncated`` says that there are more."""

    path: str
    entries: tuple[Entry, ...]
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
        kept: list[Entry] = []
        truncated = False
        for entry in entries:
            if len(kept) == limit:
                truncated = True
                break
            kept.append(entry)
        entries.close()
    return Listing("/".join(parts) or ".", tuple(kept), truncated)


def walk_files(root: Root, path: str, policy: FilePolicy, check: Check = go_on) -> Iterator[str]:
    """Yield the path of every file below a directory that this door would open."""
    parts, fd = root.directory(path, policy)
    prefix = "".join(f"{part}/" for part in parts)
    for entry in _walk(root, parts, fd, policy, None, True, check, prefix):
        if not entry.is_dir:
            yield entry.name


def _walk(
    root: Root,
    parts: Parts,
    fd: int,
    policy: FilePolicy,
    kinds: frozenset[str] | None,
    recursive: bool,
    check: Check,
    prefix: str = "",
) -> Generator[Entry, None, None]:
    below: list[str] = []
    try:
        for name in sorted(root.kernel.names(fd)):
            check()
            entry, is_link = _describe(root, parts, fd, name, policy)
            if entry is None or not _wanted(entry, name, policy, kinds):
                continue
            yield Entry(prefix + entry.name, entry.is_dir, entry.size)
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


def _wanted(entry: Entry, name: str, policy: FilePolicy, kinds: frozenset[str] | None) -> bool:
    if entry.is_dir:
        return True
    return policy.allows_kind(name) and (kinds is None or extension(name) in kinds)


def _describe(
    root: Root, parts: Parts, fd: int, name: str, policy: FilePolicy
) -> tuple[Entry | None, bool]:
    if TEMPORARY.fullmatch(name) or policy.protects(name):
        return None, False
    try:
        found = root.kernel.lstat(name, fd)
    except FileNotFoundError:
        return None, False
    if stat.S_ISLNK(found.st_mode):
        return _describe_link(root, (*parts, name), policy), True
    is_dir = stat.S_ISDIR(found.st_mode)
    return Entry(printable_name(name), is_dir, None if is_dir else found.st_size), False


def _describe_link(root: Root, parts: Parts, policy: FilePolicy) -> Entry:
    """Describe what a link leads to; of one that leads out only the name is told."""
    name = printable_name(parts[-1])
    try:
        with root.follow(parts, policy.check_directory) as safe:
            found = root.kernel.lstat(safe.name, safe.dir_fd)
    except (OSError, PolicyError, FileProblem):
        return Entry(name, False)
    is_dir = stat.S_ISDIR(found.st_mode)
    return Entry(name, is_dir, None if is_dir else found.st_size)
