"""Identify a project by one name, wherever it lies and however it was opened.

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
_LOOPBACK = re.compile(r"127(?:\.\d+){3}|::1")


def identity_of(root: Path) -> str:
    """Return the one name of the project at ``root``; nothing of the repository is run for it."""
    real = Path(os.path.realpath(root))
    for top in enclosing(real):
        known = remotes(top)
        name = _USUAL if _USUAL in known else min(known, default="")
        place = address_of(known[name], top) if name else ""
        if place:
            inside = real.relative_to(os.path.realpath(top)).as_posix()
            identity = f"git:{place}" + ("" if inside == "." else f"//{inside}")
            return identity if len(identity) <= LONGEST and identity.isprintable() else str(real)
        # The nearest repository is the project's, with a remote or without.
        return str(real)
    return str(real)


def address_of(url: str, top: Path) -> str:
    """Return host and path of a remote: the same for every protocol, user and password.

    A host serves one forge at several ports, one of each protocol, so the port does not count;
    at a loopback address each port is another server, or a tunnel to one, so there it does.
    """
    url = url.strip()
    if not url.isprintable():
        return ""
    if "://" in url:
        try:
            parts = urlsplit(url)
            host, path = (parts.hostname or "").lower(), unquote(parts.path)
            if parts.port and _is_loopback(host):
                host = f"{host}:{parts.port}"
        except ValueError:
            return ""
        if parts.scheme == "file" or not host:
            return f"file{_bare(os.path.realpath(path))}" if path else ""
        return _joined(host, path)
    if short := _SHORT.fullmatch(url):
        return _joined(short[1].lower(), short[2])
    return f"file{_bare(os.path.realpath(top / url))}" if url else ""


def _is_loopback(host: str) -> bool:
    return host == "localhost" or host.endswith(".localhost") or bool(_LOOPBACK.fullmatch(host))


def _joined(host: str, path: str) -> str:
    path = _bare(path).strip("/")
    return f"{host}/{path}" if path else ""


def _bare(path: str) -> str:
    path = re.sub(r"/{2,}", "/", path).rstrip("/")
    return path.removesuffix(".git").rstrip("/")
