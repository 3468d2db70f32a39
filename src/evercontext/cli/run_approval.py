"""Asking the person at the terminal, with the diff in front of them."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import termios
from collections.abc import Callable
from pathlib import Path

from evercontext.access.never_auto_approved import reason_to_ask
from evercontext.cli.approval_pages import show_all
from evercontext.cli.messages import translate
from evercontext.cli.terminal import Screen
from evercontext.domain.tool import CommandAccess
from evercontext.tools.approval_gate import (
    ApprovalAnswer,
    ApprovalQuestion,
    Ask,
    Gate,
    ask_for_writes,
    nobody,
)
from evercontext.tools.approval_text import consent_of

_TERMINAL = Path("/dev/tty")
_BY = "you"
OPENING_KEYS = {"5": CommandAccess.NETWORK, "6": CommandAccess.OUTSIDE}
"""Answers that open more to a command than it asked for."""


def asking_gate(screen: Screen, pause: Callable[[], None]) -> Gate:
    """A gate that asks for every change; without a terminal nobody can say yes."""
    descriptor = _open_terminal(screen)
    ask: Ask = nobody if descriptor is None else RunApproval(screen, descriptor, pause)
    return Gate(policy=ask_for_writes, ask=ask)


def _open_terminal(screen: Screen) -> int | None:
    # stdin may carry part of the task, so the question goes to the terminal itself.
    if not screen.is_terminal:
        return None
    try:
        return os.open(_TERMINAL, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return sys.stdin.fileno() if sys.stdin.isatty() else None


class RunApproval:
    """1 once, 2 for this run, 4 no with feedback."""

    def __init__(self, screen: Screen, descriptor: int, pause: Callable[[], None]) -> None:
        self._screen, self._descriptor, self._pause = screen, descriptor, pause
        self._allowed: set[str] = set()

    async def __call__(self, question: ApprovalQuestion) -> ApprovalAnswer:
        """Show what would change and wait for an answer."""
        tool = question.tool.name
        command = str(question.arguments.get("command", ""))
        # What undo cannot bring back is asked for each time, whatever was answered before.
        caution = question.tool.caution
        reason = reason_to_ask(command, question.root) if command else None
        reason = reason or (caution(question.arguments) if caution else None)
        opens = question.requested is not CommandAccess.SANDBOX
        if tool in self._allowed and not reason and not opens:
            return ApprovalAnswer(True, f"{_BY}, for this run")
        self._pause()
        forget_typed(self._descriptor)
        consent = consent_of(question, reason)
        if not await show_all(self._screen, consent, self._more):
            return await self._no()
        while True:
            offers = [("1", translate("yes"))]
            if every := not (reason or opens):
                text = translate("yes to every {tool} in this run", tool=consent.tool)
                offers.append(("2", text))
            if wider := question.may_open:
                offers += [(k, translate(access.phrase)) for k, access in OPENING_KEYS.items()]
            offers.append(("4", translate("no")))
            match await self._more(f"  {'   '.join(map(' '.join, offers))} > "):
                case "1" | "y" | "yes":
                    return ApprovalAnswer(True, _BY)
                case ("5" | "6") as key if wider:
                    access = OPENING_KEYS[key]
                    return ApprovalAnswer(True, f"{_BY}, {access.phrase}", access=access)
                case "2" if every:
                    self._allowed.add(tool)
                    return ApprovalAnswer(True, f"{_BY}, for this run")
                case "4" | "n" | "no":
                    return await self._no()
                case None:
                    self._screen.line()
                    return ApprovalAnswer(False, _BY)

    async def _more(self, prompt: str) -> str | None:
        self._screen.write(prompt)
        return await read_line(self._descriptor)

    async def _no(self) -> ApprovalAnswer:
        asks = translate("What should it do instead? (empty: just no)")
        self._screen.write(f"  {asks} > ")
        feedback = await read_line(self._descriptor)
        return ApprovalAnswer(False, _BY, feedback or None)


def forget_typed(descriptor: int) -> None:
    """Drop what was typed before a question was there: it answers something else, or nothing."""
    with contextlib.suppress(termios.error):
        termios.tcflush(descriptor, termios.TCIFLUSH)


async def read_line(descriptor: int) -> str | None:
    """One line of a terminal, ``None`` at its end; cancelling leaves no thread behind."""
    loop = asyncio.get_running_loop()
    line: asyncio.Future[bytes] = loop.create_future()

    def ready() -> None:
        loop.remove_reader(descriptor)
        line.set_result(os.read(descriptor, 65_536))

    loop.add_reader(descriptor, ready)
    try:
        typed = await line
    finally:
        loop.remove_reader(descriptor)
    return typed.decode("utf-8", "replace").strip() if typed else None
