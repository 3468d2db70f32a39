"""Match ignore files of git in linear time, whatever the patterns.

A pattern such as ``*a*a*a*a*b`` takes a backtracking engine minutes for one long name, and anybody
can put it into a repository.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from evercontext.files.small_files import first_bytes

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

NAMES = frozenset({".gitignore", ".evercontextignore"})
_LARGEST = 256 * 1024
"""Bytes of an ignore file that are read."""
_LONGEST_LINE = 1_000
_TOGETHER = 200
"""Patterns that the engine is given at once: it bounds its memory, and refuses too many."""


class IgnoreFile:
    """The rules of one ignore file."""

    def __init__(self, lines: Iterable[str]) -> None:
        from pathspec import GitIgnoreSpec
        from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

        rules = []
        for line in lines:
            # One that git would not understand either says nothing.
            with suppress(ValueError):
                if len(line) <= _LONGEST_LINE:
                    rules.append(GitIgnoreSpecPattern(line))
        self._parts: list[GitIgnoreSpec] = [
            GitIgnoreSpec(rules[start : start + _TOGETHER], backend="re2")
            for start in range(0, len(rules), _TOGETHER)
        ]

    @classmethod
    def read(cls, file: Path) -> IgnoreFile | None:
        """Return the rules of a file; ``None`` if there is none that may be read."""
        try:
            linked = file.is_symlink()
        except OSError:
            return None  # its directory may not be searched
        content = None if linked else first_bytes(file.parent, file.name, _LARGEST)
        return None if content is None else _parsed(content)

    def verdict(self, path: str) -> bool | None:
        """Return True for what is ignored, False for what is taken back, ``None`` for neither."""
        for part in reversed(self._parts):
            matched = part.check_file(path).include
            if matched is not None:
                return matched
        return None


@lru_cache(maxsize=32)
def _parsed(content: bytes) -> IgnoreFile:
    """Return the rules of a content: the same file is asked for every path that changes."""
    return IgnoreFile(content.decode("utf-8", "replace").splitlines())
