"""Attacks on the cage, run inside it as ``python probes.py NAME WORLD``.

A probe returns True when the attack worked. An OSError or False means that it was blocked.
Only the standard library: the cage shows this file and nothing else of the project.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import json
import mmap
import os
import shutil
import signal
import socket
import stat
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

World = dict[str, Any]
LIBC = ctypes.CDLL(None, use_errno=True)
PROBES: dict[str, Callable[[World], bool]] = {}
X86 = os.uname().machine == "x86_64"


def probe(function: Callable[[World], bool]) -> Callable[[World], bool]:
    PROBES[function.__name__] = function
    return function


def system_call(x86: int, arm: int, *arguments: Any) -> bool:
    """Return True if the kernel took the call; raise what it answered otherwise."""
    result = LIBC.syscall(ctypes.c_long(x86 if X86 else arm), *arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return True


# -- files outside ---------------------------------------------------------------------------------


@probe
def create_outside(world: World) -> bool:
    Path(world["outside"], "new").write_text("x")
    return True


@probe
def overwrite_outside(world: World) -> bool:
    Path(world["secret"]).write_text("x")
    return True


@probe
def read_outside(world: World) -> bool:
    return "canary" in Path(world["secret"]).read_text()


@probe
def read_ssh_key(world: World) -> bool:
    return "canary" in Path(world["home"], ".ssh/id_ed25519").read_text()


@probe
def read_our_home(world: World) -> bool:
    return "canary" in Path(world["home"], ".nebula/config.json").read_text()


@probe
def read_password_hashes(_world: World) -> bool:
    return bool(Path("/etc/shadow").read_text())


@probe
def read_hidden_file(world: World) -> bool:
    return "canary" in Path(world["root"], ".env").read_text()


@probe
def symlink_out(world: World) -> bool:
    link = Path(world["root"], "src/link")
    link.symlink_to(world["secret"])
    link.write_text("x")
    return True


@probe
def hard_link_out(world: World) -> bool:
    link = Path(world["root"], "src/hard")
    os.link(world["secret"], link)
    link.write_text("x")
    return True


@probe
def rename_over_outside(world: World) -> bool:
    ours = Path(world["root"], "src/mine")
    ours.write_text("x")
    os.replace(ours, world["secret"])
    return True


@probe
def move_outside_in(world: World) -> bool:
    os.rename(world["secret"], Path(world["root"], "src/stolen"))
    return True


@probe
def truncate_outside(world: World) -> bool:
    os.truncate(world["secret"], 0)
    return True


@probe
def unlink_outside(world: World) -> bool:
    os.unlink(world["secret"])
    return True


@probe
def chmod_outside(world: World) -> bool:
    os.chmod(world["secret"], 0o777)
    return True


@probe
def chmod_outside_through_a_link(world: World) -> bool:
    link = Path(world["root"], "src/chmod-link")
    link.symlink_to(world["secret"])
    link.chmod(0o777)
    return True


@probe
def chmod_what_may_be_read(world: World) -> bool:
    """The file is readable in the cage, so a descriptor of it can be had."""
    with open(world["readable"]) as file:
        os.fchmod(file.fileno(), 0o777)
    return True


@probe
def touch_what_may_be_read(world: World) -> bool:
    with open(world["readable"]) as file:
        os.utime(file.fileno(), (1, 1))
    return True


@probe
def touch_outside(world: World) -> bool:
    os.utime(world["secret"], (1, 1))
    return True


@probe
def own_outside(world: World) -> bool:
    os.chown(world["secret"], os.getuid(), os.getgid())
    return True


@probe
def label_outside(world: World) -> bool:
    os.setxattr(world["secret"], "user.x", b"1")
    return True


# -- protected places inside -----------------------------------------------------------------------


@probe
def write_git_hook(world: World) -> bool:
    Path(world["root"], ".git/hooks/pre-commit").write_text("#!/bin/sh\n")
    return True


@probe
def append_git_config(world: World) -> bool:
    with Path(world["root"], ".git/config").open("a") as file:
        file.write("[core]\n")
    return True


@probe
def hard_link_git(world: World) -> bool:
    link = Path(world["root"], "src/config")
    os.link(Path(world["root"], ".git/config"), link)
    link.write_text("x")
    return True


@probe
def link_into_git(world: World) -> bool:
    Path(world["root"], ".git/hooks/pre-commit").symlink_to("../../src/evil")
    return True


@probe
def rename_into_git(world: World) -> bool:
    ours = Path(world["root"], "src/evil")
    ours.write_text("#!/bin/sh\n")
    os.rename(ours, Path(world["root"], ".git/hooks/pre-commit"))
    return True


@probe
def directory_in_git(world: World) -> bool:
    Path(world["root"], ".git/modules").mkdir()
    return True


@probe
def write_git_from_inside(world: World) -> bool:
    os.chdir(Path(world["root"], ".git/hooks"))
    Path("pre-commit").write_text("#!/bin/sh\n")
    return True


@probe
def chmod_git_through_a_link(world: World) -> bool:
    link = Path(world["root"], "src/git-link")
    link.symlink_to(Path(world["root"], ".git/config"))
    link.chmod(0o777)
    return True


@probe
def touch_git(world: World) -> bool:
    os.utime(Path(world["root"], ".git/config"), (1, 1))
    return True


@probe
def write_git_of_a_moved_folder(world: World) -> bool:
    """A mount moves with the folder above it, and must go on holding there."""
    moved = Path(world["root"], "src/moved")
    try:
        os.rename(Path(world["root"], "part"), moved)
    except OSError:
        moved = Path(world["root"], "part")
    (moved / ".git").chmod(0o777)
    return True


@probe
def write_hidden_file(world: World) -> bool:
    Path(world["root"], ".env").write_text("x")
    return True


@probe
def remount_git(world: World) -> bool:
    return system_call(165, 40, b"none", f"{world['root']}/.git".encode(), None, 0x1020, None)


@probe
def move_hidden_file(world: World) -> bool:
    there = Path(world["root"], "src/env")
    os.rename(Path(world["root"], ".env"), there)
    return "canary" in there.read_text()


@probe
def delete_git(world: World) -> bool:
    shutil.rmtree(Path(world["root"], ".git"))
    return True


@probe
def rename_git(world: World) -> bool:
    os.rename(Path(world["root"], ".git"), Path(world["root"], "src/git"))
    return True


@probe
def chmod_git(world: World) -> bool:
    Path(world["root"], ".git/config").chmod(0o777)
    return True


@probe
def write_agent_config(world: World) -> bool:
    Path(world["root"], ".mcp.json").write_text("{}")
    return True


@probe
def replace_agent_config(world: World) -> bool:
    ours = Path(world["root"], "src/evil.json")
    ours.write_text("{}")
    os.replace(ours, Path(world["root"], ".mcp.json"))
    return True


# -- network ---------------------------------------------------------------------------------------


@probe
def connect_tcp(world: World) -> bool:
    with socket.create_connection(("127.0.0.1", world["tcp"]), timeout=20) as connection:
        return b"canary" in connection.recv(100)


@probe
def send_udp(world: World) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
        out.settimeout(20)
        out.sendto(b"canary", ("127.0.0.1", world["udp"]))
        return b"canary" in out.recv(100)


@probe
def connect_unix_socket(world: World) -> bool:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(world["unix"])
        return b"canary" in connection.recv(100)


@probe
def connect_unix_socket_in_the_tree(world: World) -> bool:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(world["unix_inside"])
        return b"canary" in connection.recv(100)


@probe
def connect_abstract_socket(world: World) -> bool:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect("\0" + world["abstract"])
        return b"canary" in connection.recv(100)


@probe
def datagram_from_a_pair(world: World) -> bool:
    ours, _ = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    ours.sendto(b"canary", world["unix_datagram"])
    return True


@probe
def ask_dns(world: World) -> bool:
    name = b"\x07example\x03com\x00"
    query = struct.pack(">6H", 1, 0x100, 1, 0, 0, 0) + name + struct.pack(">2H", 1, 1)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
        out.settimeout(20)
        out.sendto(query, ("127.0.0.1", world["udp"]))
        return bool(out.recv(512))


@probe
def bash_dev_tcp(world: World) -> bool:
    line = f"exec 3<>/dev/tcp/127.0.0.1/{world['tcp']} && cat <&3"
    done = subprocess.run(["bash", "-c", line], capture_output=True, timeout=20, check=False)
    return b"canary" in done.stdout


@probe
def raw_packet_socket(_world: World) -> bool:
    socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0).close()
    return True


@probe
def vsock_to_the_host(_world: World) -> bool:
    socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM).close()
    return True


# -- other processes -------------------------------------------------------------------------------


@probe
def ptrace_attach(world: World) -> bool:
    return system_call(101, 117, 16, world["victim"], 0, 0)


@probe
def read_foreign_memory(world: World) -> bool:
    with open(f"/proc/{world['victim']}/mem", "rb") as memory:
        return bool(memory.fileno())


@probe
def read_foreign_environment(_world: World) -> bool:
    for entry in Path("/proc").glob("[0-9]*/environ"):
        try:
            if b"canary" in entry.read_bytes():
                return True
        except OSError:
            continue
    return False


@probe
def walk_foreign_root(world: World) -> bool:
    for entry in Path("/proc").glob("[0-9]*/root"):
        try:
            if "canary" in Path(f"{entry}{world['secret']}").read_text():
                return True
        except OSError:
            continue
    return False


@probe
def kill_outside(world: World) -> bool:
    os.kill(world["victim"], signal.SIGTERM)
    return True


@probe
def kill_the_supervisor(_world: World) -> bool:
    parent = os.getppid()
    os.kill(parent, signal.SIGKILL)
    time.sleep(0.2)
    return os.getppid() != parent


@probe
def limit_foreign_process(world: World) -> bool:
    return system_call(302, 261, world["victim"], 1, struct.pack("=QQ", 0, 0), None)


@probe
def steal_descriptor(world: World) -> bool:
    handle = os.pidfd_open(os.getppid() or world["victim"])
    return system_call(438, 438, handle, 0, 0)


@probe
def open_parent_descriptors(_world: World) -> bool:
    ours = {os.readlink(f"/proc/self/fd/{number}") for number in (0, 1, 2)}
    folder = f"/proc/{os.getppid()}/fd"
    for name in os.listdir(folder):
        try:
            os.close(os.open(f"{folder}/{name}", os.O_RDONLY | os.O_NONBLOCK))
            if (what := os.readlink(f"{folder}/{name}")) not in ours:
                print(what)
                return True
        except OSError:
            continue
    return False


@probe
def inherited_descriptors(_world: World) -> bool:
    mine = [name for name in os.listdir("/proc/self/fd") if int(name) > 2]
    kinds = []
    for name in mine:
        try:
            kinds.append(os.readlink(f"/proc/self/fd/{name}"))
        except OSError:
            continue  # the listing's own descriptor
    return any("socket" in kind or "memfd" in kind or "pipe" in kind for kind in kinds)


@probe
def attach_shared_memory(world: World) -> bool:
    return system_call(29, 194, world["shared_memory"], 0, 0o600)


@probe
def attach_shared_memory_by_number(world: World) -> bool:
    """Everybody can read the numbers of segments in /proc/sysvipc; no key is needed then."""
    attach = LIBC.shmat
    attach.restype = ctypes.c_void_p  # an address: cut to an int, half of them look like errors
    return bool(attach(world["segment"], None, 0) not in (None, ctypes.c_void_p(-1).value))


@probe
def remove_shared_memory(world: World) -> bool:
    return system_call(31, 195, world["segment"], 0, None)


@probe
def read_foreign_message(world: World) -> bool:
    return system_call(70, 188, world["queue"], ctypes.create_string_buffer(64), 32, 0, 0o4000)


@probe
def set_foreign_semaphore(world: World) -> bool:
    return system_call(66, 191, world["semaphore"], 0, 16, 7)


@probe
def pin_foreign_process(world: World) -> bool:
    os.sched_setaffinity(world["victim"], os.sched_getaffinity(0))
    return True


@probe
def idle_foreign_process(world: World) -> bool:
    os.sched_setscheduler(world["victim"], os.SCHED_BATCH, os.sched_param(0))
    return True


@probe
def slow_the_disk_of_a_foreign_process(world: World) -> bool:
    return system_call(251, 30, 1, world["victim"], 2 << 13 | 7)


def in_a_group_of_its_own() -> None:
    """A hole must slow down nobody but the probe."""
    if os.getpgrp() != os.getpid():
        os.setpgid(0, 0)


@probe
def slow_a_group_of_processes(_world: World) -> bool:
    in_a_group_of_its_own()
    return system_call(141, 140, os.PRIO_PGRP, 0, 19)


@probe
def slow_the_disk_of_a_group_of_processes(_world: World) -> bool:
    in_a_group_of_its_own()
    return system_call(251, 30, 2, 0, 2 << 13 | 7)


# -- kernel ----------------------------------------------------------------------------------------


@probe
def mount(world: World) -> bool:
    return system_call(165, 40, b"none", world["root"].encode(), b"tmpfs", 0, None)


@probe
def unmount(world: World) -> bool:
    return system_call(166, 39, os.path.join(world["root"], ".git").encode(), 2)


@probe
def open_mount_tree(_world: World) -> bool:
    return system_call(428, 428, -100, b"/", 1)


@probe
def change_root(world: World) -> bool:
    os.chroot(world["root"])
    return True


@probe
def new_user_namespace(_world: World) -> bool:
    return system_call(272, 97, 0x10000000)


@probe
def clone_into_user_namespace(_world: World) -> bool:
    pid = LIBC.syscall(56 if X86 else 220, ctypes.c_ulong(0x10000000 | 17), 0, 0, 0, 0)
    if pid == 0:
        os._exit(0)
    if pid < 0:
        raise OSError(ctypes.get_errno(), "clone")
    return True


@probe
def enter_namespace(_world: World) -> bool:
    with open("/proc/self/ns/mnt") as namespace:
        return system_call(308, 268, namespace.fileno(), 0)


@probe
def kernel_keys(_world: World) -> bool:
    return system_call(248, 217, b"user", b"probe", b"x", 1, -3)


@probe
def load_bpf(_world: World) -> bool:
    return system_call(321, 280, 0, struct.pack("=IIII", 2, 4, 4, 1) + bytes(112), 128)


@probe
def perf_events(_world: World) -> bool:
    attributes = struct.pack("=IIQ", 1, 112, 0) + bytes(96)
    return system_call(298, 241, attributes, 0, -1, -1, 0)


@probe
def user_fault_descriptor(_world: World) -> bool:
    return system_call(323, 282, 1)


@probe
def io_uring(_world: World) -> bool:
    return system_call(425, 425, 4, ctypes.create_string_buffer(120))


@probe
def kernel_module(_world: World) -> bool:
    try:
        return system_call(175, 105, b"x", 1, b"")
    except OSError as error:
        return error.errno == errno.ENOEXEC  # it was let in as far as reading the module


@probe
def file_handles(world: World) -> bool:
    handle = struct.pack("=Ii", 128, 0) + bytes(128)
    where = ctypes.create_string_buffer(8)
    return system_call(303, 264, -100, world["root"].encode(), handle, where, 0)


@probe
def kernel_log(_world: World) -> bool:
    return system_call(103, 116, 3, ctypes.create_string_buffer(64), 64)


@probe
def host_name(_world: World) -> bool:
    socket.sethostname(socket.gethostname())
    return True


@probe
def kernel_settings(_world: World) -> bool:
    """Open any of the kernel's own files for writing; nothing is written."""
    places = [place for place in Path("/proc").iterdir() if not place.name.isdigit()]
    for place in [*places, Path("/sys")]:
        if place.name in ("self", "thread-self"):
            continue
        for folder, _, names in os.walk(place):
            for path in [str(place)] if place.is_file() else [f"{folder}/{name}" for name in names]:
                if _opens_for_writing(path):
                    print(path)
                    return True
    return False


