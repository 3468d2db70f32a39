"""The help texts of commands in the language of the terminal.

Commands are written in English; each paragraph is looked up in the catalogue when it is shown.
"""

from __future__ import annotations

import click

from evercontext.cli.messages import translate

_AS_IT_IS = "\b"
"""Click's mark for a paragraph whose lines stay as they are: examples and tables."""


def paragraphs(help: str) -> list[str]:
    """Return the paragraphs of a help text, each on one line; examples stay as they are."""
    return [
        part if part.startswith(_AS_IT_IS) else " ".join(part.split())
        for part in help.strip().split("\n\n")
    ]


def translate_help(command: click.Command, *, below: bool = True) -> None:
    """Put a command's texts, and those of its sub-commands, into the terminal's language."""
    if command.help:
        command.help = "\n\n".join(map(translate, paragraphs(command.help)))
        command.short_help = translate(paragraphs(command.help)[0])
    for parameter in command.params:
        if isinstance(parameter, click.Option) and parameter.help:
            parameter.help = translate(parameter.help)
    if below and isinstance(command, click.Group):
        for inner in command.commands.values():
            translate_help(inner)
