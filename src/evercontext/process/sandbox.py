"""The cage a command runs in: what it may see, write and use, and by which means it is held.

Two layers, each enough alone: bubblewrap (namespaces) with seccomp, or Landlock with seccomp.
"""

from __future__ import annotations

import contextlib
import marshal
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from typing import Any

from evercontext.errors import NoSandbox, ProgramMissing
from evercontext.process import bubblewrap, landlock, launcher, seccomp, system
from evercontext.process.child import Launch
from evercontext.process.limits import Limits

PROBE_SECONDS = 10


class Layer(StrEnum):
    """What holds the command."""

    BUBBLEWRAP = "bubblewrap"
    LANDLOCK = "landlock"
    NONE = "none"
    """Nothing but the limits: only where the user said so."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Whether a layer works here, and what to do if it does not."""

    layer: Layer
    works: bool
    why: str
    fix: str | None = None


@dataclass(frozen=True, slots=True)
class Sandbox:
    """What one command may do. Everything else is refused."""

    root: Path
    """The project: the command sees it, and writes it unless ``read_only``."""
    layer: Layer
    read_only: bool = False
    """Plan mode: no byte of the project changes."""
    protected: tuple[Path, ...] = ()
    """Inside the root; may be read and never written."""
    hidden: tuple[Path, ...] = ()
    """Secrets: neither read nor written."""
    readable: tuple[Path, ...] = ()
    writable: tuple[Path, ...] = ()
    home: Path | None = None
    """The user's home: its toolchains may be read, the rest of it is not there."""
    network: bool = False
    limits: Limits = field(default_factory=Limits)

    @contextlib.contextmanager
    def enter(self, argv: Sequence[str], cwd: Path, env: Mapping[str, str]) -> Iterator[Launch]:
        """Yield how to start ``argv`` in this cage; what it needs lives until the end."""
        _find(argv[0], cwd, env)
        with contextlib.ExitStack() as stack:
            scratch = stack.enter_context(_scratch())
            filter_fd = _memory_file(stack, self._filter().program())
            plan = self._plan(argv, cwd, scratch, filter_fd)
            plan_fd = _memory_file(stack, marshal.dumps(plan))
            stack.callback(_remove_groups, plan["cgroups"])
            ours, theirs = socket.socketpair()
            stack.enter_context(ours)
            stack.enter_context(theirs)
            fds: tuple[int, ...] = (plan_fd, theirs.fileno())
            if self.layer is Layer.BUBBLEWRAP:
                fds = (*fds, filter_fd)
            command = launcher.command_line(plan_fd, theirs.fileno())
            yield Launch(tuple(command), self._environment(env, scratch), fds, ours, theirs)

    def present(self) -> Sandbox:
        """Return the same cage with real paths, and only those that exist."""
        return replace(
            self,
            root=self.root.resolve(),
            protected=_existing(self.protected),
            hidden=_existing(self.hidden),
        )

    def _filter(self) -> seccomp.Filter:
        bwrap = self.layer is Layer.BUBBLEWRAP
        return seccomp.Filter(internet=bwrap or self.network, watch_metadata=not bwrap)

    def _plan(
        self, argv: Sequence[str], cwd: Path, scratch: Path, filter_fd: int
    ) -> dict[str, Any]:
        cage = self.present()
        plan: dict[str, Any] = {**self.limits.plan(), "argv": list(argv), "landlock": None}
        plan["scratch"] = str(scratch)
        if self.layer is Layer.BUBBLEWRAP:
            plan["argv"] = [*cage.bubblewrap_arguments(cwd, scratch, filter_fd), *argv]
        if self.layer is Layer.LANDLOCK:
            rules = cage.landlock_rules(scratch)
            plan["landlock"] = rules.plan()
            plan["writable"] = [str(path) for path in rules.writable]
            plan["asked"] = seccomp.numbers(seccomp.METADATA)
            plan["filter"] = self._filter().program()
        return plan

    def bubblewrap_arguments(self, cwd: Path, scratch: Path, filter_fd: int) -> list[str]:
        """Return bubblewrap's command line for this cage."""
        program = bubblewrap.program()
        if program is None:
            raise NoSandbox("bubblewrap is not installed", fix=bubblewrap.FIX)
        own = () if self.read_only else (self.root,)
        view = bubblewrap.View(
            readable=(*self._seen(), *((self.root,) if self.read_only else ())),
            writable=(*own, *self.writable),
            protected=() if self.read_only else self.protected,
            hidden=self.hidden,
            scratch=scratch,
            network=self.network,
            shared_memory=self.limits.memory // 4,
        )
        return view.arguments(program, cwd.resolve(), filter_fd)

    def landlock_rules(self, scratch: Path) -> landlock.Ruleset:
        """Return Landlock's rules for this cage."""
        own = (
            () if self.read_only else landlock.subtrees(self.root, (*self.protected, *self.hidden))
        )
        hidden_inside = any(self.root in path.parents for path in self.hidden)
        return landlock.Ruleset(
            readable=(*self._seen(), *system.PROC, *landlock.subtrees(self.root, self.hidden)),
            writable=(*own, *self.writable, scratch.resolve()),
            devices=system.DEVICES,
            listable=(self.root,) if hidden_inside else (),
            network=self.network,
        )

    def _seen(self) -> tuple[Path, ...]:
        home = system.toolchains(self.home) if self.home else ()
        ours = (Path(sys.prefix), Path(sys.base_prefix))
        return (*system.readable(), *ours, *home, *self.readable)

    def _environment(self, env: Mapping[str, str], scratch: Path) -> dict[str, str]:
        if self.layer is Layer.NONE:
            return dict(env)
        temporary = Path("/tmp") if self.layer is Layer.BUBBLEWRAP else scratch  # noqa: S108
        return {**env, **system.private_places(temporary, self.home)}


