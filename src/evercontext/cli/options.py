"""Options that several commands share, and the place they work in."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

import click

from evercontext.cli.messages import translate_composed
from evercontext.cli.terminal import Screen, labelled
from evercontext.cli.theme import use_theme
from evercontext.errors import ApprovalDenied, ConfigError, NobodyToAsk
from evercontext.settings import Settings, load, load_despite_problems

if TYPE_CHECKING:
    from evercontext.app import EverContext

F = TypeVar("F", bound=Callable[..., Any])

_ROOT_WARNING = "warned-root-user"


class Number(click.FloatRange):
    """A number in a range. NaN compares with nothing, and would be in every range."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Read the number, or fail as every bad value does."""
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value} is not a number to count with.", param, ctx)
        return number


def root_option(function: F) -> F:
    """``--root DIR`` and its consent for very wide places."""
    wide = click.option(
        "--allow-wide-root",
        is_flag=True,
        default=None,
        help="Accept / or your home directory as root.",
    )
    root = click.option("--root", metavar="DIR", help="The project. Default: EC_APP_ROOT, or here.")
    return root(wide(function))


def checks_options(function: F) -> F:
    """What the harness runs after files were changed."""
    auto = click.option(
        "--auto-test/--no-auto-test", default=None, help="Run the tests that are found, or never."
    )
    lint = click.option("--lint-cmd", metavar="COMMAND", help="Lint with this after changes.")
    test = click.option("--test-cmd", metavar="COMMAND", help="Test with this after changes.")
    repair = click.option(
        "--repair/--no-repair", default=None, help="Repair red checks, or leave them red."
    )
    rounds = click.option(
        "--repair-rounds",
        type=click.IntRange(0),
        metavar="N",
        help="Times the model may try to repair them; 0: only what needs no model.",
    )
    every = click.option(
        "--repair-all",
        is_flag=True,
        default=None,
        help="Repair, and judge by, what was red before the task, too.",
    )
    return test(lint(auto(repair(every(rounds(function))))))


def all_option(function: F) -> F:
    """``--all``: not only of this project."""
    return click.option("--all", "everywhere", is_flag=True, help="Of every project.")(function)


def json_option(function: F) -> F:
    """``--json``: one object instead of text."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON.")(function)


def settings_of(root: str | None = None, **flags: Any) -> Settings:
    """Load the settings with these flags on top, and draw as they say."""
    settings = load({"root": root, **flags})
    use_theme("none" if settings.no_color else settings.theme)
    return settings


def readable_settings(root: str | None = None, **flags: Any) -> tuple[Settings, list[ConfigError]]:
    """Load the settings as far as they can be read, and return what cannot."""
    return load_despite_problems({"root": root, **flags})


def gateway_of(settings: Settings) -> str | None:
    """Where the files are if not here, without a login that its address may carry."""
    if not settings.mcp_url:
        return None
    parts = urlsplit(settings.mcp_url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def confirm(question: str) -> None:
    """Ask the person at the terminal; anything but yes raises."""
    if not sys.stdin.isatty():
        raise NobodyToAsk("there is no terminal to ask at", fix="Look at it, then say --yes")
    print(f"\n{translate_composed(question)} [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
        raise ApprovalDenied("not approved", fix="Nothing was changed")


def tell(app: EverContext, screen: Screen | None = None) -> None:
    """Say what the user should know of the settings, the database, and commands cut off."""
    screen = screen or Screen(sys.stderr, no_color=app.settings.no_color)
    for notice in app.notices:
        screen.line(screen.wrapped(labelled("warning", notice)), "yellow")


def warn(app: EverContext, screen: Screen) -> None:
    """Say once what the user should know before anything runs."""
    tell(app, screen)
    if os.geteuid() == 0 and _first_time(app.settings.home / _ROOT_WARNING):
        screen.line(labelled("warning", "running as root; an ordinary user is safer"), "yellow")


def _first_time(mark: Path) -> bool:
    try:
        mark.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        mark.touch(exist_ok=False)
    except OSError:
        return not mark.exists()
    return True
