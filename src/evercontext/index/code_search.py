"""Search the code of a project: one object, one ``search``.

The command line, the ``search_code`` tool, ``POST /search`` and the context's source all call the
same function. Before it answers it looks whether the tree has changed: a few changed files are
indexed at once, many are left to ``update`` and the answer says that it is stale.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from evercontext.errors import EverContextError, PathRefused, StoreBusy, UsageError
from evercontext.events.redaction import Redactor
from evercontext.files.absolute_paths import relative_prefix
from evercontext.files.contained_paths import Root
from evercontext.files.policy import AGENT, FilePolicy
from evercontext.index.chunk_table import ChunkTable
from evercontext.index.corpus import Corpus
from evercontext.index.current_corpus import CurrentCorpus
from evercontext.index.indexer import Indexer, IndexReport, Pending, Progress
from evercontext.index.lease import IndexLease
from evercontext.index.location import (
    FILE,
    FOLDER,
    MOST_RESULTS,
    TOP_K,
    prepare_folder,
    why_strange,
)
from evercontext.index.question import Question, understand
from evercontext.index.ranking import Ranked, rank
from evercontext.index.ranking_features import NAMES
from evercontext.index.source_reader import Reader, Unfit
from evercontext.index.walker import WalkedFile, Walker
from evercontext.process.worker_threads import think
from evercontext.retrieval.postings import Floats
from evercontext.retrieval.spelling import repair
from evercontext.retrieval.static_vectors import StaticVectors, load_static_vectors
from evercontext.retrieval.terms import STOP_WORDS, fold, runs

if TYPE_CHECKING:
    from evercontext.domain.model import Embedder
    from evercontext.index.external_vectors import EmbedderVectors

_LONG = 64
"""A character of a question is as much work as so many of a plain text."""
_BACKGROUND_PATIENCE = 600.0
"""Seconds that an update in the background waits for another process that indexes."""
LOOK_EVERY = 1.0
"""Seconds in which the tree is not looked at again."""


Show = Callable[[str, int, int], str]
"""Returns the lines of a path, from the first to the last."""


@dataclass(frozen=True, slots=True)
class Hit:
    """One chunk that answers a question."""

    path: str
    start_line: int
    end_line: int
    text: str
    score: float
    symbol: str | None
    reasons: tuple[str, ...]
    signals: tuple[tuple[str, float], ...] = ()
    """What each signal added, strongest first; only when asked for."""
    is_shortened: bool = False
    """True if ``text`` is the signature alone, to fit a budget."""

    @property
    def span(self) -> str:
        """The lines as the contract writes them: ``L3-L9``."""
        return f"L{self.start_line}-L{self.end_line}"

    @property
    def key(self) -> str:
        """The chunk's key: ``path#L3-L9``."""
        return f"{self.path}#{self.span}"


@dataclass(frozen=True, slots=True)
class Answer:
    """What a search found."""

    hits: tuple[Hit, ...]
    stale: bool = False
    """True if the tree has changes that this answer does not know yet."""
    note: str | None = None
    """What kept the answer from being as good as asked for."""
    indexed: int = 0
    """How many of the tree's files the index knows, as far as can be told without reading them."""
    files: int = 0
    budget: int = 0
    """The tokens that it was fitted into; 0: as many as it takes."""
    left_out: int = 0
    """Results that did not fit."""

    @property
    def coverage(self) -> str:
        """How complete the index was, in words; empty where nothing is missing."""
        if not self.stale or self.indexed >= self.files:
            return ""
        return f"{self.indexed:,} of {self.files:,} files"


