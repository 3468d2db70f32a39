"""Prepare a question for ranking: its terms, its names, its words in order."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from evercontext.index.question_details import Details, read_details, split
from evercontext.retrieval.terms import (
    GENERIC_WEIGHT,
    GENERIC_WORDS,
    content_words,
    has_cjk,
    query_terms,
    split_identifier,
)

# Names are ASCII here: in 関数parse_configはどこ the name ends where Japanese begins.
_SYMBOL = re.compile(
    r"[A-Za-z_$][\w$]*(?:(?:::|\\|->|\.|#|:)[A-Za-z_$][\w$]*)+|_\w+|[A-Za-z]\w*[A-Z_]\w*|[A-Z]\w*",
    re.ASCII,
)
# No repetition inside another: forty letters of a question would take for ever.
_EMBEDDED = re.compile(
    r"\b(?:[A-Za-z]+(?:_[A-Za-z0-9]+)+|[A-Z][a-z0-9]+[A-Z][A-Za-z0-9]*|[a-z]+[A-Z][A-Za-z0-9]*"
    r"|[A-Z]{2,}[a-z][A-Za-z0-9]*)\b",
    re.ASCII,
)
# It begins where a word begins: tried at each letter of a long word, it would take its square.
_QUALIFIED = re.compile(r"(?<!\w)[A-Za-z_]\w*(?:(?:::|\.|->|:|#)[A-Za-z_]\w*)+", re.ASCII)
_WORD = re.compile(r"[A-Za-z_$][\w$]{0,199}", re.A)
_QUALIFIERS = re.compile(r"::|\\|->|[.#:]")
_CAPITAL = re.compile(r"\b[A-Z][a-z]+\b", re.ASCII)
_LONGEST_SYMBOL = 200
_LIKELY = 0.7
"""A translation this likely is compared with file names."""
_TESTS = re.compile(r"\b(tests?|testing|specs?|fixtures?|mocks?)\b|テスト", re.I | re.A)


@dataclass(frozen=True, slots=True)
class Question:
    """What a question asks for, in the index's words."""

    text: str
    """What is meant: of a long question, its first line or sentence."""
    terms: dict[str, float]
    words: tuple[str, ...]
    """Content words in order, split at identifier parts, lower-cased."""
    symbol: str | None
    """The whole question, if it is one name: the part after the last qualifier."""
    names: tuple[str, ...]
    """Names inside a question of words."""
    capitals: tuple[str, ...]
    asks_tests: bool
    translated: dict[str, float] = field(default_factory=dict)
    """Terms that came from a dictionary, with their weights."""
    details: Details = field(default_factory=Details)
    """What the rest of a long question names."""
    owners: tuple[tuple[str, str], ...] = ()
    """For names that were written with their class: the name and the class."""

    @property
    def lone_name(self) -> str | None:
        """The whole question, if it may be a name: one word is, where the tree defines it."""
        word = self.text.strip().rstrip("?.() ")
        return self.symbol or (word if _WORD.fullmatch(word) else None)

    def owner_of(self, name: str) -> str | None:
        """Return the class that a name was written with."""
        return next((owner for own, owner in self.owners if own == name), None)


def understand(text: str) -> Question:
    """Return the question that a text asks: its first line or sentence, and what the rest names."""
    head, rest = split(text)
    question = _understand(head)
    return replace(question, details=read_details(rest)) if rest.strip() else question


def _understand(text: str) -> Question:
    stripped = text.strip().rstrip("?.() ")
    symbol = None
    if len(stripped) <= _LONGEST_SYMBOL and _SYMBOL.fullmatch(stripped):
        symbol = _QUALIFIERS.split(stripped)[-1]
    names = list(dict.fromkeys(_EMBEDDED.findall(text)))
    owners: list[tuple[str, str]] = []
    for qualified in _QUALIFIED.findall(text):
        parts = _QUALIFIERS.split(qualified)
        names.extend(part for part in parts if len(part) > 2)
        owners.append((parts[-1], parts[-2]))
    translated = _translated(text)
    words = tuple(part for word in content_words(text) for part in split_identifier(word))
    if translated:
        likely = (term for term, weight in translated.items() if weight >= _LIKELY)
        words = tuple(dict.fromkeys((*(word for word in words if not has_cjk(word)), *likely)))
    return Question(
        text,
        query_terms(text) | translated,
        words,
        symbol,
        tuple(dict.fromkeys(names)),
        tuple(dict.fromkeys(w for w in _CAPITAL.findall(text))),
        bool(_TESTS.search(text)),
        translated,
        owners=tuple(owners),
    )


def _translated(text: str) -> dict[str, float]:
    """Return the English terms behind Japanese words; the dictionary is loaded for those alone."""
    if not has_cjk(text):
        return {}
    from evercontext.retrieval.japanese_dictionary import expand

    return expand(text)


def word_weight(word: str) -> float:
    """Return how much a word of a question counts before its rarity is known."""
    return GENERIC_WEIGHT if word in GENERIC_WORDS else 1.0
