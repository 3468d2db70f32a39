"""``evercontext servers``: outside tool servers, added on purpose and looked at before trust."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evercontext.cli.interrupt import run_until_stopped
from evercontext.cli.messages import translate, translate_composed
from evercontext.cli.options import Number, confirm, json_option, settings_of, tell
from evercontext.cli.server_extras import extras_of
from evercontext.cli.terminal import Screen, counted, labelled, one_line, pad, visible
from evercontext.domain.caller_scope import OURS
from evercontext.domain.outcome import Outcome
from evercontext.errors import EverContextError, NotFound, UsageError
from evercontext.settings import load

if TYPE_CHECKING:
    from evercontext.app import EverContext
    from evercontext.catalog.server_lifecycle import Backend
    from evercontext.catalog.server_table import ServerConfig

FOLLOW_SECONDS = 0.3
_FIRST = """no server yet; add one, or take over those of another client:
  evercontext servers add NAME -- COMMAND ARGS...
  evercontext servers import claude"""
Work = Callable[["EverContext", Screen], Awaitable[Outcome]]
_DIFF_COLORS = {"+": "green", "-": "red"}


@click.group("servers")
def command() -> None:
    """Add, test and import outside tool servers (MCP)."""


@command.command("add")
@click.argument("name")
@click.argument("argv", nargs=-1, metavar="[-- COMMAND ARGS...]", type=click.UNPROCESSED)
@click.option("--url", metavar="URL", help="A server behind Streamable HTTP, instead of a command.")
@click.option("--sse", is_flag=True, help="The URL is one of the older SSE transport.")
@click.option(
    "--env", multiple=True, metavar="NAME=VALUE", help="Given to it; ${NAME} is filled in."
)
@click.option("--header", multiple=True, metavar="NAME=VALUE", help="Sent with every request.")
@click.option("--project", default="", metavar="ID", help="Whose it is. Default: everybody's.")
@click.option("--cwd", default="", metavar="DIR", help="Where it is started. Default: the project.")
@click.option(
    "--timeout", type=Number(0.1, 86_400), default=60.0, metavar="SECONDS", help="For one call."
)
def add(name: str, argv: tuple[str, ...], url: str | None, **options: Any) -> int:
    """Add the server NAME: a command to start, or the address of one that runs."""
    from evercontext.catalog.server_table import read_config

    if bool(argv) == bool(url):
        raise UsageError("say how to reach it", fix="Give -- COMMAND ARGS..., or --url URL")
    entry = {
        **({"command": argv[0], "args": list(argv[1:])} if argv else {"url": url}),
        **({"type": "sse"} if options["sse"] else {}),
        "env": _pairs(options["env"]),
        "headers": _pairs(options["header"]),
        "cwd": options["cwd"],
    }
    if options["sse"] and not url:
        raise UsageError("--sse needs an address", fix="Give --url URL")
    config = read_config(name, entry, project=options["project"])
    config = replace(config, call_seconds=options["timeout"])

    async def work(app: EverContext, screen: Screen) -> Outcome:
        before = (await _known(app)).get(name)
        await note_unknown(app, projects=[config.project] if config.project else [])
        await app.catalog.servers.table.put(config)
        text = "added {name}: {how}" if before is None else "replaced {name}: {how}"
        print(translate(text, name=name, how=_reached(config, before)), file=sys.stderr)
        return Outcome.DONE

    return with_app(work)


def _pairs(texts: Sequence[str]) -> dict[str, str]:
    if any("=" not in text for text in texts):
        raise UsageError("write it as NAME=VALUE")
    return dict(text.split("=", 1) for text in texts)


@command.command("list")
@json_option
def list_servers(as_json: bool) -> int:
    """List the servers: how each is reached, whose it is, which of its tools are off or held."""

    async def work(app: EverContext, screen: Screen) -> Outcome:
        table = app.catalog.servers.table
        rows = [await _row(app, config) for config in (await table.own(), *await table.all())]
        if as_json:
            print(json.dumps(rows, indent=2, ensure_ascii=False))
            return Outcome.DONE
        for row in rows:
            state = pad(translate("on" if row["enabled"] else "off"), 3)
            whose = row["project"] and "  " + translate("project {name}", name=row["project"])
            screen.line(f"{state}  {row['id']}  {one_line(row['reachedBy'])}{whose or ''}")
            screen.line(f"     {_health(row)}", "dim")
            for word in ("off", "held"):
                if row[word]:
                    screen.line(f"     {translate(word)}: {', '.join(row[word])}", "yellow")
        if len(rows) == 1:
            print(translate(_FIRST), file=sys.stderr)
        return Outcome.DONE

    return with_app(work)


async def _row(app: EverContext, config: ServerConfig) -> dict[str, Any]:
    from evercontext.catalog.server_state import read_state

    pins = await app.catalog.servers.table.pins(config.id)
    known = read_state(app.settings.home / "servers", config.id)
    return {
        "id": config.id,
        "transport": config.transport,
        "reachedBy": config.reached_by,
        "env": sorted(config.env),
        "project": config.project,
        "enabled": config.enabled,
        "tools": len(_own_tools(app) if config.id == OURS else pins),
        "off": sorted(tool for tool, on in config.tool_permissions.items() if not on),
        "held": sorted(tool for tool, (_, held) in pins.items() if held),
        "state": known.state if known else "running" if config.id == OURS else "stopped",
        "problem": known.problem if known else None,
        "retryIn": round(known.retry_in, 1) if known and known.retry_in else None,
        "protocol": known.protocol if known else "",
    }


def _own_tools(app: EverContext) -> list[str]:
    from evercontext.catalog.discovery_tools import META

    return [tool.name for tool in app.toolbox if tool.name not in META]


def _health(row: dict[str, Any]) -> str:
    """How a server is doing, as the process that uses it last said."""
    known = translate("{tools} known", tools=counted(row["tools"], "tool"))
    parts = [translate(row["state"]), known]
    if row["state"] == "running" and row["protocol"]:
        parts.append(translate("protocol {version}", version=one_line(row["protocol"])))
    if row["state"] == "failed":
        parts.append(translate_composed(one_line(row["problem"] or "")))
        later = translate("next try in {seconds} s", seconds=row["retryIn"])
        parts.append(later if row["retryIn"] else translate("tried when asked for"))
    return ", ".join(parts)


@command.command("remove")
@click.argument("name")
def remove(name: str) -> int:
    """Forget the server NAME and what was trusted of it."""

    async def work(app: EverContext, screen: Screen) -> Outcome:
        await app.catalog.servers.table.remove(name)
        print(translate("removed {what}", what=one_line(name)), file=sys.stderr)
        return Outcome.DONE

    return with_app(work)


@command.command("enable")
@click.argument("name")
@click.argument("tool", required=False)
def enable(name: str, tool: str | None) -> int:
    """Switch the server NAME on, or one TOOL of it."""
    return _switch(name, tool, on=True)


@command.command("disable")
@click.argument("name")
@click.argument("tool", required=False)
def disable(name: str, tool: str | None) -> int:
    """Switch the server NAME off, or one TOOL of it: not found, not callable."""
    return _switch(name, tool, on=False)


def _switch(name: str, tool: str | None, *, on: bool) -> int:
    async def work(app: EverContext, screen: Screen) -> Outcome:
        table = app.catalog.servers.table
        config = await table.get(name)
        if tool:
            await _check_tool(app, config, tool)
        rights = {**config.tool_permissions, tool: on} if tool else config.tool_permissions
        enabled = config.enabled if tool else on
        await table.put(replace(config, tool_permissions=rights, enabled=enabled))
        what = f"{name}:{one_line(tool)}" if tool else name
        print(translate("{what} is on" if on else "{what} is off", what=what), file=sys.stderr)
        return Outcome.DONE

    return with_app(work)


async def _check_tool(app: EverContext, config: ServerConfig, tool: str) -> None:
    """Raise if the server is known to have no such tool."""
    from evercontext.catalog.server_table import suggest_names

    seen = await app.catalog.servers.table.pins(config.id)
    own = _own_tools(app) if config.id == OURS else []
    known = sorted({*seen, *config.tool_permissions, *own})
    if tool in known:
        return
    look = f"evercontext servers test {config.id}"
    if seen:
        fix = suggest_names(tool, known) or f"See: {look}"
        raise NotFound(f"server {config.id} has no tool {tool[:80]!r}", fix=fix)
    text = f"the tools of {config.id} are not known yet; see: {look}"
    print(labelled("note", text), file=sys.stderr)


@command.command("test")
@click.argument("name")
@json_option
def test(name: str, as_json: bool) -> int:
    """Start the server NAME, list its tools and say what is odd about it."""

    async def work(app: EverContext, screen: Screen) -> Outcome:
        backend = await _backend(app, name)
        started = time.monotonic()
        try:
            entries = await backend.entries()
        except EverContextError:
            for line in list(backend.log)[-20:]:
                print(f"  {visible(line)}", file=sys.stderr)
            raise
        content = {
            "server": name,
            "seconds": round(time.monotonic() - started, 3),
            "tools": [entry.name for entry in entries],
            "held": sorted(backend.held),
            "warnings": backend.warnings,
        }
        if as_json:
            print(json.dumps(content, ensure_ascii=False))
        else:
            text = translate(
                "{name} answers: {tools} in {seconds} s",
                name=name,
                tools=counted(len(entries), "tool"),
                seconds=content["seconds"],
            )
            screen.line(text)
            for entry in entries:
                screen.line(f"  {entry.name}  {one_line(entry.description)[:100]}")
            for warning in [*backend.warnings, *(f"held: {tool}" for tool in backend.held)]:
                screen.line(labelled("warning", warning), "yellow")
        return Outcome.DONE

    return with_app(work)


@command.command("logs")
@click.argument("name")
@click.option("-n", "--lines", type=click.IntRange(1, 10_000), default=50, show_default=True)
@click.option("-f", "--follow", is_flag=True, help="Go on showing lines as they come.")
def logs(name: str, lines: int, follow: bool) -> int:
    """Show what the server NAME said on stderr; escape sequences are written out."""
    from evercontext.catalog.server_log import end_of_log, read_log, read_on

    settings = settings_of(None, allow_wide_root=True)
    folder = settings.home / "servers"
    screen = Screen(sys.stdout, no_color=settings.no_color)

    async def work(app: EverContext, _: Screen) -> Outcome:
        await app.catalog.servers.table.get(name)
        place = end_of_log(folder, name)
        lines_shown = read_log(folder, name)[-lines:]
        for line in lines_shown:
            screen.line(visible(line))
        if not lines_shown and not follow:
            print(translate("{name} has said nothing yet", name=name), file=sys.stderr)
        while follow:
            await asyncio.sleep(FOLLOW_SECONDS)
            new, place = read_on(folder, name, place)
            for line in new:
                screen.line(visible(line))
        return Outcome.DONE

    return with_app(work)


@command.command("approve")
@click.argument("name")
@click.option("-y", "--yes", is_flag=True, help="Approve without asking.")
def approve(name: str, yes: bool) -> int:
    """Look at what changed in the tools of the server NAME, and trust them from now on."""
    from evercontext.catalog.definition_diff import definition_diff
    from evercontext.catalog.validation import encode_definition

    async def work(app: EverContext, screen: Screen) -> Outcome:
        backend = await _backend(app, name)
        await backend.entries()
        held = backend.held_entries()
        # What is shown is trusted, whatever another process hears from the server meanwhile.
        shown = {entry.name: backend.held[entry.name] for entry in held}
        table = app.catalog.servers.table
        trusted = await table.definitions(name)
        for entry in held:
            screen.line(entry.key, "bold")
            for line in definition_diff(trusted.get(entry.name), entry):
                screen.line(visible(line), _DIFF_COLORS.get(line[:1], "dim"))
        if not held:
            print(translate("nothing of {name} is held", name=name), file=sys.stderr)
            return Outcome.DONE
        if not yes:
            confirm("Trust these definitions?")
        await table.approve(name, shown, {entry.name: encode_definition(entry) for entry in held})
        return Outcome.DONE

    return with_app(work)


async def _backend(app: EverContext, name: str) -> Backend:
    from evercontext.domain.caller_scope import Scope

    config = await app.catalog.servers.table.get(name)
    servers = await app.catalog.servers.visible(Scope(config.project or None))
    backend = next((server for server in servers if server.config.id == name), None)
    if backend is None:
        raise UsageError(f"server {name} is off", fix=f"evercontext servers enable {name}")
    return backend


@command.command("import")
@click.argument("source", metavar="claude|cursor|vscode|codex|gemini|zed|FILE")
@click.option("--project", default="", metavar="ID", help="Whose they will be.")
@click.option("--dry-run", is_flag=True, help="Show what would be added; add nothing.")
@click.option("-y", "--yes", is_flag=True, help="Add without asking.")
def import_servers(source: str, project: str, dry_run: bool, yes: bool) -> int:
    """Take servers over from another client, or from a file with mcpServers."""
    from evercontext.cli.client_files import read_servers

    settings = load({})
    configs, skipped = read_servers(source, settings.root, Path.home(), project)

    async def work(app: EverContext, screen: Screen) -> Outcome:
        known = await _known(app)
        for config in configs:
            before = known.get(config.id)
            mark, color = ("+", "green") if before is None else ("~", "yellow")
            screen.line(f"{mark} {config.id}  {_reached(config, before)}{extras_of(config)}", color)
        for reason in skipped:
            text = translate("skipped: {reason}", reason=translate_composed(one_line(reason)))
            screen.line(text, "yellow")
        if dry_run or not configs:
            return Outcome.DONE
        if not yes:
            confirm(f"Add {counted(len(configs), 'server')}? Their commands will run as you.")
        for config in configs:
            await app.catalog.servers.table.put(config)
        added = translate("{servers} added", servers=counted(len(configs), "server"))
        print(added, file=sys.stderr)
        return Outcome.DONE

    return with_app(work)


async def _known(app: EverContext) -> dict[str, str]:
    """Every server that is there, with how it is reached."""
    there = await app.catalog.servers.table.all()
    return {config.id: one_line(config.reached_by) for config in there}


def _reached(config: ServerConfig, before: str | None) -> str:
    """How a server is reached, and how the one was whose name it takes."""
    reached = one_line(config.reached_by)
    if before in (None, reached):
        return reached
    return translate("{new}, instead of {old}", new=reached, old=before)


async def note_unknown(
    app: EverContext, *, projects: Iterable[str] = (), servers: Iterable[str] = ()
) -> None:
    """Say which of these names nothing has yet: they may come later, or be slips."""
    from evercontext.access.router_projects import Projects

    there = {
        "project": {project.id for project in await Projects(app.store).all()},
        "server": {OURS, *(config.id for config in await app.catalog.servers.table.all())},
    }
    for kind, names in (("project", projects), ("server", servers)):
        for name in names:
            if name not in there[kind]:
                text = labelled("note", f"there is no {kind} {one_line(name)!r} yet")
                print(text, file=sys.stderr)


def with_app(work: Work) -> int:
    """Open the project of the working directory, and run the work with it."""

    async def opened() -> Outcome:
        from evercontext.app import EverContext

        settings = settings_of(None, allow_wide_root=True)
        async with EverContext.open(settings) as app:
            tell(app)
            return await work(app, Screen(sys.stdout, no_color=settings.no_color))

    return int(run_until_stopped(opened()))
