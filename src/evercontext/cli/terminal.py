"""What a terminal can show: control characters made visible, colours, columns.

Text of models, tools and files never reaches a terminal unescaped: an escape sequence could
retitle the window, write to the clipboard or hide what was done.
"""

from __future__ import annotations

import itertools
import re
import shutil
import unicodedata
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import TextIO

from evercontext.cli.messages import language, translate, translate_composed
from evercontext.cli.theme import codes, theme
from evercontext.domain.visible_text import visible as visible
from evercontext.settings import process_environment

BREAK = "\x1c"
"""A mark without width where a line may be broken; whitespace to Python, so wrapping sees it."""
_NOT_FIRST = frozenset(
    "、。，．・：；？！゛゜ヽヾゝゞ々ー）］｝」』】〉》〕％!%),.:;?]}ぁぃぅぇぉっゃゅょァィゥェォッャュョ…"
)
_NOT_LAST = frozenset("（［｛「『【〈《〔([{")
_NARROWEST, _WIDEST = 40, 120


def one_line(text: str) -> str:
    """Return the text visible and on one line."""
    return " ".join(visible(text).split())


def columns_of(text: str) -> int:
    """How many columns the text takes; Japanese takes two for each character."""
    from rich.cells import cell_len

    return cell_len(text)


def clip(text: str, columns: int) -> str:
    """Cut the text to so many columns, with a mark where something is missing."""
    from rich.cells import cell_len, set_cell_size

    if cell_len(text) <= columns:
        return text
    return set_cell_size(text, max(columns - 1, 0)).rstrip() + "…"


def local_time(at: str) -> str:
    """A moment in the reader's own time; one that names no zone is UTC, as the tables keep it."""
    moment = datetime.fromisoformat(at)
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return moment.astimezone().strftime("%Y-%m-%d %H:%M")


def counted(number: int, noun: str, plural: str = "") -> str:
    """A number and what it counts: ``1 file``, ``2 files``."""
    several = plural or f"{noun}s"
    if number == 1 and language() == "en":
        return f"1 {noun}"
    return translate(f"{{count}} {several}", count=f"{number:,}")


def listed(parts: Iterable[str]) -> str:
    """Return several short texts as one, with the commas of the language."""
    return ("、" if language() == "ja" else ", ").join(parts)


def labelled(level: str, text: str) -> str:
    """Return a line that says what kind of remark it is: ``error: …``, ``note: …``."""
    label = translate({"info": "note"}.get(level, level))
    return f"{label}: {translate_composed(one_line(text))}"


def pad(text: str, columns: int) -> str:
    """Fill the text up with spaces to so many columns."""
    return text + " " * (columns - columns_of(text))


def breakable(text: str) -> str:
    """Mark where text without spaces may be broken: beside wide characters, as Japanese is set."""
    if text.isascii():
        return text
    marked = [text[:1]]
    for before, after in itertools.pairwise(text):
        wide = _is_wide(before) or _is_wide(after)
        # A word in katakana is read as one.
        one_word = _is_katakana(before) and _is_katakana(after)
        may_part = after not in _NOT_FIRST and before not in _NOT_LAST and not after.isspace()
        if wide and may_part and not one_word:
            marked.append(BREAK)
        marked.append(after)
    return "".join(marked)


def _is_katakana(character: str) -> bool:
    return "ァ" <= character <= "ヺ" or character == "ー"


def _is_wide(character: str) -> bool:
    return unicodedata.east_asian_width(character) in ("W", "F")


def wrap(text: str, columns: int, indent: str = "") -> list[str]:
    """Break one line at words, and text without spaces where it may be broken."""
    from rich.cells import cell_len, chop_cells

    lines, line = [], ""
    for word in re.findall(r"\s*[^\s]+", breakable(text)) or [""]:
        word = word.replace(BREAK, "")
        if cell_len(line + word) <= columns:
            line += word
            continue
        if line:
            lines.append(line)
        *full, line = chop_cells(indent + word.lstrip() if line else word, max(columns, 2)) or [""]
        lines += full
    return [*lines, line]


class Screen:
    """One output stream. When its reader goes away it falls silent, and the work goes on."""

    def __init__(self, stream: TextIO, *, no_color: bool = False) -> None:
        self._stream = stream
        self._broken = False
        self.is_terminal = stream.isatty()
        term = process_environment().get("TERM", "")
        self.can_erase = self.is_terminal and term not in ("", "dumb")
        self.colour = self.can_erase and not no_color and theme() != "none"

    @property
    def width(self) -> int:
        """Columns to lay lines out for."""
        if not self.is_terminal:
            return _WIDEST
        return max(_NARROWEST, min(_WIDEST, shutil.get_terminal_size().columns))

    def paint(self, text: str, *styles: str) -> str:
        """Return the text in these styles, where colours are wanted."""
        if not self.colour or not styles or not text:
            return text
        return f"\x1b[{codes(styles)}m{text}\x1b[0m"

    def wrapped(self, text: str) -> str:
        """Break prose at words where a terminal would break it in the middle of one."""
        if not self.is_terminal:
            return text
        return "\n".join(wrap(text, self.width - 1, "  "))

    def write(self, text: str) -> None:
        """Write at once."""
        if self._broken:
            return
        try:
            self._stream.write(text)
            self._stream.flush()
        except BrokenPipeError:
            self._broken = True

    def line(self, text: str = "", *styles: str) -> None:
        """Write one line."""
        self.write(self.paint(text, *styles) + "\n")
