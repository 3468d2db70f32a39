"""Supervise one command: limit it, sandbox it, and end everything it started.

Runs in an interpreter of its own with two descriptors: the plan, and a socket whose
closing means "end it". So it also ends the tree when we are killed ourselves. It imports the
standard library and its neighbours only: the start of a bare interpreter is all it costs.
"""

# pathlib would cost a third of the supervisor's start
# ruff: noqa: PTH100, PTH120, PTH123

from __future__ import annotations

import marshal
import os
import select
import socket
import sys
import time

from evercontext.process.confinement import (
    NotStarted,
    become,
    become_reaper,
    make_groups,
    remove_groups,
)
from evercontext.process.metadata_proxy import Answers
from evercontext.process.mounts import enclose
from evercontext.process.process_tree import end_all, excess, killed_for_memory
from evercontext.process.temporary_directory import remove_folder

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing costs as much as the interpreter
    from evercontext.process.confinement import Plan

TICK_MS = 50
BOOT = (
    "import sys; sys.path.append(sys.argv[1]);"
    "from evercontext.process.supervisor import main; main(int(sys.argv[2]), int(sys.argv[3]))"
)


def command_line(plan: int, control: int) -> list[str]:
    """Return how to start a supervisor that inherits these descriptors."""
    package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    return [sys.executable, "-I", "-S", "-c", BOOT, package, str(plan), str(control)]


def watch(
    plan: Plan, pid: int, control: int, answers: Answers | None
) -> tuple[int | None, str | None]:
    """Wait for the command to end, for a ceiling, or for the word to end it."""
    ended = os.pidfd_open(pid)
    poll = select.poll()
    for descriptor in (control, ended, *([answers.listener] if answers else [])):
        poll.register(descriptor, select.POLLIN)
    checked = time.monotonic()
    while True:
        ready = dict(poll.poll(TICK_MS))
        if answers and (event := ready.get(answers.listener)):
            if event & select.POLLIN:
                answers.answer()
            else:
                poll.unregister(answers.listener)
        if control in ready:
            return None, None
        if ended in ready:
            code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            return code, "memory" if killed_for_memory(plan["cgroups"]) else None
        if time.monotonic() - checked > TICK_MS / 1000:
            if reached := excess(plan["processes"], plan["memory"]):
                return None, reached
            checked = time.monotonic()


def start(plan: Plan, control: socket.socket) -> tuple[int, socket.socket, int]:
    """Fork the command; return its process, our end of a socket to it, and the error pipe."""
    ours, theirs = socket.socketpair()
    errors, failed = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            control.close()
            become(plan, theirs)
        except NotStarted as error:
            os.write(failed, str(error).encode()[:4000])
        except BaseException as error:  # noqa: BLE001 - whatever it is, nothing may run uncaged
            os.write(failed, f"{type(error).__name__}: {error}".encode()[:4000])
        os._exit(126)
    theirs.close()
    os.close(failed)
    return pid, ours, errors


def hear(plan: Plan, ours: socket.socket) -> Answers | None:
    """Take over the questions of the command's filter, if it was installed."""
    if not plan["landlock"]:
        return None
    _, descriptors, _, _ = socket.recv_fds(ours, 1, 1)
    return Answers(descriptors[0], plan["writable"], plan["asked"]) if descriptors else None


def main(plan_fd: int, control_fd: int) -> None:
    """Supervise one command and report how it ended."""
    control, parent = socket.socket(fileno=control_fd), os.getppid()
    with open(plan_fd, "rb") as file:
        plan: Plan = marshal.loads(file.read())  # noqa: S302 - ours, by an inherited descriptor
    become_reaper()
    make_groups(plan)
    try:
        if plan["mounts"]:
            protected, hidden, reopened = plan["mounts"]
            enclose(protected, hidden, plan["scratch"], reopened)
    except OSError as error:  # nothing may run unheld
        remove_groups(plan)
        control.sendall(f"126\n\n{type(error).__name__}: {error}".encode())
        return
    pid, ours, errors = start(plan, control)
    code, reached = watch(plan, pid, control_fd, hear(plan, ours))
    end_all()
    remove_groups(plan)
    if os.getppid() != parent:
        remove_folder(plan["scratch"])
    with open(errors, "rb") as file:
        stderr = file.read().decode("utf-8", "replace")
    report = "\n".join((str(-9 if code is None else code), reached or "", stderr))
    try:
        control.sendall(report.encode())
    except OSError:
        # A dying parent closes its sockets before it gives us away: only now is it certain.
        remove_folder(plan["scratch"])
