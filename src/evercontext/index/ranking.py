"""Rank files by their signals with one linear model that explains each term."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence, Set
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources

import numpy as np
from numpy.typing import NDArray

from evercontext.index.analysis import FUNCTION
from evercontext.index.corpus import Corpus
from evercontext.index.definition_features import shares as shares_of
from evercontext.index.definitions import Named, shown_symbol
from evercontext.index.question import Question
from evercontext.index.ranking_features import COLUMN, NAMES, Candidates, Scorer
from evercontext.retrieval.postings import Floats, Ints
from evercontext.retrieval.ragged import Long, spread
from evercontext.retrieval.term_keys import term_key
from evercontext.retrieval.terms import identifier_term, split_identifier, stem

_CENTRE, _SPREAD = 6.0, 2.0
"""Maps the model's sum to a score between 0 and 1; measured on the development set."""
_WORDLESS = np.float32(8.0)
_OUT_OF_REACH = np.float32(2.5)
"""So far below the last place of a page, expensive signals never lifted a file onto it."""
_MOST_REASONS = 4
_MOST_PER_FILE = 3
_ONE_MORE_IN = 10
"""Of so many places, one goes to a further chunk of the best file."""
# What makes one chunk of a file better than another, fitted on docstrings and their functions.
_WORDS, _MEANING = np.float32(1.6), np.float32(10.6)
_NAMED, _COVERED = 2.0, 1.7
"""Share of the symbol's parts that are asked for, and of the question that they answer."""
_FUNCTION = np.float32(1.0)
_EXACT_NAME_GAIN = 10.0
"""For the very name that is asked for."""
_LONE_NAME, _INSIDE = 1000.0, 1.0
"""What a definition of an asked name is worth: where the name is the whole question, nothing else
is; inside a question of words it is one thing among others."""
_MENTIONED = np.float32(3.0)
"""For a name that only the rest of a long question has."""
_AT_LINE = np.float32(6.0)
"""For a line that a frame of a trace names."""
_SHOWN = 0.15
_FLOOR = 0.01
"""What is weaker only fills up the page; where all is weak, what is near the best is shown if a
reason can be given for it."""
_NEAR = 0.1
"""The cosine from which on a chunk is about what is asked."""
_VAGUE, _CLOSE = frozenset({"meaning", "used by other files"}), 0.4
"""Reasons that are none where all is weak, and the cosine from which on meaning is one: letters
without sense are near to something, too (up to .36 where a word of the subject has .48)."""
_BY_NAME = ("a definition's name", "type names", "function names")
_SPOKEN = {
    "stem": "file name",
    "stem_overlap": "file name",
    "stem_matched": "file name",
    "stem_equals": "file name",
    "stem_parent_share": "path",
    "stem_first_word": "file name",
    "stem_contained": "file name",
    "symbol_stem": "file name",
    "name_stem": "file name",
    "directory": "directory",
    "parent": "directory",
    "parent_matched": "directory",
    "symbol_defined": "defines the symbol",
    "name_defined": "defines a name of the question",
    "capital_defined": "defines a name of the question",
    "symbol_type": "defines the symbol",
    "definition_exact": "a definition's name",
    "types": "type names",
    "functions": "function names",
    "bm25f": "words",
    "bm25f_share": "words",
    "body": "words",
    "chunk_best": "words",
    "chunk_top3": "words",
    "chunk_sum": "words",
    "chunk_absolute": "words",
    "coverage": "words",
    "meaning_card": "meaning",
    "meaning_best": "meaning",
    "meaning_top3": "meaning",
    "centrality": "used by other files",
    "header": "header comment",
    "detail_words": "words of the details",
    "detail_names": "defines a name of the details",
    "detail_path": "its path is named",
}

_SPEAKING = np.array([i for i, name in enumerate(NAMES) if name in _SPOKEN])
_EXPLANATIONS = [_SPOKEN[name] for name in NAMES if name in _SPOKEN]
_REASONS = tuple(dict.fromkeys(_EXPLANATIONS))
_GROUPS = np.array([[text == reason for reason in _REASONS] for text in _EXPLANATIONS], np.float64)
"""Adds up the signals that give the same reason."""


