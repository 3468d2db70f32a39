"""Markdown as it streams in: each block is shown once, when it is complete.

Nothing that was shown is ever drawn again, so that scrolling back and copying work everywhere.
"""

from __future__ import annotations

import io
import re

from evercontext.cli.terminal import Screen, visible

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")


class MarkdownStream:
    """Cuts a stream of text into blocks."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._rest = ""
        self._fence: str | None = None

    @property
    def tail(self) -> str:
        """The newest line that is not part of a complete block."""
        return self._rest or (self._lines[-1] if self._lines else "")

    def feed(self, text: str) -> list[str]:
        """Take a piece; return the blocks that it completed."""
        *whole, self._rest = (self._rest + text).split("\n")
        blocks = [block for line in whole if (block := self._take(line))]
        return blocks

    def end(self) -> str:
        """Return what is left, complete or not."""
        left = "\n".join([*self._lines, self._rest]).strip("\n")
        self._lines, self._rest, self._fence = [], "", None
        return left

    def _take(self, line: str) -> str:
        mark = _FENCE.match(line)
        if self._fence is None:
            if mark:
                self._fence = mark[1]
            elif not line.strip():
                return self._block()
        elif mark and mark[1].startswith(self._fence) and line.strip() == mark[1]:
            self._fence = None
            self._lines.append(line)
            return self._block()
        self._lines.append(line)
        return ""

    def _block(self) -> str:
        block = "\n".join(self._lines).strip("\n")
        self._lines = []
        return block


def rendered(block: str, screen: Screen) -> str:
    """One block as the terminal shows it; without colours it stays the text that it is."""
    safe = visible(block)
    if not screen.colour:
        return safe
    from rich.console import Console
    from rich.markdown import Markdown

    out = io.StringIO()
    console = Console(
        file=out,
        width=screen.width,
        force_terminal=True,
        color_system="standard",
        legacy_windows=False,
        highlight=False,
    )
    # A link's address is shown, not hidden behind its text.
    console.print(Markdown(safe, hyperlinks=False, code_theme="ansi_dark"))
    return "\n".join(line.rstrip() for line in out.getvalue().strip("\n").split("\n"))
