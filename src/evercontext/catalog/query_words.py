"""Map the stems of a search back to the words of the question."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from evercontext.catalog.synonyms import japanese_words
from evercontext.retrieval.japanese_dictionary import read
from evercontext.retrieval.terms import bigrams, has_cjk, runs, split_identifier, terms_of


def as_written(terms: Collection[str], text: str) -> list[str]:
    """Return the words of the (folded) text that stand behind these terms, each once, in order."""
    words = [word for run in runs(text) for word in _words(run, set(terms))]
    return list(dict.fromkeys(words))


def _words(run: str, terms: set[str]) -> Iterator[str]:
    if has_cjk(run):
        known = japanese_words()
        # The dictionary speaks first: pairs are compared only where it knows nothing.
        yield from (unit for unit in read(run, known) if not terms.isdisjoint(known[unit]))
        yield from _pieces(run, terms)
    elif not terms.isdisjoint(terms_of(run)):
        parts = [part for part in split_identifier(run) if not terms.isdisjoint(terms_of(part))]
        yield from parts if len(parts) < len(split_identifier(run)) else [run.lower()]


def _pieces(run: str, terms: set[str]) -> Iterator[str]:
    """The longest pieces of a run whose every pair of characters is one of the terms."""
    piece = ""
    for pair in bigrams(run):
        if pair not in terms:
            if piece:
                yield piece
            piece = ""
        else:
            piece = piece + pair[1:] if piece else pair
    if piece:
        yield piece
