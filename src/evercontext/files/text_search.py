"""Search files for a text, within limits."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from evercontext.errors import EverContextError
from evercontext.files import file_io
from evercontext.files.contained_paths import Root
from evercontext.files.directory_listing import Check, go_on, walk_files
from evercontext.files.policy import FilePolicy

MAX_RESULTS = 1000
_MAX_FILES = 50_000


@dataclass(frozen=True, slots=True)
class TextMatches:
    """Paths relative to the root; ``truncated`` says that not everything was looked at."""

    paths: tuple[str, ...]
    truncated: bool


def search(
    root: Root, directory: str, keyword: str, policy: FilePolicy, check: Check = go_on
) -> TextMatches:
    """Return the files below ``directory`` that contain ``keyword``, literally."""
    pattern = file_io.encode(keyword)
    paths: list[str] = []
    for seen, path in enumerate(walk_files(root, directory, policy, check)):
        if len(paths) == MAX_RESULTS or seen == _MAX_FILES:
            return TextMatches(tuple(paths), True)
        with suppress(OSError, EverContextError), root.file(path, policy) as safe:
            data = file_io.load(safe, policy)
            if pattern in data and b"\0" not in data:
                paths.append(path)
    return TextMatches(tuple(paths), False)
