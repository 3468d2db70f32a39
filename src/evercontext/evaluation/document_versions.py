"""Store every version that ``improve`` wrote, byte for byte, in the home folder."""

from __future__ import annotations

import os
import re
from pathlib import Path

from evercontext.errors import ConfigError
from evercontext.files.atomic_write import replace_file

_TRACE = re.compile(r"[0-9A-Za-z-]{1,64}")
_LONGEST_NAME = 120


class Versions:
    """One private folder for each run, one file for each round; round 0 is the original."""

    def __init__(self, home: Path) -> None:
        self._home = home / "versions"

    def folder(self, trace_id: str) -> Path:
        """Where the versions of a run are."""
        if not _TRACE.fullmatch(trace_id):
            raise ConfigError("a run's name has letters, digits and hyphens only")
        return self._home / trace_id

    def keep(self, trace_id: str, number: int, name: str, data: bytes) -> Path:
        """Write one version, whole or not at all, readable by its user alone."""
        folder = self.folder(trace_id)
        path = folder / f"{number:02d}-{_short(name)}"
        try:
            self._home.mkdir(parents=True, exist_ok=True, mode=0o700)
            folder.mkdir(exist_ok=True, mode=0o700)
            replace_file(path, data)
        except OSError as problem:
            raise ConfigError(
                f"{path} cannot be written: {problem.strerror}",
                fix="Nothing was changed; make room, or set EC_HOME to a folder you can write",
            ) from None
        return path

    def read(self, trace_id: str, number: int) -> bytes | None:
        """The bytes of one version, or nothing if it is not there any more."""
        try:
            matches = sorted(self.folder(trace_id).glob(f"{number:02d}-*"))
            return matches[0].read_bytes() if matches else None
        except OSError:
            return None


def _short(name: str) -> str:
    """A name that fits with its number; its kind stays."""
    if len(os.fsencode(name)) <= _LONGEST_NAME:
        return name
    stem, dot, kind = name.rpartition(".")
    kind = kind if stem and len(kind) <= 10 else ""
    cut = os.fsencode(name)[: _LONGEST_NAME - 12].decode("utf-8", "ignore")
    return cut + (dot + kind if kind else "")
