"""The last commit as a tree of its own: searched like the files, shown as it was staged."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from evercontext.index.analysis import Analysis, unpack
from evercontext.index.chunk_table import ChunkTable
from evercontext.index.commit_table import CommittedRow, committed
from evercontext.index.commits import Commits
from evercontext.index.corpus import Corpus
from evercontext.index.reading import Reader, Unfit
from evercontext.retrieval.vectors import VectorSpace

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
        wanted = [(row.path, row.content) for row in self._rows.values() if row.content]
        stored: list[tuple[str, Analysis]] = []
        for start in range(0, len(wanted), _AT_ONCE):
            part = wanted[start : start + _AT_ONCE]
            packed = await self._table.analyses({content for _, content in part})
            stored += [(path, unpack(packed[key])) for path, key in part if key in packed]
        return await asyncio.to_thread(Corpus.build, stored, vectors)

    async def fetch(self, paths: Iterable[str], largest: int) -> None:
        """Bring the texts of some paths, without secrets."""
        blobs = {path: self._rows[path].blob for path in paths}
        found = await self._commits.read(list(blobs.values()), largest)
        for path, blob in blobs.items():
            if blob in found:
                self._texts[path] = self._reader.source(path, found[blob]).text

    def show(self, path: str, first: int, last: int) -> str:
        """Return some lines of a file as it was committed."""
        if path not in self._texts:
            raise Unfit("not in the repository")
        return "\n".join(self._texts[path].split("\n")[first - 1 : last])
