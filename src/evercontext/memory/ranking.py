"""Rank memories by weighted signals, one number per candidate each.

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

from evercontext.memory.corpus import MemoryCorpus
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
FEW, LEAST_SPREAD = 16, 0.1
_NOTHING = np.float32(0)

Slots = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class MemoryQuestion:
    """A question as it is looked for."""

    terms: Mapping[int, float]
    vector: Vector | None
    speakers: tuple[int, ...] = ()
    moments: DateRanges = DateRanges()
    now: float = 0.0


@dataclass(frozen=True, slots=True)
class RankedMemories:
    """Candidates, best first, with their scores and what spoke for them."""

    numbers: NDArray[np.int64]
    """Their rows in the table of memories."""
    scores: Floats
    signals: Mapping[str, Floats]
    cosine: Floats
    coverage: Floats
    """Share of the question's words, weighted by rarity, that the memory itself has."""

    def best(self, limit: int) -> RankedMemories:
        """Return the first ``limit`` of them."""
        return RankedMemories(
            self.numbers[:limit],
            self.scores[:limit],
            {name: values[:limit] for name, values in self.signals.items()},
            self.cosine[:limit],
            self.coverage[:limit],
        )


@dataclass(frozen=True, slots=True)
class CandidateFeatures:
    """What is known of each candidate, before it is weighed; NaN where it has no neighbour."""

    own: Floats
    """BM25 of the memory itself."""
    context: Floats
    """BM25 of it with the memory before it."""
    after: Floats
    """BM25 of the memory after it."""
    session: Floats
    """BM25 of its session."""
    cosine: Floats
    cosine_before: Floats
    cosine_after: Floats
    length: Floats
    importance: Floats
    asks: Floats
    answers: Floats
    opening: Floats
    speaker: Floats
    created: NDArray[np.float64]
    months: NDArray[np.int8]


@dataclass(frozen=True, slots=True)
class FeatureScales:
    """Means and spreads of features over everything that the asker may see."""

    own: Scale
    context: Scale
    session: Scale
    meaning: Scale | None
    """Nothing if the question has no meaning that could be compared."""
    near_meaning: Scale | None
    """The scale of the neighbours' cosines."""


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


def rank(
    corpus: MemoryCorpus, question: MemoryQuestion, usable: NDArray[np.bool_], limit: int
) -> RankedMemories:
    """Return the best ``limit`` usable memories."""
    words = word_scores(corpus, question.terms)
    meaning = meaning_scores(corpus, question.vector)
    slots = _candidates(corpus, question, usable, words, meaning)
    features, scales = _features(corpus, question, slots, words, meaning)
    numbers = corpus.numbers.values[slots]
    return rank_features(features, scales, question, numbers, words.most).best(limit)


def rank_features(
    features: CandidateFeatures,
    scales: FeatureScales,
    question: MemoryQuestion,
    numbers: NDArray[np.int64],
    most: float,
) -> RankedMemories:
    """Weigh all candidates; ``most`` is what the question's words are worth together."""
    signals = _signals(features, scales, question)
    scores = weighted_sum(signals, WEIGHTS, len(numbers))
    order = np.argsort(-scores, kind="stable")
    return RankedMemories(
        numbers=numbers[order],
        scores=scores[order],
        signals={name: values[order] for name, values in signals.items()},
        cosine=features.cosine[order],
        coverage=features.own[order] / np.float32(most or 1.0),
    )


def meaning_scores(corpus: MemoryCorpus, vector: Vector | None) -> Meaning | None:
    """Return how near each memory is in meaning, or nothing if the question has none."""
    if vector is None or not vector.any():
        return None
    if len(corpus) <= EXACT:
        return Meaning(corpus.vectors.values @ vector, exact=True)
    rough = corpus.rough.values
    return Meaning(rough @ vector[: rough.shape[1]], exact=False)


def word_scores(corpus: MemoryCorpus, terms: Mapping[int, float]) -> Words:
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


def _with_followers(corpus: MemoryCorpus, slots: Ints, counts: Floats, tally: Floats) -> Ints:
    """Add a term's counts to the memories that hold it and to those that come right after."""
    after = corpus.following.values[slots]
    real = after >= 0
    tally[slots] += counts
    tally[after[real]] += counts[real]
    both: Ints = np.concatenate([slots, after[real]])
    return both


