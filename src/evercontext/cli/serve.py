"""``evercontext serve``: the servers for other programs, until Ctrl-C."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import click

from evercontext.cli.console import new_link, show_link
from evercontext.cli.messages import translate
from evercontext.cli.options import root_option, settings_of, warn
from evercontext.cli.terminal import Screen, pad
from evercontext.domain.outcome import Outcome
from evercontext.errors import UsageError
from evercontext.process.shutdown import run
from evercontext.settings import Settings

if TYPE_CHECKING:
    from evercontext.app import EverContext
    from evercontext.server.listener import Listener

SERVERS = ("gateway", "router", "evaluator")


@click.command("serve")
@root_option
@click.option("--host", metavar="ADDRESS", help="Where to listen. Default: EC_HOST, or 127.0.0.1.")
@click.option(
    "--port", type=click.IntRange(0, 65_535), metavar="N", help="Default: EC_PORT, or 8765."
)
@click.option(
    "--only",
    type=click.Choice(SERVERS),
    multiple=True,
    help="Start this server alone; may be repeated.",
)
@click.option("--open", "browse", is_flag=True, help="Open the web console in a browser.")
def command(
    root: str | None,
    allow_wide_root: bool | None,
    host: str | None,
    port: int | None,
    only: tuple[str, ...],
    browse: bool,
) -> int:
    """Serve the project's tools over REST and MCP, until Ctrl-C.

    \b
    gateway    REST: POST /list_files, /read_file, /write_file; described at /docs
               MCP: Streamable HTTP at /mcp
               web console at /console/, let in by the link of --open or `evercontext console`
    router     MCP: Streamable HTTP at http://127.0.0.1:3282/mcp (EC_ROUTER_PORT), the tools of
               every server behind two; needs a token: evercontext tokens create
    evaluator  MCP over WebSocket at ws://localhost:23100/mcp (MCP_HOST, MCP_PORT)

    On 127.0.0.1 no token is needed unless EC_TOKEN is set; any other address needs one.
    """
    settings = settings_of(root, allow_wide_root=allow_wide_root, host=host, port=port)
    if browse:
        _check_console(settings, only)
    return int(run(_serve(settings, only or SERVERS, browse)))


def _check_console(settings: Settings, only: Sequence[str]) -> None:
    from evercontext.server.token_check import is_loopback

    if only and "gateway" not in only:
        raise UsageError("the console is part of the gateway", fix="Add --only gateway")
    if not is_loopback(settings.host):
        fix = "Listen on 127.0.0.1, or leave --open out"
        raise UsageError("the console is for this machine alone", fix=fix)


async def _serve(settings: Settings, names: Sequence[str], browse: bool) -> Outcome:
    from evercontext.app import EverContext
    from evercontext.server.listener import serve

    screen = Screen(sys.stderr, no_color=settings.no_color)
    # A gateway serves its own tree: sent on to EC_MCP_URL, its calls could come back to it.
    settings = replace(settings, mcp_url=None)
    async with AsyncExitStack() as stack:
        app = await stack.enter_async_context(EverContext.open(settings, serving=True))
        needs_login, names = _check_logins(app, names)
        opened = [await _OPEN[name](stack, app) for name in names]
        listeners = [entrance.listener for entrance in opened if entrance.listener]
        warn(app, screen)
        link = await new_link(app) if browse else None

        def ready() -> None:
            screen.line(_row("serving", str(settings.root)))
            for line in (line for entrance in opened for line in entrance.lines):
                screen.line(line)
            if set(names) != {"router"}:
                screen.line(_who_may(settings, needs_login))
            if link:
                show_link(link, screen)
            screen.line(translate("Ctrl-C ends"))

        return await serve(listeners, on_ready=ready)


def _check_logins(app: EverContext, names: Sequence[str]) -> tuple[bool, Sequence[str]]:
    """Return whether users log in, and the servers that can be started then."""
    from evercontext.access.users import KnowsUsers

    if not isinstance(app.store, KnowsUsers):
        return False, names
    if not app.store.needs_login:
        return False, names
    if app.settings.user is None:
        # What it judges would be nobody's.
        names = [name for name in names if name != "evaluator"]
    if not names:
        fix = "Set EC_LOGIN, or start the gateway"
        raise UsageError("the evaluator needs to know whose scores it stores", fix=fix)
    return True, names


def _who_may(settings: Settings, needs_login: bool) -> str:
    if needs_login:
        return _row("login", translate("needed: the token of a user (evercontext users)"))
    return _row("token", translate("needed" if settings.token else "not needed on this machine"))


@dataclass(frozen=True, slots=True)
class _Entrance:
    """An open entrance: the lines shown to the user, and what uvicorn has to serve."""

    lines: tuple[str, ...]
    listener: Listener | None = None


def _row(label: str, text: str) -> str:
    return pad(translate(label), 11) + text


async def _gateway(stack: AsyncExitStack, app: EverContext) -> _Entrance:
    from evercontext.server.listener import open_gateway

    opening = open_gateway(app.settings, app.toolbox, app.events, app)
    listener = await stack.enter_async_context(opening)
    url = listener.url
    described = translate("(described at {place})", place=f"{url}/docs")
    lines = [_row("REST", f"{url}  {described}"), _row("MCP", f"{url}/mcp")]
    if listener.has_console:
        link = translate("(a link that lets you in: evercontext console)")
        lines.append(_row("console", f"{url}/console/  {link}"))
    return _Entrance(tuple(lines), listener)


async def _router(stack: AsyncExitStack, app: EverContext) -> _Entrance:
    from evercontext.server.router.http import open_router

    listener = await stack.enter_async_context(open_router(app))
    open_house = app.settings.router_open
    needs = "no token needed" if open_house else "needs a token: evercontext tokens create"
    return _Entrance((_row("router", f"{listener.url}/mcp  ({translate(needs)})"),), listener)


async def _evaluator(stack: AsyncExitStack, app: EverContext) -> _Entrance:
    from evercontext.server.evaluation_server import open_evaluator

    opening = open_evaluator(app.settings, app.toolbox, app.events)
    server = await stack.enter_async_context(opening)
    port = next(iter(server.sockets)).getsockname()[1]
    return _Entrance((_row("evaluator", f"ws://{app.settings.evaluator_host}:{port}/mcp"),))


_OPEN = {"gateway": _gateway, "router": _router, "evaluator": _evaluator}
