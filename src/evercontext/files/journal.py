"""Record every change before it is made, so that it can be undone.

The order of a change: the old content and the intention go to the segment; the new content is
staged and flushed beside its target; one rename makes it true; segment and directory are flushed;
only then is it acknowledged. Whatever instant a crash picks, the next opening finds each file old
or new, and a step of several files, whose intentions are flushed first, all old or all new.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from evercontext.errors import DiskFull, EverContextError, IoFailed
from evercontext.files import file_io
from evercontext.files.clock import journal_clock
from evercontext.files.contained_paths import Root, SafePath
from evercontext.files.file_io import Content
from evercontext.files.journal_records import History, JournalEntry
from evercontext.files.journal_segments import CLOSED, LIVE, REMOVED, Segment, encode
from evercontext.files.links_and_directories import Creations, RemovedCreations
from evercontext.files.os_errors import explained
from evercontext.files.path_locks import PathLocks
from evercontext.files.policy import UNRESTRICTED
from evercontext.files.private_folders import make_private
from evercontext.files.system_calls import Kernel


@dataclass(slots=True)
class Change:
    """One file that shall become ``after``; ``None``: shall not exist."""

    path: SafePath
    before: Content | None
    after: bytes | None
    mode: int | None = None

    def entry(self, trace_id: str, step: str | None) -> JournalEntry:
        """Return what the journal says about it."""
        before = self.before
        return JournalEntry(
            id=secrets.token_hex(8),
            trace_id=trace_id,
            step=step,
            at=journal_clock.instant(),
            path=self.path.relative,
            before=before.sha256 if before else None,
            before_mode=before.mode if before else None,
            owner=before.owner if before else None,
            after=None if self.after is None else file_io.digest(self.after),
            after_mode=self.mode,
            directories=self.path.missing_directories,
            temporary=file_io.temporary_name(),
        )


@dataclass(slots=True)
class JournalStep:
    """Changes that become true together or not at all, even through a crash."""

    id: str
    trace_id: str
    entries: list[JournalEntry] = field(default_factory=list)


class Journal:
    """The changes of one root, kept under the home folder."""

    def __init__(self, root: Root, home: Path) -> None:
        self.root = root
        self.directory = home / "journal" / _key(root.path)
        self.quarantine = home / "quarantine"
        """Where things go that are taken away and not deleted."""
        with explained(writing=True):
            make_private(self.directory)
            self.locks = PathLocks(self.directory / "locks")
        self._prepare_directory()
        journal_clock.follow(_latest(self.segments()))
        self._kernel: Kernel = root.kernel
        self.applied: deque[tuple[str, bytes | None]] | None = None
        """What our own changes made of files, in order, while somebody needs to tell them apart
        from those of others."""
        self._guard = threading.Lock()
        self._segment: Segment | None = None

    def apply(
        self, changes: Sequence[Change], trace_id: str, step: JournalStep | None = None
    ) -> tuple[JournalEntry, ...]:
        """Make the changes, all or none; return when they are durable. The paths are locked."""
        if step is None and len(changes) > 1:
            with self.step(trace_id) as own:
                return self.apply(changes, trace_id, own)
        entries = tuple(change.entry(trace_id, step.id if step else None) for change in changes)
        with explained(writing=True):
            segment, end = self._write_down(changes, entries)
            placed: list[JournalEntry] = []
            displaced: list[tuple[SafePath, str]] = []
            try:
                try:
                    for change, entry in zip(changes, entries, strict=True):
                        _stage(change, entry)
                    if step:
                        # Only a durable intention can be rolled back after a power cut.
                        segment.sync(end)
                    for change, entry in zip(changes, entries, strict=True):
                        if step:
                            step.entries.append(entry)
                        if _put(change, entry):
                            displaced.append((change.path, entry.temporary))
                        placed.append(entry)
                except BaseException:
                    self._clear(changes, entries, placed)
                    raise
                # In this order the journal's flush carries the rename with it, and the second is
                # cheap.
                segment.sync(end)
                for fd in {change.path.dir_fd for change in changes}:
                    self.root.sync_directory(fd)
            finally:
                # Last: between a flush and the next one the disk makes a removal wait for both.
                for path, name in displaced:
                    file_io.discard(path, name)
        self._note({"kind": "done", "ids": [entry.id for entry in entries]})
        if self.applied is not None:
            self.applied.extend((change.path.relative, change.after) for change in changes)
        return entries

    @contextmanager
    def step(
        self, trace_id: str, undoes: Sequence[str] = (), during: str = ""
    ) -> Iterator[JournalStep]:
        """Group changes: an exception inside, or a crash, takes all of them back.

        ``undoes``: the entries that they take back. ``during``: the task that takes back its own.
        """
        step = JournalStep(secrets.token_hex(8), trace_id)
        begin = {
            "kind": "begin",
            "step": step.id,
            "trace_id": trace_id,
            "at": journal_clock.instant(),
        }
        first = self._live_segment()
        first.append(encode({**begin, "undoes": list(undoes), "during": during}))
        try:
            yield step
            segment = self._live_segment()
            if segment is not first:
                # Without its beginning the step could neither be undone nor rolled back.
                raise IoFailed(REMOVED, fix="Try again")
            segment.sync(segment.append(encode({"kind": "commit", "step": step.id})))
        except BaseException:
            self._abandon(step)
            raise

    def record(
        self,
        changes: Sequence[tuple[JournalEntry, bytes | None]],
        creations: Creations | None = None,
    ) -> None:
        """Write down changes that something else has made already, with the old contents."""
        pieces = [encode(creations.record())] if creations else []
        pieces += [_blob(file_io.digest(old), old) for _, old in changes if old is not None]
        pieces += [encode(entry.record()) for entry, _ in changes]
        pieces.append(encode({"kind": "done", "ids": [entry.id for entry, _ in changes]}))
        segment = self._live_segment()
        segment.sync(segment.append(b"".join(pieces)))

    def record_removal(self, unmade: RemovedCreations) -> None:
        """Write down what an undo removed beside files."""
        segment = self._live_segment()
        segment.sync(segment.append(encode(unmade.record())))

    def mark(self, name: str) -> int:
        """Remember this instant under ``name``: a checkpoint to rewind to."""
        at = journal_clock.instant()
        segment = self._live_segment()
        segment.sync(segment.append(encode({"kind": "mark", "mark": name, "at": at})))
        return at

    def history(self) -> History:
        """Read everything that is still kept about this root."""
        with explained():
            return History(self.segments())

    def segments(self) -> list[Path]:
        """The segment files, oldest first."""
        return _segments(self.directory)

    def roll_back(self, entries: Sequence[JournalEntry], history: History) -> list[JournalEntry]:
        """Take back entries, newest first, where the file is still as they left it.

        Returns those taken back; IoFailed or DiskFull if the disk does not let us.
        """
        return [entry for entry in reversed(entries) if self._take_back(entry, history)]

    def blob(self, sha256: str, history: History) -> bytes | None:
        """Return a content that was kept; ``None`` if it is gone or damaged."""
        place = history.blobs.get(sha256)
        data = place.load() if place else b""
        return data if file_io.digest(data) == sha256 else None

    def close(self) -> None:
        """End the segment cleanly and release the locks."""
        with self._guard:
            if self._segment:
                self._segment.close(clean=not self.root.littered)
                self._segment = None
        self.locks.close()

    def remove_directories(self, directories: Sequence[str]) -> None:
        """Remove directories that a change made, innermost first, as far as they are empty."""
        for path in reversed(directories):
            with suppress(OSError), self.root.place(parts_of(path)) as safe:
                if not safe.missing:
                    self._kernel.rmdir(safe.name, safe.dir_fd)

    def _abandon(self, step: JournalStep) -> None:
        try:
            self.roll_back(step.entries, self.history())
        except EverContextError:
            self.root.littered = True  # the next opening tries again
        else:
            self._note({"kind": "abort", "step": step.id})

    def _take_back(self, entry: JournalEntry, history: History) -> bool:
        old = None if entry.before is None else self.blob(entry.before, history)
        if entry.after == entry.before or (entry.before is not None and old is None):
            return False
        try:
            with explained(writing=True), self.root.place(parts_of(entry.path)) as safe:
                return self._restore(safe, entry, old)
        except (DiskFull, IoFailed):
            raise
        except EverContextError:
            return False  # something else is there now

    def _restore(self, safe: SafePath, entry: JournalEntry, old: bytes | None) -> bool:
        now = file_io.read_if_there(safe, UNRESTRICTED)
        if (now.sha256 if now else None) != entry.after:
            return False
        swap = Change(safe, now, old, entry.before_mode)
        fresh = replace(entry, temporary=file_io.temporary_name())
        _stage(swap, fresh)
        displaced = _put(swap, fresh)
        self.root.sync_directory(safe.dir_fd)
        if displaced:
            file_io.discard(safe, fresh.temporary)
        self.remove_directories(entry.directories)
        return True

    def _write_down(
        self, changes: Sequence[Change], entries: Sequence[JournalEntry]
    ) -> tuple[Segment, int]:
        held = [change.before for change in changes if change.before]
        pieces = [_blob(before.sha256, before.data) for before in held]
        pieces += [encode(entry.record()) for entry in entries]
        segment = self._live_segment()
        return segment, segment.append(b"".join(pieces))

    def _clear(
        self,
        changes: Sequence[Change],
        entries: Sequence[JournalEntry],
        placed: Sequence[JournalEntry],
    ) -> None:
        """Leave nothing behind of what was staged and not put in place."""
        failed = [entry for entry in entries if entry not in placed]
        for change, entry in zip(changes, entries, strict=True):
            if entry in failed and not change.path.missing and change.after is not None:
                file_io.discard(change.path, entry.temporary)
        for entry in failed:
            self.remove_directories(entry.directories)
        self._note({"kind": "void", "ids": [entry.id for entry in failed]})

    def _note(self, record: dict[str, object]) -> None:
        """Write what recovery could also find out by itself: not flushed, failure not fatal."""
        with suppress(EverContextError):
            self._live_segment().append(encode(record))

    def _prepare_directory(self) -> None:
        """Make what the journal's folder holds beside segments; somebody may have removed it."""
        with explained(writing=True):
            make_private(self.directory)
            _remember_root(self.directory / "root.json", self.root.path)
            self.locks.ensure_in_place()

    def _live_segment(self) -> Segment:
        with self._guard:
            segment = self._segment
            if segment is None or segment.broken or not segment.in_place:
                if segment:
                    self._segment = None
                    segment.close(clean=False)
                self._prepare_directory()
                segment = self._segment = Segment(self.directory, self._kernel)
            return segment


