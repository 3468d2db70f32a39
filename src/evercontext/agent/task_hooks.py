"""Run hooks around a task: before it begins, and before it ends."""

from __future__ import annotations

from dataclasses import dataclass, field

from evercontext.domain.event import Diff, Event, HookRan
from evercontext.domain.message import Message, user
from evercontext.domain.tool import Caller
from evercontext.errors import HookBlocked
from evercontext.tools.hook_runner import Hooks

MOST_STOPS = 3
"""How often a hook may send the model back to work before it is let go."""


@dataclass(slots=True)
class HookedTask:
    """The hooks of one task."""

    hooks: Hooks | None
    caller: Caller
    changed: dict[str, bool] = field(default_factory=dict)
    """Files that hooks wrote; ``False``: only with the content they had."""
    _ran: set[str] = field(default_factory=set)
    _stops: int = 0

    def hear(self, event: Event) -> None:
        """Read events of hooks from the log: they run inside calls too, unseen by the task."""
        if event.trace_id != self.caller.trace_id:
            return
        match event.body:
            case HookRan():
                self._ran.add(event.id)
            case Diff(path=path, kind=kind, diff=diff) if event.parent in self._ran:
                real = kind != "changed" or bool(diff)
                self.changed[path] = real or self.changed.get(path, False)

    async def begin(self, text: str, session: str | None) -> Message | None:
        """Return the hooks' messages for the model; raise if a hook refuses the task."""
        if self.hooks is None:
            return None
        verdicts = []
        if session:
            verdicts.append(await self.hooks.fire("SessionStart", {"source": session}, self.caller))
        verdicts.append(await self.hooks.fire("UserPromptSubmit", {"prompt": text}, self.caller))
        for verdict in verdicts:
            if verdict.blocked is not None:
                raise HookBlocked(f"a hook blocked the task: {verdict.blocked}")
        context = "\n".join(verdict.context for verdict in verdicts if verdict.context)
        return user(f"<hooks>\nSaid by the user's hooks:\n{context}\n</hooks>") if context else None

    async def may_stop(self, event: str, text: str) -> str | None:
        """Return why the model must go on, or nothing if it may stop here."""
        if self.hooks is None or self._stops >= MOST_STOPS:
            return None
        facts = {"stop_hook_active": self._stops > 0, "last_assistant_message": text}
        verdict = await self.hooks.fire(event, facts, self.caller)
        if verdict.blocked is None:
            return None
        self._stops += 1
        return f"A hook does not let you stop here: {verdict.blocked}"
