"""Write docs/reference/cli.md and docs/reference/settings.md from the program itself.

``--check`` writes nothing and fails if a page is out of date.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from evercontext.cli.main import command
from evercontext.domain.outcome import Outcome
from evercontext.settings import Settings, rows
from evercontext.settings.untrusted_settings import Project

PAGES = Path(__file__).parent.parent / "docs" / "reference"
NOTE = "<!-- Made by scripts/reference.py; do not edit. -->"
MEANINGS = {
    Outcome.DONE: "done",
    Outcome.FAILED: "failed",
    Outcome.REFUSED: "the policy refused something",
    Outcome.INVALID: "the model's JSON was invalid twice in a row",
    Outcome.RED: "finished, but its checks are red",
    Outcome.DENIED: "approval needed or denied, or untrusted configuration needed",
    Outcome.LIMIT: "a limit (turns, time, tokens, money) was hit",
    Outcome.USAGE: "wrong usage of the command line",
    Outcome.UNREACHABLE: "the provider could not be reached, nor after its retry",
    Outcome.CANCELLED: "cancelled (Ctrl-C)",
    Outcome.TERMINATED: "terminated (SIGTERM)",
}


def cli_page() -> str:
    """The help of every command, and the exit codes."""
    parts = [NOTE, "# Command line", _codes()]
    for context in _contexts(command, None, "evercontext"):
        level = "#" * (context.command_path.count(" ") + 2)
        parts.append(f"{level} `{context.command_path}`\n\n```text\n{_help(context)}\n```")
    return "\n\n".join(parts) + "\n"


def _codes() -> str:
    lines = [f"| {int(outcome)} | {MEANINGS[outcome]} |" for outcome in Outcome]
    return "\n".join(["## Exit codes", "", "| code | meaning |", "|---|---|", *lines])


def _help(context: click.Context) -> str:
    lines = context.get_help().split("\n")
    return "\n".join(line.rstrip() for line in lines).rstrip()


def _contexts(
    found: click.Command, parent: click.Context | None, name: str
) -> Iterator[click.Context]:
    context = click.Context(
        found,
        parent=parent,
        info_name=name,
        terminal_width=88,
        help_option_names=["-h", "--help"],
    )
    yield context
    if isinstance(found, click.Group):
        for child in found.list_commands(context):
            inner = found.get_command(context, child)
            assert inner is not None
            yield from _contexts(inner, context, child)


def settings_page() -> str:
    """Every setting in one table."""
    intro = (
        "A value comes from a flag, else the environment, else the project's `evercontext.toml`,\n"
        "else `config.json` in the home folder, else its default. `evercontext config show"
        " --origin`\nsays which.\n\n"
        "The last column: *tighten* – a project may make it stricter, and anything else once its\n"
        "exact content is trusted (`evercontext config trust`); *trusted* – only then; *yes* –\n"
        "always; *never* – a project may not set it; *secret* – environment only, never kept,\n"
        "shown or logged."
    )
    head = ["| name | variable | default | what it is | in a project |", "|---|---|---|---|---|"]
    default = Settings(origins={})
    lines = [_settings_line(row.name, row.metadata, default.shown(row.name)) for row in rows()]
    return "\n\n".join([NOTE, "# Settings", intro, "\n".join([*head, *lines])]) + "\n"


def _settings_line(name: str, about: Mapping[str, Any], default: str) -> str:
    words = {Project.FREE: "yes", Project.TRUSTED: "trusted", Project.NEVER: "never"}
    place = "secret" if about["secret"] else words.get(about["project"], "tighten")
    cells = [f"`{name}`", f"`{about['env']}`", default, about["help"], place]
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def main() -> int:
    """Write the pages, or check them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    pages = {PAGES / "cli.md": cli_page(), PAGES / "settings.md": settings_page()}
    stale = [path for path, text in pages.items() if not _is(path, text)]
    for path in stale:
        if check:
            print(f"{path.name} is out of date: run scripts/reference.py", file=sys.stderr)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(pages[path], encoding="utf-8")
            print(f"wrote {path.name}")
    return 1 if check and stale else 0


def _is(path: Path, text: str) -> bool:
    return path.exists() and path.read_text(encoding="utf-8") == text


if __name__ == "__main__":
    sys.exit(main())