def read_history(home: Path, root: Path) -> History:
    """Read what is kept about a root, without opening the root."""
    directory = home / "journal" / _key(root)
    with explained():
        return History(_segments(directory) if directory.is_dir() else ())


def written(home: Path, root: Path) -> dict[str, set[str]]:
    """Return the files that each trace changed below a root, without opening the root."""
    history = read_history(home, root)
    open_steps = {entry.id for entry in history.unfinished()}
    paths_by_task: dict[str, set[str]] = {}
    for entry in history.entries:
        # A step cut off in the middle is taken back whole at the next opening.
        if entry.changes and not entry.unsure and entry.id not in open_steps:
            paths_by_task.setdefault(entry.trace_id, set()).add(entry.path)
    return paths_by_task


def parts_of(path: str) -> tuple[str, ...]:
    """Return the components of a path that the journal wrote itself."""
    parts = tuple(path.split("/"))
    assert not set(parts) & {"", ".", ".."}
    return parts


def _blob(sha256: str, data: bytes) -> bytes:
    return encode({"blob": sha256, "size": len(data)}, data)


def _stage(change: Change, entry: JournalEntry) -> None:
    if change.after is None:
        return
    change.path.make_parents()
    owner = change.before.owner if change.before else entry.owner
    file_io.stage(change.path, entry.temporary, change.after, change.mode, owner)


