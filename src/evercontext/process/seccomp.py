"""Filter the system calls of a sandboxed command by a classic BPF program.

A deny-list on top of namespaces or Landlock: it closes what those leave open (kernel surface that
no test needs, sockets, set-id bits) and works the same in both sandboxes.
"""

from __future__ import annotations

import errno
import platform
import stat
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

ALLOW = 0x7FFF0000
KILL = 0x80000000
NOTIFY = 0x7FC00000
"""Ask the supervisor, who does the call in the command's place or refuses."""
REFUSE = 0x00050000 | errno.EPERM
ABSENT = 0x00050000 | errno.ENOSYS
"""For calls whose callers fall back when the kernel is too old to know them."""
UNSUPPORTED = 0x00050000 | errno.ENOTSUP

AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
COLUMN = {"x86_64": 0, "aarch64": 1}

# name: (x86_64, aarch64); None where the architecture has no such call
CALLS: dict[str, tuple[int | None, int | None]] = {
    "acct": (163, 89),
    "add_key": (248, 217),
    "adjtimex": (159, 171),
    "bpf": (321, 280),
    "chmod": (90, None),
    "chown": (92, None),
    "chroot": (161, 51),
    "clock_adjtime": (305, 266),
    "clock_settime": (227, 112),
    "clone": (56, 220),
    "clone3": (435, 435),
    "creat": (85, None),
    "delete_module": (176, 106),
    "fanotify_init": (300, 262),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "fchown": (93, 55),
    "fchownat": (260, 54),
    "finit_module": (313, 273),
    "fremovexattr": (199, 16),
    "fsconfig": (431, 431),
    "fsetxattr": (190, 7),
    "fsmount": (432, 432),
    "fsopen": (430, 430),
    "fspick": (433, 433),
    "futimesat": (261, None),
    "init_module": (175, 105),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "io_uring_setup": (425, 425),
    "ioctl": (16, 29),
    "ioperm": (173, None),
    "iopl": (172, None),
    "ioprio_set": (251, 30),
    "kcmp": (312, 272),
    "kexec_file_load": (320, 294),
    "kexec_load": (246, 104),
    "keyctl": (250, 219),
    "lchown": (94, None),
    "lookup_dcookie": (212, 18),
    "lremovexattr": (198, 15),
    "lsetxattr": (189, 6),
    "migrate_pages": (256, 238),
    "mknod": (133, None),
    "mknodat": (259, 33),
    "modify_ldt": (154, None),
    "mount": (165, 40),
    "mount_setattr": (442, 442),
    "move_mount": (429, 429),
    "move_pages": (279, 239),
    "mq_open": (240, 180),
    "mq_unlink": (241, 181),
    "msgctl": (71, 187),
    "msgget": (68, 186),
    "msgrcv": (70, 188),
    "msgsnd": (69, 189),
    "name_to_handle_at": (303, 264),
    "nfsservctl": (180, 42),
    "open": (2, None),
    "open_by_handle_at": (304, 265),
    "open_tree": (428, 428),
    "open_tree_attr": (467, 467),
    "openat": (257, 56),
    "openat2": (437, 437),
    "perf_event_open": (298, 241),
    "pidfd_getfd": (438, 438),
    "pivot_root": (155, 41),
    "prlimit64": (302, 261),
    "process_madvise": (440, 440),
    "process_mrelease": (448, 448),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "ptrace": (101, 117),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "reboot": (169, 142),
    "removexattr": (197, 14),
    "removexattrat": (466, 466),
    "request_key": (249, 218),
    "sched_setaffinity": (203, 122),
    "sched_setattr": (314, 274),
    "sched_setparam": (142, 118),
    "sched_setscheduler": (144, 119),
    "semctl": (66, 191),
    "semget": (64, 190),
    "semop": (65, 193),
    "semtimedop": (220, 192),
    "setdomainname": (171, 162),
    "sethostname": (170, 161),
    "setns": (308, 268),
    "setpriority": (141, 140),
    "settimeofday": (164, 170),
    "setxattr": (188, 5),
    "setxattrat": (463, 463),
    "shmat": (30, 196),
    "shmctl": (31, 195),
    "shmget": (29, 194),
    "socket": (41, 198),
    "socketpair": (53, 199),
    "swapoff": (168, 225),
    "swapon": (167, 224),
    "sysfs": (139, None),
    "syslog": (103, 116),
    "umount2": (166, 39),
    "unshare": (272, 97),
    "uselib": (134, None),
    "userfaultfd": (323, 282),
    "utime": (132, None),
    "utimensat": (280, 88),
    "utimes": (235, None),
    "vhangup": (153, 58),
}

