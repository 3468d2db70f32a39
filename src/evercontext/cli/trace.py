"""``evercontext trace``: what happened, read from the event log alone."""

from __future__ import annotations

import asyncio
import json
import sys
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from evercontext.cli import trace_lookup
from evercontext.cli.interrupt import run_until_stopped
from evercontext.cli.messages import translate
from evercontext.cli.options import all_option, json_option, root_option, settings_of
from evercontext.cli.terminal import Screen, clip, columns_of, counted, local_time, one_line, pad
from evercontext.cli.trace_tree import event_line, tree_lines
from evercontext.cli.value_completion import completing, traces
from evercontext.domain.tool import Mode
from evercontext.events.log_reader import follow
from evercontext.events.trace_projects import Foreign
from evercontext.settings import Settings

if TYPE_CHECKING:
    from evercontext.files.task_changes import TakenBack

_STATUS_COLOURS = {"done": "green", "running": "cyan", "cancelled": "yellow", "limit": "yellow"}


@click.group("trace")
def command() -> None:
    """See what happened: list, show, tail."""


@command.command("list")
@click.option("-n", "--limit", type=click.IntRange(1), default=20, show_default=True)
@all_option
@json_option
@root_option
def list_traces(limit: int, everywhere: bool, as_json: bool, **place: Any) -> None:
    """List the newest tasks and evaluations of this project."""
    settings = settings_of(place["root"], allow_wide_root=place["allow_wide_root"])
    summaries = trace_lookup.newest(settings.traces, limit, None if everywhere else settings.root)
    trace_lookup.count_written(summaries, settings.home)
    if as_json:
        print(
            json.dumps([summary.to_json() for summary in summaries], indent=2, ensure_ascii=False)
        )
        return
    if not summaries:
        others = not everywhere and trace_lookup.newest(settings.traces, 1)
        text = translate("no traces yet under {place}", place=settings.traces)
        if others:
            text = translate("no traces of this project yet; --all shows others")
        print(text, file=sys.stderr)
        return
    screen = Screen(sys.stdout, no_color=settings.no_color)
    for summary in summaries:
        screen.line(_row(summary, screen))


def _row(summary: trace_lookup.Summary, screen: Screen) -> str:
    status = screen.paint(pad(summary.status, 11), _STATUS_COLOURS.get(summary.status, "red"))
    files = counted(summary.changed, "file")
    other = {Mode.DRY_RUN: "dry run", trace_lookup.EVALUATION: "judged"}.get(summary.mode)
    files = translate(other) if other else files
    begin = f"{summary.trace_id[:8]}  {local_time(summary.started)}  "
    room = screen.width - len(begin) - 12 - max(9, columns_of(files) + 1)
    return f"{begin}{status} {pad(files, 8)} {clip(one_line(summary.text), room)}"


@command.command("show")
@click.argument("trace", required=False, shell_complete=completing(traces))
@all_option
@json_option
@root_option
def show(trace: str | None, everywhere: bool, as_json: bool, **place: Any) -> None:
    """Show one task as a tree; without an id, the newest one of this project.

    TRACE is a trace id or any beginning of it that fits only one.
    """
    settings = settings_of(place["root"], allow_wide_root=place["allow_wide_root"])
    events = trace_lookup.events_of(settings.traces, trace, None if everywhere else settings.root)
    taken = trace_lookup.taken_back(events, settings.home)
    if as_json:
        for event in events:
            print(json.dumps(event.to_json(), ensure_ascii=False))
        if taken:
            print(json.dumps(_undo_state(events[0].trace_id, taken)))
        return
    screen = Screen(sys.stdout, no_color=settings.no_color)
    for line in tree_lines(events, screen):
        screen.line(line)
    if taken:
        screen.line(_undone(taken), "yellow")


def _undo_state(trace_id: str, taken: TakenBack) -> dict[str, Any]:
    """Return how the task stands now: no event, but what the journal says."""
    state = {"extent": taken.extent.value, "undo": taken.undo or None}
    return {"type": "undo_state", "trace_id": trace_id, "data": state}


def _undone(taken: TakenBack) -> str:
    from evercontext.files.task_changes import Extent

    extent = {Extent.ALL: "all of it is taken back", Extent.PART: "a part of it is taken back"}
    hint = translate("bring it back: {command}", command=f"evercontext undo {taken.undo[:8]}")
    text = translate("undone: {extent}", extent=translate(extent[taken.extent]))
    return f"{text}; {hint}" if taken.undo else text


@command.command("tail")
@all_option
@json_option
@root_option
def tail(everywhere: bool, as_json: bool, **place: Any) -> None:
    """Follow what any process does in this project, until Ctrl-C."""
    settings = settings_of(place["root"], allow_wide_root=place["allow_wide_root"])
    run_until_stopped(_tail(settings, everywhere, as_json))


async def _tail(settings: Settings, everywhere: bool, as_json: bool) -> None:
    foreign = Foreign(settings.root, settings.traces)
    screen = Screen(sys.stdout, no_color=settings.no_color)
    text = translate("following {place}, Ctrl-C ends", place=settings.traces)
    print(text, file=sys.stderr, flush=True)
    async for event in follow(settings.traces):
        if not everywhere and await asyncio.to_thread(foreign.holds, event):
            continue
        if as_json:
            screen.line(json.dumps(event.to_json(), ensure_ascii=False))
        else:
            short = screen.paint(event.trace_id[:8], "dim")
            moment = datetime.fromisoformat(event.at).astimezone().strftime("%H:%M:%S")
            room = screen.width - 20
            screen.line(f"{moment}  {short}  {clip(event_line(event, screen, paint=False), room)}")
