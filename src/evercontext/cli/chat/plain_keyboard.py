"""Typing without a line editor: a pipe, a file, a terminal that can only print."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable

from evercontext.cli.chat.keyboard import T
from evercontext.cli.terminal import Screen


class PlainKeyboard:
    """Reads lines. Each is a message, or the answer to the question that is open."""

    def __init__(self, screen: Screen, *, prompt: str = "> ") -> None:
        self._screen, self._prompt = screen, prompt
        self.interactive = sys.stdin.isatty() and screen.is_terminal
        self.echoes = True
        self._descriptor = sys.stdin.fileno()
        self._pending = b""
        self._ended = False

    async def read(self) -> str | None:
        """The next line that is not empty."""
        while True:
            if self.interactive:
                self._screen.write(self._prompt)
            line = await self._line()
            if line is None or line.strip():
                return line

    async def answer(self, prompt: str, keys: str = "") -> str | None:
        """The next line; here ``keys`` need Enter too."""
        self._screen.write(prompt)
        return await self._line()

    async def lend(self, work: Callable[[], T]) -> T:
        """Let a program use the terminal, which was never taken."""
        return await asyncio.to_thread(work)

    def show(self, line: str) -> None:
        """Nothing can be erased here, so nothing is shown that would have to be."""

    def draw(self, source: Callable[[], list[str]] | None) -> None:
        """Nothing can be drawn again here."""

    def waiting(self) -> int:
        """Lines that were read ahead."""
        return self._pending.count(b"\n")

    def notify(self, text: str) -> None:
        """A terminal that can only print shows what it prints."""

    async def close(self) -> None:
        """Nothing to give back."""

    async def _line(self) -> str | None:
        while b"\n" not in self._pending and not self._ended:
            more = await self._more()
            self._ended = not more
            self._pending += more
        if not self._pending:
            return None
        line, _, self._pending = self._pending.partition(b"\n")
        return line.decode("utf-8", "replace").rstrip("\r")

    async def _more(self) -> bytes:
        loop = asyncio.get_running_loop()
        arrived: asyncio.Future[bytes] = loop.create_future()

        def ready() -> None:
            loop.remove_reader(self._descriptor)
            arrived.set_result(os.read(self._descriptor, 65_536))

        try:
            loop.add_reader(self._descriptor, ready)
        except PermissionError:  # a regular file is always ready, and cannot be waited for
            return os.read(self._descriptor, 65_536)
        try:
            return await arrived
        finally:
            loop.remove_reader(self._descriptor)
