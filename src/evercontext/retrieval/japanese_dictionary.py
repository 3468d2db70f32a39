"""Expand Japanese questions by a dictionary of software words, for English texts.

The dictionary (``terms_ja.json``, learned by ``training/terms.py``) says which English stems a
Japanese unit stands for. A question is cut into the longest units that the dictionary knows, so
that 依存関係 is not read as 依存 and 関係, and a verb is found by its kanji and first kana.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from importlib import resources

from evercontext.retrieval.terms import (
    GENERIC_WEIGHT,
    GENERIC_WORDS,
    STOP_WORDS,
    fold,
    has_cjk,
    stem,
)

_KATAKANA = re.compile(r"[\u30a1-\u30fa\u30fc]+")
_KANJI = re.compile(r"[\u3005\u3400-\u4dbf\u4e00-\u9fff]+")
_SCRIPT = re.compile(
    r"[\u30a1-\u30fa\u30fc]{2,}|[\u3005\u3400-\u4dbf\u4e00-\u9fff]+[\u3041-\u3096]*"
)
_COMPOUND = re.compile(r"(?=([\u4e00-\u9fff][\u3041-\u3096]{1,2}[\u4e00-\u9fff]))")
_KANA = re.compile(r"[\u3041-\u3096]*$")
_LONGEST = 12
_SAYS_NOTHING = frozenset(
    {
        "行う",
        "行い",
        "行っ",
        "行わ",
        "方法",
        "実装",
        "場所",
        "部分",
        "場合",
        "箇所",
        "仕組",
        "仕組み",
    }
    | {
        "使う",
        "使っ",
        "使い",
        "使用",
        "利用",
        "用い",
        "関す",
        "対す",
        "際に",
        "時に",
        "何か",
        "作る",
    }
)
_GENERIC_STEMS = frozenset(stem(word) for word in GENERIC_WORDS | STOP_WORDS)
_LONG_VOWEL = "ー"

Dictionary = Mapping[str, Mapping[str, float]]


def units(text: str) -> Iterator[str]:
    """Yield everything in a text that may be a word: for learning, not for reading."""
    text = fold(text)
    yield from _COMPOUND.findall(text)
    for run in _SCRIPT.findall(text):
        if _KATAKANA.fullmatch(run):
            yield plain(run)
            continue
        kana = _KANA.search(run)
        assert kana is not None
        kanji, ending = run[: kana.start()], kana[0]
        if len(kanji) <= 6:
            yield kanji + (ending[:1] if len(kanji) == 1 else "")
        if ending and len(kanji) > 1:
            yield kanji[-1] + ending[:1]
        if len(kanji) > 2:
            for size in (2, 3):
                yield from (kanji[i : i + size] for i in range(len(kanji) - size + 1))


def plain(run: str) -> str:
    """Return katakana without a long vowel at its end: サーバー and サーバ are one word."""
    return run.rstrip(_LONG_VOWEL) if len(run) > 3 else run


@lru_cache(maxsize=1)
def dictionary() -> Dictionary:
    """Return the packaged dictionary."""
    text = resources.files(__package__).joinpath("terms_ja.json").read_text("utf-8")
    terms: Dictionary = json.loads(text)
    return terms


def expand(text: str, known: Dictionary | None = None) -> dict[str, float]:
    """Return the English stems behind the Japanese words of a question, with weights up to 1."""
    if not has_cjk(text):
        return {}
    words = dictionary() if known is None else known
    weights: dict[str, float] = {}
    for unit in read(fold(text), words):
        if unit in _SAYS_NOTHING:
            continue
        for term, weight in words[unit].items():
            worth = GENERIC_WEIGHT if term in _GENERIC_STEMS else 1.0
            weights[term] = max(weight * worth, weights.get(term, 0.0))
    return weights


def read(text: str, words: Dictionary) -> Iterator[str]:
    """Yield the longest known units of a text from left to right."""
    at = 0
    while at < len(text):
        unit = next(
            (
                match
                for size in range(min(_LONGEST, len(text) - at), 0, -1)
                if (match := _known(text[at : at + size], words)) is not None
            ),
            None,
        )
        if unit is None:
            at += 1
            continue
        yield unit[0]
        at += unit[1]


def _known(piece: str, words: Dictionary) -> tuple[str, int] | None:
    if piece in words and not (len(piece) == 1 and not _KANJI.fullmatch(piece)):
        return piece, len(piece)
    if _KATAKANA.fullmatch(piece) and plain(piece) in words:
        return plain(piece), len(piece)
    return None
