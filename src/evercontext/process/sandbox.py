"""Choose and set up the sandbox of a command: what it may see, write and use.

Two layers, each enough alone: bubblewrap (namespaces) with seccomp, or Landlock with seccomp.
"""

from __future__ import annotations

import contextlib
import itertools
import marshal
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from typing import Any

from evercontext.errors import NoSandbox, ProgramMissing
from evercontext.process import bubblewrap, landlock, mounts, seccomp, supervisor, system_paths
from evercontext.process.child import Launch
from evercontext.process.resource_limits import Limits
from evercontext.process.temporary_directory import remove_folder

PROBE_SECONDS = 10
NO_NEW_ENTRIES = "nothing can be created in a directory that holds .git or another protected name"
SHOWN_PROCESSES = "commands see which processes run, with their command lines"
MOST_NAMED = 3
_SCRATCH = "evercontext-"
_PACKAGE = Path(__file__).parents[1]
"""Our own code: some of it runs in a project's own Python."""
_MISSED = re.compile(r"ermission denied|o such file|not found|EACCES|ENOENT|rrno (?:2|13)\b")
_ABSOLUTE = re.compile(r"(?<![\w.~/-])/[^\s\"'`:;,()\[\]<>]+")
NOT_LINUX = "needs Linux on x86_64 or aarch64"
ELSEWHERE_FIX = (
    "Work on Linux, a container or virtual machine too; EC_SANDBOX=none runs without one"
)
MOUNTS_FIX = "Install bubblewrap, or allow unprivileged user namespaces"


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
    reopened: tuple[Path, ...] = ()
    """Inside protected places; written all the same."""
    hidden: tuple[Path, ...] = ()
    """Secrets: neither read nor written."""
    readable: tuple[Path, ...] = ()
    writable: tuple[Path, ...] = ()
    only: tuple[Path, ...] | None = None
    """What may be read in place of the usual programs and toolchains: no shell is there then."""
    home: Path | None = None
    """The user's home: its toolchains may be read, the rest of it is not there."""
    network: bool = False
    limits: Limits = field(default_factory=Limits)
    own_mounts: bool = True
    """Landlock: hold protected places by mounts, where the kernel lets us have some."""

    @contextlib.contextmanager
    def enter(self, argv: Sequence[str], cwd: Path, env: Mapping[str, str]) -> Iterator[Launch]:
        """Yield how to start ``argv`` in this sandbox; what it needs lives until the end."""
        self._check_seen(_find(argv[0], cwd, env))
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
            command = supervisor.command_line(plan_fd, theirs.fileno())
            yield Launch(tuple(command), self._environment(env, scratch), fds, ours, theirs)

    def present(self) -> Sandbox:
        """Return the same sandbox with real paths, and only those that exist."""
        return replace(
            self,
            root=self.root.resolve(),
            protected=_existing(self.protected),
            reopened=_existing(self.reopened),
            hidden=_existing(self.hidden),
        )

    def _filter(self) -> seccomp.Filter:
        bwrap = self.layer is Layer.BUBBLEWRAP
        return seccomp.Filter(internet=bwrap or self.network, watch_metadata=not bwrap)

    def _plan(
        self, argv: Sequence[str], cwd: Path, scratch: Path, filter_fd: int
    ) -> dict[str, Any]:
        present = self.present()
        plan: dict[str, Any] = {**self.limits.plan(), "argv": list(argv), "landlock": None}
        plan["mounts"] = None
        plan["scratch"] = str(scratch)
        if self.layer is Layer.BUBBLEWRAP:
            plan["argv"] = [*present.bubblewrap_arguments(cwd, scratch, filter_fd), *argv]
        if self.layer is Layer.LANDLOCK:
            rules = present.landlock_rules(scratch)
            plan["mounts"] = present.mounts()
            plan["landlock"] = rules.plan()
            plan["writable"] = [str(path) for path in rules.writable]
            plan["asked"] = seccomp.numbers(seccomp.METADATA)
            plan["filter"] = self._filter().program()
        return plan

    def bubblewrap_arguments(self, cwd: Path, scratch: Path, filter_fd: int) -> list[str]:
        """Return bubblewrap's command line for this sandbox."""
        program = bubblewrap.program()
        if program is None:
            raise NoSandbox("bubblewrap is not installed", fix=bubblewrap.FIX)
        own = () if self.read_only else (self.root,)
        view = bubblewrap.FilesystemView(
            readable=(*self._seen(), *((self.root,) if self.read_only else ())),
            writable=(*own, *self.writable),
            protected=() if self.read_only else self.protected,
            reopened=() if self.read_only else self.reopened,
            hidden=self.hidden,
            scratch=scratch,
            network=self.network,
            shared_memory=self.limits.memory // 4,
        )
        return view.arguments(program, cwd.resolve(), filter_fd)

    def landlock_rules(self, scratch: Path) -> landlock.Ruleset:
        """Return Landlock's rules for this sandbox.

        Where no mount can hold the protected places, what lies beside them gets the rights, each
        alone: nothing new can be made there.
        """
        held = self.mounts() is not None
        hidden = () if held else self.hidden
        protected = () if held else self.protected
        own = () if self.read_only else landlock.subtrees(self.root, (*protected, *hidden))
        hidden_inside = any(self.root in path.parents for path in hidden)
        return landlock.Ruleset(
            readable=(
                *(tree for place in self._seen() for tree in landlock.subtrees(place, hidden)),
                *(*system_paths.PROC, *landlock.subtrees(self.root, hidden)),
            ),
            writable=(*own, *self._reopened(), *self.writable, scratch.resolve()),
            devices=system_paths.DEVICES,
            listable=(self.root,) if hidden_inside else (),
            network=self.network,
        )

    def _reopened(self) -> tuple[Path, ...]:
        return () if self.read_only else self.reopened

    def mounts(self) -> tuple[list[str], list[str], list[str]] | None:
        """Return what Landlock needs mounts for: read-only places, masked and reopened ones."""
        protected = [] if self.read_only else [str(path) for path in self.protected]
        hidden = [str(path) for path in self.hidden]
        if not self.own_mounts or not (protected or hidden) or mounts_refused():
            return None
        return protected, hidden, [str(path) for path in self._reopened()]

    def sees(self, path: Path) -> bool:
        """Tell whether a command may read what really lies there."""
        if self.layer is Layer.NONE:
            return True
        real = path.resolve()
        shown = (
            self.root,
            *self._seen(),
            *system_paths.PROC,
            *system_paths.DEVICES,
            *self.writable,
        )
        if any(map(real.is_relative_to, shown)):
            return True
        return any(real.is_relative_to(place.resolve()) for place in shown)

    def unseen(self, output: str) -> tuple[str, ...]:
        """Return paths that a failed command missed, and that it may not read.

        Whether they exist is not looked at: a command must not find that out by asking for them.
        """
        lines = (line for line in output.splitlines() if _MISSED.search(line))
        paths = dict.fromkeys(path for line in lines for path in _ABSOLUTE.findall(line))
        scratch = str(Path(tempfile.gettempdir(), _SCRATCH))
        missed = (p for p in paths if not p.startswith(scratch) and not self.sees(Path(p)))
        return tuple(itertools.islice(missed, MOST_NAMED))

    def _check_seen(self, program: Path) -> None:
        """Refuse what could not start, with the reason: itself, or the Python beside it."""
        beside = program.parent / "python"
        virtual = (program.parents[1] / "pyvenv.cfg").exists() and beside.exists()
        for path in (program, beside) if virtual else (program,):
            if not self.sees(path):
                raise NoSandbox(
                    f"commands may not read {path.resolve()}", fix=system_paths.READ_FIX
                )

    def _seen(self) -> tuple[Path, ...]:
        if self.only is not None:
            return (*self.only, *self.readable)
        home = system_paths.toolchains(self.home) if self.home else ()
        ours = (Path(sys.prefix), Path(sys.base_prefix), _PACKAGE)
        shown = (*system_paths.readable(), *ours, *home)
        own = (path for path in self.readable if not any(map(path.is_relative_to, shown)))
        return (*shown, *own)

    def _environment(self, env: Mapping[str, str], scratch: Path) -> dict[str, str]:
        if self.layer is Layer.NONE:
            return dict(env)
        temporary = Path("/tmp") if self.layer is Layer.BUBBLEWRAP else scratch  # noqa: S108
        return {**env, **system_paths.private_places(temporary, self.home)}


