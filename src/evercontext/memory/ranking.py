"""How memories are ranked: a handful of signals, each a number per candidate, added with weights.

Words and meaning of a memory count, and those of its neighbours: an answer rarely repeats the
words of the question before it. The weights were fitted on the development half of a public set of
conversations (docs/explanation/context.md); on memories without sessions or speakers, the signals
that need them are silent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from evercontext.memory.corpus import Corpus
from evercontext.memory.date_phrases import DateRanges
from evercontext.memory.encoding import ASKS
from evercontext.retrieval.bm25f import bm25, inverse_document_frequency
from evercontext.retrieval.fusion import Scale, weighted_sum
from evercontext.retrieval.postings import Floats, Ints
from evercontext.retrieval.vectors import Vector

WEIGHTS: Mapping[str, float] = {
    "words": 0.05,
    "words_context": 0.33,
    "words_after": 0.03,
    "words_session": 0.7,
    "meaning": 0.4,
    "meaning_before": 0.1,
    "meaning_after": 0.05,
    "speaker": 0.95,
    "asks": -0.7,
    "answers": 0.95,
    "opening": 0.9,
    "length": 0.3,
    "time": 2.6,
    "recency": 0.1,
    "importance": 0.5,
}
K1, B = 1.2, 0.75
ALL = 4_096
"""Up to so many memories every one is a candidate."""
EXACT = 12_000
"""Up to so many memories whole vectors are compared with all of them."""
CANDIDATES = 600
_SAMPLE = 512
_DAY = 86_400.0
_FEW, _LEAST_SPREAD = 16, 0.1
_NOTHING = np.float32(0)

Slots = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Question:
    """A question as it is looked for."""

    terms: Mapping[int, float]
    vector: Vector | None
    speakers: tuple[int, ...] = ()
    moments: DateRanges = DateRanges()
    now: float = 0.0


@dataclass(frozen=True, slots=True)
class Ranked:
    """Candidates, best first, with their scores and what spoke for them."""

    slots: Slots
    scores: Floats
    signals: Mapping[str, Floats]
    cosine: Floats
    coverage: Floats
    """Share of the question's words, weighted by rarity, that the memory itself has."""


@dataclass(frozen=True, slots=True)
class Words:
    """BM25 of every memory: alone, with the one before it, and of its whole session."""

    own: Floats
    context: Floats
    session: Floats
    """One number per session."""
    most: float
    """What the question's words are worth together."""


@dataclass(frozen=True, slots=True)
class Meaning:
    """How near every memory's vector is to the question's."""

    scores: Floats
    """One per memory: the cosine, or among very many what the leading numbers say of it."""
    exact: bool


def rank(corpus: Corpus, question: Question, usable: NDArray[np.bool_], limit: int) -> Ranked:
    """Return the best ``limit`` usable memories."""
    words = word_scores(corpus, question.terms)
    meaning = meaning_scores(corpus, question.vector)
    slots = _candidates(corpus, question, usable, words, meaning)
    signals = _signals(corpus, question, slots, words, meaning)
    scores = weighted_sum(signals, WEIGHTS, len(slots))
    order = np.argsort(-scores, kind="stable")[:limit]
    chosen = slots[order]
    return Ranked(
        slots=chosen,
        scores=scores[order],
        signals={name: values[order] for name, values in signals.items()},
        cosine=_cosine(corpus, question.vector, chosen),
        coverage=words.own[chosen] / np.float32(words.most or 1.0),
    )


def meaning_scores(corpus: Corpus, vector: Vector | None) -> Meaning | None:
    """Return how near each memory is in meaning, or nothing if the question has none."""
    if vector is None or not vector.any():
        return None
    if len(corpus) <= EXACT:
        return Meaning(corpus.vectors.values @ vector, exact=True)
    rough = corpus.rough.values
    return Meaning(rough @ vector[: rough.shape[1]], exact=False)


def word_scores(corpus: Corpus, terms: Mapping[int, float]) -> Words:
    """Return the BM25 of memories, of memories with the one before them, and of sessions."""
    size = len(corpus)
    own, context = np.zeros(size, np.float32), np.zeros(size, np.float32)
    sessions, spoken = corpus.sessions.values, corpus.session_lengths()
    session = np.zeros(len(spoken), np.float32)
    lengths, before = corpus.lengths.values, corpus.previous.values
    wide = lengths + _at(lengths, before)
    tally = np.zeros(size, np.float32)
    average, most = corpus.average_length, 0.0
    for term, weight in terms.items():
        slots, counts = corpus.postings(term)
        rarity = weight * inverse_document_frequency(size, len(slots))
        most += rarity
        if not len(slots):
            continue
        own[slots] += _term_score(rarity, counts, lengths[slots], average)
        both = _with_followers(corpus, slots, counts, tally)
        # A memory that is named twice is meant once: it holds the same sum both times.
        context[both] += _term_score(rarity, tally[both], wide[both], 2 * average)
        tally[both] = 0
        if len(spoken):
            session += _session_worth(weight, sessions[slots], counts, spoken)
    return Words(own, context, session, most)


def _session_worth(weight: float, sessions: Ints, counts: Floats, lengths: Floats) -> Floats:
    """Return what one term is worth in each session."""
    inside = sessions >= 0
    totals = np.zeros(len(lengths), np.float32)
    np.add.at(totals, sessions[inside], counts[inside])
    held = int(np.count_nonzero(totals))
    rarity = weight * inverse_document_frequency(len(lengths), held)
    return _term_score(rarity, totals, lengths, float(lengths.mean()))


