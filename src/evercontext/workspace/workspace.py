"""Define the interface behind the file tools, and its local implementation."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

from evercontext.domain.tool import Caller, Door, FileChange
from evercontext.files import tree_snapshot
from evercontext.files.directory_listing import Listing
from evercontext.files.file_tree import FileText, Tree, WriteMode, Written
from evercontext.files.journal import Journal, JournalStep
from evercontext.files.local_disk import is_local
from evercontext.files.policy import FilePolicy
from evercontext.files.protected_paths import is_secret
from evercontext.files.text_search import MOST_SECONDS, TextMatches
from evercontext.process.worker_threads import Stop, Workers
from evercontext.workspace.background_changes import BackgroundChanges
from evercontext.workspace.command_marks import writing
from evercontext.workspace.protected_changes import Protection

_SMALL = 1_048_576
_Result = TypeVar("_Result")
_WRITERS = 16
"""Writes wait for the disk, and those that wait together are on it together."""
_READERS = 4
_SEARCHERS = 2
"""More would only take turns: a search is as quick as the processor and the disk."""
_MOST_WAITING = 64
_MOST_WRITES_WAITING = 240
LONGEST_SEARCH = MOST_SECONDS * (_MOST_WAITING / _SEARCHERS + 1)
"""Seconds after which the last search in the longest line is over: each is bounded by itself."""


class Workspace(Protocol):
    """What the file tools need. Errors are those of ``evercontext.errors``."""

    @property
    def local(self) -> LocalWorkspace | None:
        """Return the workspace with its journal if its files are on this machine, else None."""
        ...

    def caution(self, path: str) -> str | None:
        """Return why a person is asked before this file is changed; ``None`` if nobody is."""
        ...

    def longest(self, caller: Caller) -> int | None:
        """Bytes that a file may have for this caller; ``None`` if only the far side knows."""
        ...

    async def list(
        self,
        path: str,
        caller: Caller,
        *,
        extensions: Sequence[str] | None = None,
        max_items: int | None = None,
        recursive: bool = False,
    ) -> Listing:
        """List a directory."""
        ...

    async def read(self, path: str, caller: Caller) -> FileText:
        """Read a text file."""
        ...

    async def search(self, directory: str, keyword: str, caller: Caller) -> TextMatches:
        """Find the files that contain a text."""
        ...

    async def preview(
        self, path: str, content: str | None, mode: WriteMode, caller: Caller
    ) -> Written:
        """Return what a write (or, without content, a delete) would do, and do nothing."""
        ...

    async def write(
        self,
        path: str,
        content: str,
        mode: WriteMode,
        caller: Caller,
        *,
        if_match: str | None = None,
    ) -> Written:
        """Write a text file."""
        ...

    async def delete(self, path: str, caller: Caller) -> Written:
        """Remove a file."""
        ...

    async def move(self, old: str, new: str, caller: Caller) -> tuple[Written, Written]:
        """Rename a file."""
        ...


@dataclass(slots=True)
class RecordedChanges:
    """What a command changed; filled in when the command is over."""

    changes: tuple[FileChange, ...] = ()
    not_undoable: tuple[str, ...] = ()
    complete: bool = True
    unsure: tuple[str, ...] = ()
    """Files that changed meanwhile, and more likely by somebody else."""

    def take(self, observed: tree_snapshot.CommandChanges) -> None:
        """Add what was observed."""
        self.changes = (*self.changes, *map(_change, observed.changes))
        self.not_undoable = (*self.not_undoable, *observed.not_undoable)
        self.complete = self.complete and observed.complete
        self.unsure = (*self.unsure, *observed.unsure)


class LocalWorkspace:
    """A tree on this machine, with a policy per entrance."""

    def __init__(
        self,
        tree: Tree,
        policies: Mapping[Door, FilePolicy],
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._tree = tree
        self.protection = Protection(tree.root.path, environment or {})
        self._doors = {door: tree.under(policy) for door, policy in policies.items()}
        self._local = is_local(tree.root.fd)
        self._steps: dict[str, JournalStep] = {}
        self._background = BackgroundChanges(tree.root, tree.writable)
        # Each has threads of its own: no crowd of searches keeps a write waiting.
        self._writes = Workers("writes", _WRITERS, _MOST_WRITES_WAITING)
        self._reads = Workers("reads", _READERS, _MOST_WAITING)
        self._searches = Workers("searches", _SEARCHERS, _MOST_WAITING)
        # What was begun is brought to its end: nothing here is ever sent away.
        self._records = Workers("records", _SEARCHERS, 1_000_000)

    @classmethod
    def open(
        cls,
        root: Path,
        home: Path,
        *,
        gateway: FilePolicy,
        agent: FilePolicy,
        environment: Mapping[str, str] | None = None,
    ) -> LocalWorkspace:
        """Open a root: REST and MCP under one policy, the agent itself under another.

        ``environment`` is the user's: it says where git's settings are.
        """
        tree = Tree.open(root, agent, home)
        policies = {Door.REST: gateway, Door.MCP: gateway, Door.RUN: agent, Door.CHAT: agent}
        return cls(tree, policies, environment)

    @property
    def local(self) -> LocalWorkspace:
        """Return this workspace: its files are here, and so is their journal."""
        return self

    @property
    def tree(self) -> Tree:
        """The tree itself, for packages that read without a caller."""
        return self._tree

    @property
    def journal(self) -> Journal:
        """The journal of every change."""
        return self._tree.writable()

    def caution(self, path: str) -> str | None:
        """Return why a person is asked before this file is changed; ``None`` if nobody is."""
        return self.protection.caution(path, self._tree.policy)

    def longest(self, caller: Caller) -> int | None:
        """Bytes that a file may have for this caller."""
        return self._door(caller).policy.max_bytes

    async def list(
        self,
        path: str,
        caller: Caller,
        *,
        extensions: Sequence[str] | None = None,
        max_items: int | None = None,
        recursive: bool = False,
    ) -> Listing:
        """List a directory."""
        stop = Stop()
        return await self._searches.run(
            self._door(caller).list,
            path,
            extensions=extensions,
            max_items=max_items,
            recursive=recursive,
            check=stop.check,
            stop=stop,
        )

    async def read(self, path: str, caller: Caller) -> FileText:
        """Read a text file."""
        tree = self._door(caller)
        if self._local and tree.policy.max_bytes <= _SMALL:
            # Handing it to a thread and back takes longer than reading it.
            return tree.read(path)
        return await self._reads.run(tree.read, path)

    async def search(self, directory: str, keyword: str, caller: Caller) -> TextMatches:
        """Find the files that contain a text."""
        stop = Stop()
        return await self._searches.run(
            self._door(caller).search, directory, keyword, check=stop.check, stop=stop
        )

    async def preview(
        self, path: str, content: str | None, mode: WriteMode, caller: Caller
    ) -> Written:
        """Return what a write (or, without content, a delete) would do, and do nothing."""
        # Whoever previews may be about to ask; what no approval opens is refused already.
        asking = dataclasses.replace(caller, approved=True)

        def preview() -> Written:
            return self._permitted((path,), asking).preview(path, content, mode)

        return await self._writes.run(preview)

    async def write(
        self,
        path: str,
        content: str,
        mode: WriteMode,
        caller: Caller,
        *,
        if_match: str | None = None,
    ) -> Written:
        """Write a text file; inside an open step it belongs to that."""
        trace_id, step = caller.trace_id, self._steps.get(caller.trace_id)

        def write() -> Written:
            tree = self._permitted((path,), caller)
            with self._background.own_change((path,), trace_id), writing(tree.root.path, path):
                return tree.write(
                    path, content, mode, trace_id=trace_id, if_match=if_match, step=step
                )

        return await self._writes.run(write)

    async def delete(self, path: str, caller: Caller) -> Written:
        """Remove a file; its content stays in the journal."""
        trace_id, step = caller.trace_id, self._steps.get(caller.trace_id)

        def delete() -> Written:
            tree = self._permitted((path,), caller)
            with self._background.own_change((path,), trace_id):
                return tree.delete(path, trace_id=trace_id, step=step)

        return await self._writes.run(delete)

    async def move(self, old: str, new: str, caller: Caller) -> tuple[Written, Written]:
        """Rename a file; both names change together."""
        trace_id, step = caller.trace_id, self._steps.get(caller.trace_id)

        def move() -> tuple[Written, Written]:
            tree = self._permitted((old, new), caller)
            own = self._background.own_change((old, new), trace_id)
            with own, writing(tree.root.path, new):
                return tree.move(old, new, trace_id=trace_id, step=step)

        return await self._writes.run(move)

    @asynccontextmanager
    async def step(self, caller: Caller) -> AsyncIterator[None]:
        """Make every change of this trace inside come true together, or none, even in a crash."""
        stack = ExitStack()
        opened = self.journal.step(caller.trace_id)
        self._steps[caller.trace_id] = await self._records.run(stack.enter_context, opened)
        try:
            yield
        except BaseException as error:
            del self._steps[caller.trace_id]
            await self._records.run(stack.__exit__, type(error), error, error.__traceback__)
            raise
        del self._steps[caller.trace_id]
        await self._records.run(stack.close)

    @asynccontextmanager
    async def recording(self, caller: Caller, unsure: str = "") -> AsyncIterator[RecordedChanges]:
        """Journal what a command inside does to the tree, also if it fails.

        ``unsure`` names one that is not expected to change files that are there already.
        """
        recorded = RecordedChanges()
        before = await self._records.run(self._background.begin, caller.trace_id)
        try:
            yield recorded
        finally:
            recorded.take(
                await self._records.run(self._background.finish, before, caller.trace_id, unsure)
            )

    async def watch(self) -> None:
        """Look at the tree: a command begins that nobody waits for."""
        await self._records.run(self._background.watch)

    async def end_watch(self) -> None:
        """Let go of what ``watch`` began; what changed is accounted for."""
        await self._records.run(self._background.end_watch)

    async def account(self, caller: Caller, doubt: str = "") -> None:
        """Journal what commands in the background changed since, as work of this caller.

        ``doubt`` names one that ran while nobody was at work but perhaps the user: what changed
        then is kept apart.
        """
        await self._records.run(self._background.account, caller.trace_id, doubt)

    def untold(self, caller: Caller) -> RecordedChanges:
        """Return what was accounted to the caller's task since this was asked last."""
        recorded = RecordedChanges()
        for observed in self._background.take_pending(caller.trace_id):
            recorded.take(observed)
        return recorded

    def close(self) -> None:
        """Let the tree go, once nobody is at work in it."""
        for workers in (self._searches, self._reads, self._records, self._writes):
            workers.close()
        self._tree.close()

    def _permitted(self, paths: Sequence[str], caller: Caller) -> Tree:
        """Return the tree in which this caller may change the files; in a thread, as it looks."""
        tree = self._door(caller)
        self.protection.permit(paths, tree.policy, approved=caller.approved)
        return tree

    def _door(self, caller: Caller) -> Tree:
        return self._doors[caller.door]


def _change(change: tree_snapshot.CommandChange) -> FileChange:
    """A change as it is shown and logged: that a secret moved is news, the secret is not."""
    if not any(map(is_secret, change.path.split("/"))):
        return FileChange(change.path, change.before, change.after, change.modes, change.undoable)
    before, after = change.before is not None, change.after is not None
    return FileChange(
        change.path,
        "(secret, old content not shown)\n" if before else None,
        "(secret, new content not shown)\n" if after else None,
        change.modes,
        change.undoable,
    )
