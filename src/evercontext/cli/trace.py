"""``evercontext trace``: what happened, read from the event log alone."""

from __future__ import annotations

import json
import sys
from datetime import datetime

import click

from evercontext.cli import traces
from evercontext.cli.interrupt import run_until_stopped
from evercontext.cli.options import json_option, settings_of
from evercontext.cli.terminal import Screen, clip, one_line, pad
from evercontext.cli.tree import event_line, tree_lines
from evercontext.domain.tool import Mode
from evercontext.events.segments import follow
from evercontext.settings import Settings

_STATUS_COLOURS = {"done": "green", "running": "cyan", "cancelled": "yellow", "limit": "yellow"}


@click.group("trace")
def command() -> None:
    """See what happened: list, show, tail."""


@command.command("list")
@click.option("-n", "--limit", type=click.IntRange(1), default=20, show_default=True)
@json_option
def list_traces(limit: int, as_json: bool) -> None:
    """List the newest tasks."""
    settings = settings_of()
    found = traces.newest(settings.traces, limit)
    traces.count_written(found, settings.home)
    if as_json:
        print(json.dumps([summary.to_json() for summary in found], indent=2, ensure_ascii=False))
        return
    if not found:
        print(f"no traces yet under {settings.traces}", file=sys.stderr)
        return
    screen = Screen(sys.stdout, no_color=settings.no_color)
    for summary in found:
        screen.line(_row(summary, screen))


def _row(summary: traces.Summary, screen: Screen) -> str:
    status = screen.paint(pad(summary.status, 11), _STATUS_COLOURS.get(summary.status, "red"))
    files = f"{summary.changed} file{'' if summary.changed == 1 else 's'}"
    files = "dry run" if summary.mode == Mode.DRY_RUN else files
    begin = f"{summary.trace_id[:8]}  {local_time(summary.started)}  "
    room = screen.width - len(begin) - 12 - max(9, len(files) + 1)
    return f"{begin}{status} {pad(files, 8)} {clip(one_line(summary.text), room)}"


def local_time(at: str) -> str:
    """A moment of the log in the reader's own time."""
    return datetime.fromisoformat(at).astimezone().strftime("%Y-%m-%d %H:%M")


@command.command("show")
@click.argument("trace", required=False)
@json_option
def show(trace: str | None, as_json: bool) -> None:
    """Show one task as a tree; without an id, the newest one.

    TRACE is a trace id or any beginning of it that fits only one.
    """
    settings = settings_of()
    events = traces.events_of(settings.traces, trace)
    if as_json:
        for event in events:
            print(json.dumps(event.to_json(), ensure_ascii=False))
        return
    screen = Screen(sys.stdout, no_color=settings.no_color)
    for line in tree_lines(events, screen):
        screen.line(line)


@command.command("tail")
@json_option
def tail(as_json: bool) -> None:
    """Follow what any process does, until Ctrl-C."""
    settings = settings_of()
    run_until_stopped(_tail(settings, as_json))


async def _tail(settings: Settings, as_json: bool) -> None:
    screen = Screen(sys.stdout, no_color=settings.no_color)
    print(f"following {settings.traces}, Ctrl-C ends", file=sys.stderr, flush=True)
    async for event in follow(settings.traces):
        if as_json:
            screen.line(json.dumps(event.to_json(), ensure_ascii=False))
        else:
            short = screen.paint(event.trace_id[:8], "dim")
            moment = datetime.fromisoformat(event.at).astimezone().strftime("%H:%M:%S")
            room = screen.width - 20
            screen.line(f"{moment}  {short}  {clip(event_line(event, screen, paint=False), room)}")
