"""Run the user's hooks, which see what the agent is about to do and may refuse it.

Each gets one JSON object on stdin. Exit 0: go on, and stdout may hold a decision as JSON. Exit 2:
no, and stderr says why, to the model. Anything else is an error of the hook, told and passed over.
"""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evercontext.domain.event import HookRan, Notice
from evercontext.domain.tool import Arguments, Caller, FileChange, Mode, Tool, ToolResult
from evercontext.errors import EverContextError, HookBlocked
from evercontext.events.log import EventLog
from evercontext.process.run import Completed
from evercontext.settings.hook_config import Hook
from evercontext.tools.diff import describe

FAMILIES = (
    ("write_file", "writeFile", "Write"),
    ("edit_file", "replaceInFile", "editFile", "Edit", "MultiEdit"),
    ("read_file", "readFile", "Read"),
    ("search_files", "searchInDirectory", "Grep"),
    ("list_files", "list", "Glob", "LS"),
    ("delete_file", "deleteFile"),
    ("move_file", "moveFile"),
    ("run_command", "Bash"),
)
"""One tool has a name for each kind of model, and one that users of other agents know. A matcher
may say any of them; a hook is told the first."""
BLOCKS = 2
LAST = "SessionEnd"
"""Comes after the end that was told."""
_LONGEST = 10_000
_LONGEST_RESPONSE = 50_000


@dataclass(frozen=True, slots=True)
class Ran:
    """How a hook ended, and what it wrote."""

    completed: Completed
    changes: tuple[FileChange, ...] = ()


