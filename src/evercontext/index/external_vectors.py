"""Rank by the vectors of an external embedder, stored beside the packaged ones.

Analyses stay as they are; what the embedder makes of each chunk lies in a table of its own, under
the embedder's name. So another embedder changes nothing but that table, and where the embedder
cannot be reached the packaged vectors still rank. Texts are embedded as the index reads them:
without secrets.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from evercontext.domain.model import Embedder
from evercontext.errors import BadReply, ModelProblem, StoreBusy
from evercontext.index.analysis import Analysis, unpack
from evercontext.index.chunk_table import ChunkTable
from evercontext.index.corpus import Corpus
from evercontext.index.indexer import IndexReport, Progress
from evercontext.index.lease import EMBEDDING, IndexLease
from evercontext.index.source_reader import Reader, Unfit
from evercontext.retrieval.postings import Floats
from evercontext.retrieval.terms import fold
from evercontext.retrieval.vectors import (
    BYTE_SCALE,
    ByteVector,
    Vector,
    VectorSpace,
    normalise,
    to_bytes,
)

KEY = 16
"""Bytes of a chunk's key."""
_AT_ONCE = 64
"""Chunks that are embedded, and then kept, together."""
_LONGEST_NAMES = 2_000
_SPREAD = np.float32(0.115)
"""How far the packaged vectors' cosines to one question lie apart: ranking was fitted to that."""
_SAMPLE = 4_000
_FLAT = 1e-4

OnChunks = Callable[[int, int], None]


@dataclass(slots=True)
class EmbeddingCost:
    """What embedding has cost."""

    chunks: int = 0
    reused: int = 0
    """Chunks whose text was known from an earlier version of their file."""
    tokens: int = 0


