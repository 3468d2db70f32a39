"""The words of a question as they were written, for the stems that a search works with."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from evercontext.catalog.synonyms import japanese_words
from evercontext.retrieval.japanese import read
from evercontext.retrieval.tokens import bigrams, has_cjk, runs, split_identifier, terms_of


def as_written(terms: Collection[str], text: str) -> list[str]:
    """Return the words of the (folded) text that stand behind these terms, each once, in order."""
    wanted = set(terms)
    words = [word for run in runs(text) for word in _words(run, wanted)]
    return list(dict.fromkeys(words))


def _words(run: str, wanted: set[str]) -> Iterator[str]:
    if has_cjk(run):
        known = japanese_words()
        # The dictionary speaks first: pairs are compared only where it knows nothing.
        yield from (unit for unit in read(run, known) if not wanted.isdisjoint(known[unit]))
        yield from _pieces(run, wanted)
    elif not wanted.isdisjoint(terms_of(run)):
        parts = [part for part in split_identifier(run) if not wanted.isdisjoint(terms_of(part))]
        yield from parts if len(parts) < len(split_identifier(run)) else [run.lower()]


def _pieces(run: str, wanted: set[str]) -> Iterator[str]:
    """The longest pieces of a run whose every pair of characters is wanted."""
    piece = ""
    for pair in bigrams(run):
        if pair not in wanted:
            if piece:
                yield piece
            piece = ""
        else:
            piece = piece + pair[1:] if piece else pair
    if piece:
        yield piece
