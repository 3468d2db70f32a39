"""Somebody at a terminal: types, and sees what a terminal would show."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

import pexpect
import pyte

from tests.cli.command import EVERCONTEXT

NEBULA = str(Path(sys.executable).with_name("nebula"))
ESCAPE, CTRL_C, CTRL_D, SHIFT_TAB = "\x1b", "\x03", "\x04", "\x1b[Z"
_PATIENCE = 120


class _AnsweringScreen(pyte.Screen):
    """As every terminal does, it answers programs that ask where the cursor is."""

    def __init__(self, columns: int, rows: int, answer: Callable[[str], object]) -> None:
        self._answer = answer
        super().__init__(columns, rows)

    def write_process_input(self, data: str) -> None:
        self._answer(data)


class Person:
    """Use as ``with Person(project, "chat", …) as person``."""

    def __init__(
        self,
        project: Path,
        *arguments: str,
        command: str = EVERCONTEXT,
        rows: int = 60,
        columns: int = 90,
        **environment: str,
    ) -> None:
        told = {"TERM": "xterm-256color", **environment}
        self.child: pexpect.spawn[str] = pexpect.spawn(
            command,
            list(arguments),
            cwd=str(project),
            env={**os.environ, **told},
            encoding="utf-8",
            timeout=_PATIENCE,
            dimensions=(rows, columns),
        )
        self.screen = _AnsweringScreen(columns, rows, self.child.send)
        self._stream = pyte.Stream(self.screen)
        self.raw = ""

    def __enter__(self) -> Person:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.child.isalive():
            self.child.terminate(force=True)
        self.child.close()

    @property
    def shown(self) -> str:
        """The screen as text."""
        return "\n".join(line.rstrip() for line in self.screen.display)

    def sees(self, *texts: str) -> None:
        """Wait until all of these are on the screen."""
        deadline = time.monotonic() + _PATIENCE
        while missing := [text for text in texts if not self._has(text)]:
            assert time.monotonic() < deadline, f"never saw {missing} in:\n{self.shown}"
            assert self._read(), f"it ended; never saw {missing} in:\n{self.shown}"

    def _has(self, text: str) -> bool:
        # Where a line is broken depends on the names of folders.
        return text in self.shown or "".join(text.split()) in "".join(self.shown.split())

    def presses(self, *keys: str) -> None:
        """Press keys, without Enter."""
        for key in keys:
            self.child.send(key)

    def says(self, text: str) -> None:
        """Type a message and send it."""
        self.child.send(text)
        self.child.send("\r")

    def leaves(self, key: str = CTRL_D) -> int:
        """Leave and return the exit code."""
        self.child.send(key)
        while self._read():
            pass
        self.child.close()
        assert self.child.exitstatus is not None, self.shown
        return self.child.exitstatus

    def _read(self) -> bool:
        try:
            piece = self.child.read_nonblocking(65_536, timeout=0.5)
        except pexpect.TIMEOUT:
            return True
        except pexpect.EOF:
            return False
        self.raw += piece
        self._stream.feed(piece)
        return True
