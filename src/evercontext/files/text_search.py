"""Search files for a text, within limits."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass

from evercontext.errors import EverContextError, PathRefused
from evercontext.files import file_io
from evercontext.files.contained_paths import Root, SafePath
from evercontext.files.directory_listing import Check, go_on, walk_files
from evercontext.files.path_names import parse
from evercontext.files.policy import FilePolicy

MAX_RESULTS = 1000
_MAX_FILES = 50_000
MOST_SECONDS = 30.0
"""Of one search, once it has begun; waiting for its turn does not count."""


@dataclass(frozen=True, slots=True)
class TextMatches:
    """Paths relative to the root; ``truncated`` says that not everything was looked at."""

    paths: tuple[str, ...]
    truncated: bool


def search(
    root: Root,
    directory: str,
    keyword: str,
    policy: FilePolicy,
    check: Check = go_on,
    *,
    seconds: float = MOST_SECONDS,
) -> TextMatches:
    """Return the files below ``directory`` that contain ``keyword``, literally.

    After ``seconds`` the answer is what was found until then.
    """
    pattern = file_io.encode(keyword)
    paths: list[str] = []
    deadline = time.monotonic() + seconds
    for seen, (path, place) in enumerate(walk_files(root, directory, policy, check)):
        if len(paths) == MAX_RESULTS or seen == _MAX_FILES or time.monotonic() > deadline:
            return TextMatches(tuple(paths), True)
        with suppress(OSError, EverContextError), _opened(root, path, place, policy) as safe:
            data = file_io.load(safe, policy)
            if pattern in data and b"\0" not in data:
                paths.append(path)
    return TextMatches(tuple(paths), False)


def _opened(root: Root, path: str, place: SafePath | None, policy: FilePolicy) -> SafePath:
    """Return a file in the directory that is open already, if it is no link."""
    if place is None:
        return root.file(path, policy)
    # A name that no call could spell is none that an answer may name.
    if parse(path) != place.parts:
        raise PathRefused("name refused")
    policy.check_file(place.parts)
    return place