def choose(setting: str = "auto") -> Layer:
    """Return the layer to use: the one wanted, or the best that works. Raises NoSandbox."""
    if setting == Layer.NONE:
        return Layer.NONE
    failed: list[Finding] = []
    for layer, examine in _EXAMINED.items():
        if setting in ("auto", layer):
            finding = examine()
            if finding.works:
                return layer
            failed.append(finding)
    why = "; ".join(f"{finding.layer}: {finding.why}" for finding in failed) or setting
    fix = next((finding.fix for finding in failed if finding.fix), ELSEWHERE_FIX)
    raise NoSandbox(f"no sandbox for commands works here ({why})", fix=fix)


def available() -> tuple[Finding, ...]:
    """Return what works on this machine, the better layer first."""
    return tuple(examine() for examine in _EXAMINED.values())


@lru_cache(maxsize=1)
def _bubblewrap() -> Finding:
    layer = Layer.BUBBLEWRAP
    program = bubblewrap.program()
    if sys.platform != "linux" or not seccomp.supported():
        return Finding(layer, False, NOT_LINUX, ELSEWHERE_FIX)
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
    lines = done.stderr.decode("utf-8", "replace").strip().splitlines() or ["no reason given"]
    fix = "Allow unprivileged user namespaces, or update bubblewrap (0.8 or later)"
    reason = lines[-1].removeprefix("bwrap: ").split(", likely because")[0]
    return Finding(layer, False, reason[:120], fix)


