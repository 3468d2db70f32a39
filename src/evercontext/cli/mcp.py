"""``evercontext mcp``: our tools for any MCP client, over stdio."""

from __future__ import annotations

import json
import sys

import click

from evercontext.cli.clients import CLIENTS, entry, install
from evercontext.cli.interrupt import run_until_stopped
from evercontext.cli.options import root_option, settings_of, warn
from evercontext.cli.terminal import Screen
from evercontext.settings import Settings


@click.group("mcp", invoke_without_command=True)
@root_option
@click.pass_context
def command(ctx: click.Context, root: str | None, allow_wide_root: bool | None) -> None:
    """Serve the project's tools to an MCP client over stdio.

    A client starts this by itself; `evercontext mcp install` tells it how.
    """
    if ctx.invoked_subcommand is None:
        settings = settings_of(root, allow_wide_root=allow_wide_root)
        run_until_stopped(_serve(settings))


async def _serve(settings: Settings) -> None:
    from evercontext.app import EverContext
    from evercontext.server.doors import at_the_door
    from evercontext.server.mcp import McpDoor

    async with EverContext.open(settings) as app:
        # stdout belongs to the protocol alone.
        warn(app, Screen(sys.stderr, no_color=settings.no_color))
        tools = at_the_door(app.toolbox, allow_commands=settings.allow_commands)
        await McpDoor(tools, app.events).stdio()


@command.command("install")
@click.argument("client", type=click.Choice(list(CLIENTS)))
@root_option
@click.option("--print", "only_print", is_flag=True, help="Print the entry; change nothing.")
def install_command(
    client: str, root: str | None, allow_wide_root: bool | None, only_print: bool
) -> None:
    """Add this project's tools to the configuration of CLIENT.

    \b
    project   .mcp.json in the project, read by several clients
    claude    ~/.claude.json
    cursor    ~/.cursor/mcp.json
    gemini    ~/.gemini/settings.json
    vscode    .vscode/mcp.json in the project
    """
    from evercontext.app.house import check_root

    settings = settings_of(root, allow_wide_root=allow_wide_root)
    check_root(settings)
    place = settings.root
    if only_print:
        print(json.dumps({CLIENTS[client].key: {"evercontext": entry(place)}}, indent=2))
        return
    path, changed = install(client, place)
    print(f"{'added to' if changed else 'already in'} {path}")
