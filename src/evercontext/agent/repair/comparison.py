"""Compare two runs of the checks; pure."""

from __future__ import annotations

from collections import Counter
from typing import Literal

from evercontext.agent.verification import Findings
from evercontext.domain.check_verdicts import GREEN
from evercontext.workspace.failures.failure import Failure

Step = Literal["better", "other", "same", "worse"]
"""``other``: as many failures, but one of them is a different one now."""


def compare(before: Findings, after: Findings) -> Step:
    """Say how the checks stand now.

    Better means that something that failed does not any more, and that nothing fails that did not
    fail before. Tests that could not run before, because a file did not load or did not compile,
    are no news if they fail now: it is said what they are, and the way there is open.
    """
    if after.verdict in GREEN:
        return "better"
    if not after.failures:
        return "worse"  # cut off, timed out, or no check left: nobody knows
    old, new = _counted(before), _counted(after)
    gone, appeared = old - new, new - old
    if gone and appeared and _unblocked(before, after):
        return _further(before, after)
    if appeared or after.passed < before.passed:
        return "worse"
    if gone:
        return "better"
    return "same" if _worded(before) == _worded(after) else "other"


def _counted(findings: Findings) -> Counter[tuple[str, ...]]:
    return Counter(failure.key for failure in findings.failures)


def _unblocked(before: Findings, after: Findings) -> bool:
    return bool(_blocking(before) - _blocking(after)) and after.passed >= before.passed


def _further(before: Findings, after: Findings) -> Step:
    """Something that kept tests from running is gone, and others took its place."""
    here, there = _blocking(before), _blocking(after)
    if not there - here:
        return "better" if len(there) < len(here) else "other"
    # A compiler names the next kind of error only once the first kind is gone.
    return "other" if len(there) <= len(here) else "worse"


def _blocking(findings: Findings) -> set[tuple[str, ...]]:
    return {failure.key for failure in findings.failures if failure.blocks}


def _worded(findings: Findings) -> Counter[tuple[str, ...]]:
    return Counter((*failure.key, _words(failure)) for failure in findings.failures)


def _words(failure: Failure) -> str:
    return f"{failure.code} {failure.file} {failure.message.splitlines()[0][:200]}"
