"""Run a command on the user's tree: in a cage, with what it changed written down."""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import secrets
import shlex
import shutil
import time
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from typing import Protocol

from evercontext.domain.tool import Caller, FileChange, Mode
from evercontext.errors import NoSandbox
from evercontext.files.listing import SKIPPED
from evercontext.files.policy import FilePolicy
from evercontext.process.environment import filtered
from evercontext.process.limits import Limits
from evercontext.process.run import Completed, run
from evercontext.process.sandbox import Layer, Sandbox, choose
from evercontext.workspace.onlookers import rewrites

SECRETS = """
    .env .env.* .env[-_]* .ssh .gnupg .aws .azure .kube .docker .netrc _netrc .npmrc .yarnrc*
    .pypirc .pgpass .my.cnf .htpasswd .git-credentials .dockercfg id_rsa* id_dsa* id_ecdsa*
    id_ed25519* *.kdbx *.ppk
"""
"""Protected names that a command may not even read. Test certificates (*.pem, *.key) it may."""
OURS = (".evercontext", ".nebula")
"""May appear while a command runs, because we make them ourselves."""
OBEYED_SECRETS = (".npmrc", ".yarnrc*")
"""They hold tokens, and name programs that npm and yarn start."""
KEYS = ("*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore")
MOST_GUARDED = 1_000
"""Places that a cage holds without making every command slow."""
MOST_SEEN = 200_000
"""Files and directories that are looked at before a command starts."""
_SMALLER = "Run in a subdirectory with --root"


class Recorded(Protocol):
    """What a recorder says once the command is over."""

    changes: tuple[FileChange, ...]
    not_undoable: tuple[str, ...]
    complete: bool
    unsure: tuple[str, ...]


class Recorder(Protocol):
    """Whoever journals what a command does to the tree."""

    def recording(self, caller: Caller, unsure: str = "") -> AbstractAsyncContextManager[Recorded]:
        """Compare the tree before and after what happens inside."""
        ...


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a command ended, and what it left."""

    completed: Completed
    layer: Layer
    changes: tuple[FileChange, ...] = ()
    not_undoable: tuple[str, ...] = ()
    moved_away: tuple[str, ...] = ()
    """Protected places that the command made; they are in quarantine."""
    unsure: tuple[str, ...] = ()
    """Files that changed meanwhile, and more likely by somebody else."""


@dataclass(frozen=True, slots=True)
class Guarded:
    """The protected places of a tree."""

    protected: tuple[Path, ...]
    hidden: tuple[Path, ...]

    @property
    def obeyed(self) -> tuple[Path, ...]:
        """Those that some program runs or obeys."""
        secrets = (path for path in self.hidden if _named(path.name, OBEYED_SECRETS))
        return (*(path for path in self.protected if obeyed(path.name)), *secrets)


Identity = tuple[int, int] | None


class Known:
    """The protected places from before a command, told apart from what took their name.

    A cage holds a place fast, but not the directories above it: these can be moved with it, and
    others made where they were.
    """

    def __init__(self, places: Sequence[Path]) -> None:
        self._own = {_identity(path) for path in places}
        self._above = {path: _identity(path.parent) for path in places}

    def holds(self, path: Path) -> bool:
        """Tell whether this place was there before, here or elsewhere in the tree."""
        if _identity(path) in self._own:
            return True
        # Somebody saved it anew in the same directory, which no caged command can do.
        return path in self._above and self._above[path] == _identity(path.parent)


@dataclass(frozen=True, slots=True)
class CommandRunner:
    """Runs commands for callers: read-only in plan mode, journalled otherwise."""

    root: Path
    environment: Mapping[str, str]
    """Ours; a command sees the allow-list of it."""
    home: Path
    """EverContext's own folder: never visible to a command."""
    sandbox: str = "auto"
    policy: FilePolicy = field(default_factory=FilePolicy)
    recorder: Recorder | None = None
    limits: Limits = field(default_factory=Limits)
    network: bool = False

    async def run(
        self,
        argv: Sequence[str],
        caller: Caller,
        *,
        timeout: float,  # noqa: ASYNC109 - ends a process tree
        cwd: Path | None = None,
        stdin: bytes = b"",
        looks_only: bool = False,
    ) -> Outcome:
        """Run one command. Raises NoSandbox if nothing can hold it, ProgramMissing, …

        ``looks_only``: a check, which is not expected to change a file that is there already.
        """
        layer = await asyncio.to_thread(choose, self.sandbox)
        cage = await asyncio.to_thread(self._cage, layer, caller)
        known = Known((*cage.protected, *cage.hidden))
        unsure = shlex.join(argv) if looks_only and not rewrites(argv) else ""
        async with self._recording(caller, unsure) as recorded:
            completed = await run(
                argv,
                cwd=cwd or self.root,
                timeout=timeout,
                env={**filtered(self.environment), "NO_COLOR": "1"},
                stdin=stdin,
                sandbox=cage,
            )
        return Outcome(
            completed,
            layer,
            recorded.changes if recorded else (),
            recorded.not_undoable if recorded else (),
            await asyncio.to_thread(self._put_away, known),
            recorded.unsure if recorded else (),
        )

    def _cage(self, layer: Layer, caller: Caller) -> Sandbox:
        waived = layer is Layer.NONE
        found = guarded(self.root, self.policy) if waived else bounded(self.root, self.policy)
        user = self.environment.get("HOME")
        return Sandbox(
            self.root,
            layer,
            read_only=caller.mode is not Mode.AGENT,
            protected=found.protected,
            hidden=outermost((*hidden_with_targets(self.root, found.hidden), *self._own_home())),
            home=Path(user) if user else None,
            network=self.network,
            limits=self.limits,
        )

    def _own_home(self) -> tuple[Path, ...]:
        return (self.home,) if self.home.is_relative_to(self.root) else ()

    def _put_away(self, known: Known) -> tuple[str, ...]:
        """Move protected places that were not there before into quarantine.

        No cage can forbid a name that does not exist yet, and the user may have made it just now:
        so it is kept.
        """
        places = guarded(self.root, self.policy).obeyed
        appeared = sorted(path for path in places if not known.holds(path))
        quarantine = self.home / "quarantine" / time.strftime("%Y%m%d-%H%M%S")
        for path in appeared:
            quarantine.mkdir(parents=True, exist_ok=True, mode=0o700)
            shutil.move(path, quarantine / f"{path.name.lstrip('.')}-{secrets.token_hex(4)}")
        return tuple(str(path.relative_to(self.root)) for path in appeared)

    @contextlib.asynccontextmanager
    async def _recording(self, caller: Caller, unsure: str) -> AsyncIterator[Recorded | None]:
        if self.recorder is None or caller.mode is not Mode.AGENT:
            yield None
            return
        async with self.recorder.recording(caller, unsure) as recorded:
            yield recorded


