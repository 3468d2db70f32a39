"""Counting tokens: exactly where the vocabulary is public, by a learned estimate elsewhere.

Every model without a public tokenizer gets a small linear model over four cheap features of the
text. It starts from a cautious prior and is corrected by the usage numbers of real replies.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

PER_MESSAGE = 4
PER_REPLY = 3
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uff66-\uff9f]")
_SYMBOL = re.compile(r"[^\w\s]")
_SPACE = re.compile(r"\s+")

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
    """Tokens of a text in a public encoding."""
    return len(_encoding(encoding).encode(text))


Features = tuple[float, float, float, float]


def features(text: str) -> Features:
    """What a text's length depends on: public tokens, CJK characters, symbols, gaps."""
    return (
        float(count(text)),
        float(len(_CJK.findall(text))),
        float(len(_SYMBOL.findall(text))),
        float(len(_SPACE.findall(text))),
    )


_PRIOR: Features = (1.18, 0.45, 0.05, 0.0)
# How sure the prior is of each weight, in squared relative errors: public tokens are nearly
# right for everybody, the rest is for the replies to say.
_PRIOR_STRENGTH = (0.02, 0.002, 0.002, 0.002)


@dataclass(slots=True)
class Calibration:
    """A ridge regression kept as its sums, so that it grows no larger with what it learns."""

    gram: list[list[float]] = field(default_factory=lambda: [[0.0] * 4 for _ in range(4)])
    moment: list[float] = field(default_factory=lambda: [0.0] * 4)
    seen: int = 0
    weights: Features = _PRIOR

    def learn(self, found: Features, real: float) -> None:
        """Take in one text whose true count is known."""
        if real <= 0 or not any(found):
            return
        # Divided by the truth, so that the relative error is what gets small.
        row = [value / real for value in found]
        for i in range(4):
            self.moment[i] += row[i]
            for j in range(4):
                self.gram[i][j] += row[i] * row[j]
        self.seen += 1
        self.weights = _solve(self.gram, self.moment)

    def estimate(self, found: Features) -> float:
        """Tokens of a text with these features; never less than one per eight public ones."""
        told = sum(weight * value for weight, value in zip(self.weights, found, strict=True))
        return max(told, found[0] / 8)

    def to_json(self) -> dict[str, Any]:
        """What the store keeps."""
        return {"gram": self.gram, "moment": self.moment, "seen": self.seen}

    @classmethod
    def from_json(cls, kept: Mapping[str, Any]) -> Calibration:
        """Read it back; anything unusable is a fresh start."""
        try:
            gram = [[float(v) for v in row] for row in kept["gram"]]
            moment, seen = [float(v) for v in kept["moment"]], int(kept["seen"])
        except (KeyError, TypeError, ValueError):
            return cls()
        finite = all(math.isfinite(v) for row in [*gram, moment] for v in row)
        if not finite or [len(row) for row in [*gram, moment]] != [4] * 5:
            return cls()
        return cls(gram, moment, seen, _solve(gram, moment))


def _solve(gram: list[list[float]], moment: list[float]) -> Features:
    """(G + S) w = m + S·prior by elimination; S is positive, so it always has a solution."""
    rows = [
        [gram[i][j] + (_PRIOR_STRENGTH[i] if i == j else 0.0) for j in range(4)]
        + [moment[i] + _PRIOR_STRENGTH[i] * _PRIOR[i]]
        for i in range(4)
    ]
    for i in range(4):
        best = max(range(i, 4), key=lambda r: abs(rows[r][i]))
        rows[i], rows[best] = rows[best], rows[i]
        rows[i] = [value / rows[i][i] for value in rows[i]]
        for r in range(4):
            if r != i:
                factor = rows[r][i]
                rows[r] = [a - factor * b for a, b in zip(rows[r], rows[i], strict=True)]
    return (rows[0][4], rows[1][4], rows[2][4], rows[3][4])


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
        """Tokens of a whole request's messages, with what their frames cost."""
        total = sum(self.message(message) for message in messages)
        return total + PER_REPLY if messages else 0

    def message(self, message: Any) -> int:
        """Tokens of one message."""
        return PER_MESSAGE + self.count(_text(message))

    def learn(self, messages: Sequence[Any], real_tokens: int) -> float:
        """Correct the estimate by a reply's usage; return how far off it was, relatively."""
        before = self.estimate(messages)
        if not self.exact:
            frames = PER_MESSAGE * len(messages) + PER_REPLY
            whole = "\n".join(_text(message) for message in messages)
            self.calibration.learn(features(whole), real_tokens - frames)
        return (before - real_tokens) / real_tokens if real_tokens > 0 else 0.0


def _text(message: Any) -> str:
    if isinstance(message, str):
        return message
    content = message.get("content") if isinstance(message, Mapping) else message.content
    return str(content or "")
