"""Run a command on the user's tree, in a sandbox, and record what it changed."""

from __future__ import annotations

import asyncio
import contextlib
import shlex
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from evercontext.domain.tool import Caller, CommandAccess, FileChange, Mode
from evercontext.errors import NoSandbox
from evercontext.files.policy import FilePolicy
from evercontext.process.environment import filtered
from evercontext.process.resource_limits import Limits
from evercontext.process.run import Completed, OnOutput, run
from evercontext.process.sandbox import Layer, Sandbox, choose
from evercontext.workspace import interpreters
from evercontext.workspace.command_marks import CommandMark
from evercontext.workspace.generated_files import Touched, opened_caches, touched
from evercontext.workspace.interpreters import environment_of
from evercontext.workspace.planted_files import Guarded, Known, PutAway, bounded, guarded
from evercontext.workspace.read_only_commands import rewrites


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

    async def watch(self) -> None:
        """Begin to account for a command that nobody waits for."""
        ...

    async def account(self, caller: Caller, doubt: str = "") -> None:
        """Journal what such commands changed since."""
        ...

    def untold(self, caller: Caller) -> Recorded:
        """Return what was accounted to the caller's task since this was asked last."""
        ...

    async def end_watch(self) -> None:
        """End what ``watch`` began."""
        ...


@dataclass(frozen=True, slots=True)
class CommandOutcome:
    """How a command ended, and what it left."""

    completed: Completed
    layer: Layer
    access: CommandAccess = CommandAccess.SANDBOX
    """What was opened to it."""
    changes: tuple[FileChange, ...] = ()
    not_undoable: tuple[str, ...] = ()
    put_away: PutAway = field(default_factory=PutAway)
    """Protected places that the command made; they are in quarantine."""
    unsure: tuple[str, ...] = ()
    """Files that changed meanwhile, and more likely by somebody else."""
    unseen: tuple[str, ...] = ()
    """Paths that a failed command missed and that the sandbox does not show."""
    touched: tuple[Touched, ...] = ()
    """What changed among installed programs and build results: only new folders can be undone."""
    held: tuple[str, ...] = ()
    """The folders of installed programs that the command could only read."""


