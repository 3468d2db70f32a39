"""Search an index that is still being built, so that the first question of a new tree is answered.

An index that is missing or far behind is updated in the background. The question that meets it
waits a little; then it is answered from what is indexed by now, and files that are not yet indexed
are searched by their names and line by line. The answer says how complete the index was.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain, zip_longest

from evercontext.files.absolute_paths import relative_prefix
from evercontext.index.code_search import Answer, CodeIndex, Hit
from evercontext.index.indexer import Progress
from evercontext.index.location import TOP_K
from evercontext.index.question import understand
from evercontext.index.source_reader import Reader, Unfit
from evercontext.index.walker import WalkedFile
from evercontext.retrieval.terms import content_words, fold

PATIENCE = 10.0
"""Seconds that a question waits for the index it began to build."""


async def ask(
    index: CodeIndex,
    query: str,
    top_k: int = TOP_K,
    path_prefix: str | None = None,
    *,
    explain: bool = False,
    patience: float = PATIENCE,
    progress: Progress | None = None,
) -> Answer:
    """Return the chunks that answer best; ``progress`` hears of an update in the background."""
    path_prefix = path_prefix and relative_prefix(path_prefix, index.root_path)
    answer = await index.search(query, top_k, path_prefix, explain=explain)
    if not index.unknown:
        return answer
    update = index.catch_up(progress)
    if update is not None:
        if progress:
            progress(0, len(index.unknown))
        # Whoever asks while it is under way has waited once.
        await asyncio.wait({update}, timeout=patience)
        answer = await index.search(query, top_k, path_prefix, explain=explain)
    if not index.unknown:
        return answer
    known = {hit.path for hit in answer.hits}
    more = [
        hit
        for hit in await asyncio.to_thread(
            unindexed_hits, index.indexer.reader, list(index.unknown), query, top_k, path_prefix
        )
        if hit.path not in known
    ]
    # Neither kind of score means anything beside the other one: they take turns.
    mixed = chain.from_iterable(zip_longest(answer.hits, more))
    return replace(answer, hits=tuple(hit for hit in mixed if hit is not None)[:top_k])


MOST_FILES = 400
"""Files that are read for one question; those whose names fit come first."""
MOST_BYTES = 4_000_000
_AROUND = 6
"""Lines shown before and after the one that fits best."""
_MOST_WORDS = 40
_NAME_COUNTS = 2
_HIGHEST = 0.5


@dataclass(frozen=True, slots=True)
class _Fit:
    """How well a file answers by its plain words."""

    named: int
    written: int
    line: int = 0
    lines: tuple[str, ...] = ()

    @property
    def points(self) -> int:
        return self.named * _NAME_COUNTS + self.written


def unindexed_hits(
    reader: Reader,
    files: Sequence[WalkedFile],
    query: str,
    top_k: int,
    path_prefix: str | None = None,
) -> list[Hit]:
    """Return the files that hold most of the words of a question, the best first."""
    words = _words(query)
    if not words:
        return []
    prefix = path_prefix or ""
    named = {
        file.path: _count(words, fold(file.path).lower())
        for file in files
        if file.path.startswith(prefix)
    }
    sizes = {file.path: file.size for file in files}
    fits: dict[str, _Fit] = {}
    room = MOST_BYTES
    for path in sorted(named, key=lambda path: (-named[path], path))[:MOST_FILES]:
        room -= sizes[path]
        fit = _read(reader, path, words, named[path]) if room >= 0 else _Fit(named[path], 0)
        if fit is not None and fit.points:
            fits[path] = fit
    best = sorted(fits, key=lambda path: (-fits[path].points, path))[:top_k]
    most = len(words) * (_NAME_COUNTS + 1)
    return [_hit(path, fits[path], most) for path in best]


def _words(query: str) -> tuple[str, ...]:
    question = understand(query)
    question_words = [*question.words, *content_words(question.text)]
    return tuple(dict.fromkeys(fold(word).lower() for word in question_words))[:_MOST_WORDS]


def _count(words: Sequence[str], text: str) -> int:
    return sum(word in text for word in words)


def _read(reader: Reader, path: str, words: Sequence[str], named: int) -> _Fit | None:
    try:
        text = reader.read(path).text
    except Unfit:
        return None
    lines = tuple(text.split("\n"))
    written = _count(words, fold(text).lower())
    if not written:
        return _Fit(named, 0, 0, lines)
    counts = [_count(words, fold(line).lower()) for line in lines]
    return _Fit(named, written, counts.index(max(counts)), lines)


def _hit(path: str, fit: _Fit, most: int) -> Hit:
    first = max(0, fit.line - _AROUND)
    shown = fit.lines[first : fit.line + _AROUND + 1]
    reasons = (*(("file name",) if fit.named else ()), *(("plain text",) if fit.written else ()))
    score = round(_HIGHEST * fit.points / most, 4)
    return Hit(path, first + 1, first + max(1, len(shown)), "\n".join(shown), score, None, reasons)
