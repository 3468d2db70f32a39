"""Count tokens: exactly with a public vocabulary, by a learned estimate elsewhere.

A closed tokenizer is taken for a mixture of what is known: a text's tokens in two public
vocabularies of very different size, and the measures of its shape, each with a weight. What weights
to expect was learnt from public tokenizers; the usage numbers of real replies correct them.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.resources import files
from operator import mul
from typing import Any

from evercontext.context.text_shape import MEASURES, measure

PER_MESSAGE = 4
PER_REPLY = 3
REFERENCES = ("o200k_base", "modernbert")
"""Public vocabularies of 200,000 and 50,000 tokens."""
SIZE = len(REFERENCES) + len(MEASURES)
NOISE = 0.007**2
"""How far, squared and relatively, one text is off even with the right weights."""
MEMORY = 0.98
"""Weight of a reply after the next one: a provider may change its tokenizer."""
FARTHEST = 3.0
"""How many times more or fewer tokens than expected a text can have. Thirteen public tokenizers had
0.34 to 1.9 times as many, in any language; only runs of mere white space lie beyond."""
_REMEMBERED = 16_384
_HALVES = re.compile("[\ud800-\udfff]")

_EXACT = (
    (re.compile(r"^(gpt-4o|gpt-4\.1|gpt-4\.5|gpt-5|chatgpt|o\d)"), "o200k_base"),
    (re.compile(r"^(gpt-4|gpt-3\.5|text-embedding-)"), "cl100k_base"),
)


@lru_cache(maxsize=8)
def _encoding(name: str) -> Any:
    from splintr import Tokenizer

    return Tokenizer.from_pretrained(name)


def exact_encoding(model: str) -> str | None:
    """The public encoding of a model, if it has one."""
    bare = model.rpartition(":")[2]
    return next((name for pattern, name in _EXACT if pattern.match(bare)), None)


def count(text: str, encoding: str = "o200k_base") -> int:
    """Tokens of a text in a public encoding; half a character counts as the sign for a lost one."""
    # A conversation is counted again with every request; huge texts are not worth their room.
    return _recent_count(text, encoding) if len(text) <= _REMEMBERED else _count(text, encoding)


@lru_cache(maxsize=2_048)
def _recent_count(text: str, encoding: str) -> int:
    return _count(text, encoding)


def _count(text: str, encoding: str) -> int:
    try:
        return len(_encoding(encoding).encode_ordinary(text))
    except UnicodeEncodeError:
        return len(_encoding(encoding).encode_ordinary(_HALVES.sub("\ufffd", text)))


Features = tuple[float, ...]


def features(text: str) -> Features:
    """Return the features of a text's length: its tokens in public vocabularies, and its shape."""
    return _recent_features(text) if len(text) <= _REMEMBERED else _features(text)


@lru_cache(maxsize=2_048)
def _recent_features(text: str) -> Features:
    return _features(text)


def _features(text: str) -> Features:
    counted = [float(_count(text, name)) for name in REFERENCES]
    return (*counted, *measure(text))


@dataclass(frozen=True, slots=True)
class Prior:
    """The expectation for an unknown tokenizer: mean weights, and how sure they are."""

    mean: tuple[float, ...]
    precision: tuple[tuple[float, ...], ...]


@lru_cache(maxsize=1)
def load_prior() -> Prior:
    """Return the weights of public tokenizers as a prior; ``benchmarks/tokens.py`` makes it."""
    text = files("evercontext.context").joinpath("token_prior.json").read_text("utf-8")
    stored = json.loads(text)
    return Prior(tuple(stored["mean"]), tuple(tuple(row) for row in stored["precision"]))


