"""Judge the outcome of a task by its actions, not by the model's claims."""

from __future__ import annotations

from evercontext.agent.run_progress import Progress
from evercontext.domain.outcome import Outcome, outcome_of
from evercontext.domain.visible_text import escaped_line
from evercontext.errors import EverContextError

WRITTEN_ONLY = "was written as text and not carried out"
OVERRULED = (Outcome.DONE, Outcome.FAILED, Outcome.LIMIT)


def judge(progress: Progress, error: EverContextError | None, *, attended: bool = False) -> Outcome:
    """How it ended. The model's own word that all is well does not decide it.

    A policy refusal makes the run a refused one, however it went on. A call that was to do
    something, failed, and was never made good leaves the task undone; so does a last command that
    failed where nothing else was changed or a file could not be written, unless a person is there
    to read the answer (``attended``).
    What was only looked for and not found leaves nothing undone.
    """
    outcome = outcome_of(error) if error else Outcome.DONE
    if progress.refusals and outcome in OVERRULED:
        return Outcome.REFUSED
    if outcome is Outcome.DONE and progress.denied:
        return Outcome.DENIED
    if outcome is Outcome.DONE and left_undone(progress, attended=attended):
        return Outcome.DENIED if progress.blocked else Outcome.FAILED
    return outcome


def own_refusal(outcome: Outcome, progress: Progress) -> bool:
    """True if the person who gave the task said no: that is no error, as a hook's no is."""
    return outcome is Outcome.DENIED and not progress.blocked


def left_undone(progress: Progress, *, attended: bool = False) -> str | None:
    """Return the work that a task left undone, or nothing."""
    if progress.blocked:
        return f"{progress.failure}; the task stayed undone"
    if progress.failed_call:
        reason = f": {progress.failure}" if progress.failure else ""
        return f"{progress.failed_call} failed and the task stayed undone{reason}"
    if attended:
        return None
    if progress.printed:
        return f"{progress.printed} {WRITTEN_ONLY}, and the task stayed undone"
    if not progress.failed_command:
        return None
    code = progress.failed_command
    if progress.unwritten:
        return f"{_unwritten(progress)}, and the last command failed (exit code {code})"
    if not progress.achieved:
        nothing = "nothing else" if any(progress.changed.values()) else "nothing"
        return f"the last command failed (exit code {code}) and {nothing} was changed"
    return None


def shortcomings(progress: Progress, *, attended: bool = False) -> str:
    """Return the failures in a task that counts as done: no other message names them.

    A person who is there has seen them, but for a call that only looks like one.
    """
    if attended:
        return f"{progress.printed} {WRITTEN_ONLY}" if progress.printed else ""
    parts = [_unwritten(progress)] if progress.unwritten else []
    if progress.failed_command:
        parts.append(f"the last command failed (exit code {progress.failed_command})")
    return "; ".join(parts)


def _unwritten(progress: Progress) -> str:
    path, tool = next(iter(progress.unwritten.items()))
    more = f" and {len(progress.unwritten) - 1} more" if len(progress.unwritten) > 1 else ""
    return f"{tool} failed for {escaped_line(path, 200)}{more}"


def unsaid(outcome: Outcome, progress: Progress) -> str | None:
    """Explain an outcome, where no error says it."""
    if outcome is Outcome.REFUSED:
        return f"refused by policy: {progress.refusals[-1]}"
    if outcome is Outcome.FAILED:
        return left_undone(progress)
    if outcome is Outcome.RED:
        return "finished, but the project's checks are red"
    if outcome is Outcome.DENIED:
        return left_undone(progress) if progress.blocked else "not approved"
    return None
