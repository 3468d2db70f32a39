"""Call tools: every call of every tool passes ``Toolbox.call``.

find → mode → validate → hook → approve → event → run → hook → truncate → event. Nothing else calls
``Tool.run``.
"""

from __future__ import annotations

import asyncio
import dataclasses
import difflib
import math
import time
from collections.abc import Iterable, Iterator
from functools import cache

from evercontext.domain.event import Approval, Audit, Body, Event, Step, StepResult
from evercontext.domain.tool import (
    Arguments,
    Caller,
    CommandAccess,
    Effect,
    FileChange,
    Mode,
    Shown,
    Tool,
    ToolResult,
)
from evercontext.errors import (
    ApprovalDenied,
    AuditUnavailable,
    EverContextError,
    ModeRefused,
    ToolCrashed,
    ToolTimeout,
    UnknownTool,
)
from evercontext.events.log import EventLog
from evercontext.process.worker_threads import Workers
from evercontext.tools.approval_gate import (
    ApprovalQuestion,
    Gate,
    digest_of,
    nobody,
    requested_access,
)
from evercontext.tools.argument_check import check_arguments, with_relative_paths
from evercontext.tools.audit_line import line_of, writes_own_line
from evercontext.tools.diff import describe, describe_if_small
from evercontext.tools.hook_runner import Hooks
from evercontext.tools.truncate import bounded, truncate

_LONGEST_CONTENT = 200
_COMPARING = Workers("comparing", threads=2, waiting=1_000_000)
_SMALL_DIFFS_AT_ONCE = 16
"""For changes that are made already: none of them may go unrecorded because many wait."""


