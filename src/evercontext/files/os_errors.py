"""Translate errors of the operating system."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from evercontext.errors import (
    AlreadyExists,
    Busy,
    DiskFull,
    EverContextError,
    IoFailed,
    NotFound,
    PathEscape,
    PathRefused,
    ProtectedPath,
    ReadOnlyTree,
)

_MEANING: dict[int, tuple[type[EverContextError], str]] = {
    errno.ENOENT: (NotFound, "no such file or directory"),
    errno.ENOTDIR: (NotFound, "no such file or directory"),
    errno.EEXIST: (AlreadyExists, "file exists"),
    errno.ELOOP: (PathRefused, "symlink not allowed"),
    errno.EXDEV: (PathEscape, "path escapes root"),
    errno.ENAMETOOLONG: (PathRefused, "name too long"),
    errno.EILSEQ: (PathRefused, "name not allowed by this file system"),
    errno.EISDIR: (PathRefused, "is a directory"),
    errno.ENXIO: (PathRefused, "not a regular file"),
    errno.ENODEV: (PathRefused, "not a regular file"),
    errno.ENOSPC: (DiskFull, "disk full; the old content is kept"),
    errno.EDQUOT: (DiskFull, "disk quota used up; the old content is kept"),
    errno.EROFS: (ReadOnlyTree, "read-only"),
    errno.EMFILE: (Busy, "too many files are open; try again"),
    errno.ENFILE: (Busy, "too many files are open; try again"),
}


def explain(error: OSError, *, writing: bool = False) -> EverContextError:
    """Return the error of our tree that a failed system call stands for."""
    if error.errno in (errno.EACCES, errno.EPERM):
        if writing:
            return ReadOnlyTree("read-only", fix="This user may not write there")
        return ProtectedPath("permission denied")
    kind, message = _MEANING.get(error.errno or 0, (IoFailed, "io error"))
    return kind(message)


@contextmanager
def explained(*, writing: bool = False) -> Iterator[None]:
    """Turn every OSError raised inside into an error of our tree."""
    try:
        yield
    except OSError as error:
        raise explain(error, writing=writing) from error