def _opens_for_writing(path: str) -> bool:
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
    except OSError:
        return False
    return True


@probe
def device_node(world: World) -> bool:
    os.mknod(Path(world["root"], "src/disk"), stat.S_IFBLK | 0o600, os.makedev(254, 0))
    return True


@probe
def open_devices(_world: World) -> bool:
    for name in ("mem", "kmsg", "vda", "sda", "nvme0n1", "fuse", "kvm", "net/tun"):
        try:
            os.close(os.open(f"/dev/{name}", os.O_RDONLY | os.O_NONBLOCK))
            return True
        except OSError:
            continue
    return False


@probe
def set_user_id_file(world: World) -> bool:
    path = Path(world["root"], "src/suid")
    try:
        path.write_text("#!/bin/sh\n")
        path.chmod(0o4755)
    except OSError:
        handle = os.open(f"{path}2", os.O_CREAT | os.O_WRONLY, 0o4755)
        return bool(os.fstat(handle).st_mode & stat.S_ISUID)
    return bool(path.stat().st_mode & stat.S_ISUID)


@probe
def set_user_id_program(_world: World) -> bool:
    gained = LIBC.prctl(39, 0, 0, 0, 0) != 1  # PR_GET_NO_NEW_PRIVS
    if os.geteuid() == 0:
        os.setgroups([1])
    return bool(gained)


