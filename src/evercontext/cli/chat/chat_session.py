"""The chat: one message after the other, each answered before the next is taken."""

from __future__ import annotations

import asyncio
import re
import unicodedata
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from evercontext.access.permissions import Permissions, StoredRules
from evercontext.cli.chat.keyboard import Keyboard
from evercontext.cli.chat.notification import PATIENCE
from evercontext.cli.chat.status_line import LONGEST_MODEL, branch_of, fitting
from evercontext.cli.chat.view import ChatView
from evercontext.cli.messages import translate
from evercontext.cli.terminal import Screen, clip, labelled, one_line, visible, wrap
from evercontext.domain.message import user
from evercontext.domain.outcome import Outcome
from evercontext.domain.tool import CommandAccess, Mode
from evercontext.errors import EverContextError
from evercontext.files.images import SUFFIXES
from evercontext.tools.approval_gate import ApprovalAnswer, ApprovalQuestion, Gate

if TYPE_CHECKING:
    from evercontext.agent.conversation import Conversation
    from evercontext.agent.plan import TaskPlan
    from evercontext.app import EverContext

_MENTION = re.compile(r"(?:^|(?<=\s))@([^\s@]+)")
_MOST_MENTIONS = 10
_OPENED = {"+network": CommandAccess.NETWORK, "+outside": CommandAccess.OUTSIDE}
MessageHandler = Callable[["ChatSession", str], Coroutine[Any, Any, None]]
"""Does what one message asks for."""


