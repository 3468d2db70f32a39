"""Summarise a session in a few of its own sentences, without a model.

Sentences that share the most words with the rest of the session stand for it; the first request and
the last answer are always among them.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from evercontext.domain.message import Message
from evercontext.retrieval.terms import STOP_WORDS, count_terms, fold

LONGEST = 1_200
_LONGEST_SENTENCE = 240
_MOST_SENTENCES = 400
_SENTENCE = re.compile(r"[^.!?。！？\n]+[.!?。！？]*")
_FENCED = re.compile(r"```.*?(?:```|$)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class _Sentence:
    place: int
    speaker: str
    text: str
    terms: Counter[str]


def summarise(messages: Sequence[Message], longest: int = LONGEST) -> str:
    """Return a summary of at most ``longest`` characters, in the order things were said."""
    sentences = _sentences(messages)
    if not sentences:
        return ""
    common: Counter[str] = Counter()
    for sentence in sentences:
        common.update(sentence.terms.keys())
    ranked = sorted(sentences, key=lambda sentence: (-_worth(sentence, common), sentence.place))
    chosen: list[_Sentence] = []
    for sentence in [*_edges(sentences), *ranked]:
        used = sum(len(_line(other)) + 1 for other in chosen)
        repeated = any(other.text == sentence.text for other in chosen)
        if not repeated and used + len(_line(sentence)) <= longest:
            chosen.append(sentence)
    return "\n".join(_line(other) for other in sorted(chosen, key=lambda other: other.place))


def _sentences(messages: Sequence[Message]) -> list[_Sentence]:
    sentences: list[_Sentence] = []
    for message in messages:
        if message.role not in ("user", "assistant"):
            continue
        for text in _SENTENCE.findall(_FENCED.sub(" ", message.content)):
            words = " ".join(text.split())[:_LONGEST_SENTENCE]
            terms = count_terms(fold(words))
            for term in STOP_WORDS & terms.keys():
                del terms[term]
            if terms and len(sentences) < _MOST_SENTENCES:
                sentences.append(_Sentence(len(sentences), message.role, words, terms))
    return sentences


def _edges(sentences: Sequence[_Sentence]) -> list[_Sentence]:
    question = next((sentence for sentence in sentences if sentence.speaker == "user"), None)
    answer = next(
        (sentence for sentence in reversed(sentences) if sentence.speaker == "assistant"), None
    )
    return [sentence for sentence in (question, answer) if sentence]


def _worth(sentence: _Sentence, common: Counter[str]) -> float:
    shared = sum(math.log(common[term]) for term in sentence.terms if common[term] > 1)
    weight = 1.3 if sentence.speaker == "user" else 1.0
    return weight * shared / math.sqrt(len(sentence.terms) + 1)


def _line(sentence: _Sentence) -> str:
    return f"- {sentence.speaker}: {sentence.text}"
