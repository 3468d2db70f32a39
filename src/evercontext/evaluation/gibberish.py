"""Detect text without meaning: words in no order, the same few of them, sentences said again.

More of it must not make a document better. The bounds are far from 2,200 documents that people
wrote: there at most one article in 16 stands before a word that cannot follow it, shuffled words
have one in four; and they have more than twice as many different words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from math import sqrt
from pathlib import Path

from evercontext.domain.japanese import japanese_characters
from evercontext.evaluation.document_parser import WORD, Document
from evercontext.evaluation.issue import Issue, describe
from evercontext.evaluation.rubric import DEFAULT_WEIGHTS

LEAST_WORDS = 100
LEAST_CHARACTERS = 200
VARIED, VARIED_JAPANESE = 1.5, 4.0
"""Different words, or pairs of Japanese characters, for the square root of their number."""
LEAST_ARTICLES = 10
SENSELESS = 0.15
MOSTLY = 0.5
_ASIDE = re.compile(r"`[^`]{0,1000}`|https?://\S+|\]\([^()]{0,1000}\)")
_TOKEN = re.compile(r"[a-z][\w'-]*|[^\w\s]")
_LITTLE = """
    the a an of and or to in on at by for from is are was were be been it this that these those
    with as if but can will you we they i he she has have had does when which than then into should
    may
"""
_NEVER_AFTER = frozenset(_LITTLE.split())
_NO_TEXT = 0.75
"""Costs so much of every criterion that a stub is worth more."""


def no_order(document: Document, base: Path | None) -> Iterator[Issue]:
    """English words that are there, and no sentences: articles before what cannot follow them."""
    articles = strays = 0
    for paragraph in document.paragraphs:
        for before, after in pairwise(_TOKEN.findall(_ASIDE.sub(" . ", paragraph.text.lower()))):
            if before in ("a", "an", "the") and after[0].isalpha():
                articles += 1
                strays += after in _NEVER_AFTER
    if articles >= LEAST_ARTICLES and strays > SENSELESS * articles:
        yield from _no_text(describe(document, "no order"))


def few_words(document: Document, base: Path | None) -> Iterator[Issue]:
    """The same few words again and again, whatever they promise."""
    prose = [paragraph.text for paragraph in document.paragraphs]
    words = [word.lower() for text in prose for word in WORD.findall(text)]
    characters = [letter for text in prose for letter in japanese_characters(text)]
    poor = len(words) >= LEAST_WORDS and len(set(words)) < VARIED * sqrt(len(words))
    pairs = len(set(pairwise(characters)))
    meagre = len(characters) >= LEAST_CHARACTERS and pairs < VARIED_JAPANESE * sqrt(len(characters))
    if meagre if document.japanese else poor:
        yield from _no_text(describe(document, "few words"))


def said_again(document: Document, base: Path | None) -> Iterator[Issue]:
    """Most of it has been said before."""
    if document.words and document.repeated > MOSTLY * document.words:
        share = document.repeated / document.words
        remark = describe(document, "said again", n=round(100 * share))
        yield from (Issue(name, 1, 0.5 * share, remark) for name in ("clarity", "usability"))


def _no_text(remark: str) -> Iterator[Issue]:
    return (Issue(name, 1, _NO_TEXT, remark) for name in DEFAULT_WEIGHTS)
