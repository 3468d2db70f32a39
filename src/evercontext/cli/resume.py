"""``run --resume last``: which task that is."""

from __future__ import annotations

from evercontext.agent.resumption import Interrupted, take_up
from evercontext.cli import trace_lookup
from evercontext.cli.messages import translate, translate_composed
from evercontext.cli.terminal import Screen, clip, local_time, one_line
from evercontext.errors import NotFound, UsageError
from evercontext.settings import Settings


def latest(settings: Settings, err: Screen) -> Interrupted:
    """The newest task of this project that can be taken up; which one it is, is said."""
    passed: list[str] = []
    for summary in trace_lookup.resumable(settings.traces, settings.root):
        interrupted = take_up(
            summary.trace_id, trace_lookup.events_of(settings.traces, summary.trace_id)
        )
        try:
            interrupted.check(settings.root, settings.home)
        except UsageError as why:
            passed.append(why.message)
            continue
        _tell(summary, passed, err)
        return interrupted
    newest = f": {passed[0]}, the newest here" if passed else ""
    raise NotFound(f"no task was cut off here{newest}", fix="See `evercontext trace list`")


def _tell(summary: trace_lookup.Summary, passed: list[str], err: Screen) -> None:
    if passed:
        # Whoever says `last` may mean that one.
        reason = translate_composed(passed[0])
        note = translate("note: {reason}, so an older one is taken up", reason=reason)
        err.line(note, "yellow")
    about = translate(
        "going on with {trace} ({status}, {time}): ",
        trace=summary.trace_id[:8],
        status=translate(summary.status),
        time=local_time(summary.started),
    )
    err.line(about + clip(one_line(summary.text), err.width - len(about)), "dim")
