"""Read pictures that a person gives the model: bounded, and known by their content."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from evercontext.domain.message import Image
from evercontext.errors import InvalidArguments, NotFound, TooLarge

SUFFIXES = (".png", ".jpg", ".jpeg", ".gif", ".webp")
MOST_BYTES = 5 * 1024 * 1024
"""What every provider takes."""


def read_image(path: Path) -> Image:
    """Return a picture; one that is too large, or no picture, is refused by name."""
    try:
        # A pipe or a device must not keep anybody waiting.
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise NotFound(f"{path.name} cannot be read: {error.strerror}") from None
    with os.fdopen(fd, "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise InvalidArguments(f"{path.name} is not a file")
        if status.st_size > MOST_BYTES:
            raise TooLarge(f"{path.name} is larger than {MOST_BYTES >> 20} MiB", fix="Shrink it")
        data = file.read(MOST_BYTES + 1)
    return image_of(path.name, data)


def image_of(name: str, data: bytes) -> Image:
    """Return these bytes as a picture; what is none is refused by name."""
    kind = media_type(data)
    if kind is None:
        raise InvalidArguments(f"{name} is no PNG, JPEG, GIF or WebP picture")
    return Image(name, kind, data)


def media_type(data: bytes) -> str | None:
    """Tell what kind of picture these bytes are, whatever the name says."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if data.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return None