@dataclass(slots=True)
class Calibration:
    """Bayesian regression kept as its sums, so that it does not grow with its data."""

    gram: list[list[float]] = field(default_factory=lambda: [[0.0] * SIZE for _ in range(SIZE)])
    moment: list[float] = field(default_factory=lambda: [0.0] * SIZE)
    seen: int = 0
    prior: Prior = field(default_factory=load_prior)
    weights: Features = ()

    def __post_init__(self) -> None:
        self.weights = self._solve() if self.seen else self.prior.mean

    def learn(self, features: Features, real: float) -> None:
        """Take in one text whose true count is known."""
        # A number far out of any tokenizer's reach counts something else: pictures perhaps, or only
        # what was not cached. Held against what is expected, many such cannot lead far away.
        expected = self._expected(features)
        if real <= 0 or not any(features) or not expected / FARTHEST < real < expected * FARTHEST:
            return
        # Divided by the truth, so that the relative error is what gets small.
        row = [value / real for value in features]
        for i in range(SIZE):
            self.moment[i] = self.moment[i] * MEMORY + row[i] / NOISE
            for j in range(SIZE):
                self.gram[i][j] = self.gram[i][j] * MEMORY + row[i] * row[j] / NOISE
        self.seen += 1
        self.weights = self._solve()

    def estimate(self, features: Features) -> float:
        """Return the tokens of a text with these features, never far from the expectation."""
        expected = self._expected(features)
        tokens: float = sum(map(mul, self.weights, features))
        return min(max(tokens, expected / FARTHEST), expected * FARTHEST)

    def _expected(self, features: Features) -> float:
        """Tokens by the prior alone; never less than one per eight public ones."""
        tokens: float = sum(map(mul, self.prior.mean, features))
        return max(tokens, features[0] / 8)

    def to_json(self) -> dict[str, Any]:
        """Return the sums as JSON, for the store."""
        return {"gram": self.gram, "moment": self.moment, "seen": self.seen}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Calibration:
        """Read it back; anything unusable is a fresh start."""
        try:
            gram = [[float(v) for v in row] for row in stored["gram"]]
            moment, seen = [float(v) for v in stored["moment"]], int(stored["seen"])
        except (KeyError, TypeError, ValueError):
            return cls()
        finite = all(math.isfinite(v) for row in [*gram, moment] for v in row)
        if not finite or [len(row) for row in [*gram, moment]] != [SIZE] * (SIZE + 1):
            return cls()
        return cls(gram, moment, seen)

    def _solve(self) -> Features:
        """(G + P) w = m + P·mean: P is positive, so it always has a solution."""
        mean, precision = self.prior.mean, self.prior.precision
        rows = [
            [g + p for g, p in zip(self.gram[i], precision[i], strict=True)]
            + [self.moment[i] + sum(p * w for p, w in zip(precision[i], mean, strict=True))]
            for i in range(SIZE)
        ]
        return _eliminate(rows)


def _eliminate(rows: list[list[float]]) -> Features:
    size = len(rows)
    for i in range(size):
        best = max(range(i, size), key=lambda r: abs(rows[r][i]))
        rows[i], rows[best] = rows[best], rows[i]
        rows[i] = [value / rows[i][i] for value in rows[i]]
        for r in range(size):
            if r != i:
                factor = rows[r][i]
                rows[r] = [a - factor * b for a, b in zip(rows[r], rows[i], strict=True)]
    return tuple(row[size] for row in rows)


class TokenEstimator:
    """Counts the tokens of a message list for one model."""

    def __init__(self, model: str = "claude", calibration: Calibration | None = None) -> None:
        self._encoding = exact_encoding(model)
        self.model = model
        self.calibration = calibration or Calibration()

    @property
    def exact(self) -> bool:
        """True where the model's own vocabulary is used."""
        return self._encoding is not None

    def count(self, text: str) -> int:
        """Tokens of one text."""
        if not text:
            return 0
        if self._encoding:
            return count(text, self._encoding)
        return math.ceil(self.calibration.estimate(features(text)))

    def estimate(self, messages: Sequence[Any]) -> int:
        """Return the tokens of a request's messages, with their frames."""
        total = sum(self.message(message) for message in messages)
        return total + PER_REPLY if messages else 0

    def message(self, message: Any) -> int:
        """Tokens of one message."""
        return PER_MESSAGE + self.count(_text(message))

    def learn(self, messages: Sequence[Any], real_tokens: int) -> float:
        """Correct the estimate by a reply's usage; return how far off it was, relatively."""
        before = self.estimate(messages)
        if messages and not self.exact:
            frames = PER_MESSAGE * len(messages) + PER_REPLY
            parts = [features(_text(message)) for message in messages]
            self.calibration.learn(tuple(map(sum, zip(*parts, strict=True))), real_tokens - frames)
        return (before - real_tokens) / real_tokens if real_tokens > 0 else 0.0


def _text(message: Any) -> str:
    if isinstance(message, str):
        return message
    content = message.get("content") if isinstance(message, Mapping) else message.content
    return str(content or "")
