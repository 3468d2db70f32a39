"""Change modes and times of files for a sandboxed command, in the supervisor.

Landlock knows no right for chmod, utimensat and chown: the filter asks us instead. The file is
pinned first and judged by where it really is, so a link swapped meanwhile changes nothing.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import os
import struct

RECEIVE, SEND, STILL_VALID = 0xC0502100, 0xC0182101, 0x40082102
NOTIFICATION = struct.Struct("=QIIiIQ6Q")
ANSWER = struct.Struct("=QqiI")
AT_FDCWD, AT_SYMLINK_NOFOLLOW = -100, 0x100
LIBC = ctypes.CDLL(None, use_errno=True)

# call: the positions of directory, path, what to set, and flags among its arguments
SHAPES: dict[str, tuple[int | None, int | None, int, int | None]] = {
    "chmod": (None, 0, 1, None),
    "fchmod": (0, None, 1, None),
    "fchmodat": (0, 1, 2, None),
    "fchmodat2": (0, 1, 2, 3),
    "utimensat": (0, 1, 2, 3),
    "chown": (None, 0, 1, None),
    "lchown": (None, 0, 1, None),
    "fchown": (0, None, 1, None),
    "fchownat": (0, 1, 2, 4),
}


class MetadataCall:
    """One call that waits for our answer."""

    def __init__(self, id: int, thread: int, call: str, arguments: tuple[int, ...]) -> None:
        self.id = id
        self.thread = thread
        self.call = call
        self.arguments = arguments


class Answers:
    """Answers the filter's questions for the subtrees that the command may write."""

    def __init__(self, listener: int, writable: list[str], calls: dict[int, str]) -> None:
        self.listener = listener
        self.writable = writable
        self.calls = calls
        """The names of the calls, by number."""

    def answer(self) -> None:
        """Answer one question; the asker may have died meanwhile."""
        with contextlib.suppress(OSError):
            question = self._receive()
            code = self._error_of(question)
            response = ANSWER.pack(question.id, 0, -code, 0)
            fcntl.ioctl(self.listener, SEND, response)

    def _receive(self) -> MetadataCall:
        data = fcntl.ioctl(self.listener, RECEIVE, bytes(NOTIFICATION.size))
        number, thread, _, call, _, _, *arguments = NOTIFICATION.unpack(data)
        return MetadataCall(number, thread, self.calls[call], tuple(arguments))

    def _error_of(self, question: MetadataCall) -> int:
        try:
            self._do(question)
        except OSError as error:
            return error.errno or errno.EPERM
        return 0

    def _do(self, question: MetadataCall) -> None:
        directory, path, value, flags = SHAPES[question.call]
        arguments = question.arguments
        follow = question.call != "lchown" and not _flags(arguments, flags) & AT_SYMLINK_NOFOLLOW
        base = AT_FDCWD if directory is None else _signed(arguments[directory])
        address = 0 if path is None else arguments[path]
        name = _located(question.thread, base, _string(question.thread, address))
        times = _times(question, arguments[value])
        target = os.open(name, os.O_PATH | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW))
        try:
            fcntl.ioctl(self.listener, STILL_VALID, struct.pack("=Q", question.id))
            pinned = f"/proc/self/fd/{target}"
            self._check(pinned)
            if "chown" in question.call:
                _refuse_new_owner(target, arguments[value], arguments[value + 1])
            else:
                _set(pinned, arguments[value], times)
        finally:
            os.close(target)

    def _check(self, pinned: str) -> None:
        place = os.readlink(pinned)  # noqa: PTH115 - what the descriptor is, not a user's path
        if not any(place == tree or place.startswith(tree + "/") for tree in self.writable):
            raise PermissionError(errno.EACCES, "outside the writable tree")


class Times:
    """What utimensat was asked to set: two timespecs, or nothing for now."""

    def __init__(self, value: bytes | None) -> None:
        self.value = value


def _set(pinned: str, mode: int, times: Times | None) -> None:
    if times is None:
        os.chmod(pinned, mode & 0o1777)  # noqa: PTH101
    elif LIBC.utimensat(AT_FDCWD, pinned.encode(), times.value, 0) != 0:
        raise OSError(ctypes.get_errno(), "utimensat")


def _refuse_new_owner(target: int, user: int, group: int) -> None:
    """Let a copy keep the owner that it has; nothing is changed."""
    status = os.fstat(target)
    if _signed(user) not in (-1, status.st_uid) or _signed(group) not in (-1, status.st_gid):
        raise PermissionError(errno.EPERM, "chown")


def _flags(arguments: tuple[int, ...], position: int | None) -> int:
    return 0 if position is None else arguments[position]


def _signed(value: int) -> int:
    return ctypes.c_int(value & 0xFFFFFFFF).value


def _located(thread: int, directory: int, path: str) -> str:
    """Return the path as we have to open it, relative to where the asker stands."""
    if path.startswith("/proc/self/"):
        return f"/proc/{thread}/" + path.removeprefix("/proc/self/")
    if path.startswith("/"):
        return path
    stand = "cwd" if directory == AT_FDCWD else f"fd/{directory}"
    return f"/proc/{thread}/{stand}/{path}" if path else f"/proc/{thread}/{stand}"


def _times(question: MetadataCall, address: int) -> Times | None:
    if question.call != "utimensat":
        return None
    return Times(_memory(question.thread, address, 32) if address else None)


def _string(thread: int, address: int) -> str:
    """Read a path from the asker's memory, without running into a page that is not there."""
    if address == 0:
        return ""  # the call is about a descriptor
    first = 4096 - address % 4096
    data = _memory(thread, address, first)
    if b"\0" not in data:
        data += _memory(thread, address + first, 4096)
    text, end, _ = data.partition(b"\0")
    if not end:
        raise OSError(errno.ENAMETOOLONG, "path too long")
    return os.fsdecode(text)


def _memory(thread: int, address: int, size: int) -> bytes:
    memory = os.open(f"/proc/{thread}/mem", os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.pread(memory, size, address)
    finally:
        os.close(memory)
