"""Read files within bounds, and replace them completely or not at all.

A new content is staged in a temporary file of the same directory, made durable, and put in place by
one rename. Where the kernel can swap two names, what was displaced is looked at afterwards: if it
is not what the caller had seen, an editor was quicker, and the swap is taken back.
"""

from __future__ import annotations

import errno
import hashlib
import os
import secrets
import stat
import time
from contextlib import suppress
from dataclasses import dataclass

from evercontext.errors import Changed, IoFailed, NotUtf8, PathRefused, ProtectedPath, TooLarge
from evercontext.files.contained_paths import SafePath
from evercontext.files.policy import FilePolicy
from evercontext.files.system_calls import Kernel

_CHUNK = 1 << 16
_MOMENTS = 5
_FILE = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY


@dataclass(frozen=True, slots=True)
class FileStamp:
    """What tells one state of a file from the next without reading it."""

    inode: int
    size: int
    modified: int

    @classmethod
    def of(cls, status: os.stat_result) -> FileStamp:
        """Return the stamp of a stat result."""
        return cls(status.st_ino, status.st_size, status.st_mtime_ns)


@dataclass(frozen=True, slots=True)
class Content:
    """The bytes of a file as they were read."""

    data: bytes
    sha256: str
    mode: int
    owner: tuple[int, int]
    stamp: FileStamp

    def text(self) -> str:
        """Return the bytes as text, every one of them: BOM and line endings stay."""
        return decode(self.data)


def digest(data: bytes) -> str:
    """Return the hash that names a content."""
    return hashlib.sha256(data).hexdigest()


def decode(data: bytes) -> str:
    """Return UTF-8 text; NotUtf8 for anything else, NUL included."""
    if b"\0" in data:
        raise NotUtf8("not text: NUL byte")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise NotUtf8(f"not UTF-8 at byte {error.start}") from None


def encode(text: str) -> bytes:
    """Return text as UTF-8; NotUtf8 for what a text file cannot hold."""
    if "\0" in text:
        raise NotUtf8("NUL character in content")
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise NotUtf8(f"lone surrogate at character {error.start}") from None


def read(path: SafePath, policy: FilePolicy) -> Content:
    """Read a whole regular file, never more than the limit plus one buffer. May raise OSError."""
    data, status = _read(path, policy)
    # the size that was read, not the one fstat saw before: the file may have grown meanwhile
    stamp = FileStamp(status.st_ino, len(data), status.st_mtime_ns)
    owner = (status.st_uid, status.st_gid)
    return Content(data, digest(data), stat.S_IMODE(status.st_mode), owner, stamp)


def load(path: SafePath, policy: FilePolicy) -> bytes:
    """Read a file as ``read`` does, for whoever needs no hash: that is most of the cost."""
    return _read(path, policy)[0]


def _read(path: SafePath, policy: FilePolicy) -> tuple[bytes, os.stat_result]:
    kernel = path.root.kernel
    if path.missing:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
    fd = kernel.open(path.name, os.O_RDONLY | _FILE, dir_fd=path.dir_fd)
    try:
        status = _settled(kernel, fd, policy)
        check_kind(status, policy)
        return _read_bounded(kernel, fd, policy.max_bytes), status
    finally:
        kernel.close(fd)


def read_if_there(path: SafePath, policy: FilePolicy) -> Content | None:
    """Read a file that may not exist yet."""
    try:
        return read(path, policy)
    except FileNotFoundError:
        return None


def check_kind(status: os.stat_result, policy: FilePolicy) -> None:
    """Raise unless this is a regular file with one name, within the limit."""
    if stat.S_ISDIR(status.st_mode):
        raise PathRefused("is a directory")
    if stat.S_ISLNK(status.st_mode):
        raise PathRefused("symlink not allowed")
    if not stat.S_ISREG(status.st_mode):
        raise PathRefused("not a regular file")
    if status.st_nlink > 1 and not policy.hard_links:
        raise ProtectedPath("hard link", fix="The same file has another name, perhaps outside")
    policy.check_size(status.st_size)


def is_link(path: SafePath) -> bool:
    """Tell whether the name itself is a symbolic link."""
    status = _lstat(path)
    return status is not None and stat.S_ISLNK(status.st_mode)


def exists(path: SafePath) -> bool:
    """Tell whether the name is taken, by whatever it may be."""
    return _lstat(path) is not None