RunHook = Callable[[Hook, bytes, Caller], Awaitable[Ran]]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the hooks of one event said together."""

    blocked: str | None = None
    ask: bool = False
    arguments: Mapping[str, Any] | None = None
    context: str = ""
    """What the model should know, said by a hook."""


@dataclass(frozen=True, slots=True)
class Hooks:
    """The configured hooks, and how one is run."""

    configured: Sequence[Hook]
    run: RunHook
    events: EventLog
    cwd: str

    def at(self, event: str, *names: str) -> list[Hook]:
        """The hooks of an event, for a tool by any of its names."""
        hooks = [hook for hook in self.configured if hook.event == event]
        return [hook for hook in hooks if not names or hook.matches(*names)]

    async def before(
        self, tool: Tool, arguments: Arguments, caller: Caller
    ) -> tuple[Arguments, bool]:
        """Return the arguments a call goes on with, and if it must be asked for; or raise."""
        verdict = await self._fire("PreToolUse", self._call(tool, arguments), caller, _names(tool))
        if verdict.blocked is not None:
            raise HookBlocked(f"a hook blocked {tool.name}: {verdict.blocked}")
        changed = verdict.arguments
        return (arguments if changed is None else changed), verdict.ask

    async def after(
        self, tool: Tool, arguments: Arguments, result: ToolResult, caller: Caller
    ) -> ToolResult:
        """Return the result with what the hooks say about it."""
        if caller.mode is Mode.DRY_RUN or not self.at("PostToolUse", *_names(tool)):
            return result
        error = result.error.code if result.error else None
        response = {"ok": result.ok, "text": result.text[:_LONGEST_RESPONSE], "error": error}
        facts = self._call(tool, arguments) | {"tool_response": response}
        verdict = await self._fire("PostToolUse", facts, caller, _names(tool))
        messages = [text for text in (verdict.blocked, verdict.context) if text]
        if not messages:
            return result
        return dataclasses.replace(result, text="\n\n".join([result.text, *map(_marked, messages)]))

    async def fire(self, event: str, facts: Mapping[str, Any], caller: Caller) -> Verdict:
        """Run the hooks of an event that is about no tool."""
        return await self._fire(event, facts, caller, ())

    async def _fire(
        self, event: str, facts: Mapping[str, Any], caller: Caller, names: Sequence[str]
    ) -> Verdict:
        combined = Verdict()
        for hook in self.at(event, *names):
            hook_input = self._input(event, facts, caller)
            if combined.arguments is not None:
                hook_input["tool_input"] = combined.arguments
            verdict = await self._ask(hook, hook_input, caller)
            combined = Verdict(
                verdict.blocked,
                combined.ask or verdict.ask,
                combined.arguments if verdict.arguments is None else verdict.arguments,
                "\n".join(text for text in (combined.context, verdict.context) if text),
            )
            if combined.blocked is not None:
                break
        return combined

    async def _ask(self, hook: Hook, facts: Mapping[str, Any], caller: Caller) -> Verdict:
        started = time.monotonic()
        stdin = json.dumps(facts, ensure_ascii=False, default=str).encode("utf-8", "replace")
        try:
            ran = await self.run(hook, stdin, caller)
        except EverContextError as problem:
            self._tell(hook, None, "error", str(problem), started, caller)
            return Verdict()
        ended = ran.completed
        verdict, decision = judge(hook.event, ended)
        reason = _why(ended) if decision == "error" else verdict.blocked or ""
        event = self._tell(hook, ended.exit_code, decision, reason, started, caller)
        for change in ran.changes:
            self.events.emit(describe(change), trace_id=caller.trace_id, parent=event)
        return verdict

    def _tell(
        self,
        hook: Hook,
        code: int | None,
        decision: str,
        text: str,
        started: float,
        caller: Caller,
    ) -> str:
        body = HookRan(
            event=hook.event,
            command=hook.command,
            origin=hook.origin,
            decision=decision,
            exit_code=code,
            text=text[:500],
            duration_ms=round((time.monotonic() - started) * 1000),
        )
        if decision == "error" and hook.event != LAST:
            # Who relies on a guard has to see that it did not guard.
            about = f"the {hook.event} hook {hook.command[:80]} failed and was passed over: {text}"
            notice = Notice(level="warning", text=about[:500])
            self.events.emit(notice, trace_id=caller.trace_id, parent=caller.parent)
        return self.events.emit(body, trace_id=caller.trace_id, parent=caller.parent).id

    def _input(self, event: str, facts: Mapping[str, Any], caller: Caller) -> dict[str, Any]:
        return {
            "session_id": caller.session or caller.trace_id,
            "trace_id": caller.trace_id,
            "cwd": self.cwd,
            "permission_mode": "plan" if caller.mode is Mode.PLAN else "default",
            "hook_event_name": event,
            **facts,
        }

    def _call(self, tool: Tool, arguments: Arguments) -> dict[str, Any]:
        return {"tool_name": _names(tool)[0], "tool_input": dict(arguments)}


def judge(event: str, ended: Completed) -> tuple[Verdict, str]:
    """What a hook that has ended says, and that in one word."""
    if ended.timed_out:
        return Verdict(), "error"
    if ended.exit_code == BLOCKS:
        why = ended.error_text.strip()[:_LONGEST] or "no reason given"
        return Verdict(blocked=why), "block"
    if ended.exit_code != 0:
        return Verdict(), "error"
    text = ended.text.strip()
    if text.startswith("{"):
        try:
            return _decided(json.loads(text))
        except (ValueError, RecursionError):
            return Verdict(), "error"
    # Words are taken up where a session or a prompt begins, as elsewhere.
    takes_words = event in ("SessionStart", "UserPromptSubmit")
    return Verdict(context=text[:_LONGEST] if takes_words else ""), "none"


def _decided(answer: Mapping[str, Any]) -> tuple[Verdict, str]:
    inner = answer.get("hookSpecificOutput")
    about: Mapping[str, Any] = inner if isinstance(inner, Mapping) else {}
    decision = about.get("permissionDecision", answer.get("decision"))
    reason = str(about.get("permissionDecisionReason") or answer.get("reason") or "no reason given")
    context = str(about.get("additionalContext") or "")[:_LONGEST]
    if answer.get("continue") is False:
        return Verdict(blocked=str(answer.get("stopReason") or reason)[:_LONGEST]), "block"
    if decision in ("deny", "block"):
        return Verdict(blocked=reason[:_LONGEST]), "block"
    changed = about.get("updatedInput")
    arguments = dict(changed) if isinstance(changed, Mapping) else None
    # "allow" loosens nothing: the rules and the person still decide.
    ask = decision == "ask"
    word = "ask" if ask else "changed" if arguments is not None else "none"
    return Verdict(ask=ask, arguments=arguments, context=context), word


def _names(tool: Tool) -> tuple[str, ...]:
    family = next((names for names in FAMILIES if tool.name in names), (tool.name,))
    return (*family, *tool.aliases)


def _marked(text: str) -> str:
    return f"[said by a hook after this call]\n{text}"


def _why(ended: Completed) -> str:
    """What is wrong with a hook, in a few words."""
    if ended.timed_out:
        return f"did not finish in {ended.duration:.0f} s"
    if ended.truncated:
        return "printed too much"
    if ended.exit_code == 0:
        return "printed what begins like JSON and is none"
    return ended.error_text.strip() or f"ended with {ended.exit_code}"
