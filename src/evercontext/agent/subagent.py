"""``task``: let a sub-agent do a part of the work, with a conversation of its own.

It has the rights of whoever calls it and no more: the same tools behind the same gate, in the same
mode, without a sub-agent of its own. What it spends is spent by the task.
"""

from __future__ import annotations

import asyncio
import math
from contextvars import ContextVar
from dataclasses import dataclass, replace

from evercontext.agent.loop import LOOP, Beside, Loop, Price
from evercontext.agent.run_progress import Progress
from evercontext.agent.system_prompt import Surroundings, brief, part_in
from evercontext.agent.task_limits import Meter
from evercontext.context.conversation_window import Window
from evercontext.domain.message import user
from evercontext.domain.model import Effort, Model
from evercontext.domain.sent_tool_output import View
from evercontext.domain.tool import Arguments, Caller, Effect, Tool, ToolResult
from evercontext.errors import LimitReached, PolicyError
from evercontext.events.log import EventLog
from evercontext.tools.toolbox import Toolbox

NAME = "task"
MOST_TURNS = 25
SHARE = 0.5
"""Share of the task's remaining budget that a sub-agent may spend."""
_LONGEST_REPORT = 20_000
_ORDER = (
    "You are a sub-agent: another agent gave you this part of its work, and reads nothing but your"
    " last answer. Do it, then report what you found or did in full: names, paths, lines, results."
    " Nobody can answer questions.\n\n"
)


@dataclass(frozen=True, slots=True)
class Delegation:
    """The parts that a running task lends to its sub-agents."""

    model: Model
    events: EventLog
    surroundings: Surroundings
    meter: Meter
    progress: Progress
    """Receives their changes where no loop calls them, so that the task's checks cover them."""
    price: Price
    window: Window | None = None
    effort: Effort | None = None

    async def carry_out(self, request: str, caller: Caller, toolbox: Toolbox) -> str:
        """Let a sub-agent work on a request until it answers."""
        progress, caller_loop = Progress(), LOOP.get()
        beside = caller_loop.beside if caller_loop else None
        loop = Loop(
            model=self.model,
            toolbox=toolbox,
            events=self.events,
            caller=replace(caller, view=View(), road=None, approved=False),
            meter=self.meter.share(MOST_TURNS, SHARE),
            hints={"role": "subagent", "task": request, "root": self.surroundings.root_name},
            effort=self.effort,
            price=self.price,
            window=self.window,
            progress=progress,
            # Its words are no answer to the user: they are told with its result, not streamed.
            beside=beside or Beside(asyncio.Lock(), lambda path: None),
        )
        prompt = brief(self.surroundings, part_in(caller.mode), caller.mode)
        try:
            return await loop.run([prompt, user(f"{_ORDER}{request}")])
        finally:
            (caller_loop.progress if caller_loop else self.progress).take_in(progress)


DELEGATION: ContextVar[Delegation | None] = ContextVar("delegation", default=None)
"""Of the task that runs now."""


def task_tool() -> Tool:
    """Return ``task``."""

    async def run(arguments: Arguments, caller: Caller) -> ToolResult:
        delegation, road = DELEGATION.get(), caller.road
        if delegation is None or not isinstance(road, Toolbox):
            raise PolicyError("only a running task has sub-agents")
        toolbox = road.only(tool.name for tool in road if tool.name not in (NAME, "update_todos"))
        try:
            report = await delegation.carry_out(arguments["request"], caller, toolbox)
        except LimitReached as limit:
            if delegation.meter.used_up():
                raise
            # Its share is used up, the task's own is not.
            return ToolResult(f"the sub-agent did not finish: {limit}", {"finished": False})
        return ToolResult(report, {"finished": True})

    return Tool(
        name=NAME,
        description=(
            "Give a part of the work to a sub-agent with an empty conversation: to search widely, "
            "or to do something apart, without filling this one. It has your tools and rights, "
            "sees nothing of this conversation, and answers once, with a report."
        ),
        arguments={
            "type": "object",
            "properties": {
                "request": {
                    "type": "string",
                    "minLength": 1,
                    "description": "All that it must know and do, and what to report.",
                }
            },
            "required": ["request"],
            "additionalProperties": False,
        },
        # It does nothing itself: each of its calls is judged for itself, in the same mode.
        effects=Effect.READ,
        delegates=True,
        run=run,
        timeout=math.inf,
        longest=_LONGEST_REPORT,
    )
