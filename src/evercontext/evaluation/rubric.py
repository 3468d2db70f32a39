"""Define rubrics: criteria of a document, and the shape of a valid judgement."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evercontext.errors import InvalidArguments, JudgeInvalid

DEFAULT_WEIGHTS = {"completeness": 0.3, "accuracy": 0.3, "clarity": 0.2, "usability": 0.2}
FORM = ("completeness", "clarity", "usability")
"""What the form of a text can tell. Whether it is true, nobody knows from its form."""
LOCAL = "local"
"""The judge of form."""
LOWEST, HIGHEST = 0.0, 10.0
MOST_SUGGESTIONS = 50
MOST_CRITERIA = 20
MOST_WEIGHT = 1_000_000
LONGEST_NAME = 80
_MOST_TRIES = 2000
_SUGGESTED = ("suggestion", "text", "message", "description", "change")


@dataclass(frozen=True, slots=True)
class Rubric:
    """Criteria and their weights; the weights always add up to one."""

    weights: Mapping[str, float]

    @classmethod
    def of(cls, criteria: object = None) -> Rubric:
        """Check and normalise weights; the field that is wrong is named.

        The four usual criteria may be given in part: the others then weigh nothing.
        """
        if criteria is None:
            return cls(dict(DEFAULT_WEIGHTS))
        if not isinstance(criteria, Mapping) or not 1 <= len(criteria) <= MOST_CRITERIA:
            raise InvalidArguments(
                f"rubric: must be an object of 1 to {MOST_CRITERIA} criteria and their weights"
            )
        weights = {str(name): _weight(str(name), value) for name, value in criteria.items()}
        if set(weights) <= set(DEFAULT_WEIGHTS):
            weights = {name: weights.get(name, 0.0) for name in DEFAULT_WEIGHTS}
        total = sum(weights.values())
        if total <= 0:
            raise InvalidArguments("rubric: the weights must not all be 0")
        return cls({name: weight / total for name, weight in weights.items()})

    def score(self, scores: Mapping[str, float]) -> float:
        """The weighted score, to two places."""
        return round(sum(weight * scores[name] for name, weight in self.weights.items()), 2)


def beyond_form(criteria: Iterable[str]) -> tuple[str, ...]:
    """Those of some criteria that a judge of form says nothing about."""
    return tuple(name for name in criteria if name.lower() not in FORM)


def _weight(name: str, value: object) -> float:
    if not name.strip() or len(name) > LONGEST_NAME:
        raise InvalidArguments(f"rubric: a criterion has a name of 1 to {LONGEST_NAME} characters")
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidArguments(f"rubric.{name}: must be a number")
    # Written so that NaN, which is no number at all, fails it too.
    if not 0 <= value <= MOST_WEIGHT:
        raise InvalidArguments(f"rubric.{name}: must be between 0 and {MOST_WEIGHT}")
    return float(value)


def check_target(target: object, default: float) -> float:
    """The score at which a document passes."""
    if target is None:
        return default
    if isinstance(target, bool) or not isinstance(target, int | float):
        raise InvalidArguments("target_score: must be a number")
    if not LOWEST <= target <= HIGHEST:
        raise InvalidArguments(f"target_score: must be between {LOWEST:g} and {HIGHEST:g}")
    return float(target)


@dataclass(frozen=True, slots=True)
class Suggestion:
    """One thing to do better, and where."""

    text: str
    line: int | None = None
    criterion: str | None = None
    japanese: bool = False

    def __str__(self) -> str:
        if not self.line:
            return self.text
        return (
            f"{self.line}行目: {self.text}" if self.japanese else f"line {self.line}: {self.text}"
        )


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a judge said, checked: every criterion, every score in range."""

    scores: Mapping[str, float]
    suggestions: tuple[Suggestion, ...]
    judge: str
    not_judged: tuple[str, ...] = ()
    """Criteria of which the judge can know nothing. Their score is what the others come to, so that
    they change nothing in the total."""
    note: str = ""
    """What a reader of the scores has to know of this judge."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """A judgement weighed by the rubric. Score and pass are computed here, never believed."""

    score: float
    rubric_scores: Mapping[str, float]
    passed: bool
    suggestions: tuple[Suggestion, ...]
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """The answer as the protocol has it."""
        return {
            "score": self.score,
            "rubric_scores": dict(self.rubric_scores),
            "pass": self.passed,
            "suggestions": [str(suggestion) for suggestion in self.suggestions],
            "metadata": dict(self.metadata),
        }


def weigh(
    judgement: Judgement, rubric: Rubric, target: float, metadata: Mapping[str, Any]
) -> Evaluation:
    """Turn a judgement into an evaluation."""
    score = rubric.score(judgement.scores)
    details = {"model_used": judgement.judge, **metadata}
    if judgement.not_judged:
        details["not_judged"] = list(judgement.not_judged)
    if judgement.note:
        details["note"] = judgement.note
    judged = sum(rubric.weights[name] for name in set(rubric.weights) - set(judgement.not_judged))
    passed = score >= target and judged > 0
    return Evaluation(score, judgement.scores, passed, judgement.suggestions, details)


def read_judgement(text: str, rubric: Rubric, judge: str) -> Judgement:
    """Read a judge's JSON out of what it printed; out of range is an error, never clamped."""
    answer = _object_in(text)
    scores = answer.get("rubric_scores")
    if not isinstance(scores, Mapping):
        raise JudgeInvalid(f"{judge} gave no rubric_scores")
    checked = {name: _score(scores.get(name), name, judge) for name in rubric.weights}
    overall = answer.get("score")
    if overall is not None:
        _score(overall, "score", judge)
    return Judgement(checked, _suggestions(answer.get("suggestions"), judge), judge)


def _object_in(text: str) -> Mapping[str, Any]:
    """The last JSON object with scores in it: programs print other things around it."""
    decoder, at = json.JSONDecoder(), text.rfind("{")
    for _ in range(_MOST_TRIES):
        if at < 0:
            break
        try:
            candidate, _end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            candidate = None
        if isinstance(candidate, dict) and "rubric_scores" in candidate:
            return candidate
        at = text.rfind("{", 0, at)
    raise JudgeInvalid("the judge printed no JSON object with rubric_scores")


def _score(value: object, name: str, judge: str) -> float:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not LOWEST <= value <= HIGHEST:  # type: ignore[operator]
        shown = json.dumps(value, default=str, ensure_ascii=False)[:40]
        raise JudgeInvalid(f"{judge} gave {name} = {shown}, not a number from 0 to 10")
    return float(value)  # type: ignore[arg-type]


def _suggestions(items: object, judge: str) -> tuple[Suggestion, ...]:
    if items is None:
        return ()
    if not isinstance(items, Sequence) or isinstance(items, str):
        raise JudgeInvalid(f"{judge} gave suggestions that are no list")
    texts = [_text(item) for item in items[:MOST_SUGGESTIONS]]
    return tuple(Suggestion(text) for text in texts if text)


def _text(item: object) -> str:
    """One suggestion as a sentence; many models wrap it up."""
    if isinstance(item, Mapping):
        inner = (item.get(name) for name in _SUGGESTED)
        item = next((text for text in inner if isinstance(text, str) and text.strip()), item)
    if item is None or isinstance(item, str):
        return (item or "").strip()
    return json.dumps(item, ensure_ascii=False)
