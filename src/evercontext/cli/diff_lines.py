"""A diff for people: line numbers, signs, and the colours of its language.

Outside a terminal a diff stays a patch that applies; see ``painted_diff``.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING

from evercontext.cli.terminal import Screen, visible
from evercontext.cli.theme import code_theme

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@(.*)")
_SIGNS = {"+": ("green",), "-": ("red",)}
_NAMES = ("---", "+++")
_LONGEST_COLOURED = 500
"""Characters of a line whose words are coloured."""
_NARROW = 3


def numbered_diff(screen: Screen, diff: str, path: str = "") -> list[str]:
    """Return the lines of a diff, each with its number in the file it is in."""
    if not diff.strip("\n"):
        return []
    lines = diff.rstrip("\n").split("\n")
    if all(line.endswith("\r") for line in lines if line[:1] in _SIGNS and line[:3] not in _NAMES):
        # Where every line ends so, it is the file's own way and not worth showing.
        lines = [line.removesuffix("\r") for line in lines]
    body = [line for line in lines if not line.startswith(("--- ", "+++ "))]
    return list(_numbered(screen, body, path))


def _numbered(screen: Screen, lines: Iterable[str], path: str) -> Iterator[str]:
    lines = list(lines)
    width = _number_width(lines)
    old = new = 0
    first = True
    for line in lines:
        if hunk := HUNK.match(line):
            old, new = int(hunk[1]), int(hunk[2])
            about = visible(hunk[3].strip())
            if not first or about:
                yield screen.paint(f"{'…'.rjust(width)}   {about}".rstrip(), "cyan")
            first = False
            continue
        sign, text = line[:1], visible(line[1:])
        if sign not in ("+", "-", " ") or not (old or new):
            yield visible(line)
            continue
        number = old if sign == "-" else new
        old, new = old + (sign != "+"), new + (sign != "-")
        styles = _SIGNS.get(sign, ("dim",))
        head = screen.paint(f"{number:>{width}} {sign}", *styles)
        yield f"{head} {coloured(screen, text, path, styles)}".rstrip()


def _number_width(lines: Iterable[str]) -> int:
    largest = 0
    for line in lines:
        if hunk := HUNK.match(line):
            largest = max(largest, int(hunk[1]), int(hunk[2]))
    # A hunk is longer than its first line says.
    return max(_NARROW, len(str(largest + 200)))


def coloured(screen: Screen, text: str, path: str, otherwise: tuple[str, ...] = ()) -> str:
    """Colour one line of code by the language of its file."""
    if not screen.colour or not text.strip():
        return text
    return coloured_rows(screen, [text], path, otherwise)[0]


def coloured_rows(
    screen: Screen, rows: Sequence[str], path: str, otherwise: tuple[str, ...] = ()
) -> list[str]:
    """Colour one line of code that is laid out in rows, by the language of its file."""
    line = "".join(rows)
    highlighter = _highlighter(path, code_theme()) if len(line) <= _LONGEST_COLOURED else None
    words = highlighter(line) if highlighter and screen.colour else None
    # What a person reads before a yes is what was there: a lexer may tidy, then it is not used.
    if words is None or words.plain != line:
        styles = [style for style in otherwise if style != "dim"]
        return [screen.paint(row, *styles) for row in rows]
    return [_rendered(part) for part in words.divide(itertools.accumulate(map(len, rows[:-1])))]


@lru_cache(maxsize=64)
def _highlighter(path: str, colours: str) -> Callable[[str], Text] | None:
    """Return what colours the code of a file of that name, or nothing for other files."""
    from rich.syntax import Syntax

    lexer = Syntax.guess_lexer(path.rpartition("/")[2]) if path else "default"
    if lexer in ("default", "text"):
        return None
    syntax = Syntax("", lexer, theme=colours)

    def highlight(text: str) -> Text:
        line = syntax.highlight(text)
        line.right_crop(len(line.plain) - len(line.plain.removesuffix("\n")))
        return line

    return highlight


def _rendered(line: Text) -> str:
    from rich.color import ColorSystem

    return "".join(
        part.style.render(part.text, color_system=ColorSystem.STANDARD) if part.style else part.text
        for part in line.render(_console(), end="")
    )


@cache
def _console() -> Console:
    from rich.console import Console

    return Console(force_terminal=True, color_system="standard")
