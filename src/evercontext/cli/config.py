"""``evercontext config``: every setting, where it comes from, and which project file is trusted."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click

from evercontext.cli.messages import translate
from evercontext.cli.options import confirm, json_option, root_option, settings_of
from evercontext.cli.terminal import Screen, clip, columns_of, labelled, one_line, pad, visible
from evercontext.cli.value_completion import completing, setting_names
from evercontext.errors import NotFound, UsageError
from evercontext.settings import (
    KEY_FILE,
    PROJECT_FILE,
    STORED,
    TRUST_FILE,
    USER_FILE,
    Settings,
    is_trusted,
    keep,
    masked,
    read_project_file,
    rows,
    trust,
)


@click.group("config")
def command() -> None:
    """See and change settings; trust a project's file.

    A value comes from a flag, else the environment, else the project's evercontext.toml, else
    your own config.json, else its default. Keys come from the environment, else from where
    `evercontext setup` stored them.
    """


@command.command("show")
@click.option("--origin", is_flag=True, help="Also say where each value came from.")
@json_option
@root_option
def show(origin: bool, as_json: bool, root: str | None, allow_wide_root: bool | None) -> None:
    """Print every setting and its value."""
    settings = settings_of(root, allow_wide_root=allow_wide_root)
    if as_json:
        print(json.dumps(_as_objects(settings), indent=2, ensure_ascii=False))
        return
    screen = Screen(sys.stdout, no_color=settings.no_color)
    for line in _table(settings, screen, origin=origin):
        screen.line(line)
    for notice in settings.notices:
        print(labelled("warning", notice), file=sys.stderr)


def _as_objects(settings: Settings) -> list[dict[str, Any]]:
    return [
        {
            "name": row.name,
            "value": _value(settings, row.name),
            "origin": settings.origins[row.name],
            "environment": row.metadata["env"],
            "help": row.metadata["help"],
        }
        for row in rows()
    ]


def _value(settings: Settings, name: str) -> str:
    """A key shows enough of itself to be told from another."""
    shown = settings.shown(name)
    is_key = name in STORED.values() and getattr(settings, name)
    return f"{shown} {masked(getattr(settings, name))}" if is_key else shown


def _table(settings: Settings, screen: Screen, *, origin: bool) -> list[str]:
    width = max(len(row.name) for row in rows())
    widest = 32 if origin else max(screen.width - width - 2, 32)
    lines = []
    for row in rows():
        value = clip(one_line(_value(settings, row.name)), widest)
        came = settings.origins[row.name]
        shown = screen.paint(value, *(() if came == "default" else ("green",)))
        line = f"{row.name.ljust(width)}  {shown}"
        if origin:
            line += " " * (widest - columns_of(value)) + "  " + screen.paint(came, "dim")
        lines.append(line.rstrip())
    return lines


@command.command("set")
@click.argument("name", shell_complete=completing(setting_names))
@click.argument("value")
def set_value(name: str, value: str) -> None:
    """Keep VALUE for NAME in your own config.json."""
    settings = settings_of()
    known = [row.name for row in rows()]
    setting = name.lower().replace("-", "_")
    if setting not in known:
        raise UsageError(f"there is no setting {name!r}", fix=_near(setting, known))
    keep(settings.home, setting, value)
    print(f"{setting} = {visible(value)}  ({settings.home / USER_FILE})")
    now = settings_of()
    if now.origins[setting] != USER_FILE:
        print(labelled("note", f"{now.origins[setting]} still decides it here"), file=sys.stderr)


def _near(name: str, known: list[str]) -> str:
    import difflib

    near = difflib.get_close_matches(name, known, n=3)
    return f"Did you mean {' or '.join(near)}?" if near else "See `evercontext config show`"


@command.command("trust")
@click.option("-y", "--yes", is_flag=True, help="Trust without asking.")
@root_option
def trust_project(yes: bool, root: str | None, allow_wide_root: bool | None) -> None:
    """Trust this project's evercontext.toml, exactly as it is now.

    A project may set commands, models and policy. Until its file is trusted those keys are
    ignored, and one changed byte voids the trust.
    """
    settings = settings_of(root, allow_wide_root=allow_wide_root)
    path = settings.root / PROJECT_FILE
    content = read_project_file(path)
    if content is None:
        raise NotFound(f"there is no {PROJECT_FILE} in {settings.root}", fix="Nothing to trust")
    trust_content(settings.home, path, content, yes=yes)


def trust_content(home: Path, path: Path, content: bytes, *, yes: bool) -> None:
    """Show a project file, ask unless ``yes``, and trust exactly this content."""
    if is_trusted(home, content):
        print(translate("{what} is trusted already", what=path))
        return
    print(visible(content.decode("utf-8", "backslashreplace")).rstrip())
    if not yes:
        confirm(f"Trust this content of {path}?")
    trust(home, content, str(path))
    print(translate("trusted {what}", what=path))


@command.command("path")
@json_option
@root_option
def path(as_json: bool, root: str | None, allow_wide_root: bool | None) -> None:
    """Print where files live."""
    settings = settings_of(root, allow_wide_root=allow_wide_root)
    places = {
        "home": settings.home,
        "user settings": settings.home / USER_FILE,
        "project settings": settings.root / PROJECT_FILE,
        "trusted files": settings.home / TRUST_FILE,
        "stored keys": settings.home / KEY_FILE,
        "database": settings.database,
        "traces": settings.traces,
    }
    if as_json:
        names = {name.replace(" ", "_"): str(place) for name, place in places.items()}
        print(json.dumps(names, indent=2, ensure_ascii=False))
        return
    for name, place in places.items():
        missing = "" if place.exists() else "  " + translate("(not there yet)")
        print(f"{pad(name, 18)}{place}{missing}")
