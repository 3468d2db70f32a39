"""``evercontext serve``: the doors for other programs, until Ctrl-C."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import replace

import click

from evercontext.cli.options import root_option, settings_of, warn
from evercontext.cli.terminal import Screen
from evercontext.domain.outcome import Outcome
from evercontext.settings import Settings


@click.command("serve")
@root_option
@click.option("--host", metavar="ADDRESS", help="Where to listen. Default: EC_HOST, or 127.0.0.1.")
@click.option(
    "--port", type=click.IntRange(0, 65_535), metavar="N", help="Default: EC_PORT, or 8765."
)
def command(
    root: str | None, allow_wide_root: bool | None, host: str | None, port: int | None
) -> int:
    """Serve the project's tools over REST and MCP, until Ctrl-C.

    \b
    REST      POST /list_files, /read_file, /write_file; described at /docs
    MCP       Streamable HTTP at /mcp

    On 127.0.0.1 no token is needed unless EC_TOKEN is set; any other address needs one.
    """
    settings = settings_of(root, allow_wide_root=allow_wide_root, host=host, port=port)
    return int(asyncio.run(_serve(settings)))


async def _serve(settings: Settings) -> Outcome:
    from evercontext.app import EverContext
    from evercontext.server.serve import Listener, open_gateway, serve

    screen = Screen(sys.stderr, no_color=settings.no_color)
    # A gateway serves its own tree: sent on to EC_MCP_URL, its calls could come back to it.
    settings = replace(settings, mcp_url=None)

    def ready(listener: Listener) -> None:
        screen.line(f"serving  {settings.root}")
        screen.line(f"REST     {listener.url}  (described at {listener.url}/docs)")
        screen.line(f"MCP      {listener.url}/mcp")
        screen.line(f"token    {'needed' if settings.token else 'not needed on this machine'}")
        screen.line("Ctrl-C ends")

    async with (
        EverContext.open(settings) as app,
        open_gateway(settings, app.toolbox, app.events) as listener,
    ):
        warn(app, screen)
        return await serve([listener], on_ready=lambda: ready(listener))
