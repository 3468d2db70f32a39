"""``evercontext hooks``: which commands run at which event, and whether a project's may."""

from __future__ import annotations

import json
import sys
from typing import Any

import click

from evercontext.cli.config import trust_content
from evercontext.cli.messages import translate, translate_composed
from evercontext.cli.options import json_option, root_option, settings_of
from evercontext.cli.terminal import Screen, one_line
from evercontext.errors import ConfigError, NotFound
from evercontext.settings import (
    PROJECT_FILE,
    USER_FILE,
    Hook,
    Settings,
    is_trusted,
    project_hooks,
    read_project_file,
    untrust,
)
from evercontext.settings.hook_config import EVENTS


@click.group("hooks")
def command() -> None:
    """See what runs around the agent's work; trust a project's.

    Yours are the key "hooks" of your config.json; a project's are [hooks] of its evercontext.toml
    and run only while you trust that exact content.
    """


@command.command("list")
@json_option
@root_option
def show(as_json: bool, root: str | None, allow_wide_root: bool | None) -> None:
    """Print every hook, and whether it runs."""
    settings = settings_of(root, allow_wide_root=allow_wide_root)
    hooks = _all(settings)
    if as_json:
        print(json.dumps([_data(hook, state) for hook, state in hooks], ensure_ascii=False))
        return
    screen = Screen(sys.stdout, no_color=settings.no_color)
    for hook, state in hooks:
        for line in hook_lines(hook, state, screen):
            screen.line(line)
    if not hooks:
        text = translate("no hooks; write some into {file}", file=settings.home / USER_FILE)
        print(text, file=sys.stderr)
    if any(state == "untrusted" for _, state in hooks):
        print(translate("read them, then: evercontext hooks trust"), file=sys.stderr)


def hook_lines(hook: Hook, state: str, screen: Screen) -> list[str]:
    """One hook as a person reads it."""
    about = f" ({hook.matcher})" if hook.matcher else ""
    colour = "green" if state == "runs" else "yellow"
    head = f"{screen.paint(hook.event, 'bold')}{one_line(about)}"
    return [
        f"{head}  "
        + translate(
            "{state}, {origin}, at most {seconds} s",
            state=screen.paint(translate_composed(state), colour),
            origin=translate_composed(hook.origin),
            seconds=f"{hook.timeout:g}",
        ),
        f"  {one_line(hook.command)}",
    ]


def states(settings: Settings) -> list[tuple[Hook, str]]:
    """The hooks that are in force, each with its state."""
    return [
        (hook, "runs" if hook.event in EVENTS else "no such event here") for hook in settings.hooks
    ]


def _all(settings: Settings) -> list[tuple[Hook, str]]:
    hooks = states(settings)
    content = read_project_file(settings.root / PROJECT_FILE)
    if content is not None and not is_trusted(settings.home, content):
        hooks += [(hook, "untrusted") for hook in project_hooks(content, settings.root)]
    return hooks


def _data(hook: Hook, state: str) -> dict[str, Any]:
    return {
        "event": hook.event,
        "matcher": hook.matcher,
        "command": hook.command,
        "timeout": hook.timeout,
        "origin": hook.origin,
        "state": state,
    }


@command.command("trust")
@click.option("-y", "--yes", is_flag=True, help="Trust without asking.")
@root_option
def trust_hooks(yes: bool, root: str | None, allow_wide_root: bool | None) -> None:
    """Trust this project's evercontext.toml, exactly as it is now.

    That is the whole file, as `config trust` does it; one changed byte voids it.
    """
    settings = settings_of(root, allow_wide_root=allow_wide_root)
    content = _project_file(settings)
    path = settings.root / PROJECT_FILE
    if not project_hooks(content, settings.root):
        raise NotFound(f"{path} has no hooks", fix="Nothing to trust")
    trust_content(settings.home, path, content, yes=yes)


@command.command("untrust")
@root_option
def untrust_hooks(root: str | None, allow_wide_root: bool | None) -> None:
    """Trust this project's evercontext.toml no longer."""
    settings = settings_of(root, allow_wide_root=allow_wide_root)
    path = settings.root / PROJECT_FILE
    if not untrust(settings.home, _project_file(settings)):
        raise ConfigError(f"{path} was not trusted", fix="Nothing to take back")
    print(translate("no longer trusted: {what}", what=path))


def _project_file(settings: Settings) -> bytes:
    content = read_project_file(settings.root / PROJECT_FILE)
    if content is None:
        raise NotFound(f"there is no {PROJECT_FILE} in {settings.root}", fix="Nothing to trust")
    return content