NEVER = (
    # other processes
    "ptrace",
    "process_vm_readv",
    "process_vm_writev",
    "process_madvise",
    "process_mrelease",
    "pidfd_getfd",
    "kcmp",
    "migrate_pages",
    "move_pages",
    # the view of the file system
    "mount",
    "umount2",
    "pivot_root",
    "chroot",
    "move_mount",
    "open_tree",
    "open_tree_attr",
    "fsopen",
    "fsconfig",
    "fsmount",
    "fspick",
    "mount_setattr",
    "unshare",
    "setns",
    "sysfs",
    "open_by_handle_at",
    "name_to_handle_at",
    "lookup_dcookie",
    "nfsservctl",
    "fanotify_init",
    # kernel surface
    "add_key",
    "request_key",
    "keyctl",
    "bpf",
    "perf_event_open",
    "userfaultfd",
    "modify_ldt",
    "uselib",
    "init_module",
    "finit_module",
    "delete_module",
    "kexec_load",
    "kexec_file_load",
    "iopl",
    "ioperm",
    # the machine
    "reboot",
    "swapon",
    "swapoff",
    "acct",
    "quotactl",
    "quotactl_fd",
    "syslog",
    "vhangup",
    "settimeofday",
    "clock_settime",
    "clock_adjtime",
    "adjtimex",
    "sethostname",
    "setdomainname",
)
OLD_KERNEL = ("clone3", "openat2", "io_uring_setup", "io_uring_enter", "io_uring_register")
"""clone3 and openat2 take their flags by pointer, where a filter cannot look."""

SHARED = (
    "shmget",
    "shmat",
    "shmctl",
    "msgget",
    "msgsnd",
    "msgrcv",
    "msgctl",
    "semget",
    "semop",
    "semtimedop",
    "semctl",
    "mq_open",
    "mq_unlink",
)
"""Each by itself: the number of somebody else's segment can be had without asking for its key."""
SCHEDULING = ("sched_setaffinity", "sched_setscheduler", "sched_setparam", "sched_setattr")
OLD_TIMES = ("utime", "utimes", "futimesat")
ATTRIBUTES = (
    "setxattr",
    "lsetxattr",
    "fsetxattr",
    "setxattrat",
    "removexattr",
    "lremovexattr",
    "fremovexattr",
    "removexattrat",
)
METADATA = (
    "chmod",
    "fchmod",
    "fchmodat",
    "fchmodat2",
    "utimensat",
    "chown",
    "lchown",
    "fchown",
    "fchownat",
)
"""Answered by the supervisor, see ``metadata``."""

NEW_NAMESPACES = 0x7E020080
SET_ID = stat.S_ISUID | stat.S_ISGID
O_CREAT, O_TMPFILE = 0o100, 0o20000000
TIOCSTI, TIOCLINUX = 0x5412, 0x541C
PRIO_PROCESS, IOPRIO_WHO_PROCESS = 0, 1
INET, INET6, NETLINK = 2, 10, 16
STREAM, SEQPACKET = 1, 5


@dataclass(frozen=True, slots=True)
class Test:
    """A question about one argument: is ``argument & mask`` equal to ``value``, or not."""

    argument: int
    mask: int
    value: int
    equal: bool = True


@dataclass(frozen=True, slots=True)
class Rule:
    """What happens to a call if all tests hold; the first rule that fits decides."""

    call: str
    action: int
    tests: tuple[Test, ...] = ()


@dataclass(frozen=True, slots=True)
class Filter:
    """Which sockets a command may open, and what the file system sandbox leaves to the filter."""

    internet: bool
    """TCP and UDP: the sandbox has a private loopback, or the network was allowed."""
    watch_metadata: bool = False
    """Landlock knows no rights for chmod, chown, utime, extended attributes and System V IPC."""

    def rules(self) -> Iterator[Rule]:
        """Yield every rule, the deciding one first."""
        yield from (Rule(name, REFUSE) for name in NEVER)
        yield from (Rule(name, ABSENT) for name in OLD_KERNEL)
        yield Rule("clone", REFUSE, (Test(0, NEW_NAMESPACES, 0, equal=False),))
        yield from (Rule("ioctl", REFUSE, (_is(1, code),)) for code in (TIOCSTI, TIOCLINUX))
        # Zero is not only the process itself: it is also its whole group, or all of its user's.
        yield Rule("setpriority", REFUSE, (_is_not(0, PRIO_PROCESS),))
        yield Rule("ioprio_set", REFUSE, (_is_not(0, IOPRIO_WHO_PROCESS),))
        yield from _set_id_rules()
        yield from self._socket_rules()
        if self.watch_metadata:
            yield from _landlock_gaps()

    def program(self, machine: str | None = None) -> bytes:
        """Return the program for the kernel of this machine."""
        machine = machine or platform.machine()
        return assemble(self.rules(), machine)

    def _socket_rules(self) -> Iterator[Rule]:
        if self.internet:
            yield Rule("socket", ALLOW, (_is(0, INET),))
            yield Rule("socket", ALLOW, (_is(0, INET6),))
            yield Rule(
                "socket", ALLOW, (_is(0, NETLINK), _is(2, 0))
            )  # routes: os.networkInterfaces
        yield Rule("socket", REFUSE)
        # a datagram pair could still be sent to somebody else's address
        yield Rule("socketpair", ALLOW, (Test(1, 0xF, STREAM),))
        yield Rule("socketpair", ALLOW, (Test(1, 0xF, SEQPACKET),))
        yield Rule("socketpair", REFUSE)


