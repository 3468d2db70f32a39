"""A tree of files under one policy: what every door and every room works with.

Blocking; asynchronous callers go through a thread. Paths are strings relative to the root, checked
here; errors are those of ``evercontext.errors``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from evercontext.files import io
from evercontext.files.failures import explained
from evercontext.files.listing import Listing, list_directory
from evercontext.files.paths import Root
from evercontext.files.policy import FilePolicy


@dataclass(frozen=True, slots=True)
class FileText:
    """A text file as it was read."""

    path: str
    content: str
    sha256: str
    size: int


@dataclass(slots=True)
class Tree:
    """The files below a root, as one door may see them."""

    root: Root
    policy: FilePolicy

    @classmethod
    def open(cls, path: Path | str, policy: FilePolicy) -> Tree:
        """Pin the directory ``path`` for reading."""
        return cls(Root.open(path), policy)

    def under(self, policy: FilePolicy) -> Self:
        """The same tree through another door."""
        return replace(self, policy=policy)

    def read(self, path: str) -> FileText:
        """Read a whole UTF-8 file within the size limit."""
        with explained(), self.root.file(path, self.policy) as safe:
            content = io.read(safe, self.policy)
            return FileText(safe.relative, content.text(), content.sha256, len(content.data))

    def list(
        self,
        path: str = ".",
        *,
        extensions: Iterable[str] | None = None,
        max_items: int | None = None,
        recursive: bool = False,
    ) -> Listing:
        """List a directory, leaving out what this door would not open."""
        return list_directory(
            self.root,
            path,
            self.policy,
            extensions=extensions,
            max_items=max_items,
            recursive=recursive,
        )

    def close(self) -> None:
        """Let the root go."""
        self.root.close()