class Toolbox:
    """Tools by every name they answer to, behind one gate and one log."""

    def __init__(
        self,
        tools: Iterable[Tool],
        events: EventLog,
        gate: Gate | None = None,
        hooks: Hooks | None = None,
        root: str = "",
        state: str | None = None,
    ) -> None:
        """Hold some tools; ``state`` names the project's state where it is not the present one."""
        self._tools = {tool.name: tool for tool in tools}
        self._aliases = {alias: tool for tool in self._tools.values() for alias in tool.aliases}
        self._events = events
        self._gate = gate or Gate()
        self.hooks = hooks
        self._root = root
        self._state = state

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._tools.values())

    @property
    def gate(self) -> Gate:
        """Whom a call is judged by."""
        return self._gate

    def behind(self, gate: Gate) -> Toolbox:
        """The same tools behind another gate."""
        return self._with(self._tools.values(), gate)

    def along_with(self, more: Iterable[Tool]) -> Toolbox:
        """A toolbox of these tools and some more, behind the same gate."""
        return self._with([*self._tools.values(), *more], self._gate)

    def only(self, names: Iterable[str]) -> Toolbox:
        """A toolbox of fewer tools, for models that choose badly among many."""
        chosen = set(names)
        return self._with([tool for tool in self if tool.name in chosen], self._gate)

    def _with(self, tools: Iterable[Tool], gate: Gate) -> Toolbox:
        return Toolbox(tools, self._events, gate, self.hooks, self._root, self._state)

    def offered(self, mode: Mode, style: Shown = "any") -> list[Tool]:
        """The tools a caller in this mode is shown; plan mode is not even shown the others."""
        return [
            tool
            for tool in self
            if (style == "any" or tool.shown_to in ("any", style))
            and not (mode is Mode.PLAN and tool.writes)
        ]

    def find(self, name: str) -> Tool:
        """Return the tool of that name or alias; vendors that refuse dots write ``run__lint``."""
        # Some models put the name of the list before that of the tool.
        bare = name.removeprefix("functions.")
        for spelling in (name, name.replace("__", "."), bare):
            tool = self._tools.get(spelling) or self._aliases.get(spelling)
            if tool:
                return tool
        near = difflib.get_close_matches(name, [*self._tools, *self._aliases], n=3)
        offered = ", ".join(near or sorted(self._tools))
        raise UnknownTool(f"there is no tool {name[:80]!r}", fix=f"Use one of: {offered}")

    async def call(self, name: str, arguments: Arguments, caller: Caller) -> ToolResult:
        """Make one call. Failures come back in the result, so that a model can read them."""
        try:
            tool = self.find(name)
        except EverContextError as error:
            return self._refused(name, arguments, caller, error)
        return await self.call_adopted(tool, arguments, caller)

    async def call_adopted(self, tool: Tool, arguments: Arguments, caller: Caller) -> ToolResult:
        """Make one call of a tool at hand: one of these, or one that an outside server offers."""
        try:
            _refuse_by_mode(tool, caller)
            arguments = await self._checked(tool, arguments)
            must_ask = False
            if self.hooks:
                changed, must_ask = await self.hooks.before(tool, arguments, caller)
                if changed is not arguments:
                    arguments = await self._checked(tool, changed)
            consent = await self._consent(tool, arguments, caller, must_ask)
        except EverContextError as error:
            return self._refused(tool.name, arguments, caller, error)
        if tool.leads_on:
            # It only leads to another call: that one is the step, if it comes to one.
            try:
                result = await _run(tool, arguments, caller.on_the_way(self, caller.parent))
            except EverContextError as error:
                return self._refused(tool.name, arguments, caller, error)
            return _shortened(result, tool)[0]
        try:
            step = await self._announce(tool, arguments, caller, consent.access)
        except EverContextError as error:
            return ToolResult.failed(error)
        started = time.monotonic()
        if caller.mode is Mode.DRY_RUN and tool.writes:
            result = _would(tool, consent.changes)
        elif consent.digest is not None and consent.digest != digest_of(
            tool, arguments, self._root
        ):
            result = ToolResult.failed(_changed(tool))
        else:
            approved = consent.digest is not None or self._gate.ruled(tool, arguments)
            inside = caller.on_the_way(self, step, approved, consent.access)
            try:
                result = await _run(tool, arguments, inside)
            except EverContextError as error:
                result = ToolResult.failed(error)
        if self.hooks:
            about = dataclasses.replace(caller, parent=step)
            result = await self.hooks.after(tool, arguments, result, about)
        about = dataclasses.replace(caller, access=consent.access)
        return await self._record(tool, arguments, result, about, step, started)

    async def _checked(self, tool: Tool, arguments: Arguments) -> Arguments:
        """Return the arguments as every rule, question and log sees them."""
        return with_relative_paths(tool, await check_arguments(tool, arguments), self._root)

    async def _consent(
        self, tool: Tool, arguments: Arguments, caller: Caller, must_ask: bool
    ) -> _Consent:
        """Return what the call would change and may use, once it is allowed to."""
        verdict = self._gate.policy(tool, arguments, caller)
        if verdict == "deny":
            raise ApprovalDenied(f"a rule denies {tool.name}")
        dry = caller.mode is Mode.DRY_RUN
        asks = (verdict == "ask" or must_ask) and not dry
        changes: tuple[FileChange, ...] = ()
        if tool.preview and (asks or (dry and tool.writes)):
            changes = await tool.preview(arguments, caller)
        requested, granted = requested_access(tool, arguments), CommandAccess.SANDBOX
        if tool.writes and not dry:
            granted = self._gate.granted(tool, arguments)
        if requested is not CommandAccess.SANDBOX and not dry and not granted.covers(requested):
            asks = self._can_open(tool, requested)
        if not asks:
            return _Consent(changes, access=granted)
        question = ApprovalQuestion(tool, arguments, changes, caller, self._root)
        opened = max((await self._ask(question), granted), key=lambda level: level.rank)
        # What was shown is what is done: a file may have changed while somebody looked at it.
        if tool.preview and await tool.preview(arguments, caller) != changes:
            raise _changed(tool)
        return _Consent(changes, question.digest, opened)

    def _can_open(self, tool: Tool, requested: CommandAccess) -> bool:
        """Return true if somebody can be asked to open more to a call; raise otherwise."""
        if self._gate.ask is nobody:
            named = tool.name == "run_command"
            rule = f"{requested.value}(COMMAND *)" if named else f"{tool.name}(https://SITE/*)"
            raise ApprovalDenied(
                f"nobody can be asked whether {tool.name} may run {requested.phrase}",
                fix=f"Go on without; the user allows it by a rule {rule}",
            )
        return True

    async def _ask(self, question: ApprovalQuestion) -> CommandAccess:
        answer = await self._gate.ask(question)
        opened = answer.access if question.may_open else CommandAccess.SANDBOX
        opened = max(opened, question.requested, key=lambda level: level.rank)
        name, caller = question.tool.name, question.caller
        self._events.emit(
            Approval(
                tool=name,
                allowed=answer.allowed,
                by=answer.by,
                feedback=answer.feedback,
                access=_opened(opened) if answer.allowed else None,
                digest=question.digest,
            ),
            trace_id=caller.trace_id,
            parent=caller.parent,
        )
        if not answer.allowed:
            feedback = f": {answer.feedback}" if answer.feedback else ""
            raise ApprovalDenied(f"{name} was not approved ({answer.by}){feedback}")
        return opened

    async def _announce(
        self, tool: Tool, arguments: Arguments, caller: Caller, access: CommandAccess
    ) -> str:
        body = Step(
            tool=tool.name,
            arguments=_logged(tool, arguments, caller),
            effects=_names(tool.effects),
            door=caller.door,
            mode=caller.mode,
            origin=tool.origin,
            access=_opened(access),
            state=self._state,
        )
        # A write that the log could not remember is not made.
        writes = tool.writes and caller.mode is Mode.AGENT
        trace_id, parent = caller.trace_id, caller.parent
        if not writes:
            return self._emit(body, caller, parent).id
        if not tool.synced:
            return self._events.emit_audited(body, trace_id=trace_id, parent=parent).id
        return (await self._events.emit_durable(body, trace_id=trace_id, parent=parent)).id

    def _refused(
        self, name: str, arguments: Arguments, caller: Caller, error: EverContextError
    ) -> ToolResult:
        body = Step(
            tool=name[:80],
            arguments=bounded(arguments) if isinstance(arguments, dict) else {},
            effects=(),
            door=caller.door,
            mode=caller.mode,
        )
        step = self._events.emit(body, trace_id=caller.trace_id, parent=caller.parent).id
        result = ToolResult.failed(error)
        self._emit_result(name[:80], result, caller, step, 0, False)
        if writes_own_line(caller):
            line = line_of(name, arguments, result, caller, 0)
            self._events.note(line, trace_id=caller.trace_id, parent=step, needed=False)
        return result

    def _audit(
        self, tool: Tool, line: Audit, result: ToolResult, caller: Caller, step: str
    ) -> ToolResult:
        """Write the line of a call that no server writes one for."""
        tried = caller.mode is Mode.DRY_RUN and tool.writes
        if not tool.audited or tried or not writes_own_line(caller):
            return result
        needed = result.ok and tool.writes
        try:
            self._events.note(line, trace_id=caller.trace_id, parent=step, needed=needed)
        except AuditUnavailable as error:
            # The write is there, but nobody could prove it: it is not acknowledged.
            return dataclasses.replace(ToolResult.failed(error), changes=result.changes)
        return result

    async def _record(
        self,
        tool: Tool,
        arguments: Arguments,
        result: ToolResult,
        caller: Caller,
        step: str,
        started: float,
    ) -> ToolResult:
        result, cut = _shortened(result, tool)
        duration = round((time.monotonic() - started) * 1000)
        line = line_of(tool.name, arguments, result, caller, duration)
        result = self._audit(tool, line, result, caller, step)
        self._emit_result(tool.name, result, caller, step, duration, cut)
        if result.changes:
            # The change is made: whoever is cancelled here still leaves a trace that says so.
            telling = asyncio.ensure_future(self.tell_changes(result.changes, caller, step))
            try:
                await asyncio.shield(telling)
            except asyncio.CancelledError:
                await telling
                raise
        return result

    async def tell_changes(
        self, changes: tuple[FileChange, ...], caller: Caller, step: str
    ) -> None:
        """Log the diffs of changes that a step made."""
        applied = caller.mode is not Mode.DRY_RUN
        for number, change in enumerate(changes, start=1):
            diff = describe_if_small(change, applied=applied)
            if diff is None:
                diff = await _COMPARING.run(describe, change, applied=applied)
            elif number % _SMALL_DIFFS_AT_ONCE == 0:
                # A command may have changed thousands of small files, and others wait.
                await asyncio.sleep(0)
            self._emit(diff, caller, step)

    def _emit_result(
        self, name: str, result: ToolResult, caller: Caller, step: str, duration: int, cut: bool
    ) -> None:
        body = StepResult(
            tool=name,
            ok=result.ok,
            text=result.text,
            error=result.error.code if result.error else None,
            duration_ms=duration,
            truncated=cut,
            exit_code=_exit_code(result),
            hits=result.hits,
            state=self._state,
        )
        self._emit(body, caller, step)

    def _emit(self, body: Body, caller: Caller, parent: str | None) -> Event:
        """Log an event; those of a request are written together with its audit line."""
        emit = self._events.emit if writes_own_line(caller) else self._events.emit_soon
        return emit(body, trace_id=caller.trace_id, parent=parent)