def numbers(names: Iterable[str]) -> dict[int, str]:
    """Return the numbers that these calls have on this machine."""
    column = COLUMN[platform.machine()]
    numbered = ((CALLS[name][column], name) for name in names)
    return {number: name for number, name in numbered if number is not None}


def supported(machine: str | None = None) -> bool:
    """Return True if a filter can be written for this processor."""
    return (machine or platform.machine()) in AUDIT_ARCH


def _is(argument: int, value: int) -> Test:
    return Test(argument, 0xFFFFFFFF, value)


def _is_not(argument: int, value: int) -> Test:
    return Test(argument, 0xFFFFFFFF, value, equal=False)


def _set_id_rules() -> Iterator[Rule]:
    """Refuse device nodes, and files that would run as somebody else."""
    modes = {"chmod": 1, "fchmod": 1, "fchmodat": 2, "fchmodat2": 2, "creat": 1}
    for call, argument in {**modes, "mknod": 1, "mknodat": 2}.items():
        yield Rule(call, REFUSE, (Test(argument, SET_ID, 0, equal=False),))
    for call, flags in (("open", 1), ("openat", 2)):
        for creating in (O_CREAT, O_TMPFILE):
            new = Test(flags, creating, creating)
            yield Rule(call, REFUSE, (new, Test(flags + 1, SET_ID, 0, equal=False)))
    for call, argument in (("mknod", 1), ("mknodat", 2)):
        for kind in (stat.S_IFCHR, stat.S_IFBLK):
            yield Rule(call, REFUSE, (Test(argument, 0o170000, kind),))


def _landlock_gaps() -> Iterator[Rule]:
    yield from (Rule(name, REFUSE) for name in SHARED)
    yield from (Rule(name, ABSENT) for name in OLD_TIMES)
    yield from (Rule(name, UNSUPPORTED) for name in ATTRIBUTES)
    yield Rule("prlimit64", REFUSE, (_is_not(0, 0),))
    for name in ("setpriority", "ioprio_set"):
        yield Rule(name, REFUSE, (_is_not(1, 0),))
    for name in SCHEDULING:
        yield Rule(name, REFUSE, (_is_not(0, 0),))
    yield from (Rule(name, NOTIFY) for name in METADATA)


def assemble(rules: Iterable[Rule], machine: str) -> bytes:
    """Return the rules as BPF instructions; another architecture's calls end the process."""
    code = [_load(4), _jump(0x15, AUDIT_ARCH[machine], 1, 0), _ret(KILL), _load(0)]
    if machine == "x86_64":  # the x32 numbers reach the same calls past the rules
        code += [_jump(0x35, 0x40000000, 0, 1), _ret(KILL)]
    for rule in rules:
        number = CALLS[rule.call][COLUMN[machine]]
        if number is not None:
            code += _compiled(rule, number)
    return b"".join([*code, _ret(ALLOW)])


def _compiled(rule: Rule, number: int) -> list[bytes]:
    body: list[bytes] = [_ret(rule.action)]
    for test in reversed(rule.tests):
        hit, miss = (0, len(body)) if test.equal else (len(body), 0)
        body = [
            _load(16 + 8 * test.argument),
            _statement(0x54, test.mask),
            _jump(0x15, test.value, hit, miss),
            *body,
        ]
    reload = [_load(0)] if rule.tests else []
    return [_jump(0x15, number, 0, len(body)), *body, *reload]


def _statement(code: int, value: int) -> bytes:
    return struct.pack("=HBBI", code, 0, 0, value)


def _jump(code: int, value: int, hit: int, miss: int) -> bytes:
    return struct.pack("=HBBI", code, hit, miss, value)


def _load(offset: int) -> bytes:
    return _statement(0x20, offset)


def _ret(action: int) -> bytes:
    return _statement(0x06, action)
