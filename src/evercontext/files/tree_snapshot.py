"""Find what a command changed in the tree, by a snapshot before and after.

A formatter or a test run writes without asking us. Both looks are bounded; what was too large to
be kept is said, so that nobody takes an undo for complete when it is not.
"""

from __future__ import annotations

import os
import secrets
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from evercontext.errors import EverContextError
from evercontext.files import file_io
from evercontext.files.clock import journal_clock
from evercontext.files.contained_paths import Parts, Root, SafePath
from evercontext.files.generated_directories import BUILD_RESULTS, ENVIRONMENTS, GENERATED
from evercontext.files.journal import Journal, parts_of
from evercontext.files.journal_records import JournalEntry
from evercontext.files.links_and_directories import Creations, target_of
from evercontext.files.path_names import TEMPORARY, printable_name
from evercontext.files.policy import FilePolicy

_STORES = frozenset({".git", ".hg", ".svn", ".jj", ".evercontext", ".nebula"})

NEW_FOLDER = "a new folder of installed programs or build results\n"
OLD_LARGE, NEW_LARGE = "old content, too large to be kept\n", "new content, too large to be kept\n"
OLD_LINK, OLD_LINK_GONE = "a link\n", "another link, or none\n"
_TICK = 2_000_000_000
"""The slowest clock of a file system: what changed this shortly before may change unseen."""


