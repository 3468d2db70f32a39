"""``evercontext mcp``: our tools for any MCP client, over stdio."""

from __future__ import annotations

import shutil
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from evercontext.cli.interrupt import run_until_stopped
from evercontext.cli.messages import translate, translate_composed
from evercontext.cli.options import confirm, root_option, settings_of, warn
from evercontext.cli.render import painted_diff
from evercontext.cli.terminal import Screen
from evercontext.errors import EverContextError, UsageError
from evercontext.settings import Settings
from evercontext.settings.directories import check_root

if TYPE_CHECKING:
    from evercontext.app import EverContext


@click.group("mcp", invoke_without_command=True)
@click.option("--router", is_flag=True, help="Show two tools that lead to every server's tools.")
@root_option
@click.pass_context
def command(
    ctx: click.Context, router: bool, root: str | None, allow_wide_root: bool | None
) -> None:
    """Serve the project's tools to an MCP client over stdio.

    A client starts this by itself; `evercontext mcp install` tells it how.
    """
    if ctx.invoked_subcommand is None:
        try:
            settings = settings_of(root, allow_wide_root=allow_wide_root)
            check_root(settings)
        except EverContextError as problem:
            if sys.stdin.isatty():
                raise
            run_until_stopped(_refuse(problem))
        else:
            run_until_stopped(_serve(settings, router))


async def _serve(settings: Settings, router: bool) -> None:
    if router:
        await _serve_router(settings)
        return
    from evercontext.server.stdio_tools import StdioTools

    opening, commands = partial(_opened, settings), settings.allow_commands
    await StdioTools(opening, allow_commands=commands).serve()


async def _serve_router(settings: Settings) -> None:
    from evercontext.server.router.stdio import StdioRouter

    async with AsyncExitStack() as stack:
        try:
            app = await stack.enter_async_context(_opened(settings))
        except EverContextError as problem:
            await _refuse(problem)
        else:
            await StdioRouter(app).serve()


async def _refuse(problem: EverContextError) -> None:
    """Answer the handshake, and every call with what is wrong; raise it once the client is gone."""
    from evercontext.server.stdio_tools import StdioTools

    @asynccontextmanager
    async def fail() -> AsyncIterator[EverContext]:
        raise problem
        yield

    await StdioTools(fail, allow_commands=False).serve()


@asynccontextmanager
async def _opened(settings: Settings) -> AsyncIterator[EverContext]:
    from evercontext.app import EverContext

    async with EverContext.open(settings) as app:
        # stdout belongs to the protocol alone.
        warn(app, Screen(sys.stderr, no_color=settings.no_color))
        yield app


@command.command("install")
@click.argument("client", metavar="CLIENT")
@click.option(
    "--scope",
    type=click.Choice(["project", "user"]),
    default="project",
    show_default=True,
    help="The project's own file, or yours for every project.",
)
@click.option("--dry-run", is_flag=True, help="Show the change; write nothing.")
@click.option("-y", "--yes", is_flag=True, help="Write without asking.")
@root_option
def install(
    client: str,
    scope: str,
    dry_run: bool,
    yes: bool,
    root: str | None,
    allow_wide_root: bool | None,
) -> None:
    """Tell CLIENT how to start us: claude, codex, cursor, gemini, opencode, qwen, vscode or zed.

    The change to its configuration file is shown before it is made.
    """
    from evercontext.cli import mcp_install

    settings = settings_of(root, allow_wide_root=allow_wide_root)
    check_root(settings)
    chosen = mcp_install.CLIENTS.get(client)
    if chosen is None:
        known = ", ".join(mcp_install.CLIENTS)
        raise UsageError(f"there is no client {client!r}", fix=f"One of: {known}")
    place: mcp_install.Scope = "user" if scope == "user" else "project"
    start = mcp_install.Start(_program())
    edit = mcp_install.plan(chosen, place, settings.root, Path.home(), start)
    if edit is None:
        where = chosen.path(place, settings.root, Path.home())
        print(translate("{client} knows already: {place}", client=chosen.title, place=where))
        return
    screen = Screen(sys.stdout, no_color=settings.no_color)
    for line in painted_diff(screen, edit.diff):
        screen.line(line)
    if dry_run:
        return
    if not yes:
        confirm(f"Write this to {edit.path}?")
    mcp_install.apply(edit)
    text = translate("{client} reads this from {place}", client=chosen.title, place=edit.path)
    print(text, file=sys.stderr)
    step = translate_composed(chosen.next_step(place))
    print(translate("Next: {step}", step=step), file=sys.stderr)


def _program() -> str:
    # A name that every machine knows is better than a path that only this one has.
    ours = Path(sys.argv[0]).absolute()
    known = shutil.which(ours.name)
    return ours.name if known and Path(known).samefile(ours) else str(ours)
