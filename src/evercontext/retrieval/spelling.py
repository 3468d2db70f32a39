"""Correct one wrong letter in a question by the words of the corpus.

No list of words is needed: a corpus tells which terms it holds, and all spellings that are one
letter away from a word are few. A word that the corpus has, or that the packaged vectors know as a
word, is spelt as it was meant.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence

from evercontext.retrieval.static_vectors import StaticVectors
from evercontext.retrieval.terms import STOP_WORDS, fold, split_identifier, stem

_WORD = re.compile(r"[A-Za-z_][A-Za-z_0-9]*", re.A)
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_SHORTEST, _LONGEST = 5, 24
_MOST_WORDS = 24
"""Words of a question that are looked at; a longer one says what it means by others as well."""

Frequency = Callable[[Sequence[str]], Sequence[int]]
"""Returns how many documents hold each term."""


def repair(
    text: str,
    frequency: Frequency,
    vectors: StaticVectors | None,
    keep: Collection[str] = (),
) -> str:
    """Return a question in which words that nobody wrote are those that one letter makes of them.

    ``keep`` are words, in small letters, that are right whatever the corpus has.
    """
    words = dict.fromkeys(
        part
        for run in _WORD.findall(fold(text))[:_MOST_WORDS]
        for part in split_identifier(run)
        if _SHORTEST <= len(part) <= _LONGEST and part.isalpha()
        if part not in STOP_WORDS and part not in keep
    )
    if not words:
        return text
    held = frequency([stem(word) for word in words])
    for word, often in zip(words, held, strict=True):
        if not often and not _is_word(word, vectors):
            better = _nearest(word, frequency)
            if better:
                text = _replaced(text, word, better)
    return text


def _is_word(word: str, vectors: StaticVectors | None) -> bool:
    return vectors is not None and len(vectors.pieces_of(word, [word])) == 1


def _nearest(word: str, frequency: Frequency) -> str | None:
    spellings = list(dict.fromkeys(one_away(word)))
    held = frequency([stem(spelling) for spelling in spellings])
    known = [(spelling, often) for spelling, often in zip(spellings, held, strict=True) if often]
    best = max(known, key=lambda each: _likelihood(word, *each), default=None)
    return best[0] if best else None


def _likelihood(word: str, spelling: str, often: int) -> tuple[bool, bool, int, int, str]:
    """Return what spellings are compared by.

    Two letters that changed places, or one too few or too many, come before another letter; a
    first letter is seldom wrong.
    """
    same_letters = sorted(spelling) == sorted(word)
    other_length = len(spelling) != len(word)
    return spelling[0] == word[0], other_length or same_letters, often, -len(spelling), spelling


def one_away(word: str) -> list[str]:
    """Return every spelling that one slip of the finger makes of a word."""
    cuts = [(word[:i], word[i:]) for i in range(len(word) + 1)]
    swapped = [a + b[1] + b[0] + b[2:] for a, b in cuts if len(b) > 1 and b[0] != b[1]]
    fewer = [a + b[1:] for a, b in cuts if b]
    other = [a + c + b[1:] for a, b in cuts if b for c in _LETTERS if c != b[0]]
    more = [a + c + b for a, b in cuts for c in _LETTERS]
    return swapped + fewer + more + other


def _replaced(text: str, word: str, better: str) -> str:
    def write(match: re.Match[str]) -> str:
        return better.capitalize() if match[0][0].isupper() and not match[0].isupper() else better

    as_written = rf"(?<![a-z]){word}(?![a-z])|{word.capitalize()}(?![a-z])|{word.upper()}"
    return re.sub(as_written, write, text)
