"""Pictures that a message names: ``@shot.png``, or a path as a terminal pastes a dragged file."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from urllib.parse import unquote

from evercontext.domain.message import Image
from evercontext.errors import InvalidArguments
from evercontext.files.images import SUFFIXES, read_image

MOST_IMAGES = 8
_ENDING = "|".join(re.escape(suffix) for suffix in SUFFIXES)
_NAMED = re.compile(
    rf"(?:^|(?<=\s))(?:@([^\s@]+?(?:{_ENDING}))|'([/~][^'\n]+?(?:{_ENDING}))'"
    rf"|((?:file://)?[/~](?:\\.|[^\s\\])+?(?:{_ENDING})))(?=[\s.,;:!?)、。]|$)",
    re.IGNORECASE,
)


async def images_in(text: str, root: Path) -> tuple[Image, ...]:
    """Return the pictures that a message names and that are there."""
    paths: dict[Path, None] = {}
    for match in _NAMED.finditer(text):
        path = _path(match, root)
        if path.is_file():
            paths[path] = None
    if len(paths) > MOST_IMAGES:
        raise InvalidArguments(f"{len(paths)} pictures, at most {MOST_IMAGES} go with one message")
    return await read_images(paths)


async def read_images(paths: dict[Path, None] | list[Path]) -> tuple[Image, ...]:
    """Read pictures, off the event loop."""
    return tuple([await asyncio.to_thread(read_image, path) for path in paths])


def _path(match: re.Match[str], root: Path) -> Path:
    mentioned, quoted, dragged = match.groups()
    if mentioned:
        return root / mentioned
    name: str = quoted or re.sub(r"\\(.)", r"\1", dragged)
    if name.startswith("file://"):
        name = unquote(name.removeprefix("file://"))
    return Path(name).expanduser()
