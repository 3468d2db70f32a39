"""Search and replace that hits exactly one place, or says why not.

The ladder: the text as given; then with the file's line endings; then ignoring spaces at line ends;
then shifted by one indentation. Every rung must be unique, the new text is only fitted to the
place (line endings, indentation), and the rung that held is reported. Nothing is ever guessed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from evercontext.errors import EditMismatch
from evercontext.workspace.nearest import describe_nearest

EXACT, LINE_ENDINGS, TRAILING_SPACE, INDENTATION = (
    "exact",
    "line endings",
    "spaces at line ends",
    "indentation",
)

_Relate = Callable[[str, str], str | None]

_PLACEHOLDER = re.compile(
    r"[\s#/*<!;%-]*(\.\.\.|…)\s*[\(\[]?\s*"
    r"(the\s+)?(rest|existing|remaining|previous|unchanged|same|other)\b.{0,60}",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace ``old``, which occurs once unless ``replace_all`` is set, by ``new``."""

    old: str
    new: str
    replace_all: bool = False


@dataclass(frozen=True, slots=True)
class Applied:
    """Where an edit was made and which rung of the ladder held."""

    line: int
    rung: str
    places: int = 1


@dataclass(frozen=True, slots=True)
class _Hit:
    start: int
    end: int
    new: str


def apply_edits(text: str, edits: Sequence[Edit]) -> tuple[str, tuple[Applied, ...]]:
    """Apply all edits in order, or none: EditMismatch names the one that does not fit."""
    applied: list[Applied] = []
    for number, edit in enumerate(edits, 1):
        try:
            text, done = _apply(text, edit)
        except EditMismatch as error:
            if len(edits) == 1:
                raise
            message = f"edit {number} of {len(edits)}: {error.message}"
            raise EditMismatch(
                message, fix=f"Nothing was changed. {error.fix or ''}".strip()
            ) from None
        applied.append(done)
    return text, tuple(applied)


def keep_form(before: str, after: str) -> tuple[str, tuple[str, ...]]:
    """Give a whole new content the BOM and line endings of the old one; say what was kept."""
    kept: list[str] = []
    if _is_crlf(before) and "\r" not in after and "\n" in after:
        after = after.replace("\n", "\r\n")
        kept.append("CRLF line endings")
    if before.startswith("\ufeff") and not after.startswith("\ufeff"):
        after = "\ufeff" + after
        kept.append("byte order mark")
    return after, tuple(kept)


def find_placeholder(before: str, after: str) -> str | None:
    """Return a line such as ``# ... rest unchanged`` that the new text has and the old had not."""
    for line in after.splitlines():
        if _PLACEHOLDER.fullmatch(line.rstrip()) and line.strip() not in before:
            return line.strip()
    return None


def _apply(text: str, edit: Edit) -> tuple[str, Applied]:
    _refuse_senseless(text, edit)
    for rung, find in _LADDER:
        hits = find(text, edit)
        if not hits:
            continue
        if len(hits) > 1 and not edit.replace_all:
            lines = ", ".join(str(_line(text, hit.start)) for hit in hits[:10])
            raise EditMismatch(
                f"the text occurs {len(hits)} times (lines {lines})",
                fix="Give more lines around it, or set replace_all",
            )
        return _replace(text, hits), Applied(_line(text, hits[0].start), rung, len(hits))
    if edit.new.strip() and edit.new in text:
        raise EditMismatch("the text is not there, and the new text already is")
    raise EditMismatch("the text is not in the file", fix=describe_nearest(text, edit.old))


def _refuse_senseless(text: str, edit: Edit) -> None:
    if not edit.old.strip():
        raise EditMismatch("the text to replace is empty", fix="Give the lines that shall change")
    if edit.old == edit.new:
        raise EditMismatch("nothing would change: old and new are the same")
    placeholder = find_placeholder(text, edit.new)
    if placeholder:
        raise EditMismatch(
            f"the new text holds a placeholder: {placeholder[:80]!r}", fix="Write the lines out"
        )


def _replace(text: str, hits: list[_Hit]) -> str:
    for hit in reversed(hits):
        text = text[: hit.start] + hit.new + text[hit.end :]
    return text


