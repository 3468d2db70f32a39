"""A mark on the disk for as long as a command runs and what it left is not looked through.

Whoever is killed in between leaves the mark, and the next start, by whatever way, does the work.
"""

from __future__ import annotations

import json
import math
import os
import secrets
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evercontext.files.atomic_write import replace_file
from evercontext.files.json_file import read_json_leniently
from evercontext.files.policy import FilePolicy
from evercontext.files.private_folders import make_private
from evercontext.process.process_identity import is_alive, owner_of
from evercontext.workspace.planted_files import Cleaner, Known, PutAway

FOLDER = "commands"
MARK, TOLD, BAD = ".json", ".told", ".unreadable"
_GRACE = 60
"""Seconds after which nothing of a command that was cut off can still be running."""


@dataclass(frozen=True, slots=True)
class Mark:
    """One command that runs, or was cut off."""

    file: Path
    root: Path
    known: Known
    since: int
    until: int
    owner: Mapping[str, Any]
    caches: bool = True

    @classmethod
    def set(cls, home: Path, root: Path, known: Known, seconds: float, *, caches: bool) -> Mark:
        """Write a mark durably: before this returns, no command may start."""
        folder = home / FOLDER
        make_private(folder)
        since = time.time_ns()
        until = since + int((seconds + _GRACE) * 1e9)
        file = folder / f"{secrets.token_hex(8)}{MARK}"
        mark = cls(file, root, known, since, until, owner_of(os.getpid()), caches)
        replace_file(mark.file, json.dumps(mark._record()).encode())
        return mark

    @classmethod
    def read(cls, file: Path) -> Mark:
        """Read a mark back; ValueError, KeyError or TypeError if it is damaged."""
        record = json.loads(file.read_text(encoding="utf-8"))
        return cls(
            file,
            Path(record["root"]),
            Known.of(record["known"]),
            int(record["since"]),
            int(record["until"]),
            record["owner"],
            bool(record.get("caches", True)),
        )

    def clean(
        self, home: Path, policy: FilePolicy, environment: Mapping[str, str], *, later: bool
    ) -> PutAway:
        """Put away what the command left, and take the mark off if that is done.

        ``later``: in another process, when the user may have made files of their own since.
        """
        until = self.until if later else math.inf
        cleaner = Cleaner(
            self.root, home, policy, self.known, environment, self.since, until, self.caches
        )
        done = cleaner.put_away()
        if not done.unclean:
            self.file.unlink(missing_ok=True)
        return done

    def tell_later(self, done: PutAway) -> None:
        """Leave word for the next start: who was cut off may have had no time to say it."""
        if done.places:
            with suppress(OSError):
                told = {"root": str(self.root), "text": done.text}
                replace_file(self.file.with_suffix(TOLD), json.dumps(told).encode())

    def _record(self) -> dict[str, object]:
        return {
            "root": str(self.root),
            "known": self.known.to_json(),
            "since": self.since,
            "until": self.until,
            "owner": self.owner,
            "caches": self.caches,
        }


def settle(home: Path, policy: FilePolicy, environment: Mapping[str, str]) -> tuple[str, ...]:
    """Do what commands that were cut off could not; return what a person should know of it."""
    folder = home / FOLDER
    if not folder.is_dir():
        return ()
    notices = []
    for file in sorted(folder.iterdir()):
        if file.suffix == MARK:
            notices += _settled(file, home, policy, environment)
        elif file.suffix == TOLD:
            with suppress(KeyError, TypeError):
                record = read_json_leniently(file) or {}
                notices.append(_notice(record["root"], record["text"]))
            file.unlink(missing_ok=True)
    return tuple(notices)


def _settled(
    file: Path, home: Path, policy: FilePolicy, environment: Mapping[str, str]
) -> list[str]:
    try:
        mark = Mark.read(file)
    except FileNotFoundError:
        return []  # its own process was quicker
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        bad = file.with_suffix(BAD)
        with suppress(OSError):
            file.rename(bad)
        return [
            f"a command was cut off, and {bad} does not say where: look through your projects"
            " for .vscode, .envrc and git hooks that you did not make"
        ]
    if is_alive(mark.owner, elsewhere=True):
        return []
    if not mark.root.is_dir():
        file.unlink(missing_ok=True)
        return []
    done = mark.clean(home, policy, environment, later=True)
    return [_notice(str(mark.root), done.text)] if done.text else []


def _notice(root: str, text: str) -> str:
    return f"a command in {root} was cut off; {text}".replace("\n", "; ")