_HOLDING = [COLUMN[name] for name in ("bm25f", "detail_names", "detail_path")]


@dataclass(frozen=True, slots=True)
class Ranked:
    """One chunk that answers."""

    slot: int
    chunk: int
    """Position among the chunks of its file."""
    score: float
    reasons: tuple[str, ...]
    shares: Floats
    """What each signal of ``NAMES`` added to the model's sum."""
    symbol: str | None = None
    """What the chunk defines, by name."""


@lru_cache(maxsize=1)
def weights() -> Floats:
    """Return the weight of each signal, fitted by ``training/ranker.py``."""
    text = resources.files(__package__).joinpath("weights.json").read_text("utf-8")
    fitted = json.loads(text)["weights"]
    return np.array([fitted.get(name, 0.0) for name in NAMES], np.float32)


def rank(
    corpus: Corpus,
    question: Question,
    vector: Floats | None,
    limit: int,
    prefix: str | None = None,
) -> list[Ranked]:
    """Return the best chunks, one per file as long as there are files."""
    allowed = None
    if prefix:
        allowed = np.array([path.startswith(prefix) for path in corpus.paths()], np.bool_)
    factors = weights()
    if question.asks_tests:
        factors = factors.copy()
        factors[COLUMN["test"]] = 0.0

    def worth_more(candidates: Candidates) -> Long:
        scores = _sums(candidates, factors)
        shown = scores[candidates.chunk_counts > 0]
        if len(shown) <= limit:
            return np.arange(len(scores))
        last = np.partition(shown, len(shown) - limit)[len(shown) - limit]
        reachable: Long = (scores >= last - _OUT_OF_REACH).nonzero()[0]
        return reachable

    candidates = Scorer(corpus, question, vector).run(allowed, worth_more)
    if not len(candidates.slots):
        return []
    return _pick(corpus, question, candidates, _sums(candidates, factors), limit, factors)


def _sums(candidates: Candidates, weights: Floats) -> Floats:
    scores: Floats = candidates.features @ weights
    # A file without a single word of the question never stands before one that has some.
    scores -= _WORDLESS * _wordless(candidates)
    return scores


def _wordless(candidates: Candidates) -> NDArray[np.bool_]:
    """Tell which files hold no word of the question, and are not named in its details either."""
    return np.asarray(candidates.features[:, _HOLDING].max(axis=1) <= 0)


def _pick(
    corpus: Corpus,
    question: Question,
    candidates: Candidates,
    scores: Floats,
    limit: int,
    factors: Floats,
) -> list[Ranked]:
    # An empty file may be named like the question, but has nothing to show.
    shown = candidates.chunk_counts.nonzero()[0]
    order = shown[np.argsort(-scores[shown], kind="stable")[:limit]]
    if not len(order):
        return []
    best = candidates.narrowed(order)
    places = _best_chunks(corpus, question, best)
    values = [_between(total) for total in scores[order].tolist()]
    chunks = [
        (values[i] / (1 + depth), i, own[depth])
        for depth in range(_MOST_PER_FILE)
        for i, own in enumerate(places)
        if depth < len(own)
    ]
    # A further chunk that holds words of the question stands before a file that holds none.
    wordless = _wordless(best)
    if wordless.any():
        holding = np.split(best.chunk_words > 0, np.cumsum(best.chunk_counts)[:-1])
        named = np.asarray(best.features[:, _HOLDING[1:]].max(axis=1) > 0)
        chunks.sort(
            key=lambda candidates: (
                not (named[candidates[1]] or holding[candidates[1]][candidates[2]])
            )
        )
    # The first places go to different files, the last to what else the best file has to show.
    more = 0 if question.symbol else limit // _ONE_MORE_IN
    first, rest = chunks[: limit - more], chunks[limit - more :]
    rest.sort(key=lambda candidates: -candidates[0])
    further = [candidates for candidates in rest if candidates[1] == 0][:more]
    rest = further + [candidates for candidates in rest if candidates not in further]
    shares = best.features * factors
    reasons, slots = _reasons(shares), best.slots.tolist()
    starts = (np.cumsum(best.chunk_counts) - best.chunk_counts).tolist()
    truths = _Truths(question)
    floor = min(_FLOOR, chunks[0][0] / 4)
    ranked: list[Ranked] = []
    lowest = 1.0
    requested = {*question.names, *question.details.names, question.lone_name or ""}
    for value, i, chunk in (first + rest)[:limit]:
        lowest = min(lowest, value)
        if lowest < floor:
            break
        names = corpus.names_in(int(corpus.values("first_chunk")[slots[i]]) + chunk)
        place = starts[i] + chunk
        own = truths.of(
            reasons[i], names, float(best.chunk_words[place]), float(best.chunk_meaning[place])
        )
        close = float(best.chunk_meaning[place]) >= _CLOSE
        if lowest < _FLOOR and not close and not set(own) - _VAGUE:
            continue
        symbol = shown_symbol(names, requested)
        ranked.append(Ranked(slots[i], chunk, round(lowest, 4), own, shares[i], symbol))
    return ranked


