"""Compute the signals that rank files, for all candidates at once.

Three stages: a field-weighted BM25 over all files picks candidates; most signals are computed for
those alone; and the expensive ones, for which every chunk and name is read, only for the candidates
that the caller still finds worth it. Each signal has a name, so that a result can say why it stands
where it stands.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evercontext.index.corpus import Corpus
from evercontext.index.corpus_rows import PRIORS
from evercontext.index.definition_features import DefinedNames, Definers
from evercontext.index.detail_scores import Mentions
from evercontext.index.filename_features import FilenameMatcher
from evercontext.index.path_features import PathWords
from evercontext.index.question import Question
from evercontext.index.word_scores import QuestionScores
from evercontext.retrieval.bm25f import length_norm, saturate
from evercontext.retrieval.postings import Floats, Ints
from evercontext.retrieval.ragged import Long, gather, spread
from evercontext.retrieval.terms import identifier_term
from evercontext.retrieval.vectors import BYTE_SCALE

CANDIDATES = 50
BY_MEANING = 10
"""Candidates that a question's meaning may add to those found by its words."""
# (k1, b) per field slot: stem, directory, parent, types, functions, others, header, body.
_K1 = np.array([0.5, 1.0, 1.0, 1.0, 1.5, 1.5, 1.5, 2.5], np.float32)
_B = np.array([0.6, 0.3, 0.3, 0.5, 0.5, 0.5, 0.5, 0.3], np.float32)

FIELD_NAMES = ("stem", "directory", "parent", "types", "functions", "others", "header", "body")
STEM_NAMES = (
    "stem_overlap",
    "stem_matched",
    "stem_equals",
    "stem_contained",
    "stem_first_word",
    "stem_last_word",
    "stem_all",
    "parent_matched",
)
_WORD_NAMES = (
    "bm25f bm25f_share chunk_best chunk_top3 chunk_sum chunk_absolute coverage stem_parent_share"
)
_SYMBOL_NAMES = (
    "symbol_defined symbol_unique symbol_stem symbol_type name_defined name_type name_stem"
    " capital_defined definition_coverage definition_exact centrality"
)
_MEANING_NAMES = "meaning_card meaning_mean meaning_best meaning_top3"
_DETAIL_NAMES = "detail_words detail_names detail_path"
NAMES = (
    *FIELD_NAMES,
    *_WORD_NAMES.split(),
    *STEM_NAMES,
    *_SYMBOL_NAMES.split(),
    *PRIORS,
    *_MEANING_NAMES.split(),
    *_DETAIL_NAMES.split(),
)
"""The signals, in the order of the columns."""
COLUMN = {name: i for i, name in enumerate(NAMES)}


@dataclass(slots=True)
class Candidates:
    """Files that may answer, their signals, and the chunk scores behind them."""

    slots: Ints
    features: NDArray[np.float32]
    chunk_counts: Ints
    """How many chunks each has; what follows is of all chunks, candidate after candidate."""
    chunk_words: Floats
    """BM25."""
    chunk_meaning: Floats
    """Cosine to the question."""
    term_weights: Mapping[int, float]
    """For each term of a name that was asked for: its share of the question."""
    lines: Mapping[int, Set[int]] = field(default_factory=dict)
    """For files that the question names by their path: the lines that it names with them."""

    def narrowed(self, places_kept: Long) -> Candidates:
        """Return some of the candidates, in the order given."""
        counts = self.chunk_counts[places_kept]
        places = spread((self.chunk_counts.cumsum() - self.chunk_counts)[places_kept], counts)
        return Candidates(
            self.slots[places_kept],
            self.features[places_kept],
            counts,
            self.chunk_words[places],
            self.chunk_meaning[places],
            self.term_weights,
            self.lines,
        )


Choice = Callable[[Candidates], Long]
"""Tells by the cheap signals which candidates are worth the expensive ones."""