Tell = Callable[[str, Caller], None]
"""Says something to whoever watches the run of a caller."""


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
    tell: Tell | None = None
    readable: tuple[Path, ...] = ()
    """Places outside the root that the user shows to commands."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """What a command sees besides our environment."""

    async def run(
        self,
        argv: Sequence[str],
        caller: Caller,
        *,
        timeout: float,  # noqa: ASYNC109 - ends a process tree
        cwd: Path | None = None,
        stdin: bytes = b"",
        looks_only: bool = False,
        installs: bool = False,
        on_output: OnOutput | None = None,
    ) -> CommandOutcome:
        """Run one command. Raises NoSandbox if nothing can hold it, ProgramMissing, …

        ``looks_only``: a check, which is not expected to change a file that is there already.
        ``installs``: a person approved it to change installed programs, such as node_modules.
        ``on_output``: gets the output, however much it is, instead of the outcome.
        """
        layer = await asyncio.to_thread(self._layer, caller.access)
        env = await asyncio.to_thread(self._environment)
        places = await asyncio.to_thread(self._survey, layer)
        sandbox = await asyncio.to_thread(
            self._sandbox, layer, caller, places, env, installs=installs
        )
        held = () if installs else places.environments
        unsure = shlex.join(argv) if looks_only and not rewrites(argv) else ""
        async with (
            self._recording(caller, unsure) as recorded,
            self._clean_after(layer, caller, places.known, timeout) as cleaned,
            self._opened(caller, held) as reopened,
        ):
            since = time.time_ns()
            sandbox = replace(sandbox, reopened=reopened)
            completed = await run(
                argv,
                cwd=cwd or self.root,
                timeout=timeout,
                env={**env, **self.variables},
                stdin=stdin,
                sandbox=sandbox,
                on_output=on_output,
                keep_output=on_output is None,
            )
        done = cleaned[0] if cleaned else PutAway()
        fresh = (path for path in done.environments if path not in held or layer is Layer.NONE)
        counted = (*done.built, *fresh, *reopened)
        return CommandOutcome(
            completed,
            layer,
            caller.access,
            recorded.changes if recorded else (),
            recorded.not_undoable if recorded else (),
            done,
            recorded.unsure if recorded else (),
            unseen=() if completed.ok else sandbox.unseen(completed.text + completed.error_text),
            touched=await asyncio.to_thread(touched, self.root, counted, since),
            held=tuple(str(path.relative_to(self.root)) for path in held),
        )

    def _layer(self, access: CommandAccess) -> Layer:
        """Return what holds a command, or raise how it can run where nothing can."""
        if access is CommandAccess.OUTSIDE:
            return Layer.NONE
        try:
            return choose(self.sandbox)
        except NoSandbox as problem:
            raise NoSandbox(
                f"{problem.message}. With access=outside the user is asked to let it run without",
                fix=problem.fix,
            ) from None

    def _environment(self) -> dict[str, str]:
        return {**environment_of(self.root, filtered(self.environment)), "NO_COLOR": "1"}

    def _survey(self, layer: Layer) -> Guarded:
        look = guarded if layer is Layer.NONE else bounded
        return look(self.root, self.policy, self.environment, self.home)

    @contextlib.asynccontextmanager
    async def _opened(
        self, caller: Caller, held: Sequence[Path]
    ) -> AsyncIterator[tuple[Path, ...]]:
        if caller.mode is not Mode.AGENT:
            yield ()
            return
        caches = opened_caches(held)
        try:
            yield await asyncio.to_thread(caches.__enter__)
        finally:
            await asyncio.shield(asyncio.to_thread(caches.__exit__, None, None, None))

    def _sandbox(
        self,
        layer: Layer,
        caller: Caller,
        places: Guarded,
        env: Mapping[str, str],
        *,
        installs: bool,
    ) -> Sandbox:
        user = self.environment.get("HOME")
        held = places.protected if installs else (*places.protected, *places.environments)
        return Sandbox(
            self.root,
            layer,
            read_only=caller.mode is not Mode.AGENT,
            protected=outermost(held),
            hidden=outermost((*hidden_with_targets(self.root, places.hidden), *self._own_home())),
            readable=(*interpreters.readable(self.root, env), *self.readable),
            home=Path(user) if user else None,
            network=self.network or caller.access.covers(CommandAccess.NETWORK),
            limits=self.limits,
        )

    def _own_home(self) -> tuple[Path, ...]:
        shown = (self.root, *self.readable)
        return (self.home,) if any(map(self.home.is_relative_to, shown)) else ()

    @contextlib.asynccontextmanager
    async def _clean_after(
        self, layer: Layer, caller: Caller, known: Known, seconds: float
    ) -> AsyncIterator[list[PutAway]]:
        """Put away what a command left, however it ends; a mark stays until that is done."""
        cleaned: list[PutAway] = []
        if caller.mode is not Mode.AGENT and layer is not Layer.NONE:
            yield cleaned
            return
        caches = layer is not Layer.NONE
        mark = await asyncio.to_thread(
            CommandMark.set, self.home, self.root, known, seconds, caches=caches
        )

        def clean() -> PutAway:
            return mark.clean(self.home, self.policy, self.environment, later=False)

        try:
            yield cleaned
        except BaseException:
            # Cancelled twice, this goes on in its thread; killed, the next start does it.
            done = await asyncio.shield(asyncio.to_thread(clean))
            if done.text and self.tell:
                self.tell(done.text, caller)
            elif done.text:
                mark.tell_later(done)
            raise
        cleaned.append(await asyncio.to_thread(clean))

    @contextlib.asynccontextmanager
    async def _recording(self, caller: Caller, unsure: str) -> AsyncIterator[Recorded | None]:
        if self.recorder is None or caller.mode is not Mode.AGENT:
            yield None
            return
        async with self.recorder.recording(caller, unsure) as recorded:
            yield recorded


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
