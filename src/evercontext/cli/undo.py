"""``evercontext undo``: take back what a task changed, and nothing that you changed since."""

from __future__ import annotations

import dataclasses
import json
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from evercontext.cli.interrupt import run_until_stopped
from evercontext.cli.messages import translate, translate_composed
from evercontext.cli.options import json_option, root_option, settings_of, tell
from evercontext.cli.terminal import Screen, counted, one_line, pad
from evercontext.cli.trace_lookup import only
from evercontext.cli.value_completion import completing, traces
from evercontext.domain.outcome import Outcome
from evercontext.settings import Settings

if TYPE_CHECKING:
    from evercontext.workspace.checkpoints import Trace, Undone


@click.command("undo")
@click.argument("trace", required=False, shell_complete=completing(traces))
@click.option("--dry-run", is_flag=True, help="Say what would happen; change nothing.")
@click.option(
    "--all", "everything", is_flag=True, help="Also what changed while a check ran, perhaps by you."
)
@click.option("--list", "listing", is_flag=True, help="List what could be taken back.")
@json_option
@root_option
def command(
    trace: str | None,
    dry_run: bool,
    everything: bool,
    listing: bool,
    as_json: bool,
    root: str | None,
    allow_wide_root: bool | None,
) -> int:
    """Take back what a task changed.

    TRACE is the task's trace id or any beginning of it that fits only one; without it, the latest
    task in this project that still stands. A file that was changed since is kept as it is. Undoing
    an undo brings the changes back.
    """
    settings = settings_of(root, allow_wide_root=allow_wide_root)
    if listing:
        return int(run_until_stopped(_list(settings, as_json)))
    return int(run_until_stopped(_undo(settings, trace, (dry_run, everything), as_json)))


async def _list(settings: Settings, as_json: bool) -> Outcome:
    from evercontext.agent.task_undo import journal_of
    from evercontext.app import EverContext
    from evercontext.workspace.checkpoints import list_traces

    async with EverContext.open(settings) as app:
        tell(app)
        traces = await list_traces(journal_of(app))
    if as_json:
        print(json.dumps([dataclasses.asdict(trace) for trace in traces], ensure_ascii=False))
        return Outcome.DONE
    screen = Screen(sys.stdout, no_color=settings.no_color)
    for trace in traces:
        screen.line(_row(trace))
    if not traces:
        print(translate("nothing to undo in {place}", place=settings.root), file=sys.stderr)
    return Outcome.DONE


def _row(trace: Trace) -> str:
    moment = datetime.fromtimestamp(trace.at / 1e9, UTC).astimezone().strftime("%Y-%m-%d %H:%M")
    state = translate("undone") if trace.undone else translate("undo") if trace.is_undo else ""
    return f"{trace.trace_id[:8]}  {moment}  {pad(state, 7)} {one_line(', '.join(trace.paths))}"


async def _undo(
    settings: Settings, prefix: str | None, how: tuple[bool, bool], as_json: bool
) -> Outcome:
    from evercontext.agent.task_undo import journal_of, undo_task
    from evercontext.app import EverContext
    from evercontext.workspace.checkpoints import list_traces

    async with EverContext.open(settings) as app:
        tell(app)
        journal = journal_of(app)
        known = [trace.trace_id for trace in await list_traces(journal)]
        trace_id = (
            only({candidate for candidate in known if candidate.startswith(prefix.lower())}, prefix)
            if prefix
            else None
        )
        dry, everything = how
        done = await undo_task(app, trace_id, dry_run=dry, everything=everything)
    if as_json:
        print(json.dumps({**done.as_json(), "dry_run": dry}, ensure_ascii=False))
    else:
        _print(done, dry, Screen(sys.stdout, no_color=settings.no_color))
    return Outcome.DONE if done.restored or done.removed else Outcome.FAILED


def _print(done: Undone, dry: bool, screen: Screen) -> None:
    for word, paths in (("restored", done.restored), ("removed", done.removed)):
        for path in paths:
            partly = translate("to somebody else's edit in between")
            note = f" ({partly})" if path in done.partly else ""
            did = translate(f"would be {word}" if dry else word)
            screen.line(f"{did}  {one_line(path)}{note}", "green")
    for place in done.moved:
        text = translate("moved to  {place} (move it back by hand)", place=one_line(place))
        screen.line(text, "yellow")
    for unrestored in done.skipped:
        reason = translate_composed(one_line(unrestored.reason))
        did = translate("would be kept" if dry else "kept")
        screen.line(f"{did}  {one_line(unrestored.path)} ({reason})", "yellow")
    if done.memories:
        memories = counted(done.memories, "memory", "memories")
        screen.line(translate("with it  {memories} of this work", memories=memories), "green")
    if not dry and done.reversible:
        hint = f"evercontext undo {done.trace_id[:8]}"
        print(translate("bring it back: {command}", command=hint), file=sys.stderr)
    elif not (done.restored or done.removed):
        print(translate("nothing was taken back"), file=sys.stderr)
