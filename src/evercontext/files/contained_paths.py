"""Prove that paths lie inside the root, and keep them there while in use.

A checked string can lie a microsecond later: somebody swaps a directory for a link. So nothing here
hands out strings to open. A ``Root`` holds the descriptor of its directory, a ``SafePath`` the
descriptor of the file's own directory plus one plain name, and the kernel resolves nothing else.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from evercontext.errors import ConfigError, ExtensionRefused, PathRefused
from evercontext.files.open_beneath import Beneath, choose
from evercontext.files.os_errors import explained
from evercontext.files.path_names import parse
from evercontext.files.policy import FilePolicy
from evercontext.files.system_calls import DIRECTORY, O_PATH, SYSTEM, Kernel

Parts = tuple[str, ...]
_MAX_LINKS = 40
_MAX_RACES = 8


@dataclass(slots=True)
class SafePath:
    """One name in one pinned directory below the root. Close it, or use it in ``with``."""

    root: Root
    parts: Parts
    dir_fd: int
    """The deepest directory that exists; the file's own one unless ``missing`` names more."""
    missing: Parts = ()
    """Directories that must still be made, outermost first."""
    _owned: bool = True

    @property
    def relative(self) -> str:
        """The path relative to the root, as answers show it."""
        return "/".join(self.parts)

    @property
    def name(self) -> str:
        """The last component."""
        return self.parts[-1]

    @property
    def missing_directories(self) -> tuple[str, ...]:
        """The relative paths of the directories that must still be made, outermost first."""
        depth = len(self.parts) - 1 - len(self.missing)
        return tuple("/".join(self.parts[: depth + n + 1]) for n in range(len(self.missing)))

    def make_parents(self) -> None:
        """Make the missing directories, durably, and move into them."""
        while self.missing:
            kernel, name = self.root.kernel, self.missing[0]
            try:
                kernel.mkdir(name, self.dir_fd)
            except FileExistsError:
                pass
            else:
                self.root.sync_directory(self.dir_fd)
            below = kernel.open(name, O_PATH | DIRECTORY, dir_fd=self.dir_fd)
            self.close()
            self.dir_fd, self._owned, self.missing = below, True, self.missing[1:]

    def sibling(self, name: str) -> SafePath:
        """Another name in the same directory, valid as long as this one."""
        return SafePath(self.root, (*self.parts[:-1], name), self.dir_fd, self.missing, False)

    def close(self) -> None:
        """Let the directory go."""
        if self._owned:
            self._owned = False
            self.root.kernel.close(self.dir_fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


@dataclass(slots=True)
class Root:
    """A directory, pinned by its descriptor: moving or replacing its name changes nothing."""

    path: Path
    """Where it was when it was opened: for people and for reading absolute links."""
    fd: int
    kernel: Kernel
    beneath: Beneath
    littered: bool = False
    """A temporary file could not be removed."""
    _open: bool = field(default=True, repr=False)

    @classmethod
    def open(
        cls,
        path: Path | str,
        *,
        kernel: Kernel = SYSTEM,
        strategy: Callable[[Kernel], Beneath] | None = None,
    ) -> Root:
        """Pin ``path``; ``strategy`` forces a way of resolving instead of the best one."""
        real = Path(path).expanduser().resolve()
        try:
            fd = kernel.open(str(real), os.O_RDONLY | os.O_DIRECTORY)
        except OSError as error:
            raise ConfigError(
                f"cannot open the root {real}: {error.strerror}", fix="Name an existing directory"
            ) from error
        return cls(real, fd, kernel, strategy(kernel) if strategy else choose(kernel, fd))

    def file(self, path: str, policy: FilePolicy) -> SafePath:
        """Find a file for reading; links are followed as long as they stay inside."""
        parts = _parse_file(path, policy)
        with explained():
            return self.follow(parts, policy.check_file)

    def follow(self, parts: Parts, check: Callable[[Parts], None]) -> SafePath:
        """Find what ``parts`` lead to, links included; ``check`` judges every real place."""
        for _ in range(_MAX_RACES):
            if not parts:
                raise PathRefused("is a directory")
            try:
                fd, owned = self._parent(parts[:-1])
            except OSError as error:
                if error.errno != errno.ELOOP:
                    raise
            else:
                safe = SafePath(self, parts, fd, (), owned)
                if self._readlink(fd, parts[-1]) is None:
                    return safe
                safe.close()
            parts = self._real(parts)
            check(parts)
        raise PathRefused("symlink not allowed")

    def target(self, path: str, policy: FilePolicy) -> SafePath:
        """Find a place to write to: no link on the way, missing directories noted."""
        parts = _parse_file(path, policy)
        with explained(writing=True):
            return self.place(parts)

    def directory(self, path: str, policy: FilePolicy) -> tuple[Parts, int]:
        """Open a directory for listing; return where it really is and a descriptor to close."""
        parts = parse(path)
        policy.check_directory(parts)
        with explained():
            for _ in range(_MAX_RACES):
                try:
                    return parts, self.beneath.open(self.fd, parts, os.O_RDONLY)
                except OSError as error:
                    if error.errno != errno.ELOOP:
                        raise
                parts = self._real(parts)
                policy.check_directory(parts)
        raise PathRefused("symlink not allowed")

    def place(self, parts: Parts) -> SafePath:
        """Pin the deepest directory that exists on the way to ``parts``. May raise OSError."""
        for depth in range(len(parts) - 1, -1, -1):
            try:
                fd, owned = self._parent(parts[:depth])
            except FileNotFoundError:
                continue
            return SafePath(self, parts, fd, parts[depth:-1], owned)
        raise AssertionError("the root itself is always open")

    def sync_directory(self, fd: int) -> None:
        """Make renames in a directory durable; ``fd`` may be a mere path descriptor."""
        real = self.kernel.open(".", os.O_RDONLY | os.O_DIRECTORY, dir_fd=fd)
        try:
            self.kernel.fsync(real)
        finally:
            self.kernel.close(real)

    def close(self) -> None:
        """Unpin the directory."""
        if self._open:
            self._open = False
            self.kernel.close(self.fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _parent(self, parts: Parts) -> tuple[int, bool]:
        if not parts:
            return self.fd, False
        return self.beneath.open(self.fd, parts, O_PATH), True

    def _real(self, parts: Parts) -> Parts:
        """Replace links by what they lead to, by component; refuse one that leads out."""
        real: list[str] = []
        pending = list(reversed(parts))
        links = 0
        while pending:
            name = pending.pop()
            if name == "..":
                if not real:
                    raise PathRefused("symlink not allowed")
                real.pop()
                continue
            target = self._link_below(tuple(real), name)
            if target is None:
                real.append(name)
                continue
            links += 1
            if links > _MAX_LINKS:
                raise PathRefused("symlink not allowed")
            if target.startswith("/"):
                real.clear()
                target = self._inside(target)
            pending.extend(name for name in reversed(target.split("/")) if name not in ("", "."))
        return tuple(real)

    def _link_below(self, real: Parts, name: str) -> str | None:
        fd, owned = self._parent(real)
        try:
            return self._readlink(fd, name)
        finally:
            if owned:
                self.kernel.close(fd)

    def _readlink(self, fd: int, name: str) -> str | None:
        try:
            return self.kernel.readlink(name, fd)
        except OSError as error:
            if error.errno in (errno.EINVAL, errno.ENOENT):
                return None
            raise

    def _inside(self, target: str) -> str:
        absolute = Path(target)
        if ".." in absolute.parts or not absolute.is_relative_to(self.path):
            raise PathRefused("symlink not allowed")
        return absolute.relative_to(self.path).as_posix()


def _parse_file(path: str, policy: FilePolicy) -> Parts:
    parts = parse(path)
    if parts and path.endswith(("/", "/.", "/..")):
        policy.check_directory(parts)
        if policy.extensions is None:
            raise PathRefused("is a directory")
        raise ExtensionRefused("extension not allowed", fix="A file has no trailing slash")
    policy.check_file(parts)
    return parts
