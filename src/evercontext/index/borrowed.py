"""Ranking by vectors that somebody else makes: who must be asked, may be slow, or may be away."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from evercontext.errors import ModelProblem, StoreBusy
from evercontext.index.analysis import Analysis
from evercontext.index.corpus import Corpus
from evercontext.index.indexer import Progress, Report
from evercontext.index.lease import EMBEDDING, IndexLease
from evercontext.index.overlay import BorrowedVectors, Overlay, Spent
from evercontext.retrieval.postings import Floats

_PATIENCE = 8.0
"""Seconds in which a question must have its vector."""
_ASK_AGAIN = 60.0
"""Seconds in which an embedder that failed is not asked for questions again."""


class Borrowed:
    """The vectors of an embedder while it answers, nothing while it does not."""

    def __init__(self, overlay: Overlay, folder: Path) -> None:
        self._overlay = overlay
        self._lease = IndexLease(folder, EMBEDDING)
        self._away_until = 0.0
        self.note: str | None = None
        """Why the embedder's vectors are not used just now."""

    async def close(self) -> None:
        """Close the embedder."""
        await self._overlay.embedder.aclose()

    async def space(self) -> BorrowedVectors | None:
        """Return the space to rank in; ``None``: the packaged vectors have to do."""
        if time.monotonic() < self._away_until:
            return None
        found = await self._overlay.space()
        name = self._overlay.embedder.name
        self.note = None if found else f"nothing is embedded by {name} yet: run evercontext index"
        return found

    async def laid_over(
        self, analyses: dict[str, Analysis], dimensions: int
    ) -> dict[str, Analysis]:
        """Return the analyses with the embedder's vectors."""
        return await self._overlay.laid_over(analyses, dimensions)

    async def question(self, text: str, corpus: Corpus) -> Floats | None:
        """Return the vector of a question; ``None`` if the embedder does not answer."""
        try:
            async with asyncio.timeout(_PATIENCE):
                return await self._overlay.question(text, corpus)
        except ModelProblem as problem:
            why = problem.message
        except TimeoutError:
            why = f"{self._overlay.embedder.name} took more than {_PATIENCE:.0f} s"
        self._away_until = time.monotonic() + _ASK_AGAIN
        self.note = f"{why}: ranked without it"
        return None

    async def catch_up(self, report: Report, progress: Progress | None = None) -> None:
        """Embed what has no vectors yet; whatever goes wrong is told, and costs no search."""
        embedder = self._overlay.embedder
        report.by = embedder.name
        spent, started = Spent(), time.monotonic()
        try:
            async with self._lease.hold():
                await self._overlay.fill(spent, progress)
            self._away_until = 0.0
        except StoreBusy:
            report.trouble = "another process is embedding this tree"
        except ModelProblem as problem:
            report.trouble = str(problem)
        report.seconds += time.monotonic() - started
        report.asked, report.tokens = spent.chunks, spent.tokens
        report.cost = None if embedder.local else embedder.price(spent.tokens)
