"""What a command did to the tree: one look before, one look after.

A formatter or a test run writes without asking us. Both looks are bounded; what was too large to
be kept is said, so that nobody takes an undo for complete when it is not.
"""

from __future__ import annotations

import os
import secrets
import stat
import time
from contextlib import suppress
from dataclasses import dataclass, field

from evercontext.errors import EverContextError
from evercontext.files import io
from evercontext.files.journal import Journal
from evercontext.files.listing import SKIPPED
from evercontext.files.names import TEMPORARY, printable
from evercontext.files.paths import Parts, Root, SafePath
from evercontext.files.policy import FilePolicy
from evercontext.files.records import Entry

_STORES = frozenset({".git", ".hg", ".svn", ".jj", ".evercontext", ".nebula"})


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much of a tree is kept in memory while a command runs."""

    files: int = 50_000
    file_bytes: int = 2 << 20
    total_bytes: int = 64 << 20


@dataclass(frozen=True, slots=True)
class Shot:
    """One file as it was seen; without ``data`` it was too large to be kept."""

    stamp: tuple[int, int, int, int]
    mode: int
    owner: tuple[int, int]
    sha256: str | None
    data: bytes | None


@dataclass(slots=True)
class Snapshot:
    """The files and directories of a tree at one moment."""

    files: dict[str, Shot] = field(default_factory=dict)
    directories: set[str] = field(default_factory=set)
    complete: bool = True
    kept_bytes: int = 0


@dataclass(frozen=True, slots=True)
class CommandChange:
    """A file that a command changed; contents as text where they are text."""

    path: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class CommandChanges:
    """Everything that a command changed."""

    changes: tuple[CommandChange, ...] = ()
    not_undoable: tuple[str, ...] = ()
    """Changed files whose old content had been too large to keep."""
    complete: bool = True
    """False if the tree was too large to be looked at whole."""


def take(root: Root, previous: Snapshot | None = None, bounds: Bounds | None = None) -> Snapshot:
    """Look at the whole tree; files whose stamp is in ``previous`` are not read again."""
    limits, shot = bounds or Bounds(), Snapshot()
    pending: list[Parts] = [()]
    while pending:
        parts = pending.pop()
        with suppress(OSError):
            fd = root.beneath.open(root.fd, parts, os.O_RDONLY)
            try:
                pending += _look(root, parts, fd, shot, previous, limits)
            finally:
                root.kernel.close(fd)
        if len(shot.files) >= limits.files:
            shot.complete = False
            break
    return shot


def record(journal: Journal, before: Snapshot, after: Snapshot, trace_id: str) -> CommandChanges:
    """Write the differences into the journal, so that they can be undone like any change."""
    entries: list[tuple[Entry, bytes | None]] = []
    lost: list[str] = []
    made = tuple(sorted(after.directories - before.directories))
    for path in sorted(before.files.keys() | after.files.keys()):
        old, new = before.files.get(path), after.files.get(path)
        if _same(old, new):
            continue
        if (old and old.data is None) or (new and new.sha256 is None):
            lost.append(printable(path))
            continue
        mine = tuple(name for name in made if path.startswith(name + "/"))
        entries.append((_entry(path, old, new, mine, trace_id), old.data if old else None))
    if entries:
        journal.record(entries)
    changes = tuple(
        CommandChange(printable(e.path), _text(before, e.path), _text(after, e.path))
        for e, _ in entries
    )
    return CommandChanges(changes, tuple(lost), before.complete and after.complete)


def _look(
    root: Root,
    parts: Parts,
    fd: int,
    shot: Snapshot,
    previous: Snapshot | None,
    limits: Bounds,
) -> list[Parts]:
    below: list[Parts] = []
    for name in root.kernel.names(fd):
        if len(shot.files) >= limits.files:
            break
        with suppress(OSError):
            found = root.kernel.lstat(name, fd)
            here = (*parts, name)
            if stat.S_ISDIR(found.st_mode):
                if name not in SKIPPED and name not in _STORES:
                    shot.directories.add("/".join(here))
                    below.append(here)
            elif stat.S_ISREG(found.st_mode) and not TEMPORARY.fullmatch(name):
                safe = SafePath(root, here, fd, (), False)
                _keep(shot, safe, found, previous, limits)
    return below


def _keep(
    shot: Snapshot,
    safe: SafePath,
    found: os.stat_result,
    previous: Snapshot | None,
    limits: Bounds,
) -> None:
    stamp = (found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
    path = safe.relative
    known = previous.files.get(path) if previous else None
    if known is None or known.stamp != stamp or known.sha256 is None:
        known = _read(safe, found, stamp, limits, limits.total_bytes - shot.kept_bytes)
    shot.kept_bytes += len(known.data or b"")
    shot.files[path] = known


def _read(
    safe: SafePath,
    found: os.stat_result,
    stamp: tuple[int, int, int, int],
    limits: Bounds,
    room: int,
) -> Shot:
    mode, owner = stat.S_IMODE(found.st_mode), (found.st_uid, found.st_gid)
    policy = FilePolicy(max_bytes=min(limits.file_bytes, room), protected=(), hard_links=True)
    try:
        content = io.read(safe, policy)
    except EverContextError:
        return Shot(stamp, mode, owner, None, None)
    return Shot(stamp, mode, owner, content.sha256, content.data)


def _same(old: Shot | None, new: Shot | None) -> bool:
    if old is None or new is None:
        return old is new
    if old.sha256 is None or new.sha256 is None:
        return old.stamp == new.stamp
    return old.sha256 == new.sha256


def _entry(
    path: str, old: Shot | None, new: Shot | None, made: tuple[str, ...], trace_id: str
) -> Entry:
    return Entry(
        id=secrets.token_hex(8),
        trace_id=trace_id,
        step=None,
        at=time.time_ns(),
        path=path,
        before=old.sha256 if old else None,
        before_mode=old.mode if old else None,
        owner=old.owner if old else None,
        after=new.sha256 if new else None,
        after_mode=new.mode if new else None,
        directories=made,
        temporary=io.temporary_name(),
    )


def _text(snapshot: Snapshot, path: str) -> str | None:
    shot = snapshot.files.get(path)
    return None if shot is None or shot.data is None else shot.data.decode("utf-8", "replace")
