"""Check the project's root, and make the home folder, before anything is opened in them."""

from __future__ import annotations

from pathlib import Path

from evercontext.errors import ConfigError
from evercontext.settings.schema import Settings


def check_root(settings: Settings) -> None:
    """Refuse a root that is not there, cannot be read, or is far too wide."""
    root = settings.root
    if not root.is_dir():
        raise ConfigError(f"{root} is not a directory", fix="Name one with --root")
    try:
        next(root.iterdir(), None)
    except OSError as problem:
        raise ConfigError(
            f"{root} cannot be read: {problem.strerror}",
            fix="Check its permissions, or name another with --root",
        ) from None
    real, home = root.resolve(), Path.home().resolve()
    if (real == home or real in home.parents) and not settings.allow_wide_root:
        raise ConfigError(
            f"{root} as root would put everything you have within reach",
            fix="Go into a project directory, or say --allow-wide-root",
        )


def make_home(home: Path) -> None:
    """Make the home folder, private to the user."""
    try:
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as problem:
        raise ConfigError(
            f"the home folder {home} cannot be made: {problem.strerror}",
            fix="Set EC_HOME to a folder you can write",
        ) from None