def choose(wanted: str = "auto") -> Layer:
    """Return the layer to use: the one wanted, or the best that works. Raises NoSandbox."""
    if wanted == Layer.NONE:
        return Layer.NONE
    found = [finding for finding in available() if wanted in ("auto", finding.layer)]
    for finding in found:
        if finding.works:
            return finding.layer
    why = "; ".join(f"{finding.layer}: {finding.why}" for finding in found) or wanted
    fix = next((finding.fix for finding in found if finding.fix), bubblewrap.FIX)
    raise NoSandbox(f"no cage for commands works here ({why})", fix=fix)


@lru_cache(maxsize=1)
def available() -> tuple[Finding, ...]:
    """Return what works on this machine, the better layer first."""
    return (_bubblewrap(), _landlock())


def _bubblewrap() -> Finding:
    layer = Layer.BUBBLEWRAP
    program = bubblewrap.program()
    if sys.platform != "linux" or not seccomp.supported():
        return Finding(layer, False, "needs Linux on x86_64 or aarch64")
    if program is None:
        return Finding(layer, False, "bubblewrap is not installed", bubblewrap.FIX)
    options = ["--unshare-all", "--cap-drop", "ALL", "--ro-bind", "/", "/", "--proc", "/proc"]
    options += ["--dev", "/dev", "--size", "65536", "--tmpfs", "/dev/shm"]  # noqa: S108
    try:
        done = subprocess.run(
            [program, *options, "true"], capture_output=True, timeout=PROBE_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Finding(layer, False, f"bubblewrap does not start: {error}")
    if done.returncode == 0:
        return Finding(layer, True, "namespaces and seccomp; private loopback")
    said = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:] or ["no reason given"]
    fix = "Allow unprivileged user namespaces, or update bubblewrap (0.8 or later)"
    return Finding(layer, False, said[0][:200], fix)


def _landlock() -> Finding:
    layer = Layer.LANDLOCK
    version = landlock.version()
    if not seccomp.supported():
        return Finding(layer, False, "needs Linux on x86_64 or aarch64")
    if version == 0:
        return Finding(layer, False, "the kernel has no Landlock", bubblewrap.FIX)
    if version < landlock.NEEDED:
        why = f"Landlock version {version}, needs {landlock.NEEDED} (Linux 6.12)"
        return Finding(layer, False, why, bubblewrap.FIX)
    why = "Landlock and seccomp; no sockets, no new entries next to protected ones"
    return Finding(layer, True, why)


def _find(program: str, cwd: Path, env: Mapping[str, str]) -> None:
    where = str(cwd / program) if "/" in program else program
    if shutil.which(where, path=env.get("PATH")) is None:
        raise ProgramMissing(f"program not found: {program}", fix="Install it or add it to PATH")


def _existing(paths: tuple[Path, ...]) -> tuple[Path, ...]:
    """A link is not followed: what it points at is covered by other rules."""
    return tuple(path for path in paths if path.exists() and not path.is_symlink())


def _remove_groups(groups: Sequence[Sequence[Any]]) -> None:
    """Remove what a supervisor leaves if it is killed itself."""
    for directory, _ in groups:
        with contextlib.suppress(OSError):
            Path(directory).rmdir()


def _memory_file(stack: contextlib.ExitStack, content: bytes) -> int:
    file = os.memfd_create("evercontext", os.MFD_CLOEXEC)
    stack.callback(os.close, file)
    os.write(file, content)
    os.lseek(file, 0, os.SEEK_SET)
    return file


@contextlib.contextmanager
def _scratch() -> Iterator[Path]:
    """Yield an empty directory that is the command's temporary directory and home."""
    path = Path(tempfile.mkdtemp(prefix=f"evercontext-{os.getpid()}-"))
    try:
        (path / "home").mkdir()
        yield path
    finally:
        _remove(path)


def _remove(path: Path) -> None:
    """Remove what a command left, whatever modes it gave it."""
    _open_up(path)
    shutil.rmtree(path, ignore_errors=True)


def _open_up(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.chmod(0o700)
        for entry in os.scandir(path):
            if entry.is_dir(follow_symlinks=False):
                _open_up(Path(entry.path))
