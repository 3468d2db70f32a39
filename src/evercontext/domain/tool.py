"""Define a tool: the one interface of everything that can be done."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import Flag, StrEnum, auto
from typing import Any, Literal, Protocol

from evercontext.domain.caller_scope import NOTHING, Aside, Scope
from evercontext.domain.principal import Principal
from evercontext.domain.sent_tool_output import View
from evercontext.errors import EverContextError


class Effect(Flag):
    """What a tool can do to the world. Decides plan mode, approval and MCP hints."""

    READ = auto()
    WRITE = auto()
    EXECUTE = auto()
    NETWORK = auto()


_CHANGING = (Effect.WRITE | Effect.EXECUTE).value
OUTSIDE = Effect.WRITE | Effect.EXECUTE | Effect.NETWORK
"""What is assumed of an adopted tool until somebody trusts it."""


class Mode(StrEnum):
    """How far a caller may go."""

    AGENT = "agent"
    PLAN = "plan"
    """Nothing is written, by any route."""
    DRY_RUN = "dry-run"
    """Writes are previewed and not made."""


class Door(StrEnum):
    """The way a call came in; policy differs per entrance."""

    RUN = "run"
    CHAT = "chat"
    REST = "rest"
    MCP = "mcp"


class CommandAccess(StrEnum):
    """What a command may use besides the project; each value includes those before it."""

    SANDBOX = "sandbox"
    NETWORK = "network"
    """In the sandbox, with the network of this machine."""
    OUTSIDE = "outside"
    """As the user's own programs run: no sandbox."""

    @property
    def rank(self) -> int:
        """Return its place in the order."""
        return tuple(CommandAccess).index(self)

    def covers(self, other: CommandAccess) -> bool:
        """Tell whether whoever may have this may have the other."""
        return self.rank >= other.rank

    @property
    def phrase(self) -> str:
        """Return how it is called on a screen."""
        return _PHRASES[self]


_PHRASES = {
    CommandAccess.SANDBOX: "in the sandbox",
    CommandAccess.NETWORK: "with network",
    CommandAccess.OUTSIDE: "outside the sandbox",
}


@dataclass(frozen=True, slots=True)
class FileChange:
    """What happened, or would happen, to one file. ``None`` content: it did or will not exist."""

    path: str
    before: str | None
    after: str | None
    modes: tuple[int, int] | None = None
    """Its permissions before and after, where they changed."""
    undoable: bool = True
    """False if the old content was too large to be kept."""

    @property
    def real(self) -> bool:
        """False if the file is as it was."""
        return self.before != self.after or self.modes is not None


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The outcome of a call: for the model, for programs, for people."""

    text: str
    data: Any = None
    display: str | None = None
    changes: tuple[FileChange, ...] = ()
    error: EverContextError | None = None
    hits: int | None = None
    """How much a search found: said on the line of its call."""
    raw: str | None = None
    """``data`` as the JSON that a foreign server wrote, so that a relay need not rebuild it."""

    @property
    def ok(self) -> bool:
        """True unless the call failed."""
        return self.error is None

    @classmethod
    def failed(cls, error: EverContextError) -> ToolResult:
        """Return the result of a call that ended in ``error``."""
        return cls(text=str(error), error=error)


class Road(Protocol):
    """The toolbox that a call came through, for tools that call tools."""

    def offered(self, mode: Mode, style: Shown = "any") -> list[Tool]:
        """The tools that this caller is shown."""
        ...

    async def call(self, name: str, arguments: Arguments, caller: Caller) -> ToolResult:
        """Call one of the toolbox's own tools."""
        ...

    async def call_adopted(self, tool: Tool, arguments: Arguments, caller: Caller) -> ToolResult:
        """Call a tool that is not in the toolbox, by the same road."""
        ...


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls, through which entrance, in which mode, as part of which trace."""

    trace_id: str
    door: Door
    mode: Mode = Mode.AGENT
    principal: Principal = field(default_factory=Principal)
    parent: str | None = None
    """The event that this call is part of."""
    session: str | None = None
    scope: Scope | None = None
    """What of the tool catalog is for this caller; ``None``: what is for whoever works here."""
    aside: Aside = NOTHING
    road: Road | None = field(default=None, repr=False, compare=False)
    """Filled in on the way to the tool."""
    approved: bool = False
    """Whether a person has approved this very call. Filled in on the way, too."""
    view: View | None = field(default=None, repr=False, compare=False)
    """What the calling model sees; ``None``: whoever calls sees every result whole."""
    access: CommandAccess = CommandAccess.SANDBOX
    """What a person, or a rule of theirs, opened to the command of this very call."""

    def on_the_way(
        self,
        road: Road,
        parent: str | None,
        approved: bool = False,
        access: CommandAccess = CommandAccess.SANDBOX,
    ) -> Caller:
        """The same caller inside a call. Spelled out: this is done several times in every call."""
        return Caller(
            self.trace_id,
            self.door,
            self.mode,
            self.principal,
            parent,
            self.session,
            self.scope,
            self.aside,
            road,
            approved,
            self.view,
            access,
        )


Shown = Literal["any", "native", "json"]
Arguments = Mapping[str, Any]
Run = Callable[[Arguments, Caller], Awaitable[ToolResult]]
Check = Callable[[Arguments], Arguments]
Preview = Callable[[Arguments, Caller], Awaitable[tuple[FileChange, ...]]]
Caution = Callable[[Arguments], str | None]


@dataclass(frozen=True, slots=True)
class Tool:
    """One capability. Only ``Toolbox.call`` ever calls ``run``."""

    name: str
    """Canonical: snake_case, dots allowed (``run.lint``)."""
    description: str
    arguments: Mapping[str, Any]
    """JSON Schema of the arguments object."""
    effects: Effect
    run: Run
    origin: str = "evercontext"
    aliases: tuple[str, ...] = ()
    check: Check | None = None
    """Validates and coerces arguments; ``None``: the JSON Schema is applied as it stands."""
    preview: Preview | None = None
    """What a call would change: shown for approval, and instead of running in a dry run."""
    caution: Caution | None = None
    """Why a call is asked for every time, whatever was allowed before; ``None``: it is not."""
    synced: bool = True
    """Whether a step that writes is on disk before it runs; otherwise it is written, and on disk a
    moment later. What is done elsewhere cannot be undone here, so nothing waits for the disk."""
    audited: bool = True
    """Whether a call leaves its audit line here; a gateway elsewhere writes the line of its own."""
    delegates: bool = False
    """Whether others do what it is asked for: it changes nothing itself, and its failure leaves
    work undone."""
    leads_on: bool = False
    """Whether it only leads to a call of another tool, which is then the step of the trace."""
    timeout: float = 60.0
    longest: int = 30_000
    """Characters of result text a model is given; the middle of more is left out."""
    shown_to: Shown = "any"
    """Which codec lists it: ``native`` tool calling, Hermes ``json`` (also REST and MCP), or any.
    Every entrance accepts every name."""

    @property
    def writes(self) -> bool:
        """True if a call can change anything outside this process."""
        # Numbers, because this is asked several times a call and flags are slow to combine.
        return bool(self.effects.value & _CHANGING)
