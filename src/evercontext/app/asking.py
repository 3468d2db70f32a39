"""Asking where a person is: at the terminal or in the web console; the first answer counts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from evercontext.access.console_links import Consoles
from evercontext.access.never_auto_approved import reason_to_ask
from evercontext.access.pending_approvals import (
    ALLOWED,
    BY_CONSOLE,
    BY_CONSOLE_FOR_RUN,
    PENDING,
    Approvals,
    PendingQuestion,
    new_question_id,
)
from evercontext.app.house import EverContext
from evercontext.errors import NobodyToAsk, StoreGone, StoreProblem
from evercontext.events.redaction import Clean, cleaned
from evercontext.tools.approval_gate import Answer, Ask, Question, nobody
from evercontext.tools.consent import consent_of

LOOK_EVERY = 0.25

Tell = Callable[[str], None]


async def ask_everywhere(app: EverContext, ask: Ask, tell: Tell = lambda text: None) -> Ask:
    """Return an ``Ask`` that the web console can answer too.

    Where nobody is at a terminal, a console that is open is somebody; none open is nobody.
    """
    inner = None if ask is nobody else ask
    if inner is None and not await _console(app):
        return nobody
    return Published(inner, app, Approvals(app.store, app.settings.user), app.memory.clean, tell)


async def _console(app: EverContext) -> str | None:
    """Where the project's console is; a database that is away tells of none."""
    try:
        return await Consoles(app.store).url(app.memory.path, app.settings.user)
    except StoreGone:
        return None


@dataclass(frozen=True, slots=True)
class Published:
    """Publishes each question and takes the first answer, from here or from the console."""

    inner: Ask | None
    app: EverContext
    approvals: Approvals
    clean: Clean
    tell: Tell
    allowed: set[str] = field(default_factory=set)
    """Tools that the console allowed for as long as this asker lives."""

    async def __call__(self, question: Question) -> Answer:
        """Ask, and wait for the first answer."""
        # What undo cannot bring back is asked for each time, whatever was answered before.
        if question.tool.name in self.allowed and not self._reason(question):
            return Answer(True, BY_CONSOLE_FOR_RUN)
        answer = await self._first(question)
        if answer.allowed and answer.by == BY_CONSOLE_FOR_RUN:
            self.allowed.add(question.tool.name)
        return answer

    def _reason(self, question: Question) -> str | None:
        caution = question.tool.caution
        if caution and (reason := caution(question.arguments)):
            return reason
        command = str(question.arguments.get("command", ""))
        return reason_to_ask(command, self.app.memory.path) if command else None

    async def _first(self, question: Question) -> Answer:
        # Known before it is written, so that it is withdrawn even if it is given up just then.
        id = new_question_id()
        try:
            asked = await self._publish(id, question)
            if self.inner is None:
                return await self._elsewhere(question, asked)
            return await self._race(self.inner, question, asked)
        except StoreProblem:
            # A store in trouble costs the console, not the answer.
            return await (self.inner or nobody)(question)
        finally:
            with suppress(StoreProblem):
                await asyncio.shield(self.approvals.withdraw(id))

    async def _publish(self, id: str, question: Question) -> PendingQuestion:
        tool = question.tool
        told = consent_of(question, self._reason(question)).to_json()
        safe = cleaned(told, self.clean)
        trace_id = question.caller.trace_id
        project = self.app.memory.path
        return await self.approvals.ask(trace_id, project, tool.name, safe, id=id)

    async def _elsewhere(self, question: Question, asked: PendingQuestion) -> Answer:
        app = self.app
        url = await Consoles(app.store).url(app.memory.path, app.settings.user)
        if url is None:
            raise NobodyToAsk(
                f"{question.tool.name} needs approval, there is no terminal and no console is open",
                fix="Open one with: evercontext serve --open",
            )
        self.tell(f"{question.tool.name} needs your approval: {url}approvals")
        return await self._answered(asked, question)

    async def _race(self, inner: Ask, question: Question, asked: PendingQuestion) -> Answer:
        here = asyncio.ensure_future(inner(question))
        there = asyncio.ensure_future(self._answered(asked, question))
        try:
            await asyncio.wait((here, there), return_when=asyncio.FIRST_COMPLETED)
            if not here.done():
                self.tell(f"answered in the console: {_word(there.result())}")
                return there.result()
            answer = here.result()
            given = {"allowed": answer.allowed, "by": answer.by, "feedback": answer.feedback}
            if await self.approvals.answer(asked.id, asked.nonce, **given):  # type: ignore[arg-type]
                return answer
            # Both at once: the row decides, so that console and run tell the same story.
            return await there
        finally:
            for waiting in (here, there):
                waiting.cancel()
            await asyncio.gather(here, there, return_exceptions=True)

    async def _answered(self, asked: PendingQuestion, question: Question) -> Answer:
        while True:
            row = await self.approvals.get(asked.id)
            if row is None or row.state != PENDING:
                # The row has to be the one that was written for this very call.
                same = row is not None and row.question.get("digest") == question.digest
                allowed = row is not None and row.state == ALLOWED and same
                feedback = row.feedback if row else None
                return Answer(allowed, (row and row.answered_by) or BY_CONSOLE, feedback)
            await asyncio.sleep(LOOK_EVERY)


def _word(answer: Answer) -> str:
    return "yes" if answer.allowed else "no"