class _Truths:
    """Which reasons of a file are true of one of its chunks."""

    def __init__(self, question: Question) -> None:
        names = (*question.names, *question.capitals)
        self._requested = {
            "defines the symbol": {question.symbol.lower()} if question.symbol else set(),
            "defines a name of the question": {name.lower() for name in names},
            "defines a name of the details": {name.lower() for name in question.details.names},
        }
        self._words = {stem(word) for word in question.words}

    def of(
        self, reasons: Sequence[str], names: Sequence[Named], words: float, meaning: float
    ) -> tuple[str, ...]:
        """Return the reasons that hold: what is said of the file, and what this chunk has."""
        begun = [named.short_name for named in names if named.begins]
        defined = {name.lower() for name in begun}
        parts = {stem(part) for name in begun for part in split_identifier(name)}
        false = {
            reason_name
            for reason_name, requested in self._requested.items()
            if requested.isdisjoint(defined)
        }
        if parts.isdisjoint(self._words):
            false.update(_BY_NAME)
        if words <= 0:
            false.add("words")
        if meaning < _NEAR:
            false.add("meaning")
        return tuple(reason for reason in reasons if reason not in false)


def _between(total: float) -> float:
    """Return the model's sum as a score between 0 and 1."""
    return 1.0 / (1.0 + math.exp(-(total - _CENTRE) / _SPREAD))


def _best_chunks(corpus: Corpus, question: Question, candidates: Candidates) -> list[list[int]]:
    """Return for each candidate its best chunks, best first."""
    sizes = candidates.chunk_counts
    first: Long = np.cumsum(sizes, dtype=np.int64) - sizes
    quality = _quality(corpus, question, candidates, first)
    # One sort for all files: each has a range of its own, best chunks first.
    largest = max(float(quality.max()), -float(quality.min()), 1e-6)
    order = ((np.arange(len(sizes)) * 4.0).repeat(sizes) - quality / largest).argsort()
    return [
        (order[start : start + min(size, _MOST_PER_FILE)] - start).tolist()
        for start, size in zip(first.tolist(), sizes.tolist(), strict=True)
    ]