def _line(text: str, offset: int) -> int:
    return text.count("\n", 0, offset) + 1


def _find(text: str, old: str, new: str) -> list[_Hit]:
    hits: list[_Hit] = []
    start = text.find(old)
    while start >= 0:
        hits.append(_Hit(start, start + len(old), new))
        start = text.find(old, start + len(old))
    return hits


def _find_exact(text: str, edit: Edit) -> list[_Hit]:
    new = edit.new
    if _is_crlf(text) and "\r" not in edit.old and "\n" not in edit.old and "\r" not in new:
        new = new.replace("\n", "\r\n")
    return _find(text, edit.old, new)


def _find_line_endings(text: str, edit: Edit) -> list[_Hit]:
    if "\r\n" in text:
        old, new = (
            part.replace("\r\n", "\n").replace("\n", "\r\n") for part in (edit.old, edit.new)
        )
    else:
        old, new = (part.replace("\r\n", "\n") for part in (edit.old, edit.new))
    return _find(text, old, new) if old != edit.old else []


def _find_trailing_space(text: str, edit: Edit) -> list[_Hit]:
    return _find_lines(text, edit, lambda theirs, ours: "" if theirs == ours else None)


def _find_indented(text: str, edit: Edit) -> list[_Hit]:
    return _find_lines(text, edit, _shift)


_LADDER = (
    (EXACT, _find_exact),
    (LINE_ENDINGS, _find_line_endings),
    (TRAILING_SPACE, _find_trailing_space),
    (INDENTATION, _find_indented),
)


def _shift(theirs: str, ours: str) -> str | None:
    """Return the indentation that the file has more (``+…``) or less (``-…``) than the edit."""
    if theirs.lstrip() != ours.lstrip():
        return None
    file_indent, edit_indent = (line[: len(line) - len(line.lstrip())] for line in (theirs, ours))
    if file_indent.endswith(edit_indent):
        return "+" + file_indent[: len(file_indent) - len(edit_indent)]
    if edit_indent.endswith(file_indent):
        return "-" + edit_indent[: len(edit_indent) - len(file_indent)]
    return None


def _find_lines(text: str, edit: Edit, relate: _Relate) -> list[_Hit]:
    """Find whole lines that relate to those of the edit, all in the same way."""
    lines = text.splitlines(keepends=True)
    old = [line.rstrip() for line in edit.old.splitlines()]
    bare = [line.rstrip() for line in lines]
    starts = _offsets(lines)
    hits: list[_Hit] = []
    index = 0
    while index + len(old) <= len(lines):
        shift = _relation(bare[index : index + len(old)], old, relate)
        new = None if shift is None else _fit(edit, shift, text)
        if new is None:
            index += 1
            continue
        last = index + len(old)
        ending = len(lines[last - 1]) - len(lines[last - 1].rstrip("\r\n"))
        end = starts[last] - (0 if edit.old.endswith("\n") else ending)
        hits.append(_Hit(starts[index], end, new))
        index = last
    return hits


def _relation(theirs: list[str], ours: list[str], relate: _Relate) -> str | None:
    shifts: set[str | None] = set()
    for their_line, our_line in zip(theirs, ours, strict=True):
        if bool(their_line) != bool(our_line):
            return None
        if their_line:
            shifts.add(relate(their_line, our_line))
    return shifts.pop() if len(shifts) == 1 else None


def _fit(edit: Edit, shift: str, text: str) -> str | None:
    """Return the new text with the indentation and the line endings of its place."""
    sign, indent = shift[:1], shift[1:]
    lines = edit.new.replace("\r\n", "\n").split("\n")
    if sign == "+":
        lines = [indent + line if line.strip() else line for line in lines]
    elif sign == "-":
        if any(line.strip() and not line.startswith(indent) for line in lines):
            return None
        lines = [line.removeprefix(indent) for line in lines]
    return ("\r\n" if _is_crlf(text) else "\n").join(lines)


def _offsets(lines: list[str]) -> list[int]:
    offsets = [0]
    for line in lines:
        offsets.append(offsets[-1] + len(line))
    return offsets


def _is_crlf(text: str) -> bool:
    return "\r\n" in text and text.count("\n") == text.count("\r\n")
