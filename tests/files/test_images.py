"""Pictures for the model: known by their content, bounded, never waited for."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from evercontext.errors import InvalidArguments, NotFound, TooLarge
from evercontext.files.images import MOST_BYTES, media_type, read_image

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 20


def test_the_content_says_what_it_is(tmp_path: Path) -> None:
    (tmp_path / "shot.jpg").write_bytes(PNG)
    image = read_image(tmp_path / "shot.jpg")
    assert (image.name, image.media_type) == ("shot.jpg", "image/png")
    assert image.base64.startswith("iVBORw0KGgo")
    assert media_type(b"\xff\xd8\xff\xe0") == "image/jpeg"
    assert media_type(b"GIF89a...") == "image/gif"
    assert media_type(b"RIFF....WEBPVP8 ") == "image/webp"


def test_what_is_no_picture_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_text("#!/bin/sh\n")
    (tmp_path / "large.png").write_bytes(PNG + b"\0" * MOST_BYTES)
    os.mkfifo(tmp_path / "pipe.png")
    with pytest.raises(InvalidArguments):
        read_image(tmp_path / "a.png")
    with pytest.raises(TooLarge):
        read_image(tmp_path / "large.png")
    with pytest.raises(InvalidArguments):
        read_image(tmp_path / "pipe.png")
    with pytest.raises(NotFound):
        read_image(tmp_path / "none.png")