def _quality(corpus: Corpus, question: Question, candidates: Candidates, first: Long) -> Floats:
    """How well chunks answer: their words, their meaning, their symbol; ``first`` starts files."""
    best = np.repeat(np.maximum.reduceat(candidates.chunk_words, first), candidates.chunk_counts)
    quality: Floats = _WORDS * candidates.chunk_words / np.maximum(best, np.float32(1e-6))
    quality += _MEANING * candidates.chunk_meaning
    chunks = spread(corpus.values("first_chunk")[candidates.slots], candidates.chunk_counts)
    quality += _FUNCTION * (corpus.values("chunk_kind")[chunks] == FUNCTION)
    shown = corpus.values("chunk_name")[chunks]
    named = (shown >= 0).nonzero()[0]
    if len(named):
        quality[named] += _name_gain(corpus, question, candidates, shown[named])
    _add_definitions(quality, corpus, question, candidates, first)
    for i, slot in enumerate(candidates.slots.tolist()):
        if lines := candidates.lines.get(slot):
            own = slice(int(first[i]), int(first[i] + candidates.chunk_counts[i]))
            quality[own][_hold(corpus.values("chunk_lines")[chunks[own]], lines)] += _AT_LINE
    return quality


def _add_definitions(
    quality: Floats, corpus: Corpus, question: Question, candidates: Candidates, first: Long
) -> None:
    """Add what chunks gain by defining the very name that is asked for.

    The exact spelling counts most, then the class that was named with it, then that it is a type
    and not a getter or a constructor of the same letters; of equals, the first piece of the file.
    """
    lone = question.lone_name
    names, scale = ((lone,), _LONE_NAME) if lone else (question.names, _INSIDE)
    for name in names:
        definers = set(corpus.definers_of(name))
        owner = question.owner_of(name)
        for i, slot in enumerate(candidates.slots.tolist()):
            if slot not in definers:
                continue
            start = int(corpus.values("first_chunk")[slot])
            for place in range(int(candidates.chunk_counts[i])):
                gain = max(
                    (_defines(named, name, owner) for named in corpus.names_in(start + place)),
                    default=0.0,
                )
                if gain:
                    quality[first[i] + place] += scale * (gain - min(place, 900) / 1000)


def _defines(named: Named, name: str, owner: str | None) -> float:
    short = named.short_name
    if not named.begins or short.lower() != name.lower():
        return 0.0
    held = owner is not None and named.name.lower().endswith(f"{owner.lower()}.{short.lower()}")
    alone = owner is None and named.name == short
    return 1.0 + 8.0 * (short == name) + 4.0 * held + 2.0 * (named.kind == "type") + alone


def _hold(spans: Ints, lines: Set[int]) -> NDArray[np.bool_]:
    """Tell which spans hold one of some lines."""
    sorted_lines = np.array(sorted(lines), np.int64)
    return np.searchsorted(sorted_lines, spans[:, 0]) < np.searchsorted(
        sorted_lines, spans[:, 1], "right"
    )


def _name_gain(corpus: Corpus, question: Question, candidates: Candidates, names: Ints) -> Floats:
    """What chunks gain by the names that they show."""
    sizes = corpus.values("part_count")[names]
    parts = corpus.values("part_term")[spread(corpus.values("first_part")[names], sizes)]
    share = shares_of(parts, candidates.term_weights)
    met = share.nonzero()[0]
    owner = np.arange(len(names)).repeat(sizes)[met]
    gain: Floats = _NAMED * np.bincount(owner, minlength=len(names)) / np.maximum(sizes, 2)
    gain += _COVERED * np.bincount(owner, share[met], len(names))
    for name in (question.symbol,) if question.symbol else question.names:
        gain[corpus.values("name_term")[names] == corpus.term(identifier_term(name))] += (
            _EXACT_NAME_GAIN
        )
    if question.details.names:
        mentioned = np.array([term_key(name) for name in question.details.names], np.uint64)
        gain[np.isin(corpus.values("name_written")[names], mentioned)] += _MENTIONED
    return gain


def _reasons(shares: Floats) -> list[tuple[str, ...]]:
    """Name for each file what spoke for it, strongest first, each thing once."""
    spoken = shares[:, _SPEAKING]
    strength = (spoken * (spoken > _SHOWN)) @ _GROUPS
    order = (-strength).argsort(axis=1, kind="stable")[:, :_MOST_REASONS]
    return [
        tuple([_REASONS[i] for i in best if own[i] > 0])
        for best, own in zip(order.tolist(), strength.tolist(), strict=True)
    ]