class Scorer:
    """Computes candidates and their signals for one question."""

    def __init__(self, corpus: Corpus, question: Question, vector: Floats | None) -> None:
        self.corpus = corpus
        self.question = question
        self.vector = vector if corpus.vectors is not None else None
        self._words = QuestionScores(corpus, question)
        details = question.details
        self._mentions = Mentions(corpus, details) if details.terms or details.paths else None

    def run(
        self, allowed: NDArray[np.bool_] | None = None, choice: Choice | None = None
    ) -> Candidates:
        """Return the candidates with all signals; ``allowed`` limits the files."""
        bm25f = self._words.bm25f()
        slots, cards = self._choose(bm25f, None)
        if allowed is not None:
            # Files that are not allowed are compared with, so that a score means the same.
            own, _ = self._choose(bm25f, allowed)
            slots = np.union1d(slots, own)
        words, counts = self._words.in_candidates(slots)
        sizes = self.corpus.values("chunk_count")[slots]
        out = np.zeros((len(slots), len(NAMES)), np.float32)
        candidates = Candidates(
            slots, out, sizes, words, np.zeros_like(words), self._words.term_weights
        )
        candidates.lines = self._mentions.lines if self._mentions else {}
        if not len(slots):
            return candidates
        self._lexical(out, slots, counts, bm25f[slots])
        self._chunk_signals(out, words, sizes)
        paths = [self.corpus.path_words(slot) for slot in slots.tolist()]
        out[:, _STEM] = FilenameMatcher(self.question.words, self._words.word_weights).rows(paths)
        self._symbol_signals(out, slots, paths)
        self._detail_signals(out, slots)
        out[:, _PRIORS] = self.corpus.values("priors")[slots]
        if cards is not None:
            out[:, COLUMN["meaning_card"]] = cards[slots]
        if allowed is not None:
            candidates = candidates.narrowed(allowed[slots].nonzero()[0])
        if choice is not None and len(candidates.slots):
            candidates = candidates.narrowed(choice(candidates))
        self._name_signals(candidates)
        self._meaning(candidates)
        return candidates

    def _choose(
        self, bm25f: Floats, allowed: NDArray[np.bool_] | None
    ) -> tuple[Ints, Floats | None]:
        """Return the candidates, and how near the card of every file is to the question."""
        mask = self.corpus.alive if allowed is None else self.corpus.alive & allowed
        chosen = set(_top(bm25f * mask, CANDIDATES))
        for name in (self.question.symbol, *self.question.names):
            definers = self.corpus.definers_of(name) if name else []
            chosen.update(slot for slot in definers[:CANDIDATES] if mask[slot])
        if (mentions := self._mentions) is not None:
            chosen.update(_top(mentions.words * mask, CANDIDATES))
            for named in (mentions.names, mentions.paths):
                best = sorted(named, key=lambda slot: -named[slot])[:CANDIDATES]
                chosen.update(slot for slot in best if mask[slot])
        cards = None
        if self.vector is not None and len(mask):
            cards = self.corpus.values("cards") @ self.vector
            chosen.update(_top(cards * mask, BY_MEANING))
        return np.array(sorted(chosen), np.int32), cards

    def _lexical(
        self, out: NDArray[np.float32], slots: Ints, counts: Floats, bm25f: Floats
    ) -> None:
        """Fill in the signals of fields; ``counts`` are by word, file and field."""
        lengths = self.corpus.lengths[slots] / self._words.average_lengths
        scaled = saturate(counts, _K1 * length_norm(lengths, _B) + np.float32(1e-9))
        share = self._words.weights / np.float32(self._words.total)
        flat = share @ scaled.reshape(len(share), len(slots) * len(FIELD_NAMES))
        out[:, : len(FIELD_NAMES)] = flat.reshape(len(slots), len(FIELD_NAMES))
        out[:, COLUMN["bm25f"]] = bm25f
        out[:, COLUMN["bm25f_share"]] = _share(bm25f)
        out[:, COLUMN["coverage"]] = share @ counts.any(axis=2)
        out[:, COLUMN["stem_parent_share"]] = share @ (counts[:, :, 0] + counts[:, :, 2] > 0)

    def _chunk_signals(self, out: NDArray[np.float32], words: Floats, sizes: Ints) -> None:
        best, top3, total = by_owner(words, sizes)
        out[:, COLUMN["chunk_best"]] = _share(best)
        out[:, COLUMN["chunk_top3"]] = _share(top3)
        out[:, COLUMN["chunk_sum"]] = _share(np.log1p(total))
        out[:, COLUMN["chunk_absolute"]] = best / np.float32(self._words.total)

    def _symbol_signals(
        self, out: NDArray[np.float32], slots: Ints, paths: list[PathWords]
    ) -> None:
        question = self.question
        if not (question.symbol or question.names or question.capitals):
            return
        places = {slot: i for i, slot in enumerate(slots.tolist())}
        if question.symbol:
            target = identifier_term(question.symbol)
            out[:, COLUMN["symbol_stem"]] = [path.stem_term == target for path in paths]
            definers = Definers(self.corpus, question.symbol, places)
            out[definers.at, COLUMN["symbol_defined"]] = np.where(definers.exact() > 0, 1.0, 0.6)
            out[definers.at, COLUMN["symbol_unique"]] = 1.0 / max(1, definers.count)
            out[definers.at, COLUMN["symbol_type"]] = definers.typed()
        for name in question.names:
            target, share = identifier_term(name), 1.0 / len(question.names)
            out[:, COLUMN["name_stem"]] += [path.stem_term == target for path in paths]
            definers = Definers(self.corpus, name, places)
            exact = definers.exact()
            out[definers.at, COLUMN["name_defined"]] += (
                exact * share / max(1, definers.count) ** 0.5
            )
            out[definers.at, COLUMN["name_type"]] += share * exact * definers.typed()
        for name in question.capitals:
            definers, share = Definers(self.corpus, name, places), 1.0 / len(question.capitals)
            gain = definers.exact() * share / max(1, definers.count) ** 0.5
            out[definers.at, COLUMN["capital_defined"]] += gain

    def _detail_signals(self, out: NDArray[np.float32], slots: Ints) -> None:
        mentions = self._mentions
        if mentions is None:
            return
        out[:, COLUMN["detail_words"]] = _share(mentions.words[slots])
        places = slots.tolist()
        named = np.log1p([mentions.names.get(slot, 0.0) for slot in places])
        out[:, COLUMN["detail_names"]] = named
        out[:, COLUMN["detail_path"]] = [mentions.paths.get(slot, 0.0) for slot in places]

    def _name_signals(self, candidates: Candidates) -> None:
        names = DefinedNames(self.corpus, candidates.slots)
        coverage, exact = names.covered(candidates.term_weights)
        candidates.features[:, COLUMN["definition_coverage"]] = coverage
        candidates.features[:, COLUMN["definition_exact"]] = exact
        candidates.features[:, COLUMN["centrality"]] = np.log1p(names.used_elsewhere())

    def _meaning(self, candidates: Candidates) -> None:
        if self.vector is None:
            return
        first = self.corpus.values("first_chunk")[candidates.slots]
        numbers = self.corpus.values("chunk_vectors")
        vectors = gather(numbers, first, candidates.chunk_counts, np.float32)
        candidates.chunk_meaning = (vectors @ self.vector) / np.float32(BYTE_SCALE)
        best, top3, total = by_owner(candidates.chunk_meaning, candidates.chunk_counts)
        sizes = np.maximum(candidates.chunk_counts, 1)
        candidates.features[:, COLUMN["meaning_best"]] = best
        candidates.features[:, COLUMN["meaning_top3"]] = top3 / np.minimum(sizes, 3)
        candidates.features[:, COLUMN["meaning_mean"]] = total / sizes


