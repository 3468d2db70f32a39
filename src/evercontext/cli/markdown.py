"""Markdown as it streams in: a finished block is written once, the unfinished one is drawn live.

Nothing that was written is ever drawn again, so that scrolling back and copying work everywhere.
"""

from __future__ import annotations

import io
import re
from functools import lru_cache

from evercontext.cli.terminal import BREAK, Screen, breakable, visible
from evercontext.cli.theme import Theme, code_theme, markdown_styles, theme

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_LONGEST_LIVE = 4000
"""Characters of an unfinished block that are laid out again for every drawing."""


class MarkdownStream:
    """Cuts a stream of text into blocks."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._rest = ""
        self._fence: str | None = None
        self._opening = ""

    @property
    def tail(self) -> str:
        """The newest line that is not part of a complete block."""
        return self._rest or (self._lines[-1] if self._lines else "")

    def unfinished(self, rows: int) -> str:
        """Return the end of the block that still grows, enough of it for so many rows."""
        lines = [*self._lines, self._rest]
        shown = lines[-rows:]
        if self._fence is not None and len(shown) < len(lines):
            # Without its first line, code would be laid out as prose.
            shown = [self._opening, *shown]
        text = "\n".join(shown).strip("\n")
        if len(text) > _LONGEST_LIVE:
            text = text[-_LONGEST_LIVE:]
            text = f"{self._opening}\n{text}" if self._fence is not None else text
        return text

    def feed(self, text: str) -> list[str]:
        """Take a piece; return the blocks that it completed."""
        *lines, self._rest = (self._rest + text).split("\n")
        return [block for line in lines if (block := self._take(line))]

    def end(self) -> str:
        """Return what is left, complete or not."""
        left = "\n".join([*self._lines, self._rest]).strip("\n")
        self._lines, self._rest, self._fence = [], "", None
        return left

    def _take(self, line: str) -> str:
        mark = _FENCE.match(line)
        if self._fence is None:
            if mark:
                self._fence, self._opening = mark[1], line
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
    """Return a block as the terminal shows it; where it can only print, the text that it is."""
    safe = visible(block)
    if not screen.can_erase:
        return safe
    return _laid_out(safe, screen.width, screen.colour, theme())


@lru_cache(maxsize=8)
def _laid_out(safe: str, width: int, colour: bool, name: Theme) -> str:
    from rich.console import Console
    from rich.markdown import Markdown
    from rich.theme import Theme as Styles

    out = io.StringIO()
    console = Console(
        file=out,
        width=width,
        force_terminal=True,
        color_system=None if not colour else "256" if name == "light" else "standard",
        theme=Styles(markdown_styles()),
        legacy_windows=False,
        highlight=False,
    )
    text = safe if _FENCE.match(safe) else breakable(safe)
    # A link's address is shown, not hidden behind its text.
    console.print(Markdown(text, hyperlinks=False, code_theme=code_theme()))
    lines = [line.rstrip() for line in out.getvalue().replace(BREAK, "").split("\n")]
    return "\n".join(lines).strip("\n")
