"""Ask for approval at the terminal and in the web console; the first answer counts."""

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
from evercontext.domain.tool import CommandAccess
from evercontext.errors import NobodyToAsk, StoreGone, StoreProblem
from evercontext.events.redaction import Clean, cleaned
from evercontext.storage.store import Store
from evercontext.tools.approval_gate import ApprovalAnswer, ApprovalQuestion, Ask, nobody
from evercontext.tools.approval_text import consent_of

POLL_SECONDS = 0.25

Tell = Callable[[str], None]


async def ask_everywhere(place: AskingPlace, ask: Ask, tell: Tell = lambda text: None) -> Ask:
    """Return an ``Ask`` that the web console can answer too.

    Without a terminal only an open console can answer; without either, every question is refused.
    """
    terminal = None if ask is nobody else ask
    if terminal is None and not await place.has_console():
        return nobody
    return ConsoleApproval(terminal, place, tell)


@dataclass(frozen=True, slots=True)
class AskingPlace:
    """The project and the user that questions are asked for."""

    store: Store
    project: str
    user: str | None
    clean: Clean
    """Remove secrets from what is shown in the console."""

    @property
    def approvals(self) -> Approvals:
        """Return the table of questions and answers."""
        return Approvals(self.store, self.user)

    async def console_url(self) -> str | None:
        """Return the address of the project's open console."""
        return await Consoles(self.store).url(self.project, self.user)

    async def has_console(self) -> bool:
        """Tell whether a console is open; an unreachable database counts as none."""
        try:
            return await self.console_url() is not None
        except StoreGone:
            return False


@dataclass(frozen=True, slots=True)
class ConsoleApproval:
    """Publish each question and take the first answer, from the terminal or the console."""

    terminal: Ask | None
    place: AskingPlace
    tell: Tell
    allowed: set[str] = field(default_factory=set)
    """Tools that the console allowed for the rest of the run."""

    async def __call__(self, question: ApprovalQuestion) -> ApprovalAnswer:
        """Ask, and wait for the first answer."""
        # A call that undo cannot revert is asked about each time, despite earlier answers.
        opens = question.requested is not CommandAccess.SANDBOX
        if question.tool.name in self.allowed and not opens and not self._reason(question):
            return ApprovalAnswer(True, BY_CONSOLE_FOR_RUN)
        answer = await self._first(question)
        if answer.allowed and answer.by == BY_CONSOLE_FOR_RUN:
            self.allowed.add(question.tool.name)
        return answer

    def _reason(self, question: ApprovalQuestion) -> str | None:
        caution = question.tool.caution
        if caution and (reason := caution(question.arguments)):
            return reason
        command = str(question.arguments.get("command", ""))
        return reason_to_ask(command, self.place.project) if command else None

    async def _first(self, question: ApprovalQuestion) -> ApprovalAnswer:
        # Chosen before it is written, so that it is withdrawn even if writing is cancelled.
        id = new_question_id()
        try:
            pending = await self._publish(id, question)
            if self.terminal is None:
                return await self._ask_console(question, pending)
            return await self._race(self.terminal, question, pending)
        except StoreProblem:
            # A failing store costs the console, not the answer.
            return await (self.terminal or nobody)(question)
        finally:
            with suppress(StoreProblem):
                await asyncio.shield(self.place.approvals.withdraw(id))

    async def _publish(self, id: str, question: ApprovalQuestion) -> PendingQuestion:
        tool = question.tool
        consent = consent_of(question, self._reason(question)).to_json()
        safe = cleaned(consent, self.place.clean)
        trace_id, project = question.caller.trace_id, self.place.project
        return await self.place.approvals.ask(trace_id, project, tool.name, safe, id=id)

    async def _ask_console(
        self, question: ApprovalQuestion, pending: PendingQuestion
    ) -> ApprovalAnswer:
        url = await self.place.console_url()
        if url is None:
            raise NobodyToAsk(
                f"{question.tool.name} needs approval, there is no terminal and no console is open",
                fix="Open one with: evercontext serve --open",
            )
        self.tell(f"{question.tool.name} needs your approval: {url}approvals")
        return await self._wait_for_console(pending, question)

    async def _race(
        self, ask: Ask, question: ApprovalQuestion, pending: PendingQuestion
    ) -> ApprovalAnswer:
        terminal = asyncio.ensure_future(ask(question))
        console = asyncio.ensure_future(self._wait_for_console(pending, question))
        try:
            await asyncio.wait((terminal, console), return_when=asyncio.FIRST_COMPLETED)
            if not terminal.done():
                self.tell(f"answered in the console: {_word(console.result())}")
                return console.result()
            answer = terminal.result()
            if await self._record(pending, answer):
                return answer
            # Both at once: the row decides, so that console and run agree.
            return await console
        finally:
            for waiting in (terminal, console):
                waiting.cancel()
            await asyncio.gather(terminal, console, return_exceptions=True)

    async def _record(self, pending: PendingQuestion, answer: ApprovalAnswer) -> bool:
        return await self.place.approvals.answer(
            pending.id,
            pending.nonce,
            allowed=answer.allowed,
            by=answer.by,
            feedback=answer.feedback,
        )

    async def _wait_for_console(
        self, pending: PendingQuestion, question: ApprovalQuestion
    ) -> ApprovalAnswer:
        while True:
            row = await self.place.approvals.get(pending.id)
            if row is None or row.state != PENDING:
                # The row must be the one that was written for this very call.
                same = row is not None and row.question.get("digest") == question.digest
                allowed = row is not None and row.state == ALLOWED and same
                feedback = row.feedback if row else None
                return ApprovalAnswer(allowed, (row and row.answered_by) or BY_CONSOLE, feedback)
            await asyncio.sleep(POLL_SECONDS)


def _word(answer: ApprovalAnswer) -> str:
    return "yes" if answer.allowed else "no"
