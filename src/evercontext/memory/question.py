"""Extract the search words and the people from a question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime

from evercontext.memory.date_phrases import find_date_ranges
from evercontext.memory.encoding import ids_of
from evercontext.memory.ranking import MemoryQuestion
from evercontext.retrieval.spelling import Frequency, repair
from evercontext.retrieval.static_vectors import load_static_vectors
from evercontext.retrieval.term_keys import short_term_key
from evercontext.retrieval.terms import BESIDE_WEIGHT, STOP_WORDS, beside, fold, has_cjk, runs

MOST_TERMS = 64
_QUESTION_WORDS = (
    "much many often long kind kinds type types s t re ve ll d m ever never also too still yet"
    " likely considered something someone anything tell know remember said say mention mentioned"
    " he she him her his hers am"
)
STOP = STOP_WORDS | frozenset(_QUESTION_WORDS.split())
_ASKING = (
    "について教えてください を教えてください 教えてください を教えて 教えて"
    " でしょうか のですか なんですか 何ですか ましたか ですか"
    " ますか について どのような どんな どこ いつ だれ 誰 何 なぜ どう"
)
_JAPANESE = sorted(_ASKING.split(), key=len, reverse=True)
"""What only makes a question of it; cut out, so that its pairs of characters match nothing."""
_GRAMMAR, _ENDING = 0.2, 0.5


def read_question(
    query: str, now: datetime, speakers: Mapping[str, int], frequency: Frequency
) -> MemoryQuestion:
    """Take a question apart: words to look for, who is named, when; misspelt words are repaired."""
    names = meant_speakers(query, speakers)
    encoder = load_static_vectors()
    spoken = {word.lower() for name in names for word in runs(fold(name))}
    text = repair(query, frequency, encoder, spoken)
    words = wanted_words(text, set(names))[:MOST_TERMS]
    return MemoryQuestion(
        terms=dict(list(wanted_terms(words).items())[:MOST_TERMS]),
        vector=encoder.pool(dict.fromkeys(words, 1.0)) if encoder else None,
        speakers=tuple(sorted(set(names.values()))),
        moments=find_date_ranges(text, now),
        now=now.timestamp(),
    )


def wanted_words(text: str, names: AbstractSet[str] = frozenset()) -> list[str]:
    """Return the words without question words and without ``names``; all of them, if none is left.

    A name is left out because whoever talks to somebody says that name, and whoever talks of
    themselves does not.
    """
    folded = fold(text)
    if has_cjk(folded):
        for phrase in _JAPANESE:
            folded = folded.replace(phrase, " ")
    words = runs(folded)
    content = [w for w in words if w.lower() not in STOP and w.casefold() not in names]
    return list(dict.fromkeys(content or words or runs(fold(text))))


def wanted_terms(words: Sequence[str]) -> dict[int, float]:
    """Return the numbers of the words' terms, each once, and what each is worth.

    Of Japanese, pairs of characters are looked for: 設定 names something, の設 and した do not.
    """
    weights: dict[int, float] = {}
    for word in words:
        numbers = ids_of(word)
        pairs = len(numbers) > 1 and len(numbers) == len(word) - 1 and has_cjk(word)
        for at, number in enumerate(numbers):
            worth = _worth_of(word[at], word[at + 1]) if pairs else 1.0
            weights[number] = max(worth, weights.get(number, 0.0))
        for pair in beside(word):
            weights.setdefault(short_term_key(pair), BESIDE_WEIGHT)
    return weights


def _worth_of(first: str, second: str) -> float:
    """A pair that begins in hiragana is grammar; one that ends in it is half so."""
    if "\u3041" <= first <= "\u309f":
        return _GRAMMAR
    return _ENDING if "\u3041" <= second <= "\u309f" else 1.0


def meant_speakers(text: str, speakers: Mapping[str, int]) -> dict[str, int]:
    """Return the speakers that a text names, by whole words; Japanese names by their letters."""
    if len(speakers) > 10_000:
        return {}
    folded = fold(text).casefold()
    words = set(runs(folded))
    named = {}
    for name, code in speakers.items():
        parts = runs(fold(name))
        if parts and (set(parts) <= words or (has_cjk(name) and name in folded)):
            named[name] = code
    return named
