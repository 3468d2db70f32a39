"""Approvals in the chat: once, for this session, always by a rule that is shown, or no."""

from __future__ import annotations

from dataclasses import dataclass

from evercontext.access.permissions import Permissions, StoredRules
from evercontext.access.rules import EDIT, Rule, is_edit, reason_for_no_rules, rules_for
from evercontext.cli.chat.keyboard import Keyboard
from evercontext.cli.chat.view import ChatView
from evercontext.cli.consent import show_all
from evercontext.cli.terminal import Screen, one_line
from evercontext.tools.approval_gate import Answer, Question
from evercontext.tools.consent import consent_of

_BY = "you"


@dataclass(slots=True)
class ChatAsk:
    """Asks the person at the keyboard."""

    keyboard: Keyboard
    screen: Screen
    view: ChatView
    permissions: Permissions
    stored: StoredRules

    async def __call__(self, question: Question) -> Answer:
        """Show what would change and wait for an answer."""
        self.view.pause()
        reason = self.permissions.floor(question.tool, question.arguments)
        if not await show_all(self.screen, consent_of(question, reason), self._more):
            return await self._no()
        always = () if reason else rules_for(question.tool, question.arguments)
        keys = self._offer(question, always)
        while True:
            said = await self.keyboard.answer(f"  {'/'.join(keys)} > ", keys)
            match said:
                case None:
                    self.screen.line("  no", "red")
                    return Answer(False, _BY)
                case "1" | "y" | "yes":
                    self.screen.line("  yes, once", "green")
                    return self._allowed(question, _BY)
                case "2" if "2" in keys:
                    return await self._for_session(question, always)
                case "3" if "3" in keys:
                    return await self._for_good(question, always)
                case "4" | "n" | "no":
                    return await self._no()
                case "" | "2" | "3":
                    continue
                case feedback:
                    self.screen.line("  no", "red")
                    return Answer(False, _BY, feedback)

    async def _more(self, prompt: str) -> str | None:
        return await self.keyboard.answer(prompt, " 4")

    def _offer(self, question: Question, always: tuple[Rule, ...]) -> str:
        self.screen.line("  1  yes, once")
        if always:
            texts = ", ".join(rule.text for rule in always)
            like = "every file change" if is_edit(question.tool) else f"allow {one_line(texts)}"
            self.screen.line(f"  2  yes, and in this session: {like}")
            self.screen.line(f"  3  always in this project: allow {one_line(texts)}")
        elif why := reason_for_no_rules(question.tool, question.arguments):
            self.screen.line(f"     only once: {one_line(why)}", "dim")
        self.screen.line("  4  no, and say what to do instead")
        return "1234" if always else "14"

    def _allowed(self, question: Question, by: str) -> Answer:
        self.view.seen.update(change.path for change in question.changes)
        return Answer(True, by)

    async def _for_session(self, question: Question, always: tuple[Rule, ...]) -> Answer:
        rules = _session_rules(question, always)
        self.permissions.session.extend(rules)
        self.screen.line("  yes, for this session", "green")
        return self._allowed(question, f"{_BY}, for this session")

    async def _for_good(self, question: Question, always: tuple[Rule, ...]) -> Answer:
        for rule in always:
            await self.stored.add(rule)
        self.permissions.stored = await self.stored.all()
        texts = ", ".join(rule.text for rule in always)
        self.screen.line(f"  always: allow {one_line(texts)}   (/permissions lists it)", "green")
        return self._allowed(question, f"{_BY}, always {texts}")

    async def _no(self) -> Answer:
        feedback = await self.keyboard.answer("  What should it do instead? (empty: just no) > ")
        self.screen.line("  no", "red")
        return Answer(False, _BY, feedback or None)


def _session_rules(question: Question, always: tuple[Rule, ...]) -> tuple[Rule, ...]:
    return (Rule("allow", EDIT),) if is_edit(question.tool) else always
