"""Which files contain a text: a plain search through the tree, within limits."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from evercontext.errors import EverContextError
from evercontext.files import io
from evercontext.files.directory_listing import Check, go_on, walk_files
from evercontext.files.paths import Root
from evercontext.files.policy import FilePolicy

MAX_RESULTS = 1000
_MAX_FILES = 50_000


@dataclass(frozen=True, slots=True)
class Found:
    """Paths relative to the root; ``truncated`` says that not everything was looked at."""

    paths: tuple[str, ...]
    truncated: bool


def search(
    root: Root, directory: str, keyword: str, policy: FilePolicy, check: Check = go_on
) -> Found:
    """Return the files below ``directory`` that contain ``keyword``, literally."""
    wanted = io.encode(keyword)
    paths: list[str] = []
    for seen, path in enumerate(walk_files(root, directory, policy, check)):
        if len(paths) == MAX_RESULTS or seen == _MAX_FILES:
            return Found(tuple(paths), True)
        with suppress(OSError, EverContextError), root.file(path, policy) as safe:
            data = io.load(safe, policy)
            if wanted in data and b"\0" not in data:
                paths.append(path)
    return Found(tuple(paths), False)