_STEM = slice(COLUMN[STEM_NAMES[0]], COLUMN[STEM_NAMES[-1]] + 1)
_THREE = np.arange(3)
_PRIORS = slice(COLUMN[PRIORS[0]], COLUMN[PRIORS[-1]] + 1)


def _top(scores: Floats, count: int) -> list[int]:
    """Return where the largest scores above 0 are; most are 0, which a partition takes ill."""
    positions: Long = (scores > 0).nonzero()[0]
    if len(positions) > count:
        largest = scores[positions].argpartition(len(positions) - count)[len(positions) - count :]
        positions = positions[largest]
    places: list[int] = positions.tolist()
    return places


def _share(values: NDArray[Any]) -> NDArray[Any]:
    return values / max(float(values.max()), 1e-6)


def by_owner(values: Floats, sizes: Ints) -> tuple[Floats, Floats, Floats]:
    """Return per owner: the best value, the sum of the best three, the sum.

    The values of each owner lie together; ``sizes`` says how many they are.
    """
    owners = np.arange(len(sizes))
    owner = owners.repeat(sizes)
    largest = max(float(values.max(initial=0.0)), -float(values.min(initial=0.0))) or 1.0
    # One plain sort orders by owner and then by value: each owner has a range of its own.
    keys = owner * 4.0 - values / largest
    keys.sort()
    at = (sizes.cumsum() - sizes)[:, None] + _THREE
    best: NDArray[Any] = np.zeros((len(sizes), 3))
    if len(keys):
        best = (owners * 4.0)[:, None] - keys.take(at, mode="clip")
    best *= (sizes[:, None] > _THREE) * largest
    total = np.bincount(owner, values, len(sizes)).astype(np.float32)
    return best[:, 0].astype(np.float32), best.sum(axis=1).astype(np.float32), total