def _candidates(
    corpus: MemoryCorpus,
    question: MemoryQuestion,
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
        created, months = corpus.created.values[everyone], corpus.months.values[everyone]
        inside = np.flatnonzero(_in_time(created, months, question.moments))
        parts.append(everyone[inside[-CANDIDATES:]])
    return np.unique(np.concatenate(parts))


def _best(scores: Floats, count: int) -> Slots:
    slots: Slots = np.argpartition(-scores, count)[:count]
    return slots


def _features(
    corpus: MemoryCorpus,
    question: MemoryQuestion,
    slots: Slots,
    words: Words,
    meaning: Meaning | None,
) -> tuple[CandidateFeatures, FeatureScales]:
    """Return what the arrays of a scope say of its candidates."""
    before, after = corpus.previous.values[slots], corpus.following.values[slots]
    session = corpus.sessions.values[slots]
    asks = np.zeros(len(corpus), np.float32)
    asks[corpus.postings(ASKS)[0]] = 1
    cosines = meaning.scores if meaning else np.zeros(len(corpus), np.float32)
    exact = meaning is None or meaning.exact
    features = CandidateFeatures(
        own=words.own[slots],
        context=words.context[slots],
        after=_at(words.own, after),
        session=_of_neighbours(words.session, session),
        cosine=cosines[slots] if exact else _cosine(corpus, question.vector, slots),
        cosine_before=_of_neighbours(cosines, before),
        cosine_after=_of_neighbours(cosines, after),
        length=corpus.lengths.values[slots],
        importance=corpus.importance.values[slots],
        asks=asks[slots],
        answers=_at(asks, before),
        opening=_floats((before < 0) & (session >= 0)),
        speaker=_floats(np.isin(corpus.speakers.values[slots], question.speakers)),
        created=corpus.created.values[slots],
        months=corpus.months.values[slots],
    )
    near = None if meaning is None else scale_of(meaning.scores)
    return features, FeatureScales(
        own=scale_of(words.own),
        context=scale_of(words.context),
        session=scale_of(words.session),
        meaning=near if exact else _sampled_scale(corpus, question),
        near_meaning=near,
    )


def _sampled_scale(corpus: MemoryCorpus, question: MemoryQuestion) -> Scale:
    """Measure whole cosines by a sample; among very many, only candidates have theirs."""
    step = max(1, len(corpus) // _SAMPLE)
    return scale_of(_cosine(corpus, question.vector, np.arange(0, len(corpus), step)))


def _signals(
    features: CandidateFeatures, scales: FeatureScales, question: MemoryQuestion
) -> dict[str, Floats]:
    signals = {
        "words": scales.own.apply(features.own),
        "words_context": scales.context.apply(features.context),
        "words_after": scales.own.apply(features.after),
        "words_session": _standard_or_none(features.session, scales.session),
        "opening": features.opening,
        "length": _standard(np.log1p(features.length)),
        "recency": _recency(features, question),
        "importance": features.importance - np.float32(0.5),
        "asks": features.asks,
        "answers": features.answers,
    }
    if scales.meaning is not None and scales.near_meaning is not None:
        signals["meaning"] = scales.meaning.apply(features.cosine)
        signals["meaning_before"] = _standard_or_none(features.cosine_before, scales.near_meaning)
        signals["meaning_after"] = _standard_or_none(features.cosine_after, scales.near_meaning)
    if len(question.speakers) == 1:
        signals["speaker"] = features.speaker
    if question.moments:
        inside = _in_time(features.created, features.months, question.moments)
        signals["time"] = _floats(inside)
    return signals


def _cosine(corpus: MemoryCorpus, vector: Vector | None, slots: Slots) -> Floats:
    if vector is None or not corpus.dimensions:
        return np.zeros(len(slots), np.float32)
    return corpus.vectors.values[slots] @ vector


def _recency(features: CandidateFeatures, question: MemoryQuestion) -> Floats:
    """1 for now, half after a month, and slowly on."""
    age = np.maximum(0.0, question.now - features.created) / _DAY
    return (1.0 / (1.0 + age / 30.0)).astype(np.float32)


def _in_time(
    created: NDArray[np.float64], months: NDArray[np.int8], moments: DateRanges
) -> NDArray[np.bool_]:
    inside = np.isin(months, moments.months)
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


def _of_neighbours(values: Floats, slots: NDArray[np.int32] | Slots) -> Floats:
    """Return the values of neighbours, or of sessions; NaN for none."""
    if not len(values):
        return np.full(len(slots), np.nan, np.float32)
    return np.where(slots >= 0, values[np.maximum(slots, 0)], np.float32(np.nan))


def _standard_or_none(values: Floats, scale: Scale) -> Floats:
    """Return standard scores; of a neighbour that does not exist, nothing."""
    return np.where(np.isnan(values), _NOTHING, scale.apply(values))


def scale_of(values: Floats) -> Scale:
    """Measure values; among few, a small part of the largest is the least spread."""
    few = 0 < len(values) < FEW
    return Scale.of(values, LEAST_SPREAD * float(np.abs(values).max()) if few else 0.0)


def _standard(values: Floats) -> Floats:
    return scale_of(values).apply(values)


def _floats(values: NDArray[np.bool_]) -> Floats:
    return values.astype(np.float32)