@dataclass(slots=True)
class ChatSession:
    """A person and a conversation."""

    app: EverContext
    talk: Conversation
    screen: Screen
    permissions: Permissions
    stored: StoredRules
    keyboard: Keyboard = field(init=False)
    view: ChatView = field(init=False)
    gate: Gate = field(init=False)
    handle: MessageHandler = field(init=False)
    outcome: Outcome = Outcome.DONE
    leaving: bool = False
    opening: str = ""
    """The message that the command line brought."""
    asks: bool = True
    """False: what would need approval is refused without a question."""
    offered: list[str] = field(default_factory=list)
    """Ids of the sessions that were listed last, so that a number names one."""
    branch: str = ""
    _filled: float | None = None
    """Not known before it was counted."""
    _work: asyncio.Task[Any] | None = None

    async def run(self, handle_message: MessageHandler) -> Outcome:
        """Answer until there is nothing more to answer."""
        self.handle = handle_message
        self.branch = branch_of(self.app.settings.root)
        preparing: asyncio.Task[None] | None = None
        if self.opening:
            self._echo(self.opening)
            await self._guarded(handle_message(self, _clean(self.opening)))
        elif self.keyboard.interactive:
            # While the first message is typed; somebody who pipes it in waits for nothing else.
            preparing = asyncio.create_task(self._prepare())
        try:
            while not self.leaving and (text := await self.keyboard.read()) is not None:
                if not self.keyboard.echoes:
                    self._echo(text)
                await self._guarded(handle_message(self, _clean(text)))
        finally:
            if preparing:
                preparing.cancel()
                await asyncio.gather(preparing, return_exceptions=True)
        return Outcome.DONE if self.keyboard.interactive else self.outcome

    async def _prepare(self) -> None:
        """Have everything ready that the first turn needs, and say how full the window is."""
        await self.talk.prepare()
        self.measure()
        if not self.working():
            self.keyboard.show("")

    def _echo(self, text: str) -> None:
        """Write a message where its answer follows, so that turns are told apart."""
        first, *rest = visible(text.strip()).split("\n")
        self.screen.line()
        for line in wrap(f"> {first}", self.screen.width - 1, "  "):
            self.screen.line(line, "bold", "cyan")
        for part in rest:
            for line in wrap(f"  {part}", self.screen.width - 1, "  "):
                self.screen.line(line, "bold", "cyan")

    async def ask(self, text: str) -> None:
        """Give the model one message and show its answer."""
        from evercontext.cli.images import images_in

        images = await images_in(text, self.app.settings.root)
        report = await self.talk.turn(await self._with_mentions(text), self.gate, images=images)
        self.outcome = report.outcome
        if report.final.duration_ms > PATIENCE * 1000:
            self.keyboard.notify(
                translate("{status}: {text}", status=translate(report.final.status), text=text)
            )
        if self.talk.mode is Mode.PLAN and report.outcome is Outcome.DONE:
            await self._hand_over()

    async def _hand_over(self) -> None:
        """Offer to carry out the plan; anything else that is typed is the next message."""
        if not self.keyboard.interactive or self.keyboard.waiting():
            return
        self.screen.line("  1  " + translate("do it, in agent mode"))
        self.screen.line("  2  " + translate("go on planning, or type what to change"))
        typed = await self.keyboard.answer("  1/2 > ", "12")
        if typed == "1":
            self.talk.mode = Mode.AGENT
            self.say(translate("agent mode: it changes files, and asks first"), "bold")
            return await self.ask(translate("Carry out the plan."))
        if typed and typed != "2":
            self._echo(typed)
            await self.handle(self, _clean(typed))
        return None

    async def carry_out(self, text: str, plan: TaskPlan) -> None:
        """Let the model do a plan, task by task, in this conversation."""
        from evercontext.agent.plan_sources import plan_from_file

        report = await self.talk.turn(text, self.gate, plan_from_file(plan))
        self.outcome = report.outcome

    async def shell(self, command: str) -> None:
        """Run the user's own command; the model sees what came of it.

        In the sandbox, unless it begins with ``+network`` or ``+outside``.
        """
        from evercontext.agent.task import new_trace_id

        first, _, rest = command.partition(" ")
        opened = _OPENED.get(first) if rest.strip() else None
        command = rest.strip() if opened else command
        arguments = {"command": command} | ({"access": opened.value} if opened else {})

        trace_id = new_trace_id()
        box = self.talk.toolbox.behind(Gate(ask=_own_word))
        caller = self.talk.caller(trace_id)
        result = await box.call("run_command", arguments, caller)
        if hint := next((word for word in _OPENED if f"access={word[1:]}" in result.text), None):
            more = translate("If it needs more than the sandbox gives: !{hint} …", hint=hint)
            self.screen.line(f"  {more}", "dim")
        note = user(f"[I ran a command myself]\n$ {command}\n{result.text}")
        await self.talk.add(note, trace_id)

    def choice(self, number: int) -> str | None:
        """The session that was listed under this number."""
        return self.offered[number - 1] if 1 <= number <= len(self.offered) else None

    def interrupt(self) -> bool:
        """Stop the turn that is going on."""
        if self._work is None or self._work.done():
            return False
        self._work.cancel()
        return True

    def working(self) -> bool:
        """True while a message is being answered."""
        return self._work is not None and not self._work.done()

    def toggle_mode(self) -> None:
        """From plan to agent and back."""
        self.talk.mode = Mode.AGENT if self.talk.mode is Mode.PLAN else Mode.PLAN

    def measure(self) -> None:
        """Count how full the window is; too slow for every redraw of the status line."""
        self._filled = self.talk.filled()
        self.branch = branch_of(self.app.settings.root)

    def status(self) -> str:
        """Return the line below the input; what matters least is left out where it is narrow."""
        talk = self.talk
        mode = translate("plan mode") if talk.mode is Mode.PLAN else translate("agent mode")
        hint = translate("Esc interrupts") if self.working() else "/help"
        parts = [
            (1, mode),
            (7, "Shift+Tab"),
            # These stand beside the answer, too, while it is written: where it is narrow, there.
            *((5, part) for part in (self.view.clock.parts() if self.working() else [])),
            *((2, left) for left in self._context_left()),
            *([(2, f"${talk.spent_usd:.4f}")] if talk.spent_usd else []),
            *(
                [(1, translate("{count} queued", count=n))]
                if (n := self.keyboard.waiting())
                else []
            ),
            *([(4, self.branch)] if self.branch else []),
            (3, clip(talk.model.info.bare_name, LONGEST_MODEL)),
            (6, hint),
        ]
        return fitting(parts, self.screen.width - 1)

    def _context_left(self) -> list[str]:
        if self._filled is None:
            return []
        return [translate("context {share} left", share=f"{max(0.0, 1 - self._filled):.0%}")]

    def say(self, text: str, *styles: str) -> None:
        """Write one line of ours."""
        self.screen.line(self.screen.wrapped(one_line(text)), *styles)

    async def _guarded(self, work: Coroutine[Any, Any, None]) -> None:
        """Do one thing that may be interrupted or fail; neither ends the chat."""
        self._work = asyncio.ensure_future(work)
        try:
            await self._work
        except EverContextError as error:
            self.view.pause()
            self.screen.line(self.screen.wrapped(labelled("error", str(error))), "red")
        except asyncio.CancelledError:
            mine = asyncio.current_task()
            if mine is not None and mine.cancelling():
                self._work.cancel()
                raise
            self.outcome = Outcome.CANCELLED
            self.view.pause()
        finally:
            self._work = None
            self.view.clock.stop()
            self.keyboard.draw(None)
            self.keyboard.show("")
        self.measure()

    async def _with_mentions(self, text: str) -> str:
        """Add the files that are named by ``@``, read through the one road."""
        names = list(dict.fromkeys(_MENTION.findall(text)))[:_MOST_MENTIONS]
        if not names:
            return text
        from evercontext.agent.task import new_trace_id

        caller, parts = self.talk.caller(new_trace_id()), [text]
        for name in names:
            path = name.rstrip(".,;:!?)、。")
            picture = path.lower().endswith(SUFFIXES)
            if picture or not (self.app.settings.root / path).is_file():
                continue
            result = await self.talk.toolbox.call("read_file", {"path": path}, caller)
            if result.ok:
                parts.append(f"[{path}]\n{result.text}")
        return "\n\n".join(parts)


async def _own_word(question: ApprovalQuestion) -> ApprovalAnswer:
    """Take a command that the person typed for approved."""
    return ApprovalAnswer(True, "you, typed")


def _clean(text: str) -> str:
    return unicodedata.normalize("NFC", text.strip())