@dataclass(frozen=True, slots=True)
class SnapshotBounds:
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
    links: dict[str, str] = field(default_factory=dict)
    """Symbolic links and where they point."""
    folders: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Folders of installed programs and build results, which are not entered."""
    complete: bool = True
    kept_bytes: int = 0
    began: int = field(default_factory=time.time_ns)

    def known(self, path: str, stamp: tuple[int, int, int, int]) -> Shot | None:
        """The file as it was seen then, if its stamp proves that it is still the same."""
        shot = self.files.get(path)
        if shot is None or shot.sha256 is None or shot.stamp != stamp:
            return None
        return shot if stamp[-1] < self.began - _TICK else None


@dataclass(frozen=True, slots=True)
class CommandChange:
    """A file that a command changed; contents as text where they are text."""

    path: str
    before: str | None
    after: str | None
    modes: tuple[int, int] | None = None
    undoable: bool = True


@dataclass(frozen=True, slots=True)
class CommandChanges:
    """Everything that a command changed."""

    changes: tuple[CommandChange, ...] = ()
    not_undoable: tuple[str, ...] = ()
    """Those of the changes whose old content had been too large to keep."""
    complete: bool = True
    """False if the tree was too large to be looked at whole."""
    unsure: tuple[str, ...] = ()
    """Files that changed meanwhile, and more likely by somebody else."""


def take(
    root: Root, previous: Snapshot | None = None, bounds: SnapshotBounds | None = None
) -> Snapshot:
    """Look at the whole tree; files whose stamp is in ``previous`` are not read again."""
    limits, shot = bounds or SnapshotBounds(), Snapshot()
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


def look_again(root: Root, path: str, shot: Snapshot) -> None:
    """Bring one file of a snapshot up to date, and the directories that it is in."""
    *above, name = parts = parts_of(path)
    shot.files.pop(path, None)
    with suppress(OSError):
        fd = root.beneath.open(root.fd, tuple(above), os.O_RDONLY)
        try:
            shot.directories.update(_parents(path))
            status = root.kernel.lstat(name, fd)
            if stat.S_ISREG(status.st_mode):
                _keep(shot, SafePath(root, parts, fd, (), False), status, None, SnapshotBounds())
        finally:
            root.kernel.close(fd)


def settle(root: Root, path: str, content: bytes | None, shot: Snapshot) -> None:
    """Let a snapshot hold a file as it was written, whatever became of it since."""
    before = shot.files.get(path)
    look_again(root, path, shot)
    now = shot.files.get(path)
    if content is None:
        shot.files.pop(path, None)
    elif now is None or now.sha256 != file_io.digest(content):
        mode, owner = (before.mode, before.owner) if before else (0o644, (0, 0))
        shot.files[path] = Shot((0, 0, 0, 0), mode, owner, file_io.digest(content), content)


def record(
    journal: Journal,
    before: Snapshot,
    after: Snapshot,
    trace_id: str,
    unsure: str = "",
    *,
    new_too: bool = False,
) -> CommandChanges:
    """Write the differences into the journal, so that they can be undone like any change.

    ``unsure`` names a command that is not expected to change files that were there: such a change
    is kept apart, because an undo must not take back what the user did meanwhile. With ``new_too``
    a new file may be the user's, too. What the first look did not reach may have been there:
    nothing counts as new then.
    """
    entries: list[tuple[JournalEntry, bytes | None]] = []
    lost: dict[str, tuple[str | None, str | None]] = {}
    lost |= dict.fromkeys(_lost_links(before, after), (OLD_LINK, OLD_LINK_GONE))
    doubtful: list[str] = []
    new_directories = (
        tuple(sorted(after.directories - before.directories)) if before.complete else ()
    )
    for path in sorted(before.files.keys() | after.files.keys()):
        old, new = before.files.get(path), after.files.get(path)
        if _same(old, new) or (old is None and not before.complete):
            continue
        if (old and old.data is None) or (new and new.sha256 is None):
            if old and unsure:
                doubtful.append(printable_name(path))
            else:
                lost[printable_name(path)] = (
                    OLD_LARGE if old else None,
                    NEW_LARGE if new else None,
                )
            continue
        mine = tuple(name for name in new_directories if path.startswith(name + "/"))
        doubt = unsure if old or new_too else ""
        entries.append((_entry(path, old, new, mine, trace_id, doubt), old.data if old else None))
    beside = None
    if not new_too:
        paths = [entry.path for entry, _ in entries]
        beside = _creations(before, after, new_directories, paths, trace_id)
    if entries or beside:
        journal.record(entries, beside)
    changes = [
        CommandChange(
            printable_name(e.path), _text(before, e.path), _text(after, e.path), _modes(e)
        )
        for e, _ in entries
        if not e.unsure
    ]
    for path, _, _ in beside.folders if beside else ():
        changes.append(CommandChange(f"{printable_name(path)}/", None, NEW_FOLDER))
    for path, target in beside.links if beside else ():
        changes.append(
            CommandChange(printable_name(path), None, f"link to {printable_name(target)}\n")
        )
    changes += [CommandChange(path, *words, undoable=False) for path, words in lost.items()]
    doubtful += [printable_name(entry.path) for entry, _ in entries if entry.unsure]
    complete = before.complete and after.complete
    return CommandChanges(tuple(changes), tuple(lost), complete, tuple(doubtful))


def _lost_links(before: Snapshot, after: Snapshot) -> list[str]:
    changed = (path for path, to in before.links.items() if after.links.get(path) != to)
    return [printable_name(path) for path in sorted(changed)]


def _creations(
    before: Snapshot, after: Snapshot, directories: Sequence[str], files: Sequence[str], trace: str
) -> Creations | None:
    """The links and directories that are new, and that no file of the journal accounts for.

    A folder of installed programs that came along with a renamed directory is not new.
    """
    if not before.complete:
        return None
    known = before.links.keys() | before.files.keys()
    links = tuple(item for item in sorted(after.links.items()) if item[0] not in known)
    held = {parent for path in files for parent in _parents(path)}
    empty = tuple(name for name in directories if name not in held)
    there, old = after.folders.items(), set(before.folders.values())
    new = [
        (path, *at) for path, at in sorted(there) if path not in before.folders and at not in old
    ]
    return (
        Creations(trace, journal_clock.instant(), links, empty, tuple(new))
        if links or empty or new
        else None
    )


def _parents(path: str) -> Iterator[str]:
    while path := path.rpartition("/")[0]:
        yield path


def _look(
    root: Root,
    parts: Parts,
    fd: int,
    shot: Snapshot,
    previous: Snapshot | None,
    limits: SnapshotBounds,
) -> list[Parts]:
    below: list[Parts] = []
    for name in root.kernel.names(fd):
        if len(shot.files) >= limits.files:
            break
        with suppress(OSError):
            status = root.kernel.lstat(name, fd)
            here = (*parts, name)
            if stat.S_ISDIR(status.st_mode):
                if name in ENVIRONMENTS or name in BUILD_RESULTS:
                    shot.folders["/".join(here)] = (status.st_dev, status.st_ino)
                if name not in GENERATED and name not in _STORES:
                    shot.directories.add("/".join(here))
                    below.append(here)
            elif stat.S_ISLNK(status.st_mode):
                shot.links["/".join(here)] = target_of(root, name, fd)
            elif stat.S_ISREG(status.st_mode) and not TEMPORARY.fullmatch(name):
                safe = SafePath(root, here, fd, (), False)
                _keep(shot, safe, status, previous, limits)
    return below


def _keep(
    shot: Snapshot,
    safe: SafePath,
    status: os.stat_result,
    previous: Snapshot | None,
    limits: SnapshotBounds,
) -> None:
    stamp = (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
    path = safe.relative
    known = previous.known(path, stamp) if previous else None
    if known is None:
        known = _read(safe, status, stamp, limits, limits.total_bytes - shot.kept_bytes)
    shot.kept_bytes += len(known.data or b"")
    shot.files[path] = known


def _read(
    safe: SafePath,
    status: os.stat_result,
    stamp: tuple[int, int, int, int],
    limits: SnapshotBounds,
    room: int,
) -> Shot:
    mode, owner = stat.S_IMODE(status.st_mode), (status.st_uid, status.st_gid)
    policy = FilePolicy(max_bytes=min(limits.file_bytes, room), protected=(), hard_links=True)
    try:
        content = file_io.read(safe, policy)
    except EverContextError:
        return Shot(stamp, mode, owner, None, None)
    return Shot(stamp, mode, owner, content.sha256, content.data)


def _same(old: Shot | None, new: Shot | None) -> bool:
    if old is None or new is None:
        return old is new
    if old.sha256 is None or new.sha256 is None:
        return old.stamp == new.stamp
    return (old.sha256, old.mode) == (new.sha256, new.mode)


def _entry(
    path: str,
    old: Shot | None,
    new: Shot | None,
    new_directories: tuple[str, ...],
    trace_id: str,
    unsure: str,
) -> JournalEntry:
    return JournalEntry(
        id=secrets.token_hex(8),
        trace_id=trace_id,
        step=None,
        at=journal_clock.instant(),
        path=path,
        before=old.sha256 if old else None,
        before_mode=old.mode if old else None,
        owner=old.owner if old else None,
        after=new.sha256 if new else None,
        after_mode=new.mode if new else None,
        directories=new_directories,
        temporary=file_io.temporary_name(),
        unsure=unsure,
    )


def _modes(entry: JournalEntry) -> tuple[int, int] | None:
    old, new = entry.before_mode, entry.after_mode
    return None if old is None or new is None or old == new else (old, new)


def _text(snapshot: Snapshot, path: str) -> str | None:
    shot = snapshot.files.get(path)
    return None if shot is None or shot.data is None else shot.data.decode("utf-8", "replace")