def _logged(tool: Tool, arguments: Arguments, caller: Caller) -> Arguments:
    """Return the arguments as the step has them.

    Servers write many files, and nobody resumes a request: there the diff alone has the content.
    """
    content = arguments.get("content") if tool.preview and not writes_own_line(caller) else None
    if isinstance(content, str) and len(content) > _LONGEST_CONTENT:
        arguments = {**arguments, "content": f"[{len(content)} characters: see the diff]"}
    logged: Arguments = bounded(arguments)
    return logged


@dataclasses.dataclass(frozen=True, slots=True)
class _Consent:
    """What was allowed of a call."""

    changes: tuple[FileChange, ...] = ()
    digest: str | None = None
    """Of the call, if a person allowed it."""
    access: CommandAccess = CommandAccess.SANDBOX


def _opened(access: CommandAccess) -> str | None:
    return None if access is CommandAccess.SANDBOX else access.value


def _refuse_by_mode(tool: Tool, caller: Caller) -> None:
    if caller.mode is Mode.PLAN and tool.writes:
        raise ModeRefused(
            f"{tool.name} changes things and plan mode changes nothing",
            fix="Put it into the plan; agent mode will do it",
        )


def _changed(tool: Tool) -> ApprovalDenied:
    text = f"{tool.name} is not what was approved: it changed while somebody was asked"
    return ApprovalDenied(text, fix="Look at it anew and call it again")


