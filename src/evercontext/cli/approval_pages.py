"""A call that waits for approval, on a terminal: page by page, and no yes before the last one."""

from __future__ import annotations

import re
import shutil
from collections.abc import Awaitable, Callable, Iterable, Iterator

from evercontext.cli.diff_lines import HUNK, coloured_rows
from evercontext.cli.messages import translate, translate_composed
from evercontext.cli.render import diff_style
from evercontext.cli.terminal import Screen, clip, wrap
from evercontext.tools.approval_text import Consent, ShownLine

More = Callable[[str], Awaitable[str | None]]
"""Asks whether to go on; ``None``: the person went away."""

_STYLES = {
    "title": ("bold",),
    "warning": ("yellow",),
    "name": ("bold",),
    "diff+": ("green",),
    "diff-": ("red",),
}
_CHANGE = re.compile(r"(  .*) would be (created|changed|deleted|renamed) (\+\d+ -\d+)")
Row = tuple[str, tuple[str, ...]]
_INDENT = "  "
_ROOM_FOR_ANSWERS = 8
_FEWEST_ROWS = 6
_BELOW_CODE = 11
"""Columns before the code of a numbered line of a diff, its sign included."""


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
        asks = translate(
            "page {number} of {count}: space or Enter for more, 4 no", number=number, count=count
        )
        prompt = f"{_INDENT}{asks} > "
        match await more(prompt):
            case None | "4" | "n" | "no":
                return False
            case "" | " ":
                return True


def _pages(screen: Screen, lines: list[ShownLine]) -> list[list[Row]]:
    rows: list[Row] = []
    headings: list[str] = []
    heading = ""
    path = ""
    for line in _numbered(lines):
        if line.kind == "name":
            change = _CHANGE.fullmatch(line.text)
            path = change[1].strip() if change else ""
        line = _translated(line)
        heading = line.text.strip() if line.kind in ("title", "name") else heading
        more = _rows(screen, line, path)
        rows += more
        headings += [heading] * len(more)
    if not screen.is_terminal:
        return [rows]
    size = shutil.get_terminal_size()
    height = max(size.lines - _ROOM_FOR_ANSWERS, _FEWEST_ROWS)
    pages = [rows[:height]]
    for at in range(height, len(rows), height - 1):
        # What the page is about stays in sight.
        about = translate("{file}, continued", file=headings[at])
        pages.append([(clip(f"{_INDENT}{about}", size.columns - 1), ("bold",))])
        pages[-1] += rows[at : at + height - 1]
    return pages


def _translated(line: ShownLine) -> ShownLine:
    """Put our own words of a line into the terminal's language; what is approved stays as it is."""
    if line.kind == "title":
        call = line.text.removesuffix(" needs your approval")
        return ShownLine(translate("{call} needs your approval", call=call), line.kind)
    if line.kind == "warning" and line.text.startswith("every time, because "):
        reason = line.text.removeprefix("every time, because ")
        reason = translate_composed(reason)
        return ShownLine(translate("every time, because {reason}", reason=reason), line.kind)
    if line.kind == "warning":
        return ShownLine(translate_composed(line.text), line.kind)
    if line.kind == "name" and (change := _CHANGE.fullmatch(line.text)):
        words = translate(f"would be {change[2]}")
        return ShownLine(f"{change[1]} {words} {change[3]}", line.kind)
    return line


def _numbered(lines: Iterable[ShownLine]) -> Iterator[ShownLine]:
    """Put the number of each line of a diff before it; its text stays what it is."""
    old = new = 0
    for line in lines:
        if line.kind != "diff":
            old = new = 0
            yield line
            continue
        text = line.text[2:]
        if hunk := HUNK.match(text):
            old, new = int(hunk[1]), int(hunk[2])
        elif text[:1] in ("+", "-", " ") and (old or new):
            number = old if text[0] == "-" else new
            old, new = old + (text[0] != "+"), new + (text[0] != "-")
            yield ShownLine(f"  {number:>5} {text}", f"diff{text[0]}")
            continue
        yield line


def _rows(screen: Screen, line: ShownLine, path: str) -> list[Row]:
    """A line as the rows that it takes, so that a page never scrolls away unseen."""
    styles: tuple[str, ...] = _STYLES.get(line.kind, ())
    if line.kind == "diff":
        styles = diff_style(line.text[2:])
    text = _INDENT + line.text.expandtabs(4)
    if not screen.is_terminal:
        return [(text, styles)]
    width = max(shutil.get_terminal_size().columns - 1, 10)
    if line.kind.startswith("diff"):
        rows = _chopped(text, width)
        numbered = line.kind != "diff" and len(text) > _BELOW_CODE
        return _coloured(screen, rows, path, styles) if numbered else [(r, styles) for r in rows]
    indent = " " * (len(text) - len(text.lstrip()) + 2)
    return [(row, styles) for row in wrap(text, width, indent)]


def _coloured(screen: Screen, rows: list[str], path: str, styles: tuple[str, ...]) -> list[Row]:
    """The sign and the number in the colour of the change, the code in those of its language."""
    below = " " * _BELOW_CODE
    heads = [rows[0][:_BELOW_CODE], *(below if r.startswith(below) else "" for r in rows[1:])]
    codes = [row[len(head) :] for head, row in zip(heads, rows, strict=True)]
    painted = coloured_rows(screen, codes, path, styles)
    number = styles or ("dim",)
    return [(screen.paint(h, *number) + p, ()) for h, p in zip(heads, painted, strict=True)]


def _chopped(text: str, width: int) -> list[str]:
    """Cut a line of code wherever it is too long; what follows stands below its beginning."""
    from rich.cells import chop_cells

    first, *rest = chop_cells(text, width) or [""]
    if not rest or width <= 2 * _BELOW_CODE:
        return [first, *rest]
    below = " " * _BELOW_CODE
    return [first, *(below + row for row in chop_cells(text[len(first) :], width - _BELOW_CODE))]