def _term_score(rarity: float, counts: Floats, lengths: Floats, average: float) -> Floats:
    relative = lengths / np.float32(max(1.0, average))
    return np.float32(rarity * (K1 + 1)) * bm25(counts, relative, K1, B)


def _with_followers(corpus: Corpus, slots: Ints, counts: Floats, tally: Floats) -> Ints:
    """Add a term's counts to the memories that hold it and to those that come right after."""
    after = corpus.following.values[slots]
    real = after >= 0
    tally[slots] += counts
    tally[after[real]] += counts[real]
    both: Ints = np.concatenate([slots, after[real]])
    return both


def _candidates(
    corpus: Corpus,
    question: Question,
    usable: NDArray[np.bool_],
    words: Words,
    meaning: Meaning | None,
) -> Slots:
    """Every usable memory of few; of many, those near the question by words or by meaning."""
    everyone: Slots = np.flatnonzero(usable)
    if len(everyone) <= ALL:
        return everyone
    all_usable = len(everyone) == len(usable)
    near = words.own + words.context
    parts = [_best(near if all_usable else np.where(usable, near, -1), CANDIDATES)]
    if meaning is not None:
        near = meaning.scores
        parts.append(_best(near if all_usable else np.where(usable, near, -9), CANDIDATES))
    if question.moments:
        inside = np.flatnonzero(_in_time(corpus, question.moments, everyone))
        parts.append(everyone[inside[-CANDIDATES:]])
    return np.unique(np.concatenate(parts))


def _best(scores: Floats, count: int) -> Slots:
    slots: Slots = np.argpartition(-scores, count)[:count]
    return slots


def _signals(
    corpus: Corpus, question: Question, slots: Slots, words: Words, meaning: Meaning | None
) -> dict[str, Floats]:
    before, after = corpus.previous.values[slots], corpus.following.values[slots]
    session, own = corpus.sessions.values[slots], _scale(words.own)
    signals = {
        "words": own.apply(words.own[slots]),
        "words_context": _scale(words.context).apply(words.context[slots]),
        "words_after": own.apply(_at(words.own, after)),
        "words_session": _at(_standard(words.session), session),
        **_meanings(corpus, question, slots, meaning),
        "opening": _floats((before < 0) & (session >= 0)),
        "length": _standard(np.log1p(corpus.lengths.values[slots])),
        "recency": _recency(corpus, question, slots),
        "importance": corpus.importance.values[slots] - np.float32(0.5),
    }
    asks = np.zeros(len(corpus), np.float32)
    asks[corpus.postings(ASKS)[0]] = 1
    signals["asks"], signals["answers"] = asks[slots], _at(asks, before)
    if len(question.speakers) == 1:
        signals["speaker"] = _floats(corpus.speakers.values[slots] == question.speakers[0])
    if question.moments:
        signals["time"] = _floats(_in_time(corpus, question.moments, slots))
    return signals


def _meanings(
    corpus: Corpus, question: Question, slots: Slots, meaning: Meaning | None
) -> dict[str, Floats]:
    if meaning is None:
        return {}
    before, after = corpus.previous.values[slots], corpus.following.values[slots]
    scores, scale = meaning.scores, _scale(meaning.scores)
    if meaning.exact:
        near = scale.apply(scores[slots])
    else:
        # The mean and the spread come from a sample: only the candidates are looked at closely.
        step = max(1, len(corpus) // _SAMPLE)
        sample = _cosine(corpus, question.vector, np.arange(0, len(corpus), step))
        near = _scale(sample).apply(_cosine(corpus, question.vector, slots))
    return {
        "meaning": near,
        "meaning_before": _standard_at(scores, before, scale),
        "meaning_after": _standard_at(scores, after, scale),
    }


def _cosine(corpus: Corpus, vector: Vector | None, slots: Slots) -> Floats:
    if vector is None or not corpus.dimensions:
        return np.zeros(len(slots), np.float32)
    return corpus.vectors.values[slots] @ vector


def _recency(corpus: Corpus, question: Question, slots: Slots) -> Floats:
    """1 for now, half after a month, and slowly on."""
    age = np.maximum(0.0, question.now - corpus.created.values[slots]) / _DAY
    return (1.0 / (1.0 + age / 30.0)).astype(np.float32)


def _in_time(corpus: Corpus, moments: DateRanges, slots: Slots) -> NDArray[np.bool_]:
    created = corpus.created.values[slots]
    inside = np.isin(corpus.months.values[slots], moments.months)
    for span in moments.spans:
        inside |= (created >= _epoch(span.start)) & (created < _epoch(span.end))
    return inside


def _epoch(moment: datetime) -> float:
    return moment.timestamp()


def _at(values: Floats, slots: NDArray[np.int32] | Slots) -> Floats:
    """Return the values of neighbours; those that do not exist have none."""
    if not len(values):
        return np.zeros(len(slots), np.float32)
    return np.where(slots >= 0, values[np.maximum(slots, 0)], np.float32(0))


def _standard_at(values: Floats, slots: NDArray[np.int32] | Slots, scale: Scale) -> Floats:
    """Return the standard scores of some memories among all; of no memory, nothing."""
    return np.where(slots >= 0, scale.apply(values[slots]), _NOTHING)


def _scale(values: Floats) -> Scale:
    """Measure values; among few, a small part of the largest is the least spread."""
    few = 0 < len(values) < _FEW
    return Scale.of(values, _LEAST_SPREAD * float(np.abs(values).max()) if few else 0.0)


def _standard(values: Floats) -> Floats:
    return _scale(values).apply(values)


def _floats(values: NDArray[np.bool_]) -> Floats:
    return values.astype(np.float32)
