"""Split code and prose into terms: parts of identifiers, light stems, Japanese bigrams.

A document and a question go through the same cutting, so that ``parseHTTPHeaders`` in a file
meets "parsing of HTTP headers" in a question. The whole identifier is kept beside its parts,
because somebody who types it exactly wants exactly it.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

_CJK = "\u3005\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff\uff66-\uff9f"
_RUN = re.compile(rf"[^\W{_CJK}]+|[{_CJK}]+")
_ASCII_RUN = re.compile(r"[A-Za-z0-9_]+")
_PART = re.compile(r"[A-Z]+(?![a-z])[0-9]*|[A-Z]?[a-z]+[0-9]*|[0-9]+|[^\W\d_A-Za-z]+")
_CJK_START = re.compile(rf"[{_CJK}]")
LONGEST_WORD = 64
"""Longer runs are data, not words: base64, minified names, hashes."""

_STOP = (
    "a an and any are as at be been but by can could did do does done for from get gets had has"
    " have how i if in into is it its itself just like made make makes may me might must my no not"
    " of off on onto or our out over per shall should show so some such than that the their them"
    " then there these they this those through to under up upon us use used uses using via was we"
    " were what when where whether which while who whose why will with within without would you"
    " your work works working between across about during before after each"
    " implement implemented implements implementation handle handled handles handling"
)
STOP_WORDS = frozenset(_STOP.split())
_GENERIC = (
    "function functions method methods class classes type types support supports code file files"
    " module modules logic way custom different provide provides internal multiple general"
    " specific behavior behaviour definition defined define defines system mechanism feature"
    " features process processes processing manage manages management managed"
)
GENERIC_WORDS = frozenset(_GENERIC.split())
GENERIC_WEIGHT = 0.4
_AFTER, _BEFORE = "のをがはにでともへや", "のをがはに"
BESIDE_WEIGHT = 0.5


_STEMMED = frozenset("sgde")
"""The last letters of endings that are taken off."""


@lru_cache(maxsize=200_000)
def stem(word: str) -> str:
    """Return a light English stem: plural, -ing, -ed; never shorter than three letters."""
    if len(word) <= 3 or word[-1] not in _STEMMED or not word.isascii():
        return word
    if word.endswith("ies") and len(word) > 4:
        word = word[:-3] + "y"
    elif word.endswith(("sses", "xes", "ches", "shes", "zes")):
        word = word[:-2]
    elif word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    for suffix in ("ing", "ed"):
        cut = len(word) - len(suffix)
        if cut >= 3 and word.endswith(suffix) and any(c in "aeiouy" for c in word[:cut]):
            word = word[:cut]
            if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "lsz":
                word = word[:-1]
            break
    return word[:-1] if len(word) > 3 and word.endswith("e") else word


def split_identifier(name: str) -> list[str]:
    """Return the lower-cased parts of ``parseHTTPHeader_v2``: parse, http, header, v2."""
    if name.islower() and name.isascii() and name.isalpha():
        return [name]
    return [part.lower() for part in _PART.findall(name)]


def fold(text: str) -> str:
    """Return text with width and composition made equal (NFKC); plain ASCII costs nothing."""
    return text if text.isascii() else unicodedata.normalize("NFKC", text)


def runs(text: str) -> list[str]:
    """Cut folded text into identifiers, words and runs of Chinese, Japanese or Korean."""
    return run_pattern(text).findall(text)


def run_pattern(text: str) -> re.Pattern[str]:
    """Return the pattern that cuts this text, for those who cut it part by part."""
    return _ASCII_RUN if text.isascii() else _RUN


@lru_cache(maxsize=400_000)
def terms_of(run: str) -> tuple[str, ...]:
    """Return the terms of one run: its parts stemmed, and the whole identifier if it has several.

    Identifiers repeat all over a tree, so that this cache makes cutting nearly free.
    """
    return terms_of_parts(run, split_identifier(run))


def terms_of_parts(run: str, parts: Sequence[str]) -> tuple[str, ...]:
    """Return the terms of a run that is split into its parts already."""
    if len(run) > LONGEST_WORD:
        return ()
    if not run.isascii() and _CJK_START.match(run):
        return bigrams(run)
    stems = tuple([stem(part) for part in parts if len(part) > 1 and not part.isdigit()])
    if len(parts) < 2:
        return stems
    return (*stems, stem("".join(parts)))


@lru_cache(maxsize=400_000)
def identifier_term(name: str) -> str:
    """Return the one term that stands for a whole identifier, whatever its spelling style.

    Unmarked on purpose: the word "websocket" and the name ``WebSocket`` are to meet.
    """
    return stem("".join(split_identifier(name)))


def bigrams(run: str) -> tuple[str, ...]:
    """Return overlapping pairs of characters; a single character stands for itself."""
    if len(run) < 3:
        return (run,)
    return tuple(run[i : i + 2] for i in range(len(run) - 1))


def beside(word: str) -> tuple[str, ...]:
    """Return the pairs in which a word of one kanji usually stands; none for all other words.

    Texts are cut into pairs, so that 鍵 alone would meet neither 鍵を nor の鍵.
    """
    if len(word) != 1 or not "\u3400" <= word <= "\u9fff":
        return ()
    return (*(word + after for after in _AFTER), *(before + word for before in _BEFORE))


def has_cjk(text: str) -> bool:
    """True if the text holds Chinese, Japanese or Korean characters."""
    return not text.isascii() and _CJK_START.search(text) is not None


def count_terms(text: str) -> Counter[str]:
    """Count the terms of a text that is already folded."""
    counts: Counter[str] = Counter()
    for run, n in Counter(runs(text)).items():
        for term in terms_of(run):
            counts[term] += n
    return counts


def query_terms(text: str) -> dict[str, float]:
    """Return a question's terms with weights: no question words, generic words at less."""
    weights: dict[str, float] = {}
    words = runs(fold(text))
    content = [word for word in words if word.lower() not in STOP_WORDS] or words
    for word in content:
        weight = GENERIC_WEIGHT if word.lower() in GENERIC_WORDS else 1.0
        for term in terms_of(word):
            weights[term] = max(weights.get(term, 0.0), weight)
        for pair in beside(word):
            weights.setdefault(pair, BESIDE_WEIGHT)
    return weights


def content_words(text: str) -> list[str]:
    """Return a question's words in order, as written, without question words."""
    words = runs(fold(text))
    return [word for word in words if word.lower() not in STOP_WORDS] or words
