"""Approvals in the chat: once, for this session, always by a rule that is shown, or no."""

from __future__ import annotations

from dataclasses import dataclass

from evercontext.access.approval_rules import (
    EDIT,
    AccessRule,
    is_edit,
    reason_for_no_rules,
    rules_for,
)
from evercontext.access.permissions import Permissions, StoredRules
from evercontext.cli.approval_pages import show_all
from evercontext.cli.chat.keyboard import Keyboard
from evercontext.cli.chat.view import ChatView
from evercontext.cli.messages import translate, translate_composed
from evercontext.cli.run_approval import OPENING_KEYS
from evercontext.cli.terminal import Screen, one_line, wrap
from evercontext.domain.tool import CommandAccess
from evercontext.tools.approval_gate import ApprovalAnswer, ApprovalQuestion
from evercontext.tools.approval_text import consent_of

_BY = "you"


@dataclass(slots=True)
class ChatApproval:
    """Asks the person at the keyboard."""

    keyboard: Keyboard
    screen: Screen
    view: ChatView
    permissions: Permissions
    stored: StoredRules

    async def __call__(self, question: ApprovalQuestion) -> ApprovalAnswer:
        """Show what would change and wait for an answer."""
        self.view.pause()
        reason = self.permissions.floor(question.tool, question.arguments)
        if not await show_all(self.screen, consent_of(question, reason), self._more):
            return await self._no()
        always = () if reason else rules_for(question.tool, question.arguments)
        keys = self._offer(question, always)
        while True:
            typed = await self.keyboard.answer(f"  {'/'.join(keys)} > ", keys)
            match typed:
                case None:
                    self.screen.line("  " + translate("no"), "yellow")
                    return ApprovalAnswer(False, _BY)
                case "1" | "y" | "yes":
                    self.screen.line("  " + translate("yes, once"), "green")
                    return self._allowed(question, _BY)
                case "2" if "2" in keys:
                    return await self._for_session(question, always)
                case "3" if "3" in keys:
                    return await self._for_good(question, always)
                case "4" | "n" | "no":
                    return await self._no()
                case "5" | "6" if typed in keys:
                    if answer := await self._opened(question, OPENING_KEYS[typed], bool(reason)):
                        return answer
                    continue
                case "" | "2" | "3" | "5" | "6":
                    continue
                case feedback:
                    self.screen.line("  " + translate("no"), "yellow")
                    return ApprovalAnswer(False, _BY, feedback)

    async def _more(self, prompt: str) -> str | None:
        return await self.keyboard.answer(prompt, " 4")

    def _offer(self, question: ApprovalQuestion, always: tuple[AccessRule, ...]) -> str:
        self.screen.line("  1  " + translate("yes, once"))
        if always:
            texts = ", ".join(rule.text for rule in always)
            rules = one_line(texts)
            like = translate("every file change") if is_edit(question.tool) else f"allow {rules}"
            self._wrapped("  2  " + translate("yes, and in this session: {rules}", rules=like))
            self._wrapped("  3  " + translate("always in this project: allow {rules}", rules=rules))
        elif why := reason_for_no_rules(question.tool, question.arguments):
            self._wrapped(
                "     "
                + translate("only once: {reason}", reason=translate_composed(one_line(why))),
                "dim",
            )
        self.screen.line("  4  " + translate("no, and say what to do instead"))
        wider = [
            key
            for key, access in OPENING_KEYS.items()
            if question.may_open and not question.requested.covers(access)
        ]
        for key in wider:
            access = translate(OPENING_KEYS[key].phrase)
            self.screen.line(f"  {key}  " + translate("yes, {access}", access=access))
        return ("1234" if always else "14") + "".join(wider)

    def _wrapped(self, text: str, *styles: str) -> None:
        for row in wrap(text, self.screen.width - 1, "     "):
            self.screen.line(row, *styles)

    async def _opened(
        self, question: ApprovalQuestion, access: CommandAccess, once: bool
    ) -> ApprovalAnswer | None:
        """Ask how long more is opened to such commands; nothing if the person thinks again."""
        always = () if once else rules_for(question.tool, question.arguments, access)
        typed: str | None = "1"
        if always:
            texts = one_line(", ".join(rule.text for rule in always))
            self.screen.line("  1  " + translate("once"))
            self._wrapped("  2  " + translate("in this session: allow {rules}", rules=texts))
            self._wrapped("  3  " + translate("always in this project: allow {rules}", rules=texts))
            self.screen.line("  4  " + translate("back"))
            typed = await self.keyboard.answer("  1/2/3/4 > ", "1234")
        match typed:
            case "1" | "y" | "yes":
                text = translate("yes, once, {access}", access=translate(access.phrase))
                self.screen.line(f"  {text}", "green")
                return self._allowed(question, f"{_BY}, {access.phrase}", access)
            case "2":
                return await self._for_session(question, always, access)
            case "3":
                return await self._for_good(question, always, access)
            case _:
                return None

    def _allowed(
        self,
        question: ApprovalQuestion,
        by: str,
        access: CommandAccess = CommandAccess.SANDBOX,
    ) -> ApprovalAnswer:
        self.view.seen.update(change.path for change in question.changes)
        return ApprovalAnswer(True, by, access=access)

    async def _for_session(
        self,
        question: ApprovalQuestion,
        always: tuple[AccessRule, ...],
        access: CommandAccess = CommandAccess.SANDBOX,
    ) -> ApprovalAnswer:
        rules = _session_rules(question, always)
        self.permissions.session.extend(rules)
        self.screen.line("  " + translate("yes, for this session"), "green")
        return self._allowed(question, f"{_BY}, for this session", access)

    async def _for_good(
        self,
        question: ApprovalQuestion,
        always: tuple[AccessRule, ...],
        access: CommandAccess = CommandAccess.SANDBOX,
    ) -> ApprovalAnswer:
        for rule in always:
            await self.stored.add(rule)
        self.permissions.stored = await self.stored.all()
        texts = ", ".join(rule.text for rule in always)
        text = translate("always: allow {rules}   (/permissions lists it)", rules=one_line(texts))
        self.screen.line(f"  {text}", "green")
        return self._allowed(question, f"{_BY}, always {texts}", access)

    async def _no(self) -> ApprovalAnswer:
        feedback = await self.keyboard.answer(
            "  " + translate("What should it do instead? (empty: just no)") + " > "
        )
        self.screen.line("  " + translate("no"), "yellow")
        return ApprovalAnswer(False, _BY, feedback or None)


def _session_rules(
    question: ApprovalQuestion, always: tuple[AccessRule, ...]
) -> tuple[AccessRule, ...]:
    return (AccessRule("allow", EDIT),) if is_edit(question.tool) else always