def _put(change: Change, entry: JournalEntry) -> bool:
    """Make one change true; true if the old content is still there under the staged name."""
    seen = change.before.stamp if change.before else None
    if change.after is not None:
        return file_io.put(change.path, entry.temporary, seen)
    if seen is not None:
        file_io.take(change.path, entry.temporary, seen)
    return False


def _segments(directory: Path) -> list[Path]:
    segments = [path for path in directory.iterdir() if path.suffix in (LIVE, CLOSED)]
    return sorted(segments, key=lambda file: file.stem)


def _latest(segments: Sequence[Path]) -> int:
    """Return an instant that is later than everything in the segments, without reading them.

    What a process wrote is no later than the clock said then, or, where that was set back, than
    the beginning of the segment and one for each record, of which there are fewer than bytes.
    """
    latest = 0
    for path in segments:
        with suppress(OSError, ValueError):
            status = path.stat()
            begun = int(path.stem.partition("-")[0])
            latest = max(latest, status.st_mtime_ns, begun + status.st_size)
    return latest


def _key(root: Path) -> str:
    return hashlib.sha256(os.fsencode(root)).hexdigest()[:24]


def _remember_root(file: Path, root: Path) -> None:
    if not file.exists():
        file.write_text(json.dumps({"root": str(root)}), encoding="utf-8")
