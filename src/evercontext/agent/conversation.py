"""Hold a conversation: a stored session, a model, a mode, and its turns.

Terminal, editor protocol and console all drive this one object; each turn is a task with a trace
of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from typing import Any

from evercontext.agent import compaction
from evercontext.agent.loop import Price, no_price
from evercontext.agent.planner import MakePlan, no_planner
from evercontext.agent.system_prompt import Surroundings, brief, part_in
from evercontext.agent.task import TaskRun, new_trace_id
from evercontext.agent.task_limits import TaskLimits
from evercontext.agent.task_report import TaskReport
from evercontext.agent.valid_history import complete_calls
from evercontext.agent.verification import Repair, Verify, no_checks, no_repair
from evercontext.context.conversation_window import Window, describe
from evercontext.context.memory_service import MemoryService, OnReply
from evercontext.domain.event import Compacted, Notice, Spent
from evercontext.domain.message import Image, Message
from evercontext.domain.model import Effort, Model, Reply, ToolSpec, Usage
from evercontext.domain.principal import Principal
from evercontext.domain.sent_tool_output import View
from evercontext.domain.tool import Caller, Door, Mode, Shown
from evercontext.errors import EverContextError, ModelRefused, StoreGone
from evercontext.events.log import EventLog
from evercontext.memory.messages import MessageRepository
from evercontext.memory.sessions import Session, SessionRepository
from evercontext.process.certificates import certificates
from evercontext.tools.approval_gate import Gate
from evercontext.tools.toolbox import Toolbox
from evercontext.workspace.background_commands import BackgroundCommands

Look = Callable[[Caller], Awaitable[Surroundings]]
Hold = Callable[[str], AbstractContextManager[None]]
"""Keeps everybody else from writing into the session of this id while the block lasts."""


def hold_nothing(session_id: str) -> AbstractContextManager[None]:
    """Let anybody write: for a session that nobody else knows of."""
    return nullcontext()


def check_sees(model: Model, images: Sequence[Image]) -> None:
    """Refuse pictures for a model that would not see them, before anything is sent."""
    if images and not model.info.images:
        names = ", ".join(image.name for image in images)
        raise ModelRefused(
            f"{model.info.name} does not see pictures: {names}",
            fix="Choose a model that does with /model or --model, or describe the picture",
        )


@dataclass(slots=True)
class Conversation:
    """One session, open."""

    session: Session
    model: Model
    window: Window
    toolbox: Toolbox
    events: EventLog
    sessions: SessionRepository
    messages: MessageRepository
    look: Look
    root: str
    limits: TaskLimits = field(default_factory=TaskLimits)
    price: Price = no_price
    verify: Verify = no_checks
    repair: Repair = no_repair
    memory: MemoryService | None = None
    mode: Mode = Mode.AGENT
    principal: Principal = field(default_factory=Principal)
    history: list[Message] = field(default_factory=list)
    view: View = field(default_factory=View)
    """The parts of the history that the model was really sent."""
    last_trace: str | None = None
    spent_usd: float = 0.0
    spent_tokens: int = 0
    """Of all turns, handovers and summaries since it was opened."""
    spent: Usage = field(default_factory=Usage)
    """The same, apart: input, output, and the share of the input that a provider had cached."""
    effort: Effort | None = None
    """How much the model thinks; kept with the session."""
    few: tuple[str, ...] = ()
    """The only tools that a tiny model is offered: all of them would fill its window."""
    background: BackgroundCommands | None = None
    """Commands that the session may leave running; they end with it."""
    problem: str | None = None
    """Why it does not go on with the model that was chosen for it."""
    hold: Hold = hold_nothing
    _stored: dict[int, int] = field(default_factory=dict)
    """Row ids of the messages in ``history``, by identity."""

    async def load(self) -> None:
        """Load the earlier messages: the handover, if there is one, and all after it."""
        digest = self.session.metadata.get("compacted") or {}
        numbered = await self.messages.numbered(self.session.id, after=digest.get("after", 0))
        self._stored = {id(message): number for number, message in numbered}
        note = [Message("user", digest["text"])] if digest else []
        self.history = [*note, *complete_calls([message for _, message in numbered])]

    async def prepare(self) -> None:
        """Do beforehand what the first turn would wait for; a failure shows when it matters.

        That is a look at the project, the arrays of the memories, the tokenizer and the
        certificates; each stays ready.
        """
        work: list[Awaitable[object]] = [
            self.look(self.caller(self.session.id)),
            asyncio.to_thread(self.filled),
        ]
        if self.memory and not self.model.info.tiny:
            work.append(self.memory.prepare(self.caller(self.session.id)))
        if not self.model.info.local:
            work.append(certificates())
        await asyncio.gather(*work, return_exceptions=True)

    async def turn(
        self,
        text: str,
        gate: Gate | None = None,
        make_plan: MakePlan = no_planner,
        images: tuple[Image, ...] = (),
        trace_id: str | None = None,
    ) -> TaskReport:
        """Answer one message. Each is saved before it is shown; Ctrl-C leaves a valid history.

        A session may be open in several places: one is answered at a time, and what was said
        elsewhere meanwhile is taken in first.
        """
        check_sees(self.model, images)
        with self.hold(self.session.id):
            await self._catch_up()
            return await self._answer(text, gate, make_plan, images, trace_id or new_trace_id())

    async def _answer(
        self,
        text: str,
        gate: Gate | None,
        make_plan: MakePlan,
        images: tuple[Image, ...],
        trace_id: str,
    ) -> TaskReport:
        if not self.session.title and not self.history:
            await self.sessions.set_title(self.session.id, text)
        caller = self.caller(trace_id)
        surroundings = await self.look(caller)
        if self.model.info.tiny:
            surroundings = replace(surroundings, skills="")
        box = self._box()
        await self._compact_if_due(trace_id, brief(surroundings, part_in(self.mode), self.mode))
        run = TaskRun(
            model=self.model,
            toolbox=box.behind(gate) if gate else box,
            events=self.events,
            caller=caller,
            surroundings=surroundings,
            root=self.root,
            limits=self.limits,
            price=self.price,
            make_plan=make_plan,
            window=self.window,
            conversation=self.history,
            view=self.view,
            remember=self._saver(trace_id),
            reminder=await self._reminder(text, caller),
            session=self._started_as(),
            effort=self.effort,
            images=images,
            verify=self.verify,
            repair=self.repair,
            background=self.background,
        )
        self.last_trace = trace_id
        try:
            report = await run.run(text)
        finally:
            self.history[:] = complete_calls(self.history)
        self.spent_usd += report.final.cost_usd or 0.0
        self._count(run.usage)
        if self.memory:
            await self.memory.keep(text, report.final, caller)
            on_reply = self._spender("summary", trace_id)
            self.memory.grow(self.session.id, self.model, self.window, on_reply)
        return report

    async def _catch_up(self) -> None:
        """Load the history anew if another place has added to it, or taken something back."""
        with suppress(StoreGone):
            newest, _ = await self.messages.list(session_id=self.session.id, limit=1)
            known = max(self._stored.values(), default=0)
            if (newest[0].id if newest else 0) == await self.messages.settled(
                self.session.id, known
            ):
                return
            self.session = await self.sessions.get_by_id(self.session.id) or self.session
            await self.load()

    async def add(self, message: Message, trace_id: str | None = None) -> None:
        """Take something up into the history without asking the model."""
        await self._saver(trace_id or new_trace_id())(message)
        self.history.append(message)

    async def _reminder(self, text: str, caller: Caller) -> Message | None:
        # A tiny model is easily led away from its task.
        if self.memory is None or self.model.info.tiny:
            return None
        return await self.memory.remind(text, caller)

    def _started_as(self) -> str | None:
        """How the session began, for its first turn here."""
        first = self.last_trace is None
        return ("resume" if self.history else "startup") if first else None

    def caller(self, trace_id: str) -> Caller:
        """Return the caller of this conversation, in its present mode."""
        return Caller(trace_id, Door.CHAT, self.mode, self.principal, session=self.session.id)

    async def switch_model(self, model: Model, window: Window) -> None:
        """Go on with another model; the history stays."""
        if self.memory:
            await self.memory.settle(self.session.id)
        await self.model.aclose()
        self.model, self.window = model, window
        await self.sessions.set_model(self.session.id, model.info.bare_name)

    async def compact(self, focus: str = "", trace_id: str | None = None) -> tuple[int, int]:
        """Hand the older part over in short; return the tokens before and after.

        ``trace_id`` is that of the turn that needs the room, which holds the session already.
        """
        with nullcontext() if trace_id else self.hold(self.session.id):
            return await self._compact(focus, trace_id)

    async def _compact(self, focus: str, trace_id: str | None) -> tuple[int, int]:
        before = self.used()
        if self.toolbox.hooks:
            facts = {"trigger": "auto" if trace_id else "manual", "custom_instructions": focus}
            caller = self.caller(trace_id or self.last_trace or self.session.id)
            await self.toolbox.hooks.fire("PreCompact", facts, caller)
        on_reply = self._spender("handover", trace_id or self.last_trace or self.session.id)
        shorter = await compaction.compact(self.history, self.model, self.window, focus, on_reply)
        gone = len(self.history) - (len(shorter) - 1)
        place = await self.messages.settled(self.session.id, self._last_before(shorter[1:]))
        marker = {"text": shorter[0].content, "after": place}
        await self.sessions.set_metadata(self.session.id, "compacted", marker)
        self.history[:] = shorter
        after = self.used()
        body = Compacted(before_tokens=before, after_tokens=after, messages=gone)
        self.events.emit(body, trace_id=trace_id or self.last_trace or self.session.id)
        return before, after

    def used(self) -> int:
        """Tokens of the history."""
        return sum(map(self.window.cost, self.history))

    def filled(self) -> float:
        """Share of the window that a request fills now, tools included."""
        room = self.window.tokens - self.window.reserve
        return min(1.0, 1 - (self.window.room(self.tools()) - self.used()) / max(1, room))

    def tools(self) -> list[ToolSpec]:
        """The tools as the model is shown them."""
        style: Shown = "native" if self.model.info.native_tools else "json"
        offered = self._box().offered(self.mode, style)
        return [ToolSpec(tool.name, tool.description, tool.arguments) for tool in offered]

    def _box(self) -> Toolbox:
        return self.toolbox.only(self.few) if self.model.info.tiny and self.few else self.toolbox

    def context(self) -> dict[str, Any]:
        """Return the tokens in the window by role."""
        return describe(self.history, self.tools(), self.window)

    async def end(self) -> None:
        """Record its end and its summary, and close the model."""
        if self.background:
            await self.background.stop_session(self.session.id)
        if self.toolbox.hooks and self.last_trace:
            facts = {"reason": "exit"}
            await self.toolbox.hooks.fire("SessionEnd", facts, self.caller(self.last_trace))
        if self.memory:
            await self.memory.settle(self.session.id)
            if self.history:
                on_reply = self._spender("summary", self.last_trace or self.session.id)
                await self.memory.close(self.session, self.model, self.window, on_reply)
        await self.sessions.end(self.session.id)
        await self.model.aclose()

    def _count(self, usage: Usage) -> None:
        self.spent += usage
        self.spent_tokens += usage.input_tokens + usage.output_tokens

    async def set_effort(self, effort: Effort | None) -> None:
        """Let the model think so much from now on, also when the session is taken up again."""
        self.effort = effort
        await self.sessions.set_metadata(self.session.id, "effort", effort)

    def _spender(self, purpose: str, trace_id: str) -> OnReply:
        """Return a counter for requests besides the turns."""
        model = self.model.info.bare_name

        async def spend(reply: Reply) -> None:
            name, usage = reply.model or model, reply.usage
            cost = await self.price(name, usage)
            self.spent_usd += cost or 0.0
            self._count(usage)
            body = Spent(
                purpose=purpose,
                model=name,
                input_tokens=usage.input_tokens,
                output_tokens=usage.output_tokens,
                cached_tokens=usage.cached_tokens,
                cost_usd=cost,
            )
            self.events.emit(body, trace_id=trace_id)

        return spend

    def _saver(self, trace_id: str) -> Callable[[Message], Awaitable[None]]:
        async def save(message: Message) -> None:
            stored = await self.messages.append(self.session.id, message, trace_id=trace_id)
            self._stored[id(message)] = stored.id

        return save

    async def _compact_if_due(self, trace_id: str, prompt: Message) -> None:
        schemas = self.window.room(()) - self.window.room(self.tools())
        reserved = schemas + self.window.cost(prompt)
        if not compaction.is_due(self.history, self.window, reserved):
            return
        try:
            before, after = await self.compact(trace_id=trace_id)
            text = f"The conversation was compacted from {before} to {after} tokens."
        except EverContextError as problem:
            # The turn goes on: what does not fit is left out of the request.
            text = f"The window is nearly full and could not be compacted: {problem}"
        self.events.emit(Notice(level="info", text=text), trace_id=trace_id)

    def _last_before(self, staying: list[Message]) -> int:
        """The row id that the handover reaches to: just before the first message that stays."""
        numbers = [self._stored[id(message)] for message in staying if id(message) in self._stored]
        return min(numbers) - 1 if numbers else max(self._stored.values(), default=0)