class EmbedderSpace(VectorSpace):
    """The space of another embedder: words have no place in it, only texts have."""

    def __init__(self, name: str, dimensions: int) -> None:
        self.name = name
        self._dimensions = dimensions

    @property
    def dimensions(self) -> int:
        """Length of each vector."""
        return self._dimensions

    def pool(self, weights: Mapping[str, float]) -> Vector:
        """Return nothing: what a path's words mean is not asked, a rename would cost."""
        return np.zeros(self._dimensions, np.float32)


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A content without vectors."""

    content: str
    texts: tuple[str, ...]
    keys: tuple[bytes, ...]


class VectorTable:
    """The vectors of one index by one embedder."""

    def __init__(self, table: ChunkTable, reader: Reader, embedder: Embedder) -> None:
        self._table = table
        self._store = table.store
        self._reader = reader
        self.embedder = embedder

    async def space(self) -> EmbedderSpace | None:
        """Return the space of the stored vectors; ``None`` while there are none."""
        row = await self._store.fetch_one(
            "SELECT length(numbers) AS size, length(keys) AS keys FROM vectors "
            "WHERE maker = ? AND length(keys) > 0 LIMIT 1",
            (self.embedder.name,),
        )
        if row is None:
            return None
        return EmbedderSpace(self.embedder.name, int(row["size"]) * KEY // int(row["keys"]))

    async def missing(self) -> int:
        """Return how many contents of the tree have no vectors yet."""
        row = await self._store.fetch_one(
            "SELECT count(DISTINCT content) AS n FROM files WHERE content IS NOT NULL "
            "AND NOT EXISTS (SELECT 1 FROM vectors WHERE hash = content AND maker = ?)",
            (self.embedder.name,),
        )
        return int(row["n"]) if row else 0

    async def with_vectors(
        self, analyses: Mapping[str, Analysis], dimensions: int
    ) -> dict[str, Analysis]:
        """Return the analyses with the embedder's vectors; without any where it made none."""
        hashes = sorted(analyses)
        stored: dict[str, ByteVector] = {}
        for start in range(0, len(hashes), 500):
            part = hashes[start : start + 500]
            marks = ",".join("?" * len(part))
            sql = f"SELECT hash, numbers FROM vectors WHERE maker = ? AND hash IN ({marks})"  # noqa: S608 - marks only
            for row in await self._store.fetch_all(sql, (self.embedder.name, *part)):
                numbers = np.frombuffer(row["numbers"], np.int8)
                if len(numbers) == (len(analyses[row["hash"]].chunks) + 1) * dimensions:
                    stored[row["hash"]] = numbers.reshape(-1, dimensions)
        return {key: replace(a, vectors=stored.get(key)) for key, a in analyses.items()}

    async def fill(self, spent: EmbeddingCost, progress: OnChunks | None = None) -> None:
        """Embed every chunk of the tree that has no vector; what is done stays done."""
        known = await self._left_over()
        total = await self.missing()
        done = 0
        async for group in self._groups():
            await self._embed(group, known, spent)
            done += len(group)
            if progress:
                progress(done, total)
        await self._store.execute(
            "DELETE FROM vectors WHERE maker <> ? OR hash NOT IN (SELECT hash FROM contents)",
            (self.embedder.name,),
        )

    async def _left_over(self) -> dict[bytes, ByteVector]:
        """Return vectors of contents that are gone: their files may have changed only a little."""
        rows = await self._store.fetch_all(
            "SELECT keys, numbers FROM vectors WHERE maker = ? "
            "AND hash NOT IN (SELECT hash FROM contents)",
            (self.embedder.name,),
        )
        known: dict[bytes, ByteVector] = {}
        for row in rows:
            keys = [row["keys"][i : i + KEY] for i in range(0, len(row["keys"]), KEY)]
            if keys:
                numbers = np.frombuffer(row["numbers"], np.int8).reshape(len(keys), -1)
                known.update(zip(keys, numbers, strict=True))
        return known

    async def _groups(self) -> AsyncIterator[list[_Waiting]]:
        rows = await self._store.fetch_all(
            "SELECT content, min(path) AS path FROM files WHERE content IS NOT NULL "
            "AND NOT EXISTS (SELECT 1 FROM vectors WHERE hash = content AND maker = ?) "
            "GROUP BY content ORDER BY 2",
            (self.embedder.name,),
        )
        group: list[_Waiting] = []
        size = 0
        for row in rows:
            waiting = await self._read(row["content"], row["path"])
            if waiting is None:
                continue
            group.append(waiting)
            size += len(waiting.texts)
            if size >= _AT_ONCE:
                yield group
                group, size = [], 0
        if group:
            yield group

    async def _read(self, content: str, path: str) -> _Waiting | None:
        """Return the chunks of a content; ``None`` if its file has changed: its turn comes."""
        packed = (await self._table.analyses([content])).get(content)
        try:
            source = await asyncio.to_thread(self._reader.read, path)
        except Unfit:
            return None
        if packed is None or source.content != content:
            return None
        analysis = unpack(packed)
        lines = fold(source.text).split("\n")
        texts = ["\n".join(lines[span.start - 1 : span.end]) for span in analysis.spans]
        texts.append(analysis.names.text[:_LONGEST_NAMES])
        return _Waiting(content, tuple(texts), tuple(map(_key, texts)))

    async def _embed(
        self, group: Sequence[_Waiting], known: dict[bytes, ByteVector], spent: EmbeddingCost
    ) -> None:
        texts = {
            key: text
            for waiting in group
            for key, text in zip(waiting.keys, waiting.texts, strict=True)
            if text.strip()
        }
        fresh = {key: text for key, text in texts.items() if key not in known}
        spent.reused += len(texts) - len(fresh)
        if fresh:
            answer = await self.embedder.embed(list(fresh.values()))
            spent.chunks += len(fresh)
            spent.tokens += answer.tokens
            numbers = to_bytes(np.asarray(answer.vectors, np.float32))
            if known and numbers.shape[1] != len(next(iter(known.values()))):
                known.clear()
            known.update(zip(fresh, numbers, strict=True))
        if not known:
            # Nothing but blank lines: there is nothing to keep, and nothing to ask again.
            return await self._keep([(waiting.content, b"", b"") for waiting in group])
        nothing = np.zeros_like(next(iter(known.values())))
        await self._keep(
            [
                (w.content, b"".join(w.keys), np.stack([known.get(k, nothing) for k in w.keys]))
                for w in group
            ]
        )

    async def _keep(self, rows: Sequence[tuple[str, bytes, ByteVector | bytes]]) -> None:
        """Write vectors, and let every reader fetch the files they belong to again."""
        maker = self.embedder.name
        async with self._store.transaction() as t:
            generation = await self._table.next_generation(t)
            await t.execute_many(
                "INSERT INTO vectors VALUES (?, ?, ?, ?) ON CONFLICT (hash) DO UPDATE SET "
                "maker = excluded.maker, keys = excluded.keys, numbers = excluded.numbers",
                [(content, maker, keys, bytes(numbers)) for content, keys, numbers in rows],
            )
            await t.execute_many(
                "UPDATE files SET generation = ? WHERE content = ?",
                [(generation, content) for content, _, _ in rows],
            )

    async def question(self, text: str, corpus: Corpus) -> Floats:
        """Return the vector of a question, as far from the others as ranking expects it."""
        answer = await self.embedder.embed([self._reader.redact(text)], question=True)
        vector = normalise(np.asarray(answer.vectors[0], np.float32))
        held = corpus.values("chunk_vectors")
        if vector.shape != held.shape[1:]:
            raise BadReply(
                f"{self.embedder.name} now makes vectors of another length",
                fix="Run: evercontext index --rebuild",
            )
        sample = held[:: max(1, len(held) // _SAMPLE)].astype(np.float32)
        cosines = (sample @ vector)[sample.any(axis=1)] / np.float32(BYTE_SCALE)
        spread = cosines.std() if len(cosines) > 1 else np.float32(0.0)
        return vector * (_SPREAD / spread if spread > _FLAT else np.float32(1.0))


def _key(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:KEY]


_PATIENCE = 8.0
"""Seconds in which a question must have its vector."""
_ASK_AGAIN = 60.0
"""Seconds in which an embedder that failed is not asked for questions again."""


class EmbedderVectors:
    """The vectors of an embedder while it answers, nothing while it does not."""

    def __init__(self, table: VectorTable, folder: Path) -> None:
        self._table = table
        self._lease = IndexLease(folder, EMBEDDING)
        self._away_until = 0.0
        self.note: str | None = None
        """Why the embedder's vectors are not used just now."""

    async def close(self) -> None:
        """Close the embedder."""
        await self._table.embedder.aclose()

    async def space(self) -> EmbedderSpace | None:
        """Return the space to rank in; ``None``: the packaged vectors have to do."""
        if time.monotonic() < self._away_until:
            return None
        space = await self._table.space()
        name = self._table.embedder.name
        self.note = None if space else f"nothing is embedded by {name} yet: run evercontext index"
        return space

    async def with_vectors(
        self, analyses: dict[str, Analysis], dimensions: int
    ) -> dict[str, Analysis]:
        """Return the analyses with the embedder's vectors."""
        return await self._table.with_vectors(analyses, dimensions)

    async def question(self, text: str, corpus: Corpus) -> Floats | None:
        """Return the vector of a question; ``None`` if the embedder does not answer."""
        try:
            async with asyncio.timeout(_PATIENCE):
                return await self._table.question(text, corpus)
        except ModelProblem as problem:
            why = problem.message
        except TimeoutError:
            why = f"{self._table.embedder.name} took more than {_PATIENCE:.0f} s"
        self._away_until = time.monotonic() + _ASK_AGAIN
        self.note = f"{why}: ranked without it"
        return None

    async def catch_up(self, report: IndexReport, progress: Progress | None = None) -> None:
        """Embed what has no vectors yet; whatever goes wrong is told, and costs no search."""
        embedder = self._table.embedder
        report.by = embedder.name
        spent, started = EmbeddingCost(), time.monotonic()
        try:
            async with self._lease.hold():
                await self._table.fill(spent, progress)
            self._away_until = 0.0
        except StoreBusy:
            report.trouble = "another process is embedding this tree"
        except ModelProblem as problem:
            report.trouble = str(problem)
        report.seconds += time.monotonic() - started
        report.requested, report.tokens = spent.chunks, spent.tokens
        report.cost = None if embedder.local else embedder.price(spent.tokens)
