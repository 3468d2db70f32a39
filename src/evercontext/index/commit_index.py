"""Index what was committed: bring commits into the index, and search the last one.

The rows of a commit and of the work tree become visible in one transaction, so that an addition, a
change, a deletion and a rename of one commit are seen together or not at all. What a file says now
is what a search finds; what was committed stays known beside it, so that a stash, a reset or a
checkout costs no analysis.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from evercontext.index.analysis import Analysis, pack, unpack
from evercontext.index.chunk_table import (
    Batch,
    ChunkTable,
    CommitRows,
    CommittedRow,
    committed,
    name_of_commit,
)
from evercontext.index.commits import Commits, Staged, blob_name
from evercontext.index.corpus import Corpus
from evercontext.index.indexer import BATCH, Indexer, IndexReport, row_of
from evercontext.index.rename_report import tell_renames
from evercontext.index.source_reader import Reader, Source, Unfit
from evercontext.index.walker import WalkedFile
from evercontext.retrieval.vectors import VectorSpace

Sources = dict[str, Source | str]


@dataclass(slots=True)
class _Pass:
    """What one pass has gathered until it is written."""

    rows: CommitRows
    batch: Batch = field(default_factory=Batch)
    report: IndexReport = field(default_factory=IndexReport)
    renamed: list[tuple[str, str]] = field(default_factory=list)


class CommitIndexer:
    """Brings the commits of a repository into its index."""

    def __init__(self, indexer: Indexer) -> None:
        self._indexer = indexer
        self._commits = Commits(indexer.walker.root)

    async def run(self) -> IndexReport:
        """Take in what was committed since the last pass; the first one takes the whole commit."""
        started = time.monotonic()
        indexer = self._indexer
        async with indexer.lease.hold():
            head = await self._commits.head()
            known = await name_of_commit(indexer.table.store)
            if head is None or head == known:
                return IndexReport()
            staged, is_complete = await self._staged(known, head)
            done = _Pass(CommitRows(head, is_complete))
            for start in range(0, len(staged), BATCH):
                part = staged[start : start + BATCH]
                await self._gather(part, done, more=start + BATCH < len(staged))
            done.batch.commit = done.rows
            await indexer.table.apply(done.batch)
            await indexer.table.sweep()
            await tell_renames(done.renamed, indexer.table, indexer.on_renamed)
        done.report.seconds = time.monotonic() - started
        return done.report

    async def _staged(self, known: str | None, head: str) -> tuple[list[Staged], bool]:
        wants = self._indexer.walker.wants
        changes = await self._commits.changes(known, head) if known else None
        is_complete = changes is None
        if changes is None:
            changes = await self._commits.tree(head) or []
            rows = await committed(self._indexer.table.store)
            there = {staged.path for staged in changes}
            changes += [Staged(path, None) for path in rows if path not in there]
        return [staged for staged in changes if wants(staged.path)], is_complete

    async def _gather(self, part: Sequence[Staged], done: _Pass, *, more: bool) -> None:
        """Read, compare and analyse some paths; their rows wait for the others."""
        indexer = self._indexer
        indexed = set(await indexer.walker.belongs([staged.path for staged in part]))
        part = [staged for staged in part if staged.path in indexed or staged.blob is None]
        files = {p: f for p in indexed if (f := indexer.walker.look(p)) is not None}
        there = [staged for staged in part if staged.path in files]
        now, same = await asyncio.to_thread(self._read_tree, there)
        then = await self._read_blobs(part, now, same)
        contents = {s.content for s in (*now.values(), *then.values()) if isinstance(s, Source)}
        known = await indexer.table.known_contents(contents)
        fresh = await indexer.analyse(now, known)
        fresh |= await indexer.analyse(then, known | set(fresh))
        packed = {content: pack(analysis) for content, analysis in fresh.items()}
        if more or done.batch.files or done.batch.gone:
            await indexer.table.prepare(packed)
        else:
            done.batch.contents.update(packed)
        if indexer.vectors:
            done.report.embedded += sum(len(analysis.chunks) for analysis in fresh.values())
        await self._note_tree(files, part, now, set(fresh), done)
        self._note_commit(part, then, done)

    def _read_tree(self, part: Sequence[Staged]) -> tuple[Sources, set[str]]:
        """Return the files as they are, and the paths of those that are as they were committed."""
        reader, sources, same = self._indexer.reader, Sources(), set()
        for staged in part:
            try:
                data = reader.load(staged.path)
                if staged.blob and blob_name(data, staged.blob) == staged.blob:
                    same.add(staged.path)
                sources[staged.path] = reader.source(staged.path, data)
            except Unfit as why:
                sources[staged.path] = str(why)
        return sources, same

    async def _read_blobs(self, part: Sequence[Staged], now: Sources, same: set[str]) -> Sources:
        """Return what was staged: from the work tree where it is the same, else from git."""
        others = {s.path: s.blob for s in part if s.blob and s.path not in same}
        largest = self._indexer.walker.policy.max_bytes
        blobs = await self._commits.read(list(others.values()), largest) if others else {}
        sources = {path: now[path] for path in same}
        for path, blob in others.items():
            data = blobs.get(blob)
            try:
                sources[path] = (
                    "not in the repository, or too large"
                    if data is None
                    else self._indexer.reader.source(path, data)
                )
            except Unfit as why:
                sources[path] = str(why)
        return sources

    async def _note_tree(
        self,
        files: dict[str, WalkedFile],
        part: Sequence[Staged],
        now: Sources,
        fresh: set[str],
        done: _Pass,
    ) -> None:
        indexer, report = self._indexer, done.report
        before = await indexer.rows_of([staged.path for staged in part])
        moved: dict[str, str] = {}
        for path in dict.fromkeys(staged.path for staged in part):
            old = before.get(path)
            if path not in files:
                if old is not None:
                    done.batch.gone.append(path)
                    report.deleted += 1
                continue
            row = row_of(files[path], now[path])
            done.batch.files.append(row)
            if old is not None and old.content == row.content and row.content is not None:
                report.unchanged += 1
                continue
            indexer.count(report, row, old, now[path])
            if row.content and row.content not in fresh:
                moved[row.content] = path
        gone = [before[path] for path in done.batch.gone if path in before]
        pairs = [(old.path, moved[old.content]) for old in gone if old.content in moved]
        report.renamed += len(pairs)
        done.renamed += pairs

    def _note_commit(self, part: Sequence[Staged], then: Sources, done: _Pass) -> None:
        for staged in part:
            source = then.get(staged.path)
            if staged.blob is None or source is None:
                done.rows.gone.append(staged.path)
                continue
            content = source.content if isinstance(source, Source) else None
            done.rows.staged.append(CommittedRow(staged.path, staged.blob, content))
        done.report.committed += len(part)


_AT_ONCE = 500


class CommittedTree:
    """The rows of the last commit, and the texts behind them."""

    def __init__(self, table: ChunkTable, reader: Reader, commits: Commits) -> None:
        self._table = table
        self._reader = reader
        self._commits = commits
        self._rows: dict[str, CommittedRow] = {}
        self._texts: dict[str, str] = {}

    async def corpus(self, vectors: VectorSpace | None) -> Corpus:
        """Return the commit, ready to be ranked."""
        self._rows = await committed(self._table.store)
        contents = [(row.path, row.content) for row in self._rows.values() if row.content]
        stored: list[tuple[str, Analysis]] = []
        for start in range(0, len(contents), _AT_ONCE):
            part = contents[start : start + _AT_ONCE]
            packed = await self._table.analyses({content for _, content in part})
            stored += [(path, unpack(packed[key])) for path, key in part if key in packed]
        return await asyncio.to_thread(Corpus.build, stored, vectors)

    async def fetch(self, paths: Iterable[str], largest: int) -> None:
        """Bring the texts of some paths, without secrets."""
        blobs = {path: self._rows[path].blob for path in paths}
        contents = await self._commits.read(list(blobs.values()), largest)
        for path, blob in blobs.items():
            if blob in contents:
                self._texts[path] = self._reader.source(path, contents[blob]).text

    def show(self, path: str, first: int, last: int) -> str:
        """Return some lines of a file as it was committed."""
        if path not in self._texts:
            raise Unfit("not in the repository")
        return "\n".join(self._texts[path].split("\n")[first - 1 : last])
