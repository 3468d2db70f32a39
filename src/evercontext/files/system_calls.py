"""Wrap the system calls for files in one object.

Python offers neither ``openat2`` nor ``renameat2``, and a test that wants the seventh ``fsync`` to
fail needs a place to say so. Both are reasons for this seam.
"""

from __future__ import annotations

import ctypes
import errno
import os
import sys
from typing import Any

RESOLVE_NO_MAGICLINKS = 0x02
RESOLVE_NO_SYMLINKS = 0x04
RESOLVE_BENEATH = 0x08

_SYS_OPENAT2 = 437  # the same number on every architecture: it is younger than the unification
_NOREPLACE, _EXCHANGE = (4, 2) if sys.platform == "darwin" else (1, 2)

O_PATH = getattr(os, "O_PATH", os.O_RDONLY)
DIRECTORY = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
"""Flags that open a directory itself, never what a link of that name leads to."""


class _OpenHow(ctypes.Structure):
    _fields_ = (
        ("flags", ctypes.c_uint64),
        ("mode", ctypes.c_uint64),
        ("resolve", ctypes.c_uint64),
    )


def _load_libc() -> Any:
    return ctypes.CDLL(None, use_errno=True)


class Kernel:
    """Every system call that this package makes. Subclass it to inject failures."""

    def __init__(self) -> None:
        self._libc = _load_libc()
        self._renameat2: Any = getattr(
            self._libc, "renameatx_np" if sys.platform == "darwin" else "renameat2", None
        )

    def openat2(self, dir_fd: int, path: str, flags: int, resolve: int) -> int:
        """Open ``path`` under ``dir_fd`` with the resolution limits of openat2(2)."""
        if not sys.platform.startswith("linux"):
            raise OSError(errno.ENOSYS, "openat2 is Linux only")
        how = _OpenHow(flags, 0, resolve)
        while True:
            fd: int = self._libc.syscall(
                _SYS_OPENAT2, dir_fd, os.fsencode(path), ctypes.byref(how), ctypes.sizeof(how)
            )
            if fd >= 0:
                return fd
            code = ctypes.get_errno()
            if code != errno.EINTR:
                raise OSError(code, os.strerror(code), path)

    def open(self, path: str, flags: int, *, dir_fd: int | None = None, mode: int = 0o600) -> int:
        """Open ``path``; descriptors never leak into child processes."""
        return os.open(path, flags | os.O_CLOEXEC, mode, dir_fd=dir_fd)

    def close(self, fd: int) -> None:
        """Close a descriptor."""
        os.close(fd)

    def fstat(self, fd: int) -> os.stat_result:
        """Describe an open file."""
        return os.fstat(fd)

    def lstat(self, name: str, dir_fd: int) -> os.stat_result:
        """Describe a directory entry itself, without following it."""
        return os.stat(name, dir_fd=dir_fd, follow_symlinks=False)

    def readlink(self, name: str, dir_fd: int) -> str:
        """Return what a link says."""
        return os.readlink(name, dir_fd=dir_fd)

    def names(self, fd: int) -> list[str]:
        """Return the entries of an open directory."""
        return os.listdir(fd)

    def read(self, fd: int, size: int) -> bytes:
        """Read at most ``size`` bytes."""
        return os.read(fd, size)

    def write(self, fd: int, data: bytes | memoryview) -> int:
        """Write some of ``data``; return how much."""
        return os.write(fd, data)

    def truncate(self, fd: int, size: int) -> None:
        """Cut an open file to ``size``."""
        os.ftruncate(fd, size)

    def chmod(self, fd: int, mode: int) -> None:
        """Set the permissions of an open file."""
        os.fchmod(fd, mode)

    def chown(self, fd: int, uid: int, gid: int) -> None:
        """Set the owner of an open file."""
        os.fchown(fd, uid, gid)

    def fsync(self, fd: int) -> None:
        """Return only when content and metadata are on the disk."""
        os.fsync(fd)

    def fdatasync(self, fd: int) -> None:
        """Return only when the content is on the disk."""
        getattr(os, "fdatasync", os.fsync)(fd)

    def mkdir(self, name: str, dir_fd: int) -> None:
        """Make a directory."""
        os.mkdir(name, 0o777, dir_fd=dir_fd)

    def rmdir(self, name: str, dir_fd: int) -> None:
        """Remove an empty directory."""
        os.rmdir(name, dir_fd=dir_fd)

    def unlink(self, name: str, dir_fd: int) -> None:
        """Remove a directory entry that is not a directory."""
        os.unlink(name, dir_fd=dir_fd)

    def rename(self, old: str, new: str, dir_fd: int) -> None:
        """Rename within one directory, replacing ``new``."""
        os.rename(old, new, src_dir_fd=dir_fd, dst_dir_fd=dir_fd)

    def rename_new(self, old: str, new: str, dir_fd: int) -> None:
        """Rename within one directory; FileExistsError if ``new`` is there."""
        try:
            self._rename_flags(old, new, dir_fd, _NOREPLACE)
        except OSError as error:
            if error.errno not in (errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP):
                raise
            os.link(old, new, src_dir_fd=dir_fd, dst_dir_fd=dir_fd, follow_symlinks=False)
            os.unlink(old, dir_fd=dir_fd)

    def exchange(self, name: str, other: str, dir_fd: int) -> None:
        """Swap two entries of one directory in a single step; OSError where that is unknown."""
        self._rename_flags(name, other, dir_fd, _EXCHANGE)

    def _rename_flags(self, old: str, new: str, dir_fd: int, flags: int) -> None:
        if self._renameat2 is None:
            raise OSError(errno.ENOSYS, "renameat2 is not offered here")
        done = self._renameat2(dir_fd, os.fsencode(old), dir_fd, os.fsencode(new), flags)
        if done != 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code), old, None, new)


SYSTEM = Kernel()