def stage(
    path: SafePath, name: str, data: bytes, mode: int | None, owner: tuple[int, int] | None
) -> None:
    """Write ``data`` durably to the temporary file ``name`` beside the target."""
    kernel = path.root.kernel
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    fd = kernel.open(name, flags, dir_fd=path.dir_fd, mode=0o666)
    try:
        try:
            _write_all(kernel, fd, data)
            _dress(kernel, fd, mode, owner)
            kernel.fsync(fd)
        finally:
            kernel.close(fd)
    except OSError:
        discard(path, name)
        raise


def put(path: SafePath, staged: str, seen: FileStamp | None) -> bool:
    """Give the staged file its name, if what is there now is what was ``seen``.

    True if the old content has the staged name now, for the caller to discard. Raises
    FileExistsError if nothing was seen and something is there, Changed if it differs.
    """
    kernel = path.root.kernel
    if seen is None:
        kernel.rename_new(staged, path.name, path.dir_fd)
    elif _swap(path, staged, seen):
        return True
    else:
        if _stamp(path, path.name) != seen:
            raise Changed("changed", fix="Read the file again")
        kernel.rename(staged, path.name, path.dir_fd)
    return False


def take(path: SafePath, staged: str, seen: FileStamp) -> None:
    """Remove the file, if it is still the one that was ``seen``; it is gone in one step."""
    kernel = path.root.kernel
    kernel.rename_new(path.name, staged, path.dir_fd)
    try:
        if _stamp(path, staged) != seen:
            raise Changed("changed", fix="Read the file again")
    except BaseException:
        kernel.rename_new(staged, path.name, path.dir_fd)
        raise
    discard(path, staged)


def discard(path: SafePath, staged: str) -> None:
    """Drop a temporary file; one that cannot be dropped now is swept at the next opening."""
    try:
        path.root.kernel.unlink(staged, path.dir_fd)
    except FileNotFoundError:
        pass
    except OSError:
        path.root.littered = True


def temporary_name() -> str:
    """Return a fresh name for a file under construction."""
    return f".ec-{secrets.token_hex(8)}.tmp"


def _swap(path: SafePath, staged: str, seen: FileStamp) -> bool:
    kernel = path.root.kernel
    try:
        kernel.exchange(staged, path.name, path.dir_fd)
    except FileNotFoundError:
        raise Changed("changed", fix="The file was removed meanwhile") from None
    except OSError as error:
        if error.errno in (errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP):
            return False
        raise
    try:
        if _stamp(path, staged) != seen:
            raise Changed("changed", fix="Read the file again")
    except BaseException:
        kernel.exchange(staged, path.name, path.dir_fd)
        raise
    return True


def _stamp(path: SafePath, name: str) -> FileStamp | None:
    try:
        return FileStamp.of(path.root.kernel.lstat(name, path.dir_fd))
    except FileNotFoundError:
        return None


def _lstat(path: SafePath) -> os.stat_result | None:
    if path.missing:
        return None
    try:
        return path.root.kernel.lstat(path.name, path.dir_fd)
    except FileNotFoundError:
        return None


def _settled(kernel: Kernel, fd: int, policy: FilePolicy) -> os.stat_result:
    """Describe a file, giving a second name a moment to go away.

    Where the kernel cannot rename without replacing, a new file has two names for an instant.
    """
    status = kernel.fstat(fd)
    for _ in range(_MOMENTS):
        if status.st_nlink != 2 or policy.hard_links or not stat.S_ISREG(status.st_mode):
            break
        time.sleep(0.002)
        status = kernel.fstat(fd)
    return status


def _read_bounded(kernel: Kernel, fd: int, limit: int) -> bytes:
    pieces: list[bytes] = []
    left = limit + 1
    while left > 0:
        piece = kernel.read(fd, min(left, _CHUNK))
        if not piece:
            return b"".join(pieces)
        pieces.append(piece)
        left -= len(piece)
    raise TooLarge(f"too large: more than {limit} bytes")


def _write_all(kernel: Kernel, fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        written = kernel.write(fd, view)
        if written == 0:
            raise IoFailed("io error")
        view = view[written:]


def _dress(kernel: Kernel, fd: int, mode: int | None, owner: tuple[int, int] | None) -> None:
    """Keep the permissions and, where allowed, the owner of what is replaced."""
    if owner is not None:
        status = kernel.fstat(fd)
        if (status.st_uid, status.st_gid) != owner:
            with suppress(PermissionError):
                kernel.chown(fd, *owner)
    if mode is not None:
        kernel.chmod(fd, mode)
