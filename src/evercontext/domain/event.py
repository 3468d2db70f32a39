"""Define the events: one envelope around a closed union of bodies.

A trace reads task → plan → step → tool_result → diff → final. ``TRANSIENT`` bodies feed live
views and are never written.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

SCHEMA = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """Base of every body; ``type`` is its name on the wire."""

    type: ClassVar[str]
    transient: ClassVar[bool] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Task(Body):
    """A task began."""

    type = "task"
    text: str
    root: str
    model: str
    mode: str
    door: str
    session: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan(Body):
    """A plan was made, read or implied."""

    type = "plan"
    tasks: tuple[Mapping[str, Any], ...]
    source: str
    """``implicit``, ``cache``, ``file``, ``edited``, ``resume`` or the planner's name."""
    finished: tuple[str, ...] = ()
    """Ids of tasks that were done before and are not done again."""
    tree: str = ""
    """Hash of the tree that it was made for, where that is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskBegan(Body):
    """One task of a plan began; what it does are children of this event."""

    type = "task_began"
    id: str
    title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskEnded(Body):
    """One task of a plan ended."""

    type = "task_ended"
    id: str
    title: str
    status: str
    """How it ended; ``skipped`` where it was never begun."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelReply(Body):
    """A model answered one turn."""

    type = "model_reply"
    model: str
    turn: int
    text: str
    calls: tuple[Mapping[str, Any], ...] = ()
    stop: str = "end"
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    estimated_tokens: int = 0
    """What the request was thought to cost before the provider counted it."""
    cost_usd: float | None = None
    duration_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Step(Body):
    """A tool call is about to run; durable before any write."""

    type = "step"
    tool: str
    arguments: Mapping[str, Any]
    effects: tuple[str, ...]
    door: str
    mode: str
    origin: str = "evercontext"
    access: str | None = None
    """What was opened to a command: ``network``, or ``outside`` the sandbox."""
    state: str | None = None
    """The state of the project it is about, where that is not the present one: ``before`` the
    change, to tell what was red already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepResult(Body):
    """How a tool call ended."""

    type = "tool_result"
    tool: str
    ok: bool
    text: str
    error: str | None = None
    duration_ms: int = 0
    truncated: bool = False
    exit_code: int | None = None
    """Of the command that the tool ran; the first that is not 0 where it ran several."""
    hits: int | None = None
    """How much a search found."""
    state: str | None = None
    """As in the step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Diff(Body):
    """A file changed, or in a dry run would have."""

    type = "diff"
    path: str
    kind: str
    """``created``, ``changed`` or ``deleted``."""
    added: int
    removed: int
    diff: str
    applied: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval(Body):
    """Somebody, or a rule, answered a question."""

    type = "approval"
    tool: str
    allowed: bool
    by: str
    feedback: str | None = None
    access: str | None = None
    """What was opened to a command: ``network``, or ``outside`` the sandbox."""
    digest: str | None = None
    """Of the call that was asked about: the tool, its effects and arguments, and the root."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry(Body):
    """Something failed and is tried once more, or another model takes over."""

    type = "retry"
    what: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit(Body):
    """A limit ended the task."""

    type = "limit"
    kind: str
    allowed: float
    used: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence(Body):
    """Search results that were shown to a model."""

    type = "evidence"
    query: str
    paths: tuple[str, ...]
    scores: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalled(Body):
    """Memories that were shown to a model."""

    type = "recalled"
    query: str
    memories: tuple[str, ...]
    """Their ids, nearest first."""
    similarities: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextAssembled(Body):
    """A context was put together; the names are those of its metrics (R9)."""

    type = "context"
    context_assembly_latency_ms: float
    context_token_count: int
    memory_layer_usage: Mapping[str, int]
    token_limit: int
    compression_applied: bool
    degraded: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Compacted(Body):
    """The older part of a conversation became a handover."""

    type = "compacted"
    before_tokens: int
    after_tokens: int
    messages: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent(Body):
    """A model was asked for something that is no turn of a task."""

    type = "spent"
    purpose: str
    """``summary`` of a session, or ``handover`` of its older part."""
    model: str
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cost_usd: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification(Body):
    """The harness ran a check; the model has no say in it."""

    type = "verification"
    kind: str
    command: tuple[str, ...]
    exit_code: int | None
    summary: str
    counts: Mapping[str, int] = field(default_factory=dict)
    """How many passed, failed, were skipped, where the command says so."""
    verdict: str = "not verified"
    """What it proves: ``verified``, ``red``, ``not verified`` …"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit(Body):
    """One request to a server, without content (E25)."""

    type = "audit"
    method: str
    path: str
    size: int
    status: int
    door: str
    principal: str | None = None
    given_trace_id: str | None = None
    """What the caller sent as its trace id, where that was none; escaped and cut."""
    request_id: str | None = None
    """The number the client gave its call, at the tool router."""
    server: str | None = None
    """The outside server that was called, at the tool router."""
    duration_ms: int | None = None
    access: str | None = None
    """What was opened to a command: ``network``, or ``outside`` the sandbox."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Indexed(Body):
    """The code index caught up with some files."""

    type = "indexed"
    added: int = 0
    changed: int = 0
    deleted: int = 0
    renamed: int = 0
    embedded: int = 0
    duration_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationState(Body):
    """An evaluation entered another state (L19)."""

    type = "evaluation_state"
    state: str
    attempt: int = 0
    detail: str = ""
    document: str = ""
    """Its path, where it has one; said when it begins."""
    root: str = ""
    """The project it was begun in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairAttempt(Body):
    """One try to make red checks green."""

    type = "repair"
    number: int
    by: str
    """A fixer's name, or the model's."""
    failures_before: int
    failures_after: int
    green: bool
    step: str = ""
    """``better``, ``other`` (as many, but a different one), ``same``, ``worse``, ``rejected``."""
    kept: bool = True
    """False if the attempt was taken back."""
    paths: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Renamed(Body):
    """A file was renamed, and the index was asked about it afterwards."""

    type = "renamed"
    old: str
    new: str
    found_only_under_new_path: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RolledBack(Body):
    """What a failed task had changed was taken back."""

    type = "rolled_back"
    restored: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    kept: tuple[Mapping[str, Any], ...] = ()
    """Files left as they are, each with its reason."""
    undo: str = ""
    """The trace of this; undoing it brings the changes back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HookRan(Body):
    """A hook of the user's or the project's ran."""

    type = "hook"
    event: str
    command: str
    origin: str
    decision: str
    """``none``, ``block``, ``ask``, ``changed`` or ``error``."""
    exit_code: int | None = None
    text: str = ""
    duration_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice(Body):
    """Something a person should know."""

    type = "notice"
    level: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Final(Body):
    """A task ended."""

    type = "final"
    status: str
    """``done``, ``failed``, ``refused``, ``invalid``, ``red``, ``denied``, ``limit`` …"""
    text: str
    exit_code: int
    turns: int = 0
    duration_ms: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    """Of the input: what the provider had in its cache."""
    cost_usd: float | None = None
    error: str | None = None
    changed: tuple[str, ...] = ()
    note: str | None = None
    """What a person should know of the verdict and is no error: why it is not verified, what was
    red before, that they said no themselves."""
    verified: str | None = None
    """``verified``, ``verified with fewer tests`` (than ran the time before), ``red before, too``,
    ``not verified`` or ``red``, by checks that the harness ran after changes."""
    tasks: int = 1
    tasks_done: int = 0
    not_undoable: tuple[str, ...] = ()
    """Of the changed files those whose old content was too large to be kept."""
    rolled_back: tuple[str, ...] = ()
    """Files that were changed and taken back, because the task did not end well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextPiece(Body):
    """A piece of streaming text, for live views only."""

    type = "text"
    transient = True
    text: str
    thought: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown(Body):
    """A body written by a newer version; kept as it is."""

    type = "unknown"
    name: str
    data: Mapping[str, Any] = field(default_factory=dict)


