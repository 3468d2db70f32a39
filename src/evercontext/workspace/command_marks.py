"""Mark a running command on disk until what it left has been inspected.

Whoever is killed in between leaves the mark, and the next start, by whatever way, does the work.
"""

from __future__ import annotations

import json
import math
import os
import secrets
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from evercontext.files.atomic_write import replace_file
from evercontext.files.json_file import read_json_leniently
from evercontext.files.policy import FilePolicy
from evercontext.files.private_folders import make_private
from evercontext.process.process_identity import is_alive, owner_of
from evercontext.workspace.planted_files import Cleaner, Known, PutAway, Stamp, stamp_of

FOLDER = "commands"
MARK, REPORTED, BAD = ".json", ".told", ".unreadable"
_GRACE = 60
"""Seconds after which nothing of a command that was cut off can still be running."""


@dataclass(frozen=True, slots=True)
class CommandMark:
    """One command that runs, or was cut off."""

    file: Path
    root: Path
    known: Known
    since: int
    until: int
    owner: Mapping[str, Any]
    caches: bool = True
    written: dict[str, Stamp] = field(default_factory=dict, compare=False)
    """Files that our own tools made while the command ran: a person approved them."""

    @classmethod
    def set(
        cls, home: Path, root: Path, known: Known, seconds: float, *, caches: bool
    ) -> CommandMark:
        """Write a mark durably: before this returns, no command may start."""
        folder = home / FOLDER
        make_private(folder)
        since = time.time_ns()
        until = since + int((seconds + _GRACE) * 1e9)
        file = folder / f"{secrets.token_hex(8)}{MARK}"
        mark = cls(file, root, known, since, until, owner_of(os.getpid()), caches)
        replace_file(mark.file, json.dumps(mark._record()).encode())
        _RUNNING[file] = mark
        return mark

    @classmethod
    def read(cls, file: Path) -> CommandMark:
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
        _RUNNING.pop(self.file, None)
        cleaner = Cleaner(
            self.root,
            home,
            policy,
            self.known,
            environment,
            self.since,
            until,
            self.caches,
            self.written,
        )
        done = cleaner.put_away()
        if not done.unclean:
            self.file.unlink(missing_ok=True)
        return done

    def tell_later(self, done: PutAway) -> None:
        """Leave word for the next start: who was cut off may have had no time to say it."""
        if done.places:
            with suppress(OSError):
                report = {"root": str(self.root), "text": done.text}
                replace_file(self.file.with_suffix(REPORTED), json.dumps(report).encode())

    def _record(self) -> dict[str, object]:
        return {
            "root": str(self.root),
            "known": self.known.to_json(),
            "since": self.since,
            "until": self.until,
            "owner": self.owner,
            "caches": self.caches,
        }


_RUNNING: dict[Path, CommandMark] = {}
"""The marks of the commands that this process runs."""


@contextmanager
def writing(root: Path, path: str) -> Iterator[None]:
    """Let a file that one of our own tools makes inside not be taken for a running command's.

    What a command may have put there before stays suspect, whatever is added to it.
    """
    marks = list(_RUNNING.values())
    root = root.resolve() if marks else root
    place = root / path
    before, name = stamp_of(place) if marks else None, str(PurePosixPath(path))
    clean = [
        mark
        for mark in marks
        if mark.root == root and (before is None or mark.written.get(name) == before)
    ]
    yield
    for mark in clean:
        if stamp := stamp_of(place):
            mark.written[name] = stamp


def settle(home: Path, policy: FilePolicy, environment: Mapping[str, str]) -> tuple[str, ...]:
    """Do what commands that were cut off could not; return what a person should know of it."""
    folder = home / FOLDER
    if not folder.is_dir():
        return ()
    notices = []
    for file in sorted(folder.iterdir()):
        if file.suffix == MARK:
            notices += _settled(file, home, policy, environment)
        elif file.suffix == REPORTED:
            with suppress(KeyError, TypeError):
                record = read_json_leniently(file) or {}
                notices.append(_notice(record["root"], record["text"]))
            file.unlink(missing_ok=True)
    return tuple(notices)


def _settled(
    file: Path, home: Path, policy: FilePolicy, environment: Mapping[str, str]
) -> list[str]:
    try:
        mark = CommandMark.read(file)
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
