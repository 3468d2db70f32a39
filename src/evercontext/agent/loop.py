"""Run the loop: ask the model, make its calls, send the results, until it is done.

Read ``Loop.run`` first; everything else serves it. Limits, bad replies and cancellation are
exceptions, so the loop itself knows only the good case.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any

from evercontext.agent.foreign_calls import RestOfPatch, UnreadablePatch, in_our_words
from evercontext.agent.repetition import FailureStreak, Repetition
from evercontext.agent.run_progress import Progress
from evercontext.agent.task_limits import Meter
from evercontext.context.conversation_window import SPARED, Window, fit_and_tell
from evercontext.domain.event import ModelReply, Notice, Retry, TextPiece
from evercontext.domain.message import Message, ToolCall, tool_result, user
from evercontext.domain.model import (
    Effort,
    Model,
    NoticeDelta,
    Reply,
    ReplyBuilder,
    Request,
    TextDelta,
    ThoughtDelta,
    ToolSpec,
    Usage,
)
from evercontext.domain.printed_calls import PrintedCalls
from evercontext.domain.sent_tool_output import Sent
from evercontext.domain.tool import Caller, Door, Mode, Shown, Tool, ToolResult
from evercontext.domain.visible_text import escaped_line
from evercontext.errors import (
    AnswerFiltered,
    ApprovalDenied,
    AuditUnavailable,
    BadReply,
    Changed,
    InvalidArguments,
    LimitReached,
    NobodyToAsk,
    PolicyError,
    UnknownTool,
)
from evercontext.events.log import EventLog
from evercontext.tools.toolbox import Toolbox
from evercontext.tools.truncate import bounded
from evercontext.workspace.read_only_commands import only_asks

MOST_CALLS = 50
"""Calls in one reply; a model that asks for more is confused, and none of them is made."""
MOST_FORMAT_ERRORS = 3
_SMALLEST_PAGE = 200
"""Tokens of a file that are shown at once, however small the window is."""
_UNFINISHED = {
    "length": "Your answer was cut off at the output limit. Go on exactly where it stopped, and"
    " be brief.",
    "filtered": "Your answer was withheld by the provider's filter. Go on with the task without"
    " what was withheld, or say what cannot be done.",
}
"""Ways an answer ends too early, and the request to go on for each."""

Price = Callable[[str, Usage], Awaitable[float | None]]
"""Returns the cost of a model's reply, if it is known."""
Remember = Callable[[Message], Awaitable[None]]


MayStop = Callable[[str], Awaitable[str | None]]
"""Called with the answer before the loop ends; a text it returns goes to the model instead."""


async def no_price(model: str, usage: Usage) -> None:
    """Return no price, where costs are not counted."""


async def forget(message: Message) -> None:
    """For tasks that leave a trace and no session."""


async def let_stop(text: str) -> str | None:
    """Let every answer end the loop."""
    return None


@dataclass(frozen=True, slots=True)
class Beside:
    """The rules of a loop while others run beside it."""

    turnstile: asyncio.Lock
    """Changes are made one at a time, so that each command sees only its own."""
    owner: Callable[[str], str | None]
    """The id of another running task that a file belongs to."""

    def check(self, tool: Tool, arguments: Mapping[str, Any]) -> None:
        """Refuse a change to a file of somebody else."""
        named = [arguments.get(key) for key in ("path", "to")] if tool.writes else []
        for path in named:
            other = self.owner(path) if isinstance(path, str) else None
            if other:
                raise Changed(
                    f"{path} belongs to the task {other!r}, which runs now",
                    fix="Leave that file to it",
                )


