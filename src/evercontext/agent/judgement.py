"""How a task ended, judged by what it did and not by what the model says of it."""

from __future__ import annotations

from evercontext.agent.progress import Progress
from evercontext.domain.outcome import Outcome, outcome_of
from evercontext.errors import EverContextError

OVERRULED = (Outcome.DONE, Outcome.FAILED, Outcome.LIMIT)


def judge(progress: Progress, error: EverContextError | None, *, attended: bool = False) -> Outcome:
    """How it ended. The model's own word that all is well does not decide it.

    A policy refusal makes the run a refused one, however it went on. A call that was to do
    something, failed, and was never made good leaves the task undone; so does a last command that
    failed where nothing else was changed, unless a person is there to read the answer
    (``attended``).
    What was only looked for and not found leaves nothing undone.
    """
    outcome = outcome_of(error) if error else Outcome.DONE
    if progress.refusals and outcome in OVERRULED:
        return Outcome.REFUSED
    if outcome is Outcome.DONE and progress.denied:
        return Outcome.DENIED
    if outcome is Outcome.DONE and left_undone(progress, attended=attended):
        return Outcome.FAILED
    return outcome


def left_undone(progress: Progress, *, attended: bool = False) -> str | None:
    """Return what a task left undone, or nothing."""
    if progress.failed_call:
        return f"{progress.failed_call} failed and the task stayed undone"
    if progress.failed_command and not attended and not progress.achieved:
        code = progress.failed_command
        nothing = "nothing else" if any(progress.changed.values()) else "nothing"
        return f"the last command failed (exit code {code}) and {nothing} was changed"
    return None


def unsaid(outcome: Outcome, progress: Progress) -> str | None:
    """What an outcome means, where no error says it."""
    if outcome is Outcome.REFUSED:
        return f"refused by policy: {progress.refusals[-1]}"
    if outcome is Outcome.FAILED:
        return left_undone(progress)
    if outcome is Outcome.RED:
        return "finished, but the project's checks are red"
    return "not approved" if outcome is Outcome.DENIED else None