def guarded(root: Path, policy: FilePolicy) -> Guarded:
    """Return the protected places below a root. Generated directories are not entered."""
    return _guarded(root, policy, math.inf, math.inf)


def bounded(
    root: Path, policy: FilePolicy, *, most: float = MOST_GUARDED, seen: float = MOST_SEEN
) -> Guarded:
    """Return the protected places below a root. Raises NoSandbox if they are too many to hold."""
    return _guarded(root, policy, most, seen)


def _guarded(root: Path, policy: FilePolicy, most: float, most_seen: float) -> Guarded:
    protected: list[Path] = []
    hidden: list[Path] = []
    seen = 0
    for folder, directories, files in os.walk(root):
        for name in (*directories, *files):
            if policy.protects(name):
                (hidden if is_secret(name) else protected).append(Path(folder, name))
        directories[:] = [
            name for name in directories if name not in SKIPPED and not policy.protects(name)
        ]
        seen += len(files) + len(directories)
        # What was not found would lie open to the command, so it does not run at all.
        if len(protected) + len(hidden) > most:
            raise NoSandbox(f"more than {most:,} protected places in this tree", fix=_SMALLER)
        if seen > most_seen:
            raise NoSandbox(f"more than {most_seen:,} files in this tree", fix=_SMALLER)
    return Guarded(tuple(protected), tuple(hidden))


def hidden_with_targets(root: Path, hidden: Iterable[Path]) -> list[Path]:
    """Return secrets, and where a secret is a link into the tree, what it points at.

    Raises NoSandbox if that is the whole tree.
    """
    places: list[Path] = []
    real = root.resolve()
    for path in hidden:
        places.append(path)
        target = _target(path)
        if target and target.is_relative_to(real):
            places.append(root / target.relative_to(real))
        if target and real.is_relative_to(target):
            name = path.relative_to(root)
            raise NoSandbox(f"{name} is a link to the whole tree", fix="Remove the link")
    return places


def outermost(places: Iterable[Path]) -> tuple[Path, ...]:
    """Return the places that lie in no other: nothing can be masked below a mask."""
    unique = dict.fromkeys(places)
    real = {path for path in unique if not path.is_symlink()}
    return tuple(path for path in unique if real.isdisjoint(path.parents))


def _target(path: Path) -> Path | None:
    try:
        return path.resolve() if path.is_symlink() else None
    except (OSError, RuntimeError):  # a link in a circle leads nowhere
        return None


def obeyed(name: str) -> bool:
    """Tell whether some program runs or obeys a protected file, unlike a certificate."""
    return name not in OURS and not _named(name, KEYS)


def is_secret(name: str) -> bool:
    """Tell whether a file or directory of this name holds secrets."""
    return _named(name, SECRETS.split())


def _named(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatch(name.lower(), pattern) for pattern in patterns)


def _identity(path: Path) -> Identity:
    try:
        found = path.lstat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