class CodeIndex:
    """The index of one tree."""

    def __init__(
        self,
        indexer: Indexer,
        root: Root,
        folder: Path,
        vectors: StaticVectors | None,
        embedder_vectors: EmbedderVectors | None = None,
    ) -> None:
        self.indexer = indexer
        self.table = indexer.table
        self._root = root
        self._vectors = vectors
        self._embedder_vectors = embedder_vectors
        self._current = CurrentCorpus(indexer.table, folder, vectors, embedder_vectors)
        self._looked = -math.inf
        self._stale = False
        self._pending = Pending([], [])
        """What was missing when the tree was last looked at."""
        self._catching_up: asyncio.Task[None] | None = None
        self._note: str | None = None
        self._busy = asyncio.Lock()
        """Held while the corpus is read or changed."""
        self._updating = asyncio.Lock()
        """Held while the table is brought up to date; searches go on meanwhile."""

    @classmethod
    async def open(
        cls,
        root: Path,
        *,
        folder: Path | None = None,
        policy: FilePolicy = AGENT,
        redactor: Redactor | None = None,
        use_vectors: bool = True,
        embedder: Embedder | None = None,
    ) -> CodeIndex:
        """Open the index of a tree; ``folder`` keeps it elsewhere than in the tree.

        ``embedder`` ranks by its own vectors instead of the packaged ones; the index closes it.
        """
        vectors = await asyncio.to_thread(load_static_vectors) if use_vectors else None
        pinned = Root.open(root)
        try:
            place = folder if folder is not None else await _own_folder(pinned.path)
            maker = vectors.name if vectors else "words"
            table = await ChunkTable.open(place / FILE, maker, policy.fingerprint)
        except BaseException:
            pinned.close()
            raise
        reader = Reader(pinned, policy, redactor)
        indexer = Indexer(table, Walker(pinned.path, policy), reader, IndexLease(place), vectors)
        if embedder is None:
            return cls(indexer, pinned, place, vectors)
        from evercontext.index.external_vectors import EmbedderVectors, VectorTable

        embedder_vectors = EmbedderVectors(VectorTable(table, reader, embedder), place)
        return cls(indexer, pinned, place, vectors, embedder_vectors)

    async def close(self) -> None:
        """Give everything back; an update in the background ends, and keeps what it has done."""
        if self._catching_up is not None:
            self._catching_up.cancel()
            await asyncio.wait({self._catching_up})
        if self._embedder_vectors is not None:
            await self._embedder_vectors.close()
        await self.table.close()
        self._root.close()

    async def update(
        self,
        paths: Sequence[str] | None = None,
        progress: Progress | None = None,
        *,
        patience: float = 0.0,
    ) -> IndexReport:
        """Bring the index up to date, wholly or for the given paths.

        While another process indexes, wait for it up to ``patience`` seconds.
        """
        async with self._updating, self.indexer.lease.hold(patience):
            report = await self._update(await self.indexer.pending(paths), progress)
            await self._follow(report)
        if self._embedder_vectors is not None:
            await self._embedder_vectors.catch_up(report, progress)
        return report

    @property
    def root_path(self) -> str:
        """Return where the tree lies."""
        return str(self._root.path)

    @property
    def unknown(self) -> Sequence[WalkedFile]:
        """Files that the index does not know as they are, too many to be read while one waits."""
        return () if self._pending.cheap else self._pending.changed

    def catch_up(self, progress: Progress | None = None) -> asyncio.Task[None] | None:
        """Bring the index up to date in the background; nothing if that is under way already."""
        if self._catching_up is not None and not self._catching_up.done():
            return None
        self._catching_up = asyncio.create_task(self._catch_up(progress))
        return self._catching_up

    async def _catch_up(self, progress: Progress | None) -> None:
        try:
            await self.update(progress=progress, patience=_BACKGROUND_PATIENCE)
        except EverContextError as problem:
            # What is known already can still be searched.
            self._note = None if isinstance(problem, StoreBusy) else problem.message
        else:
            self._note = None
        self._looked = -math.inf

    async def _update(self, pending: Pending, progress: Progress | None = None) -> IndexReport:
        report = await self.indexer.update(pending, keep_analyses=pending.cheap, progress=progress)
        self._stale, self._pending = False, Pending([], [])
        return report

    async def _follow(self, report: IndexReport) -> None:
        """Put an update into the corpus, from memory where it was small."""
        async with self._busy:
            await self._current.take_over(report)

    async def prune(self, paths: Sequence[str]) -> IndexReport:
        """Forget files, whether they are still in the tree or not."""
        async with self._updating:
            rows = await self.table.rows()
            names = {p.rstrip("/") for p in paths}
            gone = [p for p in rows if p in names or any(p.startswith(w + "/") for w in names)]
            report = await self._update(Pending([], gone))
            await self._follow(report)
            return report

    async def search(
        self,
        query: str,
        top_k: int = TOP_K,
        path_prefix: str | None = None,
        *,
        explain: bool = False,
        fresh: bool = True,
    ) -> Answer:
        """Return the chunks that answer best; ``fresh=False`` takes the index as it is."""
        question, work = await _understood(query, top_k), len(query) * _LONG
        async with self._busy:
            if fresh:
                await self._freshen()
            corpus = await self._current.get()
            if not corpus.live_files:
                return self._answer(())
            question = self._repaired(question, corpus)
            vector = await self._vector_of(question, corpus)
            if vector is None and corpus.vectors is not self._vectors:
                # The embedder does not answer: the packaged vectors do.
                corpus = await self._current.get()
                vector = await self._vector_of(question, corpus)
            most = min(top_k, MOST_RESULTS)
            # Held meanwhile, as a thread must not read what an update changes.
            ranked = await think(work, rank, corpus, question, vector, most, path_prefix)
        hits = await asyncio.to_thread(self._show, corpus, ranked, explain)
        return self._answer(hits)

    @asynccontextmanager
    async def corpus(self) -> AsyncIterator[Corpus]:
        """Hold the corpus as the tree is now, for questions that are no search."""
        async with self._busy:
            await self._freshen()
            yield await self._current.get()

    def coverage(self) -> Answer:
        """Return an answer without hits, which says how complete the index is."""
        return self._answer(())

    def _answer(self, hits: Sequence[Hit]) -> Answer:
        note = self._note or (self._embedder_vectors.note if self._embedder_vectors else None)
        pending = self._pending
        return Answer(tuple(hits), self._stale, note, pending.indexed, pending.files)

    async def search_commit(
        self,
        query: str,
        top_k: int = TOP_K,
        path_prefix: str | None = None,
        *,
        explain: bool = False,
    ) -> Answer:
        """Return what answers best in the last commit, as it was staged; the files do not count."""
        path_prefix = path_prefix and relative_prefix(path_prefix, self.root_path)
        from evercontext.index.commit_index import CommitIndexer, CommittedTree
        from evercontext.index.commits import Commits

        question, stale = await _understood(query, top_k), False
        try:
            async with self._updating:
                await CommitIndexer(self.indexer).run()
        except StoreBusy:
            stale = True
        walker = self.indexer.walker
        tree = CommittedTree(self.table, self.indexer.reader, Commits(walker.root))
        corpus = await tree.corpus(self._vectors)
        if not corpus.live_files:
            return Answer((), stale, "there is no commit with code here")
        question = self._repaired(question, corpus)
        ranked = await think(
            len(query) * _LONG,
            rank,
            corpus,
            question,
            self._packaged(question),
            min(top_k, MOST_RESULTS),
            path_prefix,
        )
        await tree.fetch({corpus.path(chunk.slot) for chunk in ranked}, walker.policy.max_bytes)
        return Answer(tuple(self._show(corpus, ranked, explain, tree.show)), stale)

    def _repaired(self, question: Question, corpus: Corpus) -> Question:
        """Return the question with words of one wrong letter as the tree spells them."""
        text = repair(question.text, corpus.frequencies, self._vectors)
        if text == question.text:
            return question
        return replace(understand(text), details=question.details)

    async def _vector_of(self, question: Question, corpus: Corpus) -> Floats | None:
        if self._embedder_vectors is not None and corpus.vectors is not self._vectors:
            return await self._embedder_vectors.question(question.text, corpus)
        return self._packaged(question)

    def _packaged(self, question: Question) -> Floats | None:
        if self._vectors is None:
            return None
        words = [run for run in runs(fold(question.text)) if run.lower() not in STOP_WORDS]
        return self._vectors.pool(dict.fromkeys(words, 1.0))

    async def _freshen(self) -> None:
        if time.monotonic() - self._looked < LOOK_EVERY:
            return
        self._pending = pending = await self.indexer.pending()
        self._stale = bool(len(pending))
        # An update that is under way, here or elsewhere, is not waited for.
        if len(pending) and pending.cheap and not self._updating.locked():
            try:
                async with self._updating:
                    report = await self._update(pending)
            except EverContextError as problem:
                # What is known already can still be searched.
                self._note = None if isinstance(problem, StoreBusy) else problem.message
                self._stale = True
            else:
                self._note = None
                await self._current.take_over(report)
        self._looked = time.monotonic()

    def _show(
        self, corpus: Corpus, ranked: list[Ranked], explain: bool, show: Show | None = None
    ) -> list[Hit]:
        hits = []
        show = show or self.indexer.reader.show
        for candidate in ranked:
            path = corpus.path(candidate.slot)
            chunk = int(corpus.values("first_chunk")[candidate.slot]) + candidate.chunk
            first, last = corpus.values("chunk_lines")[chunk].tolist()
            try:
                text = show(path, first, last)
            except Unfit:
                self._stale = True
                continue
            symbol = candidate.symbol
            signals = _signals(candidate.shares) if explain else ()
            hits.append(
                Hit(path, first, last, text, candidate.score, symbol, candidate.reasons, signals)
            )
        return hits


async def _own_folder(root: Path) -> Path:
    reason = await why_strange(root / FOLDER)
    if reason is not None:
        raise PathRefused(reason, fix=f"Remove {FOLDER}, or keep the index elsewhere")
    return prepare_folder(root)


async def _understood(query: str, top_k: int) -> Question:
    return await think(len(query) * _LONG, _checked, query, top_k)


def _checked(query: str, top_k: int) -> Question:
    if not query.strip():
        raise UsageError("the query is empty", fix="Say what you are looking for")
    if top_k < 1:
        raise UsageError("top_k must be 1 or more")
    return understand(query)


def _signals(shares: Floats) -> tuple[tuple[str, float], ...]:
    named = [(name, round(float(v), 3)) for name, v in zip(NAMES, shares, strict=True) if v]
    return tuple(sorted(named, key=lambda item: -abs(item[1])))
