"""A call that waits for approval, on a terminal: page by page, and no yes before the last one."""

from __future__ import annotations

import shutil
from collections.abc import Awaitable, Callable

from evercontext.cli.render import diff_style
from evercontext.cli.terminal import Screen
from evercontext.tools.consent import Consent, ShownLine

More = Callable[[str], Awaitable[str | None]]
"""Asks whether to go on; ``None``: the person went away."""

_STYLES = {"title": ("bold",), "warning": ("yellow",), "name": ("bold",)}
_INDENT = "  "
_ROOM_FOR_ANSWERS = 8
_FEWEST_ROWS = 6


async def show_all(screen: Screen, consent: Consent, more: More) -> bool:
    """Show every page; ``False`` if the person said no before the last one."""
    pages = _pages(screen, list(consent.lines()))
    for number, page in enumerate(pages, start=1):
        for text, styles in page:
            screen.line(text, *styles)
        if number < len(pages) and not await _goes_on(number, len(pages), more):
            return False
    return True


async def _goes_on(number: int, count: int, more: More) -> bool:
    while True:
        prompt = f"{_INDENT}page {number} of {count}: space or Enter for more, 4 no > "
        match await more(prompt):
            case None | "4" | "n" | "no":
                return False
            case "" | " ":
                return True


def _pages(screen: Screen, lines: list[ShownLine]) -> list[list[tuple[str, tuple[str, ...]]]]:
    rows = [row for line in lines for row in _rows(screen, line)]
    if not screen.is_terminal:
        return [rows]
    height = max(shutil.get_terminal_size().lines - _ROOM_FOR_ANSWERS, _FEWEST_ROWS)
    return [rows[at : at + height] for at in range(0, len(rows), height)]


def _rows(screen: Screen, line: ShownLine) -> list[tuple[str, tuple[str, ...]]]:
    """A line as the rows that it takes, so that a page never scrolls away unseen."""
    styles = diff_style(line.text[2:]) if line.kind == "diff" else _STYLES.get(line.kind, ())
    text = _INDENT + line.text.expandtabs(4)
    if not screen.is_terminal:
        return [(text, styles)]
    from rich.cells import chop_cells

    width = max(shutil.get_terminal_size().columns - 1, 10)
    return [(row, styles) for row in chop_cells(text, width) or [""]]
