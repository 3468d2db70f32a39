"""Small files of a folder that we obey: bounded, plain, and never something to wait for.

Anybody may have written them. A pipe, a device, a directory, something huge or unreadable counts as
not there; a link is followed as long as it stays in the folder.
"""

from __future__ import annotations

from pathlib import Path

from evercontext.errors import EverContextError
from evercontext.files import io
from evercontext.files.paths import Root
from evercontext.files.policy import FilePolicy

MOST_BYTES = 1 << 20


def small_bytes(folder: Path, name: str, most: int = MOST_BYTES) -> bytes | None:
    """Return the content of a plain file below ``folder``, if there is one of at most that size."""
    policy = FilePolicy(max_bytes=most, protected=(), hard_links=True)
    try:
        with Root.open(folder) as root, root.file(name, policy) as path:
            return io.load(path, policy)
    except (EverContextError, OSError):
        return None


def small_text(folder: Path, name: str, most: int = MOST_BYTES) -> str | None:
    """Return it as text; what is not UTF-8 is replaced."""
    data = small_bytes(folder, name, most)
    return None if data is None else data.decode("utf-8", "replace")
