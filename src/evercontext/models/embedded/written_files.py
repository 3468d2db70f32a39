"""Record which files the embedded model wrote: it replaces those and no others."""

from __future__ import annotations

import contextlib
import hashlib
from pathlib import Path

from evercontext.errors import ConfigError
from evercontext.files.json_file import read_json, replace_json

FILE = "small-model-files.json"
_MOST = 1000


class WrittenFiles:
    """Keep a list in the home folder, by path and content: a file changed since is not in it."""

    def __init__(self, home: Path) -> None:
        """Nothing is read before the first question."""
        self._path = home / FILE

    def note(self, path: str, content: str) -> None:
        """Remember that the model wrote this. Where that fails, the file is not replaced later."""
        with contextlib.suppress(ConfigError):
            known = read_json(self._path)
            known.pop(_digest(path, content), None)
            latest = dict(list(known.items())[-(_MOST - 1) :])
            replace_json(self._path, latest | {_digest(path, content): path})

    def holds(self, path: str, content: str) -> bool:
        """True if the model wrote exactly this to a file of that path."""
        with contextlib.suppress(ConfigError):
            return _digest(path, content) in read_json(self._path)
        return False


def _digest(path: str, content: str) -> str:
    # Without white space at the end: files and tool results differ in their last line break.
    return hashlib.sha256(
        f"{path}\0{content.rstrip()}".encode("utf-8", "surrogatepass")
    ).hexdigest()
