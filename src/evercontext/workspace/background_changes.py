"""Account for what changes in the tree while commands run that nobody waits for.

Files, commands and our own tools change the tree at the same time then. So one picture of it is
kept in which everything is accounted for; whoever looks next takes the difference, once.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from evercontext.errors import EverContextError
from evercontext.files import tree_snapshot
from evercontext.files.contained_paths import Root
from evercontext.files.journal import Journal
from evercontext.files.path_names import parse
from evercontext.files.tree_snapshot import CommandChanges, Snapshot


@dataclass(slots=True)
class BackgroundChanges:
    """The tree as it was when all changes in it were journalled; methods run in threads."""

    root: Root
    journal: Callable[[], Journal]
    _seen: Snapshot | None = None
    """The newest picture, which makes the next one quick."""
    _settled: Snapshot | None = None
    """Set while commands run in the background."""
    _watchers: int = 0
    _open: list[Snapshot] = field(default_factory=list)
    """The trees before the commands that somebody waits for."""
    _pending: dict[str, list[CommandChanges]] = field(default_factory=dict)
    """Changes by task that nobody has been told yet."""
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def watch(self) -> None:
        """Begin: a command goes to the background."""
        with self._lock:
            self._watchers += 1
            if self._settled is None:
                self.journal().applied = deque()
                self._settled = self._open[0] if self._open else self._take()

    def end_watch(self) -> None:
        """End: a command is over and its changes are accounted for."""
        with self._lock:
            self._watchers -= 1
            self._rest()

    def account(self, trace_id: str, doubt: str = "") -> None:
        """Journal what changed since the last time as work of a task.

        ``doubt`` names a command that ran while nobody was at work but perhaps the user.
        """
        with self._lock:
            if self._settled is None:
                return
            now = self._take()
            changes = tree_snapshot.record(
                self.journal(), self._settled, now, trace_id, doubt, new_too=bool(doubt)
            )
            self._settled = now
            if not doubt:
                self._put(trace_id, changes)

    def take_pending(self, trace_id: str) -> tuple[CommandChanges, ...]:
        """Return what was accounted to a task since somebody asked."""
        with self._lock:
            return tuple(self._pending.pop(trace_id, ()))

    def begin(self, trace_id: str) -> Snapshot:
        """Take the tree before a command that somebody waits for."""
        with self._lock:
            self.account(trace_id)
            before = self._settled or self._take()
            self._open.append(before)
            return before

    def finish(self, before: Snapshot, trace_id: str, unsure: str) -> CommandChanges:
        """Journal what such a command changed."""
        with self._lock:
            base, now = self._settled or before, self._take(before)
            self._open = [snapshot for snapshot in self._open if snapshot is not before]
            if self._settled is not None:
                self._settled = now
            self._rest()
            beside = bool(self._watchers and unsure)
            doubt = "" if beside else unsure
            changes = tree_snapshot.record(self.journal(), base, now, trace_id, doubt)
            if beside:
                # A command that only looks ran beside one that may write: it was that one.
                self._put(trace_id, changes)
                return CommandChanges(complete=changes.complete)
            return changes

    @contextmanager
    def own_change(self, paths: Sequence[str], trace_id: str) -> Iterator[None]:
        """Let a tool of ours change files inside, which journals that itself."""
        if self._settled is None:
            yield
            return
        names = [name for path in paths if (name := _name(path))]
        with self._lock:
            for name in names:
                self._account_file(name, trace_id)
            try:
                yield
            finally:
                for name in names if self._settled else ():
                    tree_snapshot.look_again(self.root, name, self._settled)

    def _account_file(self, path: str, trace_id: str) -> None:
        """Journal what a command made of a file before a tool changes it."""
        if self._settled is None:
            return
        old, new = Snapshot(), Snapshot()
        if path in self._settled.files:
            old.files[path] = self._settled.files[path]
        tree_snapshot.look_again(self.root, path, new)
        old.directories = new.directories
        self._put(trace_id, tree_snapshot.record(self.journal(), old, new, trace_id))

    def _put(self, trace_id: str, changes: CommandChanges) -> None:
        if changes.changes or changes.not_undoable or changes.unsure or not changes.complete:
            self._pending.setdefault(trace_id, []).append(changes)

    def _take(self, previous: Snapshot | None = None) -> Snapshot:
        self._settle_own_changes()
        known = previous or self._settled or self._seen
        self._seen = tree_snapshot.take(self.root, known)
        return self._seen

    def _settle_own_changes(self) -> None:
        """Account for what we ourselves wrote meanwhile: an undo, a repair that was taken back."""
        applied = self.journal().applied
        while applied and self._settled is not None:
            path, content = applied.popleft()
            tree_snapshot.settle(self.root, path, content, self._settled)

    def _rest(self) -> None:
        if not self._watchers and not self._open:
            self._settled = self.journal().applied = None


def _name(path: str) -> str:
    """Return a path as snapshots spell it; nothing where the tool will refuse it."""
    try:
        return "/".join(parse(path))
    except EverContextError:
        return ""
