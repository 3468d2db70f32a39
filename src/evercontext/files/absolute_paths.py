"""Name files inside the root relatively, though somebody named them absolutely."""

from __future__ import annotations

import os
from typing import Any

_LONGEST_PATH = 4096


def relative_prefix(prefix: Any, root: str) -> Any:
    """Return what paths inside the root begin with, given absolutely or not."""
    relative = relative_value(prefix, root)
    if relative == prefix:
        return prefix
    inside = "" if relative == "." else relative
    return f"{inside}/" if inside and prefix.endswith("/") else inside


def relative_path(path: str, root: str) -> str:
    """Return a path inside the root as the tools name it; one outside as it is."""
    relative: str = relative_value(path, root)
    return relative


def relative_value(value: Any, root: str) -> Any:
    """Return a path, or a list of them, relative to the root where it is inside."""
    if isinstance(value, list):
        return [relative_value(item, root) for item in value]
    if not isinstance(value, str) or not value.startswith("/"):
        return value
    for place in (value, _real(value) if len(value) <= _LONGEST_PATH else value):
        if place.rstrip("/") == root.rstrip("/"):
            return "."
        if place.startswith(root.rstrip("/") + "/"):
            return place[len(root.rstrip("/")) :].strip("/") or "."
    return value


def _real(path: str) -> str:
    """Return a path whose folders are not links: the root may be known by another name."""
    folder, _, name = path.rpartition("/")
    try:
        return f"{os.path.realpath(folder)}/{name}"
    except (OSError, ValueError):
        return path