@dataclass(slots=True)
class Loop:
    """One model, one toolbox, one conversation."""

    model: Model
    toolbox: Toolbox
    events: EventLog
    caller: Caller
    meter: Meter
    hints: Mapping[str, object] = field(default_factory=dict)
    effort: Effort | None = None
    price: Price = no_price
    remember: Remember = forget
    """Called with every message before the loop goes on: a shown message is never lost."""
    window: Window | None = None
    """The size that a request must fit into; without one it is sent as it is."""
    progress: Progress = field(default_factory=Progress)
    may_stop: MayStop = let_stop
    beside: Beside | None = None
    """Set while other loops of the same task run; words are then not streamed, only told whole."""
    _estimated: int = 0
    _repetition: Repetition = field(default_factory=Repetition)
    _streak: FailureStreak = field(default_factory=FailureStreak)
    _results: list[ToolResult] = field(default_factory=list)
    """Of the calls of the newest reply."""
    _format_errors: int = 0
    _asked_to_call: bool = False
    """The model was told that a call in its answer was not carried out."""
    _cut: list[str] = field(default_factory=list)
    """The pieces of an answer that was cut off and is gone on with."""

    async def run(self, history: list[Message]) -> str:
        """Go on from ``history`` until the model answers without calls; return that answer."""
        while True:
            self.meter.begin_turn()
            reply, event = await self._ask(history)
            await self._say(history, reply.as_message())
            self._emit(event)
            if reply.tool_calls:
                self._cut, self._results = [], []
                async for message in self._make(reply.tool_calls):
                    await self._say(history, message)
                self._streak.note(self._results)
            elif reply.stop in _UNFINISHED:
                await self._say(history, self._go_on(reply))
            elif (answer := "".join([*self._cut, reply.text])).strip() or self.progress.changed:
                more = self._written_only(reply) or await self.may_stop(answer)
                if more is None:
                    return answer
                self._cut = []
                await self._say(history, user(more))
            else:
                await self._say(history, self._nothing_said())

    async def _say(self, history: list[Message], message: Message) -> None:
        await self.remember(message)
        history.append(message)

    async def _ask(self, history: Sequence[Message]) -> tuple[Reply, ModelReply]:
        """Return the answer, and the event that tells of it once it is kept."""
        started = time.monotonic()
        try:
            async with asyncio.timeout(self.meter.seconds_left):
                reply = await self._stream(history)
        except TimeoutError:
            raise self.meter.out_of_time() from None
        name = reply.model or self.model.info.bare_name
        cost = await self.price(name, reply.usage)
        self.meter.add(reply.usage, cost)
        self.meter.count_answer()
        return reply, self._reply_event(reply, name, cost, started)

    async def _stream(self, history: Sequence[Message]) -> Reply:
        builder = ReplyBuilder()
        tools = self._offered()
        fitted = fit_and_tell(history, tools, self.window)
        self._show(fitted.sent, tools)
        request = Request(
            fitted.messages,
            tools,
            temperature=0.0,
            seed=0,
            effort=self.effort,
            seconds_left=self.meter.seconds_left,
            hints=self.hints,
        )
        async for delta in self.model.stream(request):
            builder.add(delta)
            match delta:
                case TextDelta(text) if self.beside is None:
                    self._emit(TextPiece(text=text))
                case ThoughtDelta(text) if self.beside is None:
                    self._emit(TextPiece(text=text, thought=True))
                case NoticeDelta() as notice:
                    self._emit(told_of(notice, self.model.info.name))
        reply = builder.reply()
        reply = replace(reply, tool_calls=in_our_words(reply.tool_calls, self.toolbox))
        if self.window:
            self._estimated = self.window.learn(fitted.messages, tools, reply.usage.input_tokens)
        return reply

    def _show(self, sent: list[Sent], tools: list[ToolSpec]) -> None:
        """Tell the tools which output the model sees now, and how much it can be shown at once."""
        view, window = self.caller.view, self.window
        if view is None:
            return
        view.update(sent)
        if window is not None:
            always = sum(
                window.cost(part.message) for part in sent if part.message.role == "system"
            )
            page = max(_SMALLEST_PAGE, SPARED * (window.room(tools) - always))
            view.share = lambda text: window.estimator.count(_in_json(text)) / page

    def _offered(self) -> list[ToolSpec]:
        style: Shown = "native" if self.model.info.native_tools else "json"
        tools = self.toolbox.offered(self.caller.mode, style)
        return [ToolSpec(tool.name, tool.description, tool.arguments) for tool in tools]

    async def _make(self, calls: Sequence[ToolCall]) -> AsyncIterator[Message]:
        if len(calls) > MOST_CALLS:
            error = InvalidArguments(f"{len(calls)} calls at once, at most {MOST_CALLS} are made")
            refusal = ToolResult.failed(error)
            for call in calls[:MOST_CALLS]:
                self._note(call, refusal)
            # One text for all: thousands of calls must not hold everybody up.
            words = encode(refusal)
            for call in calls:
                yield tool_result(call, words)
            return
        for call in calls:
            yield await self._make_one(call)

    async def _make_one(self, call: ToolCall) -> Message:
        if call.malformed is not None:
            unread = self._malformed(call)
            self._note(call, unread)
            return tool_result(call, encode(unread))
        self._format_errors = 0
        try:
            async with asyncio.timeout(self.meter.seconds_left):
                result = await self._call(call)
        except TimeoutError:
            raise self.meter.out_of_time() from None
        self._results.append(result)
        self._note(call, result)
        self._stop_if_refused(result)
        nudge = self._repetition.note(call, result)
        message = tool_result(call, encode(result, nudge))
        if self.caller.view:
            self.caller.view.returned(message, result.text)
        return message

    async def _call(self, call: ToolCall) -> ToolResult:
        if isinstance(call, RestOfPatch) and not self._results[-1].ok:
            return ToolResult.failed(
                InvalidArguments(
                    "not done, because a part of the patch before it failed",
                    fix="Send this part again when that one is settled",
                )
            )
        try:
            turn = self._turn(call)
        except Changed as refusal:
            return ToolResult.failed(refusal)
        outer = LOOP.set(self)
        try:
            async with turn:
                return await self.toolbox.call(call.name, call.arguments, self.caller)
        finally:
            LOOP.reset(outer)

    def _turn(self, call: ToolCall) -> AbstractAsyncContextManager[None]:
        """Return what the call waits for; refuse a change to a file of a loop beside this one."""
        if self.beside is None:
            return nullcontext()
        try:
            tool = self.toolbox.find(call.name)
        except UnknownTool:  # the toolbox says so
            return nullcontext()
        self.beside.check(tool, call.arguments)
        return self.beside.turnstile if tool.writes else nullcontext()

    def _note(self, call: ToolCall, result: ToolResult) -> None:
        """Record the result of a call; an unknown tool may have been meant to change files."""
        acts, edits = True, False
        with suppress(UnknownTool):
            tool = self.toolbox.find(call.name)
            if tool.delegates:
                return self._note_delegated(replace(call, name=tool.name), result)
            line = call.arguments.get("command")
            acts = tool.writes and not (isinstance(line, str) and only_asks(line))
            edits = tool.writes and "path" in tool.arguments.get("properties", {})
            call = replace(call, name=tool.name)
        return self.progress.note(call, result, acts=acts, edits=edits)

    def _note_delegated(self, call: ToolCall, result: ToolResult) -> None:
        # Where nothing can be changed, or a person reads the answer, a sub-agent's failure is
        # made good by the answer.
        if self.caller.mode is Mode.AGENT and self.caller.door is not Door.CHAT:
            self.progress.note_delegated(call, result)

    def _written_only(self, reply: Reply) -> str | None:
        """Note calls that stand in an answer as text; return the request to make them, once."""
        if self.caller.mode is not Mode.AGENT:
            return None
        printed = PrintedCalls(self._offered())
        printed.feed(reply.text)
        calls = in_our_words(printed.finish()[1], self.toolbox)
        names = [call.name for call in calls if self._acts(call)]
        if not names:
            return None
        self.progress.printed = escaped_line(names[0], 80)
        # A person reads the answer, and may have asked for just that.
        if self._asked_to_call or self.caller.door is Door.CHAT:
            return None
        self._asked_to_call = True
        return (
            f"Your answer holds {names[0]} as text: it was not carried out, and nothing is changed."
            " Call the tool if it is to be done; otherwise answer without it."
        )

    def _acts(self, call: ToolCall) -> bool:
        with suppress(UnknownTool):
            return self.toolbox.find(call.name).writes
        return False

    def _go_on(self, reply: Reply) -> Message:
        """Return the request to go on after an incomplete answer, once."""
        asked_before = bool(self._cut)
        self._cut.append(reply.text)
        if not asked_before:
            return user(_UNFINISHED[reply.stop])
        if reply.stop == "filtered":
            raise AnswerFiltered(
                "the provider withheld the answer, twice",
                fix="Say the task in other words, or use another model",
            )
        raise LimitReached(
            "the answer was cut off at the model's output limit, twice",
            fix="Ask for less at once, or use a model with a larger output",
        )

    def _stop_if_refused(self, result: ToolResult) -> None:
        if isinstance(result.error, AuditUnavailable | NobodyToAsk):
            raise result.error
        if isinstance(result.error, ApprovalDenied):
            self.progress.denied = True
        if isinstance(result.error, PolicyError):
            self.progress.refusals.append(str(result.error))

    def _malformed(self, call: ToolCall) -> ToolResult:
        self._format_errors += 1
        if self._format_errors >= MOST_FORMAT_ERRORS:
            raise BadReply(
                f"the model wrote {MOST_FORMAT_ERRORS} unreadable calls in a row",
                fix="Use a stronger model",
            )
        if isinstance(call, UnreadablePatch):
            why = str(call.malformed).partition("\n")[0]
            return ToolResult.failed(InvalidArguments(f"the patch was not applied: {why}"))
        try:
            schema = json.dumps(self.toolbox.find(call.name).arguments, ensure_ascii=False)
        except UnknownTool:
            schema = "{}"
        return ToolResult.failed(
            InvalidArguments(f"the arguments of {call.name} are not JSON; its schema: {schema}")
        )

    def _nothing_said(self) -> Message:
        self._format_errors += 1
        if self._format_errors >= MOST_FORMAT_ERRORS:
            raise LimitReached(
                "the model answered with nothing, three times", fix="Use a stronger model"
            )
        return user("You answered with nothing. Go on with the task, or say that it is done.")

    def _emit(self, body: TextPiece | Notice | Retry | ModelReply) -> None:
        self.events.emit(body, trace_id=self.caller.trace_id, parent=self.caller.parent)

    def _reply_event(
        self, reply: Reply, name: str, cost: float | None, started: float
    ) -> ModelReply:
        return ModelReply(
            model=name,
            turn=self.meter.turns,
            text=reply.text,
            calls=tuple(
                {"name": call.name, "arguments": bounded(call.arguments)}
                for call in reply.tool_calls[:MOST_CALLS]
            ),
            stop=reply.stop,
            input_tokens=reply.usage.input_tokens,
            output_tokens=reply.usage.output_tokens,
            cached_tokens=reply.usage.cached_tokens,
            estimated_tokens=self._estimated,
            cost_usd=cost,
            duration_ms=round((time.monotonic() - started) * 1000),
        )


LOOP: ContextVar[Loop | None] = ContextVar("loop", default=None)
"""The loop that makes the call that runs now."""


def _in_json(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def told_of(notice: NoticeDelta, model: str) -> Notice | Retry:
    """Return the event that tells of a notice: a retry is one of its own."""
    if notice.retry:
        return Retry(what=model, reason=notice.text)
    return Notice(level="warning", text=notice.text)


def encode(result: ToolResult, nudge: str | None = None) -> str:
    """The result as the model reads it: ``{ok, result, error}``."""
    error = f"{result.error.code}: {result.error}" if result.error else None
    shape = {"ok": result.ok, "result": result.text if result.ok else None, "error": error}
    return json.dumps(shape | ({"note": nudge} if nudge else {}), ensure_ascii=False)
