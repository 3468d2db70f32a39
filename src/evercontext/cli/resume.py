"""``run --resume last``: which task that is."""

from __future__ import annotations

from evercontext.agent.resumption import Interrupted, take_up
from evercontext.cli import traces
from evercontext.cli.terminal import Screen, clip, local_time, one_line
from evercontext.errors import NotFound, UsageError
from evercontext.settings import Settings


def latest(settings: Settings, err: Screen) -> Interrupted:
    """The newest task of this project that can be taken up; which one it is, is said."""
    passed: list[str] = []
    for one in traces.resumable(settings.traces, settings.root):
        found = take_up(one.trace_id, traces.events_of(settings.traces, one.trace_id))
        try:
            found.check(settings.root, settings.home)
        except UsageError as why:
            passed.append(why.message)
            continue
        _tell(one, passed, err)
        return found
    newest = f": {passed[0]}, the newest here" if passed else ""
    raise NotFound(f"no task was cut off here{newest}", fix="See `evercontext trace list`")


def _tell(one: traces.Summary, passed: list[str], err: Screen) -> None:
    if passed:
        # Whoever says `last` may mean that one.
        err.line(f"note: {passed[0]}, so an older one is taken up", "yellow")
    about = f"going on with {one.trace_id[:8]} ({one.status}, {local_time(one.started)}): "
    err.line(about + clip(one_line(one.text), err.width - len(about)), "dim")