def _would(tool: Tool, changes: tuple[FileChange, ...]) -> ToolResult:
    paths = ", ".join(change.path for change in changes)
    text = (
        f"dry run: {tool.name} would change {paths}" if paths else f"dry run: {tool.name} not run"
    )
    return ToolResult(text=text, changes=changes, data={"dry_run": True})


def _shortened(result: ToolResult, tool: Tool) -> tuple[ToolResult, bool]:
    text, cut = truncate(result.text, tool.longest)
    return (dataclasses.replace(result, text=text) if cut else result), cut


async def _run(tool: Tool, arguments: Arguments, caller: Caller) -> ToolResult:
    """Run the tool; whatever goes wrong is an error of ours."""
    try:
        running = tool.run(arguments, caller)
        if tool.timeout == math.inf:
            return await running
        async with asyncio.timeout(tool.timeout):
            return await running
    except EverContextError:
        raise
    except TimeoutError:
        raise ToolTimeout(f"{tool.name} took more than {tool.timeout:g} s") from None
    except Exception as problem:
        reason = f"{type(problem).__name__}: {problem}"
        raise ToolCrashed(f"{tool.name} failed unexpectedly: {reason}") from problem


def _exit_code(result: ToolResult) -> int | None:
    code = result.data.get("exit_code") if isinstance(result.data, dict) else None
    return code if isinstance(code, int) else None


@cache
def _names(effects: Effect) -> tuple[str, ...]:
    return tuple(effect.name.lower() for effect in effects if effect.name)
