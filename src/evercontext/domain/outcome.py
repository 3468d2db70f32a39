"""Define how a task can end: one table for the exit code, the trace and the KPIs."""

from __future__ import annotations

from enum import IntEnum

from evercontext import errors


class Outcome(IntEnum):
    """The ways a task or a command ends; the value is the exit code."""

    DONE = 0
    FAILED = 1
    REFUSED = 2
    """The policy said no to something the model tried, or the provider withheld the answer."""
    INVALID = 3
    """The model's JSON was invalid twice in a row."""
    RED = 4
    """Finished, but its checks are red."""
    DENIED = 5
    """Approval needed or denied, or untrusted configuration needed."""
    LIMIT = 6
    """Turns, time, tokens or money ran out."""
    USAGE = 64
    UNREACHABLE = 75
    """The provider, or the database server, did not answer, nor after its retries."""
    CANCELLED = 130
    TERMINATED = 143

    @property
    def word(self) -> str:
        """The name as traces and JSON show it."""
        return self.name.lower()


_BY_ERROR: dict[type[errors.EverContextError], Outcome] = {
    errors.UsageError: Outcome.USAGE,
    errors.UntrustedConfig: Outcome.DENIED,
    errors.PolicyError: Outcome.REFUSED,
    errors.ApprovalDenied: Outcome.DENIED,
    errors.HookBlocked: Outcome.DENIED,
    errors.AnswerFiltered: Outcome.REFUSED,
    errors.BadReply: Outcome.INVALID,
    errors.LimitReached: Outcome.LIMIT,
    errors.ModelMistyped: Outcome.USAGE,
    errors.ModelUnavailable: Outcome.UNREACHABLE,
    errors.StoreGone: Outcome.UNREACHABLE,
    errors.Cancelled: Outcome.CANCELLED,
    errors.Terminated: Outcome.TERMINATED,
}


def outcome_of(error: errors.EverContextError) -> Outcome:
    """The nearest entry up the error's own line of descent; anything else simply failed."""
    for kind in type(error).__mro__:
        if kind in _BY_ERROR:
            return _BY_ERROR[kind]
    return Outcome.FAILED
