"""Slash commands that a user or a project wrote: Markdown files with a prompt in each.

A project's are used only while their exact content is trusted, as its hooks are.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from evercontext.errors import ConfigError
from evercontext.files.small_files import small_bytes
from evercontext.settings import is_trusted, trust

_PROJECT_FOLDERS = (".evercontext/commands", ".claude/commands")
_MOST_FILES, _LARGEST = 200, 64 * 1024
_HEAD = re.compile(r"\A---\n(.*?)\n---\n", re.DOTALL)
_ABOUT = re.compile(r"^description:\s*(.+)$", re.MULTILINE)
_NAME = re.compile(r"[\w:-]+")
_POSITION = re.compile(r"\$([1-9])")


@dataclass(frozen=True, slots=True)
class CustomCommand:
    """One file: its name is the command, its text the prompt."""

    name: str
    place: Path
    content: bytes
    trusted: bool

    @property
    def help(self) -> str:
        """What the file says it is for, or its first line."""
        text = self.content.decode("utf-8", "replace")
        head = _HEAD.match(text)
        if head and (about := _ABOUT.search(head[1])):
            return about[1].strip().strip("\"'")
        return next((line.strip("# ") for line in self.prompt("").split("\n") if line.strip()), "")

    def prompt(self, argument: str) -> str:
        """Return the text for the model; ``$ARGUMENTS`` and ``$1`` to ``$9`` are filled in."""
        text = _HEAD.sub("", self.content.decode("utf-8", "replace").replace("\r\n", "\n"))
        words = argument.split()
        filled = _POSITION.sub(lambda place: "".join(words[int(place[1]) - 1 :][:1]), text)
        filled = filled.replace("$ARGUMENTS", argument)
        if argument and filled == text:
            filled = f"{text.rstrip()}\n\n{argument}"
        return filled.strip()


def custom_commands(root: Path, home: Path, user_home: Path) -> dict[str, CustomCommand]:
    """Return the commands by name; of two with one name the user's own counts."""
    commands: dict[str, CustomCommand] = {}
    for folder in (home / "commands", user_home / ".claude" / "commands"):
        for name, place, content in _files(folder):
            commands.setdefault(name, CustomCommand(name, place, content, trusted=True))
    for below in _PROJECT_FOLDERS:
        for name, place, content in _files(root / below):
            trusted = is_trusted(home, content)
            commands.setdefault(name, CustomCommand(name, place, content, trusted))
    return commands


def trust_command(command: CustomCommand, home: Path) -> None:
    """Trust this exact content from now on."""
    if small_bytes(command.place.parent, command.place.name, _LARGEST) != command.content:
        raise ConfigError(f"{command.place} changed meanwhile", fix="Look at it again")
    trust(home, command.content, f"command {command.place}")


def _files(folder: Path) -> Iterator[tuple[str, Path, bytes]]:
    count = 0
    for place, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            relative = Path(place, name).relative_to(folder)
            command = ":".join(relative.with_suffix("").parts)
            if relative.suffix != ".md" or not _NAME.fullmatch(command):
                continue
            content = small_bytes(folder, str(relative), _LARGEST)
            if content is not None:
                yield command, folder / relative, content
            count += 1
            if count >= _MOST_FILES:
                return
