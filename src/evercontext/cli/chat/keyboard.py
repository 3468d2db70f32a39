"""What a person types, wherever they type it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

T = TypeVar("T")


class Keyboard(Protocol):
    """A source of messages and of answers to questions."""

    interactive: bool
    """True if a person can be asked."""

    async def read(self) -> str | None:
        """The next message; ``None``: there will be no more."""
        ...

    async def answer(self, prompt: str, keys: str = "") -> str | None:
        """The answer to a question; one of ``keys`` needs no Enter. ``None``: no answer."""
        ...

    async def lend(self, work: Callable[[], T]) -> T:
        """Let a program, such as the user's editor, use the terminal while ``work`` runs."""
        ...

    def show(self, line: str) -> None:
        """Show one line that does not stay, where that is possible."""
        ...

    def draw(self, source: Callable[[], list[str]] | None) -> None:
        """Draw these lines above the input until others come, where that is possible."""
        ...

    echoes: bool
    """True if what was typed stays on the screen by itself."""

    def waiting(self) -> int:
        """How many messages wait for their turn."""
        ...

    def notify(self, text: str) -> None:
        """Tell somebody who looked away that it is their turn, where that is possible."""
        ...

    async def close(self) -> None:
        """Give the terminal back."""
        ...


Interrupt = Callable[[], bool]
"""Stops what is going on; ``False`` if nothing was."""
