"""Improve a document: candidate, evaluation, revision, until it passes or stalls.

Used for documents with a judge, and for code with its tests: whatever can be scored.
"""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from evercontext.evaluation.rubric import Evaluation

SMALL_GAIN = 0.5
SMALL_GAINS = 3


class StopReason(StrEnum):
    """Why a loop ended."""

    PASSED = "passed"
    ROUNDS = "rounds used up"
    STAGNATION = "no longer getting better"
    UNCHANGED = "the writer changed nothing"
    REFUSED = "the writer's text was not taken"


@dataclass(frozen=True, slots=True)
class Version:
    """One candidate and what was said of it."""

    number: int
    content: str
    evaluation: Evaluation


@dataclass(frozen=True, slots=True)
class RefusedRevision:
    """A text that is no version of the document, and why; it is never evaluated."""

    content: str
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Improvement:
    """Every version, the best one, why it ended, and what was not taken at the end."""

    versions: tuple[Version, ...]
    best: Version
    stop: StopReason
    refused: RefusedRevision | None = None


Evaluate = Callable[[str, int], Awaitable[Evaluation]]
Revise = Callable[[Version], Awaitable[str | RefusedRevision]]
Watch = Callable[[Version], None]


async def improve(
    content: str, evaluate: Evaluate, revise: Revise, *, rounds: int, watch: Watch = lambda v: None
) -> Improvement:
    """Evaluate and revise at most ``rounds`` times; the best version wins, never a worse one."""
    versions = [Version(0, content, await evaluate(content, 0))]
    watch(versions[0])
    stop = StopReason.PASSED if versions[0].evaluation.passed else None
    while stop is None:
        best = _best(versions)
        if len(versions) > rounds:
            stop = StopReason.ROUNDS
            break
        revised = await revise(best)
        if isinstance(revised, RefusedRevision):
            return Improvement(tuple(versions), best, StopReason.REFUSED, revised)
        if not revised.strip() or revised == best.content:
            stop = StopReason.UNCHANGED
            break
        number = len(versions)
        versions.append(Version(number, revised, await evaluate(revised, number)))
        watch(versions[-1])
        stop = _verdict(versions)
    return Improvement(tuple(versions), _best(versions), stop)


def _best(versions: Sequence[Version]) -> Version:
    """The highest score; the earlier of two equal ones."""
    return max(versions, key=lambda version: (version.evaluation.score, -version.number))


def _verdict(versions: Sequence[Version]) -> StopReason | None:
    if versions[-1].evaluation.passed:
        return StopReason.PASSED
    scores = [version.evaluation.score for version in versions]
    gains = [after - before for before, after in itertools.pairwise(scores)]
    stuck = len(gains) >= SMALL_GAINS and all(gain < SMALL_GAIN for gain in gains[-SMALL_GAINS:])
    return StopReason.STAGNATION if stuck else None
