"""What a project is called, wherever it lies and whichever way in was taken.

The address of its git remote and its place inside the repository; without a remote, its path. Two
clones, two machines and two work trees of one repository are one project.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

from evercontext.files.git_directories import enclosing, remotes

LONGEST = 500
_USUAL = "origin"
_SHORT = re.compile(r"(?:[^@/\s]+@)?([^:/\s\[\]]+):(?!//)(.+)")
"""The short form of an address: ``git@host:owner/name``."""


def identity_of(root: Path) -> str:
    """Return the one name of the project at ``root``; nothing of the repository is run for it."""
    real = Path(os.path.realpath(root))
    for top in enclosing(real):
        known = remotes(top)
        name = _USUAL if _USUAL in known else min(known, default="")
        place = address_of(known[name], top) if name else ""
        if place:
            inside = real.relative_to(os.path.realpath(top)).as_posix()
            whole = f"git:{place}" + ("" if inside == "." else f"//{inside}")
            return whole if len(whole) <= LONGEST and whole.isprintable() else str(real)
        # The nearest repository is the project's, with a remote or without.
        return str(real)
    return str(real)


def address_of(url: str, top: Path) -> str:
    """Return host and path of a remote: the same for every protocol, port, user and password."""
    url = url.strip()
    if not url.isprintable():
        return ""
    if "://" in url:
        try:
            parts = urlsplit(url)
            host, path = (parts.hostname or "").lower(), unquote(parts.path)
        except ValueError:
            return ""
        if parts.scheme == "file" or not host:
            return f"file{_bare(os.path.realpath(path))}" if path else ""
        return _joined(host, path)
    if short := _SHORT.fullmatch(url):
        return _joined(short[1].lower(), short[2])
    return f"file{_bare(os.path.realpath(top / url))}" if url else ""


def _joined(host: str, path: str) -> str:
    path = _bare(path).strip("/")
    return f"{host}/{path}" if path else ""


def _bare(path: str) -> str:
    path = re.sub(r"/{2,}", "/", path).rstrip("/")
    return path.removesuffix(".git").rstrip("/")
