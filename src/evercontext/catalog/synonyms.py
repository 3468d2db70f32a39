"""Translate everyday Japanese and Chinese words for the tool search.

People ask for news, trains and share prices; the dictionary learned from the messages of programs
has no such words, or has them wrong. ``synonyms.tsv`` is a list written by hand: English (with
other words for the same behind commas), Japanese and Chinese of what tools are about. Chinese is
read, because many public tools are described in it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib import resources

from evercontext.domain.japanese import has_kana
from evercontext.retrieval.japanese_dictionary import Dictionary, dictionary, expand, plain, read
from evercontext.retrieval.terms import fold, has_cjk, stem

_KATAKANA = re.compile(r"[\u30a1-\u30fa\u30fc]+")
_LATIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.\-]*")
_SIMPLIFIED = frozenset(
    "这们时说为过对发动业开问间关话语请让认设证识词译试该读课调谁获询页频图书车东买产务单历总户"
    "执报据择无显档标条检构浏测热环现电码种类级线组细终经结给统续网联节荐规视览订训记论评详质资"
    "赛转输边达运进远连选递邮钟钱链错长门闻阅际难项须预领题风饭馆验"
)
"""Characters that Japanese does not have: text without kana that holds one is Chinese."""
_LONG_VOWEL = "ー"
_JAPANESE, _CHINESE = 0, 1
"""Columns of the list after the English."""
_FURTHER = 0.7
"""Weight of other words for the same."""


_Words = Mapping[str, tuple[str, ...]]


def is_chinese(text: str) -> bool:
    """True if a text is plainly Chinese: no kana, and a character that Japanese does not have."""
    return not text.isascii() and not has_kana(text) and not _SIMPLIFIED.isdisjoint(text)


def language_of(text: str) -> str:
    """Return zh, ja, or en for everything else."""
    if not has_cjk(text):
        return "en"
    return "zh" if is_chinese(text) else "ja"


def english_terms(text: str) -> dict[str, float]:
    """Return the English stems behind the Japanese or Chinese words of a text, with weights."""
    if not has_cjk(text):
        return {}
    return expand(text, _stems(_CHINESE) if is_chinese(text) else japanese_words())


def for_meaning(text: str) -> str:
    """Return a text as the vectors can read it: everyday words in English, and no other Chinese."""
    if not has_cjk(text):
        return text
    text = fold(text)
    language = _CHINESE if is_chinese(text) else _JAPANESE
    known = _lists()[language]
    # Units may overlap: of equal lengths the first in the text is replaced first, in every process.
    for unit in sorted(dict.fromkeys(read(text, _stems(language))), key=len, reverse=True):
        text = text.replace(unit + _LONG_VOWEL, unit).replace(unit, f" {known[unit][0]} ")
    return " ".join(_LATIN.findall(text)) if language == _CHINESE else text


@lru_cache(maxsize=1)
def japanese_words() -> Dictionary:
    """Return the dictionary of software words with the everyday ones over it."""
    return {**dictionary(), **_stems(_JAPANESE)}


@lru_cache(maxsize=1)
def _lists() -> tuple[_Words, _Words]:
    """Return what is said in English, most usual first, by Japanese and by Chinese word."""
    by_language: tuple[dict[str, tuple[str, ...]], dict[str, tuple[str, ...]]] = ({}, {})
    text = resources.files(__package__).joinpath("synonyms.tsv").read_text("utf-8")
    for line in text.splitlines():
        english, *others = line.split("\t")
        for known, words in zip(by_language, others, strict=True):
            for word in words.split():
                key = plain(word) if _KATAKANA.fullmatch(word) else word
                known[key] = (*known.get(key, ()), *english.split(", "))
    return by_language


@lru_cache(maxsize=2)
def _stems(language: int) -> Dictionary:
    return {word: _weigh(english) for word, english in _lists()[language].items()}


def _weigh(english: Sequence[str]) -> dict[str, float]:
    first = {stem(word): 1.0 for word in english[0].split()}
    others = {stem(word): _FURTHER for more in english[1:] for word in more.split()}
    return others | first
