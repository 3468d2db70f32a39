"""``-p/--print``: answer one message on standard output, and exit."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from evercontext.cli.chat.plain_keyboard import PlainKeyboard
from evercontext.cli.json_view import JsonView
from evercontext.cli.options import gateway_of
from evercontext.cli.render import TextView
from evercontext.cli.terminal import Screen
from evercontext.domain.event import Event, Task
from evercontext.domain.outcome import Outcome
from evercontext.tools.approval_gate import Gate, nobody

if TYPE_CHECKING:
    from evercontext.cli.chat.chat_session import ChatSession


class FirstTaskView:
    """Shows the first task that begins: its id is not known before."""

    def __init__(self, open_view: Callable[[str], TextView | JsonView]) -> None:
        self._open_view = open_view
        self._view: TextView | JsonView | None = None

    def __call__(self, event: Event) -> None:
        """Take one event of the log."""
        if self._view is None and isinstance(event.body, Task):
            self._view = self._open_view(event.trace_id)
        if self._view:
            self._view(event)

    def pause(self) -> None:
        """End an unfinished line."""
        if self._view:
            self._view.pause()


async def answer_once(
    chat: ChatSession, text: str, style: str, redacted: Callable[[Any], Callable[[Any], None]]
) -> Outcome:
    """Give the model one message; nobody is asked, so what needs approval is refused."""
    settings = chat.app.settings
    out = Screen(sys.stdout, no_color=settings.no_color)
    err = Screen(sys.stderr, no_color=settings.no_color)

    def open_view(trace_id: str) -> TextView | JsonView:
        if style == "text":
            return TextView(out, err, trace_id, gateway_of(settings), brief=True)
        return JsonView(
            out, trace_id, stream=style == "stream-json", session_id=chat.talk.session.id
        )

    view = FirstTaskView(open_view)
    stop = chat.app.events.subscribe(redacted(view))
    chat.gate = Gate(chat.permissions, nobody)
    # Nobody is there: whatever a chat would say or offer at its keyboard is left out.
    chat.keyboard = keyboard = PlainKeyboard(err)
    keyboard.interactive = False
    try:
        await chat.ask(text)
    finally:
        stop()
        view.pause()
    return chat.outcome
