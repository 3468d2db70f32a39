"""Keep the table equal to the tree: find what changed, analyse it, commit it in batches.

A file counts as unchanged while size and time are those of its row. A changed file is hashed; a
content that is known already (moved, copied, brought back) costs no analysis and no embedding.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from evercontext.files.os_errors import explained
from evercontext.index.analysis import Analysis, pack
from evercontext.index.chunk_table import Batch, ChunkTable, FileRow
from evercontext.index.languages import language_of
from evercontext.index.lease import IndexLease
from evercontext.index.rename_report import OnRenamed, tell_renames
from evercontext.index.source_reader import Reader, Source, Unfit
from evercontext.index.walker import WalkedFile, Walker
from evercontext.retrieval.static_vectors import StaticVectors

if TYPE_CHECKING:
    from evercontext.index.worker_pool import LocalAnalyser, WorkerPool

BATCH = 256
"""Files per transaction of a large update: bounds memory, and what a kill can cost."""
_MUCH = 6_000_000
"""Bytes of changed files that are worth the start of more processes."""
_RACY_NS = 50_000_000
"""A file changed this shortly before it was read may change again within the same clock tick."""
_UNSETTLED = 0
"""The time in the row of such a file: it is read once more."""
CHEAP = 40
"""So many changed files are indexed before a search answers; more are left for later."""
_CHEAPLY_READ = 2_000
"""So many files are read again before a search answers, where only their times are in doubt."""

Progress = Callable[[int, int], None]


@dataclass(slots=True)
class IndexReport:
    """What an update did."""

    added: int = 0
    changed: int = 0
    deleted: int = 0
    renamed: int = 0
    committed: int = 0
    """Paths of commits that were looked at."""
    unchanged: int = 0
    embedded: int = 0
    """Chunks whose vectors were computed."""
    by: str | None = None
    """The embedder that was asked, where it is not the packaged one."""
    requested: int = 0
    """Chunks that it embedded."""
    tokens: int = 0
    cost: float | None = None
    """US dollars, where a price is known."""
    trouble: str | None = None
    """Why it could not be asked for all."""
    skipped: dict[str, str] = field(default_factory=dict)
    """Path → why it is not in the index."""
    seconds: float = 0.0
    has_analyses: bool = False
    """True if ``applied`` and ``reused`` tell everything."""
    applied: list[tuple[str, Analysis | None]] = field(default_factory=list, repr=False)
    """Analyses made on the way (``None``: gone), for a corpus in this process."""
    reused: list[tuple[str, str]] = field(default_factory=list, repr=False)
    """Paths whose content was known already."""

    @property
    def touched(self) -> int:
        """How many files the index now sees otherwise."""
        return self.added + self.changed + self.deleted


@dataclass(slots=True)
class Pending:
    """What differs between tree and table."""

    changed: list[WalkedFile]
    gone: list[str]
    doubtful: int = 0
    """How many of the changed are here only because they were indexed right after a change."""
    files: int = 0
    """How many files the tree has that belong into the index, as far as it was looked at."""

    @property
    def cheap(self) -> bool:
        """True if it may be indexed before a search answers."""
        return len(self) - self.doubtful <= CHEAP and self.doubtful <= _CHEAPLY_READ

    @property
    def indexed(self) -> int:
        """How many files of the tree the table has with the size they have now.

        A doubtful file is indexed: to read it once more will most likely find it as it was.
        """
        return max(0, self.files - (len(self.changed) - self.doubtful))

    def __len__(self) -> int:
        return len(self.changed) + len(self.gone)


class Indexer:
    """Brings a table up to date with a tree."""

    def __init__(
        self,
        table: ChunkTable,
        walker: Walker,
        reader: Reader,
        lease: IndexLease,
        vectors: StaticVectors | None = None,
    ) -> None:
        self.table = table
        self.walker = walker
        self.reader = reader
        self.lease = lease
        self.vectors = vectors
        self._local: LocalAnalyser | None = None
        self._pool: WorkerPool | None = None
        self.on_renamed: OnRenamed | None = None
        self._swept = False

    async def pending(self, paths: Sequence[str] | None = None) -> Pending:
        """Return what differs, in the whole tree or below the given paths."""
        if paths is None or "" in paths:
            files = await self.walker.walk()
            rows = await self.table.rows()
            seen = {f.path for f in files}
            gone = [path for path in rows if path not in seen]
        else:
            files, rows, gone = await self._pending_below(paths)
        changed = [f for f in files if not _same(rows.get(f.path), f)]
        doubtful = sum(_doubtful(rows.get(f.path), f) for f in changed)
        return Pending(changed, gone, doubtful, len(files))

    async def _pending_below(
        self, paths: Sequence[str]
    ) -> tuple[list[WalkedFile], dict[str, FileRow], list[str]]:
        candidates: list[str] = []
        gone: list[str] = []
        rows: dict[str, FileRow] = {}
        for path in dict.fromkeys(paths):
            if (self.walker.root / path).is_dir():
                return await self._pending_whole()
            row, below = await self.table.at_and_below(path)
            gone += below
            candidates.append(path)
            if row is not None:
                rows[path] = row
        included = await self.walker.belongs([p for p in candidates if self.walker.wants(p)])
        files = [f for path in included if (f := self.walker.look(path)) is not None]
        seen = {f.path for f in files}
        return files, rows, [*gone, *(p for p in rows if p not in seen)]

    async def _pending_whole(self) -> tuple[list[WalkedFile], dict[str, FileRow], list[str]]:
        files = await self.walker.walk()
        rows = await self.table.rows()
        seen = {f.path for f in files}
        return files, rows, [path for path in rows if path not in seen]

    async def update(
        self,
        pending: Pending | None = None,
        *,
        keep_analyses: bool = False,
        progress: Progress | None = None,
    ) -> IndexReport:
        """Index what is pending (by default: what differs in the whole tree)."""
        started = time.monotonic()
        report = IndexReport(has_analyses=keep_analyses)
        async with self.lease.hold():
            if not self._swept:
                await self.table.sweep()
                self._swept = True
            todo = await self.pending() if pending is None else pending
            gone = set(todo.gone)
            batches = [todo.changed[i : i + BATCH] for i in range(0, len(todo.changed), BATCH)]
            async with self._with_pool(todo.changed):
                for number, files in enumerate(batches or [[]]):
                    last = number == max(len(batches) - 1, 0)
                    await self._take(files, gone if last else set(), report, keep_analyses)
                    if progress:
                        progress(min((number + 1) * BATCH, len(todo.changed)), len(todo.changed))
        report.seconds = time.monotonic() - started
        return report

    @asynccontextmanager
    async def _with_pool(self, files: Sequence[WalkedFile]) -> AsyncIterator[None]:
        """Have several processes analyse where there is more to do than starting them costs."""
        if len(files) < BATCH // 4 or sum(file.size for file in files) < _MUCH:
            yield
            return
        from evercontext.index.worker_pool import WorkerPool

        async with WorkerPool(self.vectors) as self._pool:
            try:
                yield
            finally:
                self._pool = None

    async def _take(
        self, files: list[WalkedFile], gone: set[str], report: IndexReport, keep_analyses: bool
    ) -> None:
        sources = await asyncio.to_thread(self._read_all, files)
        rows, known = await self.table.before(
            [f.path for f in files],
            {s.content for s in sources.values() if isinstance(s, Source)},
        )
        batch, touched = Batch(gone=sorted(gone)), []
        fresh = await self.analyse(sources, known)
        for file in files:
            source, before = sources[file.path], rows.get(file.path)
            row = row_of(file, source)
            if before is not None and before.content == row.content and row.content is not None:
                report.unchanged += 1
                touched.append(row)
                continue
            batch.files.append(row)
            self.count(report, row, before, source)
            if row.content in fresh:
                batch.contents[row.content] = pack(fresh[row.content])
                if keep_analyses:
                    report.applied.append((row.path, fresh[row.content]))
            elif row.content is not None:
                report.reused.append((row.path, row.content))
            elif keep_analyses:
                report.applied.append((row.path, None))
        report.embedded += sum(len(a.chunks) for a in fresh.values()) if self.vectors else 0
        await self._commit(batch, touched, report, keep_analyses)

    async def _commit(
        self, batch: Batch, touched: list[FileRow], report: IndexReport, keep_analyses: bool
    ) -> None:
        pairs: list[tuple[str, str]] = []
        if batch.gone:
            moved = {content: path for path, content in report.reused}
            before = await self.rows_of(batch.gone)
            pairs = [(r.path, moved[r.content]) for r in before.values() if r.content in moved]
            report.renamed += len(pairs)
        if len(batch):
            await self.table.apply(batch)
        await tell_renames(pairs, self.table, self.on_renamed)
        await self.table.touch(touched)
        report.deleted += len(batch.gone)
        if keep_analyses:
            report.applied += [(path, None) for path in batch.gone]

    async def rows_of(self, paths: Iterable[str]) -> dict[str, FileRow]:
        """Return what is known of the paths."""
        return await self.table.rows_at(paths)

    def _read_all(self, files: Iterable[WalkedFile]) -> dict[str, Source | str]:
        out: dict[str, Source | str] = {}
        for file in files:
            try:
                out[file.path] = self.reader.read(file.path)
            except Unfit as why:
                out[file.path] = str(why)
        return out

    async def analyse(
        self, sources: dict[str, Source | str], known: set[str]
    ) -> dict[str, Analysis]:
        """Return the analyses of contents that are not known yet.

        A text that cannot be analysed is replaced in ``sources`` by the reason.
        """
        from evercontext.index.worker_pool import Job, LocalAnalyser

        jobs = {
            source.content: Job(source.content, language_of(path) or "text", source.text)
            for path, source in sources.items()
            if not isinstance(source, str) and source.content not in known
        }
        self._local = self._local or LocalAnalyser(self.lease.folder, self.vectors)
        with explained(writing=True):
            outcome = await (self._pool or self._local).analyse(list(jobs.values()))
        for path, source in sources.items():
            if not isinstance(source, str) and source.content in outcome.failed:
                sources[path] = outcome.failed[source.content]
        return outcome.analyses

    def count(
        self, report: IndexReport, row: FileRow, before: FileRow | None, source: Source | str
    ) -> None:
        """Note in the report what became of one file."""
        if isinstance(source, str):
            report.skipped[row.path] = source
            if before is not None and before.content is not None:
                report.changed += 1
        elif before is None or before.content is None:
            report.added += 1
        else:
            report.changed += 1


def _same(row: FileRow | None, file: WalkedFile) -> bool:
    return row is not None and row.size == file.size and row.modified == file.modified


def _doubtful(row: FileRow | None, file: WalkedFile) -> bool:
    return row is not None and row.modified == _UNSETTLED and row.size == file.size


def row_of(file: WalkedFile, source: Source | str) -> FileRow:
    """Return the row of a file that was read after it was found, or that could not be read."""
    settled = file.seen - file.modified > _RACY_NS
    modified = file.modified if settled else _UNSETTLED
    if isinstance(source, str):
        return FileRow(file.path, None, file.size, modified, source)
    return FileRow(file.path, source.content, source.size, modified)
