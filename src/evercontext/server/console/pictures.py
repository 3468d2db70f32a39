"""Serve pictures of a project's tree, as the answers of a model name them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from evercontext.errors import InvalidArguments, NotFound
from evercontext.files.images import SUFFIXES
from evercontext.server.console.live_runs import LiveRuns


async def read_picture(work: LiveRuns, own: str, query: Mapping[str, str]) -> tuple[bytes, bytes]:
    """Return the bytes and the media type of a picture in a registered project."""
    path = query.get("path", "")
    if not path.lower().endswith(SUFFIXES) or len(path) > 4_000:
        raise InvalidArguments(f"path must end in one of {', '.join(SUFFIXES)}")
    app = await work.app_of(query.get("project") or own)
    if app.workspace.local is None:
        raise NotFound("the files of this project are on another machine")
    image = await asyncio.to_thread(app.workspace.local.tree.read_image, path)
    return image.data, image.media_type.encode()
