"""Open a directory below a root without following a link, in two ways."""

from __future__ import annotations

import errno
import os
import stat
from typing import Protocol

from evercontext.files.system_calls import (
    DIRECTORY,
    O_PATH,
    RESOLVE_BENEATH,
    RESOLVE_NO_MAGICLINKS,
    RESOLVE_NO_SYMLINKS,
    Kernel,
)


class Beneath(Protocol):
    """Opens a directory below ``root_fd``; OSError(ELOOP) where a component is a link."""

    def open(self, root_fd: int, parts: tuple[str, ...], flags: int) -> int:
        """Return a new descriptor of the directory ``parts``."""
        ...


class Openat2:
    """The kernel proves containment in one call."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel

    def open(self, root_fd: int, parts: tuple[str, ...], flags: int = O_PATH) -> int:
        """Return a new descriptor of the directory ``parts``."""
        # without O_NOFOLLOW, so that a link as last component is ELOOP and not a mere ENOTDIR
        flags |= os.O_DIRECTORY | os.O_CLOEXEC
        limits = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_SYMLINKS
        return self._kernel.openat2(root_fd, "/".join(parts) or ".", flags, limits)


class Walk:
    """One component at a time, each opened from the one before: for kernels without openat2."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel

    def open(self, root_fd: int, parts: tuple[str, ...], flags: int = O_PATH) -> int:
        """Return a new descriptor of the directory ``parts``."""
        here = self._kernel.open(".", flags | DIRECTORY, dir_fd=root_fd)
        for name in parts:
            try:
                below = self._enter(here, name, flags)
            finally:
                self._kernel.close(here)
            here = below
        return here

    def _enter(self, here: int, name: str, flags: int) -> int:
        try:
            return self._kernel.open(name, flags | DIRECTORY, dir_fd=here)
        except NotADirectoryError:
            # a link opened with O_NOFOLLOW|O_DIRECTORY answers ENOTDIR: say which of the two it is
            if stat.S_ISLNK(self._kernel.lstat(name, here).st_mode):
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), name) from None
            raise


def choose(kernel: Kernel, root_fd: int) -> Beneath:
    """Return openat2 where kernel and seccomp filter allow it, the walk elsewhere."""
    strategy = Openat2(kernel)
    try:
        kernel.close(strategy.open(root_fd, ()))
    except OSError as error:
        if error.errno not in (errno.ENOSYS, errno.EPERM, errno.EINVAL):
            raise
        return Walk(kernel)
    return strategy
