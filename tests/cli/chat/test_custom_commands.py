"""Commands that users and projects wrote as Markdown files (A7)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from evercontext.cli.chat.custom_commands import custom_commands, trust_command
from evercontext.errors import ConfigError


@pytest.fixture
def place(tmp_path: Path) -> Path:
    for name in ("project/.evercontext/commands", "project/.claude/commands/git", "home", "user"):
        (tmp_path / name).mkdir(parents=True)
    return tmp_path


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def names(place: Path) -> dict[str, bool]:
    commands = custom_commands(place / "project", place / "home", place / "user")
    return {name: command.trusted for name, command in commands.items()}


def test_a_project_command_is_used_only_while_its_content_is_trusted(place: Path) -> None:
    """A7: trusted like hooks, by exact content."""
    file = write(place / "project/.evercontext/commands/fix.md", "Fix $ARGUMENTS now.")
    write(place / "project/.claude/commands/git/log.md", "Explain the log.")
    write(place / "home/commands/mine.md", "Mine.")
    assert names(place) == {"mine": True, "fix": False, "git:log": False}
    command = custom_commands(place / "project", place / "home", place / "user")["fix"]
    trust_command(command, place / "home")
    assert names(place)["fix"]
    file.write_text("Fix $ARGUMENTS now, and more.")
    assert not names(place)["fix"]
    with pytest.raises(ConfigError, match="changed meanwhile"):
        trust_command(command, place / "home")


def test_a_user_command_wins_over_a_project_command(place: Path) -> None:
    """A7: a project cannot take a name over."""
    write(place / "project/.claude/commands/fix.md", "Theirs.")
    write(place / "user/.claude/commands/fix.md", "Mine.")
    command = custom_commands(place / "project", place / "home", place / "user")["fix"]
    assert command.prompt("") == "Mine."


def test_arguments_and_the_head_of_a_file(place: Path) -> None:
    """A7."""
    text = '---\ndescription: "Compare two files"\n---\nCompare $1 with $2. $3\n'
    write(place / "home/commands/compare.md", text)
    write(place / "home/commands/plain.md", "# Do it\n")
    commands = custom_commands(place / "project", place / "home", place / "user")
    assert commands["compare"].help == "Compare two files"
    assert commands["compare"].prompt("a.py b.py") == "Compare a.py with b.py."
    assert commands["plain"].help == "Do it"
    assert commands["plain"].prompt("now") == "# Do it\n\nnow"


def test_pipes_links_out_and_huge_files_are_passed_over(place: Path) -> None:
    """A7: files of a project that somebody else wrote are bounded and never waited for."""
    folder = place / "project/.evercontext/commands"
    os.mkfifo(folder / "pipe.md")
    (folder / "huge.md").write_bytes(b"x" * 70_000)
    write(place / "secret.md", "secret")
    (folder / "out.md").symlink_to(place / "secret.md")
    assert names(place) == {}
