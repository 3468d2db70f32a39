"""Mount protected paths read-only for the Landlock layer.

Landlock cannot take a subtree back from a right on its parent. A mount can: where the kernel lets
us have a mount namespace of our own, each protected place is covered by a read-only mount of
itself and each secret by something empty, and the command gets the whole root. The supervisor
lives in that namespace too, so what it does in the command's place meets the same mounts.

Part of the supervisor: standard library only.
"""

# pathlib would cost a third of the supervisor's start
# ruff: noqa: PTH101, PTH102, PTH106, PTH108, PTH109, PTH112, PTH118, PTH123

from __future__ import annotations

import ctypes
import errno
import os
import struct
import sys

from evercontext.process.confinement import LIBC, call, check

NEW_MOUNTS, NEW_USER = 0x20000, 0x10000000
PRIVATE, RECURSIVE = 1 << 18, 1 << 14
OPEN_TREE, MOVE_MOUNT, SET_ATTRIBUTES = 428, 429, 442
HERE, NOFOLLOW, BELOW, ITSELF = -100, 0x100, 0x8000, 0x1000
CLONE, FROM_DESCRIPTOR, READ_ONLY = 1, 4, 1
BOOT = (
    "import sys; sys.path.append(sys.argv[1]);"
    "from evercontext.process.mounts import probe; probe(sys.argv[2])"
)


def enclose(
    protected: list[str], hidden: list[str], scratch: str, reopened: list[str] | None = None
) -> None:
    """Enter a mount namespace where these places are read-only, or empty and closed.

    ``reopened`` lie inside protected ones and stay as they are.
    """
    _enter()
    check(LIBC.mount(None, b"/", None, ctypes.c_ulong(PRIVATE | RECURSIVE), None), "private mounts")
    # A copy of what lies below a read-only mount would be read-only, too: these come first.
    copies = [(place, _copy(place)) for place in reopened or ()]
    for place in protected:
        _cover(place, place)
    for place, copy in copies:
        if copy is not None:
            _put(copy, place)
    if hidden:
        _mask(hidden, scratch)
    os.chdir(os.getcwd())  # where we stand may be covered now: stand on the cover


def _enter() -> None:
    """Leave the mounts of the others; who may not do that does it as a user of its own space."""
    if os.geteuid() == 0 and LIBC.unshare(NEW_MOUNTS) == 0:
        return
    user, group = os.geteuid(), os.getegid()
    check(LIBC.unshare(NEW_USER | NEW_MOUNTS), "user namespace")
    # The same numbers inside as outside: files keep their owner.
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{user} {user} 1"),
        ("gid_map", f"{group} {group} 1"),
    ):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)


def _mask(hidden: list[str], scratch: str) -> None:
    folder, file = os.path.join(scratch, "closed"), os.path.join(scratch, "empty")
    os.mkdir(folder, 0o500)
    os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0))
    os.chmod(folder, 0)
    for place in hidden:
        _cover(folder if os.path.isdir(place) else file, place)
    # Mounts live on without a name, and the command finds none of this in its own folder.
    os.rmdir(folder)
    os.unlink(file)


def _cover(source: str, place: str) -> None:
    """Mount a read-only copy of ``source`` on ``place``; a link is followed at neither."""
    copy = _copy(source)
    if copy is None:
        return  # removed meanwhile; what takes its name is put away after the command
    try:
        read_only = struct.pack("=QQQQ", READ_ONLY, 0, 0, 0)
        done = call(SET_ATTRIBUTES, copy, b"", ITSELF | BELOW, read_only, len(read_only))
        check(done, f"read-only {source}")
    except BaseException:
        os.close(copy)
        raise
    _put(copy, place)


def _copy(source: str) -> int | None:
    """Return a mount of ``source`` that is nowhere yet; nothing if it is gone."""
    flags = CLONE | os.O_CLOEXEC | NOFOLLOW | BELOW
    copy = call(OPEN_TREE, HERE, os.fsencode(source), flags)
    if copy < 0 and ctypes.get_errno() == errno.ENOENT:
        return None
    return check(copy, f"mount of {source}")


def _put(copy: int, place: str) -> None:
    try:
        moved = call(MOVE_MOUNT, copy, b"", HERE, os.fsencode(place), FROM_DESCRIPTOR)
        check(moved, f"mount on {place}")
    finally:
        os.close(copy)


def command_line(place: str) -> list[str]:
    """Return how to find out in a process of its own whether all this works, in an empty folder."""
    package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))  # noqa: PTH100, PTH120
    return [sys.executable, "-I", "-S", "-c", BOOT, package, place]


def probe(place: str) -> None:
    """Try it, and end with an error unless the places are really held."""
    guarded, secret = os.path.join(place, "guarded"), os.path.join(place, "secret")
    os.mkdir(guarded)
    os.close(os.open(secret, os.O_CREAT | os.O_CLOEXEC, 0o600))
    try:
        enclose([guarded], [secret], place)
    except OSError as error:
        sys.exit(error.strerror)
    try:
        os.mkdir(os.path.join(guarded, "new"))
    except OSError as error:
        sys.exit(0 if error.errno == errno.EROFS else error.strerror)
    sys.exit("the mounts do not hold")
