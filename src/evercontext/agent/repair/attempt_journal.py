"""Read the changes of an attempt from the journal, and undo them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass

from evercontext.agent.repair.protection import Covers, decides, weakens
from evercontext.errors import EverContextError
from evercontext.files import undo as journal_undo
from evercontext.files.journal import Journal
from evercontext.files.journal_records import History, JournalEntry
from evercontext.workspace.checkpoints import Checkpoint, checkpoint
from evercontext.workspace.workspace import LocalWorkspace


@dataclass(frozen=True, slots=True)
class ChangedFile:
    """One file that an attempt changed."""

    path: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class AttemptJournal:
    """The changes of one task, since an instant."""

    workspace: LocalWorkspace
    trace_id: str

    @property
    def journal(self) -> Journal:
        """The journal of the workspace."""
        return self.workspace.journal

    async def mark(self) -> Checkpoint:
        """Remember this instant."""
        return await checkpoint(self.journal, f"repair {self.trace_id}")

    async def touched(self, since: Checkpoint) -> tuple[ChangedFile, ...]:
        """Return the files that differ from their state at ``since``."""
        return await asyncio.to_thread(lambda: tuple(self._touched(since.at)))

    async def created(self) -> frozenset[str]:
        """Return the files that this task has made."""
        entries = (await asyncio.to_thread(self.journal.history)).entries
        first: dict[str, JournalEntry] = {}
        for entry in entries:
            if entry.trace_id == self.trace_id:
                first.setdefault(entry.path, entry)
        return frozenset(path for path, entry in first.items() if entry.before is None)

    async def take_back(self, since: Checkpoint, *, everything: bool = False) -> None:
        """Undo all changes since ``since``, even a check's or the user's."""
        await asyncio.to_thread(
            journal_undo.undo,
            self.journal,
            [self.trace_id],
            since=since.at,
            everything=everything,
            during=self.trace_id,
        )

    async def trespasses(self, since: Checkpoint, covered: Covers) -> tuple[str, ...]:
        """Return the files changed since ``since`` that no repair may change."""
        problems = []
        for change in await self.touched(since):
            # What a test run leaves beside the tests is no test, unless it is named like one.
            counts = change.before is not None or decides(change.path)
            if counts and covered(change.path):
                problems.append(change.path)
            elif weakening := weakens(change.path, change.before, change.after):
                problems.append(f"{change.path} ({weakening})")
        return tuple(problems)

    def _touched(self, since: int) -> Iterator[ChangedFile]:
        history = self.journal.history()
        gone = history.undone()
        chains: dict[str, list[JournalEntry]] = {}
        for entry in history.entries:
            if entry.trace_id == self.trace_id and entry.at > since and entry.id not in gone:
                chains.setdefault(entry.path, []).append(entry)
        for path, chain in chains.items():
            if chain[0].before != chain[-1].after:
                old, new = chain[0].before, chain[-1].after
                yield ChangedFile(path, self._text(old, history), self._now(path, new, history))

    def _text(self, sha256: str | None, history: History) -> str | None:
        data = self.journal.blob(sha256, history) if sha256 else None
        return None if data is None else data.decode("utf-8", "replace")

    def _now(self, path: str, sha256: str | None, history: History) -> str | None:
        if sha256 is None:
            return None
        text = self._text(sha256, history)
        if text is not None:
            return text
        try:
            return self.workspace.tree.read(path).content
        except EverContextError:
            return None
