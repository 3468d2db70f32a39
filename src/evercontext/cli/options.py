"""Options that several commands share, and the place they work in."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from evercontext.cli.terminal import Screen, one_line
from evercontext.errors import IoFailed, NotFound, PolicyError
from evercontext.settings import Settings, load

F = TypeVar("F", bound=Callable[..., Any])

_ROOT_WARNING = "warned-root-user"


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


def json_option(function: F) -> F:
    """``--json``: one object instead of text."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON.")(function)


def settings_of(root: str | None = None, **flags: Any) -> Settings:
    """Load the settings with these flags on top."""
    return load({"root": root, **flags})


def check_root(settings: Settings) -> Path:
    """Return the root, or refuse one that is missing, unreadable or far too wide."""
    root = settings.root
    if not root.is_dir():
        what = "is not a directory" if root.exists() else "does not exist"
        raise NotFound(f"the root {root} {what}", fix="Name an existing directory with --root")
    if not os.access(root, os.R_OK | os.X_OK):
        raise IoFailed(f"the root {root} cannot be read", fix="Check its permissions")
    real, home = root.resolve(), Path.home().resolve()
    if not settings.allow_wide_root and (real == home or real in home.parents):
        raise PolicyError(
            f"the root {root} holds your whole home directory or more",
            fix="Work in a project directory, or say --allow-wide-root",
        )
    return root


def warn(settings: Settings, screen: Screen) -> None:
    """Say once what the user should know before anything runs."""
    for notice in settings.notices:
        screen.line(f"warning: {one_line(notice)}", "yellow")
    if os.geteuid() == 0 and _first_time(settings.home / _ROOT_WARNING):
        screen.line("warning: running as root; an ordinary user is safer", "yellow")


def _first_time(mark: Path) -> bool:
    try:
        mark.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        mark.touch(exist_ok=False)
    except OSError:
        return not mark.exists()
    return True
