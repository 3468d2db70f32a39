"""The dialogue: one message after the other, each answered before the next is taken."""

from __future__ import annotations

import asyncio
import re
import unicodedata
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from evercontext.access.permissions import Permissions, StoredRules
from evercontext.cli.chat.keyboard import Keyboard
from evercontext.cli.chat.view import ChatView
from evercontext.cli.terminal import Screen, one_line
from evercontext.domain.message import user
from evercontext.domain.outcome import Outcome
from evercontext.domain.tool import Mode
from evercontext.errors import EverContextError
from evercontext.tools.approval_gate import Gate

if TYPE_CHECKING:
    from evercontext.agent.conversation import Conversation
    from evercontext.agent.plan import TaskPlan
    from evercontext.app import EverContext

_MENTION = re.compile(r"(?:^|(?<=\s))@([^\s@]+)")
_MOST_MENTIONS = 10
Obey = Callable[["Dialogue", str], Coroutine[Any, Any, None]]
"""Does what one message asks for."""


@dataclass(slots=True)
class Dialogue:
    """A person and a conversation."""

    app: EverContext
    talk: Conversation
    screen: Screen
    permissions: Permissions
    stored: StoredRules
    keyboard: Keyboard = field(init=False)
    view: ChatView = field(init=False)
    gate: Gate = field(init=False)
    outcome: Outcome = Outcome.DONE
    leaving: bool = False
    offered: list[str] = field(default_factory=list)
    """Ids of the sessions that were listed last, so that a number names one."""
    _filled: float = 0.0
    _work: asyncio.Task[Any] | None = None

    async def run(self, obey: Obey) -> Outcome:
        """Answer until there is nothing more to answer."""
        self.measure()
        while not self.leaving and (text := await self.keyboard.read()) is not None:
            text = unicodedata.normalize("NFC", text.strip())
            await self._guarded(obey(self, text))
        return Outcome.DONE if self.keyboard.interactive else self.outcome

    async def ask(self, text: str) -> None:
        """Give the model one message and show its answer."""
        report = await self.talk.turn(await self._with_mentions(text), self.gate)
        self.outcome = report.outcome

    async def carry_out(self, text: str, plan: TaskPlan) -> None:
        """Let the model do a plan, task by task, in this conversation."""
        from evercontext.agent.planning import given

        report = await self.talk.turn(text, self.gate, given(plan))
        self.outcome = report.outcome

    async def shell(self, command: str) -> None:
        """Run the user's own command in the cage; the model sees what came of it."""
        from evercontext.agent.task import new_trace_id

        trace_id = new_trace_id()
        box = self.talk.toolbox.behind(Gate())
        caller = self.talk.caller(trace_id)
        result = await box.call("run_command", {"command": command}, caller)
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

    def status(self) -> str:
        """The line below the input."""
        talk = self.talk
        parts = [f"{talk.mode} mode (Shift+Tab)", f"context {self._filled:.0%}"]
        parts += [f"${talk.spent_usd:.4f}"] if talk.spent_usd else []
        parts += [f"{waiting} queued"] if (waiting := self.keyboard.waiting()) else []
        parts += ["Esc interrupts" if self.working() else "/help", talk.model.info.bare_name]
        return " · ".join(parts)

    def say(self, text: str, *styles: str) -> None:
        """Write one line of ours."""
        self.screen.line(self.screen.wrapped(one_line(text)), *styles)

    async def _guarded(self, work: Coroutine[Any, Any, None]) -> None:
        """Do one thing that may be interrupted or fail; neither ends the dialogue."""
        self._work = asyncio.ensure_future(work)
        try:
            await self._work
        except EverContextError as error:
            self.view.pause()
            self.screen.line(f"error: {one_line(str(error))}", "red")
        except asyncio.CancelledError:
            mine = asyncio.current_task()
            if mine is not None and mine.cancelling():
                self._work.cancel()
                raise
            self.outcome = Outcome.CANCELLED
            self.view.pause()
        finally:
            self._work = None
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
            if not (self.app.settings.root / path).is_file():
                continue
            result = await self.talk.toolbox.call("read_file", {"path": path}, caller)
            if result.ok:
                parts.append(f"[{path}]\n{result.text}")
        return "\n\n".join(parts)
