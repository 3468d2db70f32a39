"""``evercontext console``: a link into the web console, good once."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from evercontext.cli.interrupt import run_until_stopped
from evercontext.cli.messages import translate
from evercontext.cli.options import root_option, settings_of, tell
from evercontext.cli.terminal import Screen, pad
from evercontext.domain.outcome import Outcome
from evercontext.errors import ConfigError
from evercontext.settings import Settings, process_environment

if TYPE_CHECKING:
    from evercontext.app import EverContext

_DISPLAYS = ("DISPLAY", "WAYLAND_DISPLAY")


@click.command("console")
@click.option("--print", "only_print", is_flag=True, help="Print the link; open no browser.")
@root_option
def command(only_print: bool, root: str | None, allow_wide_root: bool | None) -> int:
    """Open the web console of the server that runs (`evercontext serve`).

    The link lets one browser in, once, within ten minutes. Whoever has it sees and may do what
    you may: do not pass it on.
    """
    settings = settings_of(root, allow_wide_root=allow_wide_root)
    return int(run_until_stopped(_open(settings, only_print)))


async def _open(settings: Settings, only_print: bool) -> Outcome:
    from evercontext.app import EverContext

    async with EverContext.open(settings) as app:
        tell(app)
        link = await new_link(app)
    if only_print:
        print(link)
    else:
        show_link(link, Screen(sys.stdout, no_color=settings.no_color))
    return Outcome.DONE


async def new_link(app: EverContext) -> str:
    """Make a link into the console that runs for this home."""
    from evercontext.access.console_links import Consoles

    consoles = Consoles(app.store)
    url = await consoles.url(app.memory.path, app.settings.user)
    if url is None:
        fix = "Start one with: evercontext serve --open"
        raise ConfigError(f"no console runs for {app.memory.path}", fix=fix)
    return f"{url}?ticket={await consoles.new_ticket(url)}"


def show_link(link: str, screen: Screen) -> None:
    """Print a link, and open it where there is a screen to open it on."""
    screen.line(f"{pad(translate('open'), 11)}{link}", "bold")
    environment = process_environment()
    if sys.platform == "darwin" or any(environment.get(name) for name in _DISPLAYS):
        import webbrowser

        webbrowser.open(link)
