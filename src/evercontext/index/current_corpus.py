"""Keep the corpus of an index as new as its table: map it, build it, or apply each change."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from evercontext.index import corpus_snapshot
from evercontext.index.analysis import Analysis, unpack
from evercontext.index.chunk_table import ChunkTable
from evercontext.index.corpus import Corpus
from evercontext.index.corpus_snapshot import CorpusStamp, space_of
from evercontext.index.indexer import IndexReport
from evercontext.retrieval.vectors import VectorSpace
from evercontext.storage.version_cache import VersionCache

if TYPE_CHECKING:
    from evercontext.index.external_vectors import EmbedderVectors

_LOAD_AT_ONCE = 500
_WORTH_KEEPING = 100
"""A corpus of fewer files is built as quickly as it is mapped."""

Changes = list[tuple[str, str | None]]


class CurrentCorpus:
    """Holds the corpus of one index; callers take turns."""

    def __init__(
        self,
        table: ChunkTable,
        folder: Path,
        vectors: VectorSpace | None,
        embedder_vectors: EmbedderVectors | None = None,
    ) -> None:
        self._table = table
        self._folder = folder
        self._vectors = vectors
        self._embedder_vectors = embedder_vectors
        self._corpus: Corpus | None = None
        self._generation = 0
        self._identity = ""
        self._newest = VersionCache(table.store, table.state)

    async def get(self) -> Corpus:
        """Return the corpus as of the last batch, whoever wrote it."""
        identity, generation = await self._newest.get()
        space = await self._space()
        # Another identity: the table was replaced as a whole by the copy of another one.
        replaced = identity != self._identity
        if self._corpus is None or replaced or not _is_same(self._corpus.vectors, space):
            self._corpus = await self._first(space, identity, generation)
            self._identity = identity
        elif generation != self._generation:
            await self._follow(self._corpus, await self._table.changes_since(self._generation))
        self._generation = generation
        return self._corpus

    async def take_over(self, report: IndexReport) -> None:
        """Put a small update into the corpus from memory; others are read from the table later."""
        if self._corpus is None or self._embedder_vectors is not None:
            return
        identity, generation = await self._newest.get()
        follows = identity == self._identity and generation == self._generation + 1
        if report.touched and report.has_analyses and follows:
            known = await self._table.analyses({content for _, content in report.reused})
            reused = [(path, unpack(known[content])) for path, content in report.reused]
            for path, analysis in (*report.applied, *reused):
                if analysis is None:
                    self._corpus.remove(path)
                else:
                    self._corpus.put(path, analysis)
            self._generation = generation

    async def _space(self) -> VectorSpace | None:
        embedder_vectors = await self._embedder_vectors.space() if self._embedder_vectors else None
        return embedder_vectors or self._vectors

    async def _first(self, space: VectorSpace | None, identity: str, generation: int) -> Corpus:
        """Return the corpus from its snapshot if that is nearly new, else from all rows."""
        mapped = await asyncio.to_thread(corpus_snapshot.load, self._folder, identity, space)
        if mapped is not None and mapped[1] <= generation:
            corpus, since = mapped
            changed = await self._table.changes_since(since)
            if len(changed) <= 50 + corpus.file_count // 20:
                await self._follow(corpus, changed)
                return corpus
        rows = await self._table.changes_since(0)
        stored = [row async for row in self._stored(rows, space)]
        corpus = await asyncio.to_thread(Corpus.build, stored, space)
        if corpus.live_files >= _WORTH_KEEPING:
            with suppress(OSError):
                stamp = CorpusStamp(identity, generation, space_of(space))
                await asyncio.to_thread(corpus_snapshot.save, self._folder, corpus, stamp)
        return corpus

    async def _follow(self, corpus: Corpus, rows: Changes) -> None:
        for path, _ in rows:
            corpus.remove(path)
        async for path, analysis in self._stored(rows, corpus.vectors):
            corpus.put(path, analysis)

    async def _stored(
        self, rows: Sequence[tuple[str, str | None]], space: VectorSpace | None
    ) -> AsyncIterator[tuple[str, Analysis]]:
        """Yield what the table holds of paths, those without content left out."""
        contents = [(path, content) for path, content in rows if content is not None]
        for start in range(0, len(contents), _LOAD_AT_ONCE):
            part = contents[start : start + _LOAD_AT_ONCE]
            packed = await self._table.analyses({content for _, content in part})
            known = {content: unpack(data) for content, data in packed.items()}
            if (
                self._embedder_vectors is not None
                and space is not None
                and space is not self._vectors
            ):
                known = await self._embedder_vectors.with_vectors(known, space.dimensions)
            for path, content in part:
                if content in known:
                    yield path, known[content]


def _is_same(first: VectorSpace | None, second: VectorSpace | None) -> bool:
    """True if vectors of both may be compared."""
    if first is None or second is None:
        return first is second
    return (first.name, first.dimensions) == (second.name, second.dimensions)
