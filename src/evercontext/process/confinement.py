"""Turn a forked process into the command: groups, limits, rights, filter, and then the program.

Part of the supervisor: standard library only, and an unfinished sandbox never runs anything.
"""

# pathlib would cost a third of the supervisor's start
# ruff: noqa: PTH102, PTH106, PTH116, PTH123, PTH208

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import socket
import stat
import struct
import time

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing costs as much as the interpreter
    from typing import Any

    Plan = dict[str, Any]

LIBC = ctypes.CDLL(None, use_errno=True)
SECCOMP = {"x86_64": 317, "aarch64": 277}
CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
PR_SET_PDEATHSIG, PR_CAPBSET_DROP, PR_SET_SECUREBITS = 1, 24, 28
PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 36, 38
SECUREBITS_LOCKED = 0x2F  # no rights from being root, no way back
NEW_LISTENER = 8
FILE_RIGHTS = 0b1100_0000_0000_0111  # the Landlock rights that make sense on a file


class NotStarted(Exception):
    """The sandbox is closed, and the program does not start in it."""


def check(result: int, what: str) -> int:
    """Return what a system call returned, or raise: an unfinished sandbox must not run anything."""
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")
    return result


def call(number: int, *arguments: Any) -> int:
    """Make a system call."""
    return int(LIBC.syscall(ctypes.c_long(number), *arguments))


def prctl(option: int, value: int) -> int:
    """Make a prctl call with one argument."""
    return int(LIBC.prctl(option, ctypes.c_ulong(value), 0, 0, 0))


def become_reaper() -> None:
    """Have orphaned descendants handed to this process instead of to init."""
    check(prctl(PR_SET_CHILD_SUBREAPER, 1), "subreaper")


def limit(plan: Plan) -> None:
    """Set the resource limits of this process and its children."""
    for name, value in plan["rlimits"]:
        kind = getattr(resource, name)
        _, hard = resource.getrlimit(kind)
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (value, value))
    _, hard = resource.getrlimit(resource.RLIMIT_NPROC)
    # far above the ceiling, which the supervisor holds: other commands of the user count here too
    ceiling = tasks_of_user() + 4 * plan["processes"]
    value = ceiling if hard == resource.RLIM_INFINITY else min(ceiling, hard)
    resource.setrlimit(resource.RLIMIT_NPROC, (value, value))


def tasks_of_user() -> int:
    """Count what RLIMIT_NPROC counts: every thread of this user."""
    count = 0
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError):
                if os.stat(f"/proc/{name}").st_uid == os.getuid():
                    count += len(os.listdir(f"/proc/{name}/task"))
    return count


def drop_capabilities() -> None:
    """Give up every capability for good: the superuser's, and those in a namespace of our own."""
    for capability in range(64):
        prctl(PR_CAPBSET_DROP, capability)
    prctl(PR_SET_SECUREBITS, SECUREBITS_LOCKED)
    header, none = struct.pack("=II", 0x20080522, 0), bytes(24)
    check(LIBC.capset(header, none), "capset")


def restrict(rules: Plan) -> None:
    """Enter the Landlock domain."""
    attributes = struct.pack("=QQQ", rules["fs"], rules["net"], rules["scoped"])
    ruleset = check(call(CREATE_RULESET, attributes, len(attributes), 0), "landlock")
    for path, rights in rules["rules"]:
        with contextlib.suppress(FileNotFoundError):
            allow(ruleset, path, rights)
    check(call(RESTRICT_SELF, ruleset, 0), "landlock")
    os.close(ruleset)


def allow(ruleset: int, path: str, rights: int) -> None:
    """Add the rights on one subtree; a link put there in the meantime is not followed."""
    target = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        mode = os.fstat(target).st_mode
        if not stat.S_ISLNK(mode):
            rights = rights if stat.S_ISDIR(mode) else rights & FILE_RIGHTS
            rule = struct.pack("=Qi", rights, target)
            check(call(ADD_RULE, ruleset, 1, rule, 0), f"landlock rule for {path}")
    finally:
        os.close(target)


def filter_calls(program: bytes, listen: bool) -> int:
    """Install the seccomp filter; return the descriptor to be asked by, if there is one."""
    code = ctypes.create_string_buffer(program, len(program))
    head = struct.pack("@HP", len(program) // 8, ctypes.addressof(code))
    flags = NEW_LISTENER if listen else 0
    return check(call(SECCOMP[os.uname().machine], 1, flags, head), "seccomp")


def become(plan: Plan, to_parent: socket.socket) -> None:
    """Turn this forked process into the command."""
    os.setsid()
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    for directory, _ in plan["cgroups"]:
        with contextlib.suppress(OSError), open(f"{directory}/cgroup.procs", "w") as file:
            file.write("0")
    limit(plan)
    if plan["landlock"]:
        drop_capabilities()
        check(prctl(PR_SET_NO_NEW_PRIVS, 1), "no_new_privs")
        restrict(plan["landlock"])
        listener = filter_calls(plan["filter"], listen=True)
        socket.send_fds(to_parent, [b"+"], [listener])
        os.close(listener)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvp(plan["argv"][0], plan["argv"])  # noqa: S606
    except OSError as error:
        raise NotStarted(f"cannot run {plan['argv'][0]}: {error.strerror}") from error


def make_groups(plan: Plan) -> None:
    """Make the control groups; one that cannot be made is left out."""
    groups = []
    for directory, values in plan["cgroups"]:
        try:
            os.mkdir(directory)
            groups.append([directory, values])
            for name, value in values:
                with open(f"{directory}/{name}", "w") as file:
                    file.write(value)
        except OSError:
            continue
    plan["cgroups"] = groups


def remove_groups(plan: Plan) -> None:
    """Remove the control groups again; the kernel may need a moment after the last process."""
    for directory, _ in plan["cgroups"]:
        for _ in range(50):
            try:
                os.rmdir(directory)
                break
            except OSError:
                time.sleep(0.01)