BODIES: Mapping[str, type[Body]] = {kind.type: kind for kind in Body.__subclasses__()}
_NAMES = {kind: tuple(row.name for row in dataclasses.fields(kind)) for kind in BODIES.values()}


@dataclass(frozen=True, slots=True)
class Event:
    """The envelope."""

    id: str
    at: str
    """ISO 8601 in UTC, microseconds."""
    trace_id: str
    body: Body
    parent: str | None = None
    schema: int = SCHEMA

    def to_json(self) -> dict[str, Any]:
        """The event as one flat JSON object."""
        body = self.body
        name, data = (
            (body.name, dict(body.data))
            if isinstance(body, Unknown)
            else (body.type, {name: getattr(body, name) for name in _NAMES[type(body)]})
        )
        head = {"id": self.id, "at": self.at, "trace_id": self.trace_id, "parent": self.parent}
        return {**head, "v": self.schema, "type": name, "data": data}

    @classmethod
    def from_json(cls, line: Mapping[str, Any]) -> Event:
        """Read what ``to_json`` wrote, by this version or a newer one."""
        kind, data = BODIES.get(line["type"]), line.get("data") or {}
        body = _revive(kind, data) if kind else None
        return cls(
            id=line["id"],
            at=line["at"],
            trace_id=line["trace_id"],
            body=body or Unknown(name=line["type"], data=data),
            parent=line.get("parent"),
            schema=line.get("v", SCHEMA),
        )


def _revive(kind: type[Body], data: Mapping[str, Any]) -> Body | None:
    known = _NAMES[kind]
    values = {k: tuple(v) if isinstance(v, list) else v for k, v in data.items() if k in known}
    try:
        return kind(**values)
    except TypeError:
        return None