@lru_cache(maxsize=1)
def _landlock() -> Finding:
    layer = Layer.LANDLOCK
    version = landlock.version()
    if sys.platform != "linux" or not seccomp.supported():
        return Finding(layer, False, NOT_LINUX, ELSEWHERE_FIX)
    if version == 0:
        return Finding(layer, False, "the kernel has no Landlock", bubblewrap.FIX)
    if version < landlock.NEEDED:
        why = f"Landlock version {version}, needs {landlock.NEEDED} (Linux 6.12)"
        return Finding(layer, False, why, bubblewrap.FIX)
    refused = mounts_refused()
    if refused is None:
        why = f"Landlock, a mount namespace and seccomp; no sockets; {SHOWN_PROCESSES}"
        return Finding(layer, True, why)
    why = f"Landlock and seccomp; no sockets; {SHOWN_PROCESSES}; {NO_NEW_ENTRIES} ({refused})"
    return Finding(layer, True, why, MOUNTS_FIX)


@lru_cache(maxsize=1)
def mounts_refused() -> str | None:
    """Say why the Landlock layer can have no mounts of its own here; nothing where it can."""
    with tempfile.TemporaryDirectory(prefix=f"{_SCRATCH}{os.getpid()}-") as place:
        try:
            done = subprocess.run(
                mounts.command_line(place), capture_output=True, timeout=PROBE_SECONDS, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return f"no namespaces: {error}"
    lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
    return None if done.returncode == 0 else f"no namespaces: {(lines or ['?'])[-1][:200]}"


_EXAMINED: Mapping[Layer, Callable[[], Finding]] = {
    Layer.BUBBLEWRAP: _bubblewrap,
    Layer.LANDLOCK: _landlock,
}


def limitation(layer: Layer) -> str | None:
    """Return what ordinary work this layer cannot offer here, and how to have it."""
    if layer is not Layer.LANDLOCK or mounts_refused() is None:
        return None
    return f"sandbox: {NO_NEW_ENTRIES}. {MOUNTS_FIX}"


def _find(program: str, cwd: Path, env: Mapping[str, str]) -> Path:
    where = str(cwd / program) if "/" in program else program
    if path := shutil.which(where, path=env.get("PATH")):
        return Path(path)
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
    path = Path(tempfile.mkdtemp(prefix=f"{_SCRATCH}{os.getpid()}-"))
    try:
        (path / "home").mkdir()
        yield path
    finally:
        remove_folder(str(path))