@probe
def push_into_terminal(_world: World) -> bool:
    _, terminal = os.openpty() if os.path.exists("/dev/pts") else (0, 0)
    fcntl.ioctl(terminal, 0x5412, b"x")
    return True


@probe
def other_architecture(_world: World) -> bool:
    """Reach ptrace by its x32 number, in a child: the filter ends whoever tries."""
    pid = os.fork()
    if pid == 0:
        LIBC.syscall(ctypes.c_long(0x40000000 | 521), 0, 0, 0, 0)
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    return X86 and os.waitstatus_to_exitcode(status) == 0


# -- resources and survival ------------------------------------------------------------------------


@probe
def daemon(world: World) -> bool:
    """Leave a process behind; the host looks whether it still beats."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            for number in (0, 1, 2):
                os.close(number)
            while True:
                Path(world["root"], "src/beat").write_text(str(time.time()))
                time.sleep(0.05)
        os._exit(0)
    while not Path(world["root"], "src/beat").exists():
        time.sleep(0.01)
    return False


@probe
def fork_bomb(_world: World) -> bool:
    def breed() -> None:
        while True:
            try:
                if os.fork() == 0:
                    os.setsid()
            except OSError:
                time.sleep(0.01)

    breed()
    return True


@probe
def private_memory(_world: World) -> bool:
    block = mmap.mmap(-1, 8 << 30, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    return len(block) > 0


@probe
def shared_memory(_world: World) -> bool:
    block = mmap.mmap(-1, 8 << 30, flags=mmap.MAP_SHARED | mmap.MAP_ANONYMOUS)
    piece = b"x" * (16 << 20)
    while block.tell() < len(block):
        block.write(piece)
    return True


@probe
def huge_file(world: World) -> bool:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    with Path(world["root"], "src/huge").open("wb") as file:
        file.truncate(10 << 30)
        return True


@probe
def burn_processor(_world: World) -> bool:
    deadline = time.process_time() + 20
    while time.process_time() < deadline:
        pass
    return True


def main() -> int:
    name, world = sys.argv[1], json.loads(sys.argv[2])
    try:
        escaped = PROBES[name](world)
    except (OSError, MemoryError) as error:
        print(f"blocked: {type(error).__name__}: {error}")
        return 3
    print("ESCAPED" if escaped else "blocked")
    return 0 if escaped else 3


if __name__ == "__main__":
    sys.exit(main())
