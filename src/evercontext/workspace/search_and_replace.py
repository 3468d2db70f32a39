"""Replace text that matches exactly one place, or explain why it does not.

The ladder: the text as given; then with the file's line endings; then ignoring spaces at line ends;
then shifted by one indentation. Every rung must be unique, the new text is only fitted to the
place (line endings, indentation), and the rung that held is reported. Nothing is ever guessed.

Every step takes time in proportion to the text, and its size is known before it is made: a chain of
edits that each double a text would otherwise fill the memory from a request of one kilobyte.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from evercontext.errors import EditMismatch, TooLarge
from evercontext.workspace.nearest_lines import describe_nearest

EXACT, LINE_ENDINGS, TRAILING_SPACE, INDENTATION = (
    "exact",
    "line endings",
    "spaces at line ends",
    "indentation",
)

_Relate = Callable[[str, str], str | None]

_LONGEST_PLACEHOLDER = 200
"""Characters; longer lines are content, and a pattern takes its time over them."""
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
"""A line with its ending."""
_MOST_LINE_PAIRS = 250_000
"""Pairs of changed lines that are compared for their line endings."""
_MOST_COMPARED = 2_000_000
"""Lines whose indentation is compared for one edit; texts that need more only look alike."""
_LINES_NAMED = 10
_PLACES_TOLD = 200

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
class TextSpan:
    """A place in the text before an edit, and the characters that took it."""

    start: int
    end: int
    size: int


@dataclass(frozen=True, slots=True)
class Applied:
    """Where an edit was made and which rung of the ladder held."""

    line: int
    rung: str
    places: int = 1
    spans: tuple[TextSpan, ...] = ()
    """Every place or, where there are very many, all that lies between the first and the last."""
    placed: bool = True
    """False: one span stands for many places."""
    with_context: bool = False
    """The text was given exactly, with lines around the change that stay: who gives it knows it."""


@dataclass(frozen=True, slots=True)
class _Hit:
    start: int
    end: int
    new: str


@dataclass(frozen=True, slots=True)
class _EditPlan:
    """Where an edit fits, and what would come of it; nothing is made yet."""

    spans: tuple[TextSpan, ...]
    """The first of the places."""
    end: int
    """Where the last of them ends."""
    places: int
    growth: int
    make: Callable[[], str]


def apply_edits(
    text: str,
    edits: Sequence[Edit],
    *,
    longest: int | None = None,
    check: Callable[[], None] = lambda: None,
) -> tuple[str, tuple[Applied, ...]]:
    """Apply all edits in order, or none: EditMismatch names the one that does not fit.

    ``TooLarge`` if the text would pass ``longest`` characters in between; ``check`` is called
    before each edit and may raise.
    """
    applied: list[Applied] = []
    for number, edit in enumerate(edits, 1):
        check()
        try:
            text, done = _apply(text, edit, longest)
        except (EditMismatch, TooLarge) as error:
            if len(edits) == 1:
                raise
            message = f"edit {number} of {len(edits)}: {error.message}"
            raise type(error)(
                message, fix=f"Nothing was changed. {error.fix or ''}".strip()
            ) from None
        applied.append(done)
    return text, tuple(applied)


def keep_form(before: str, after: str) -> tuple[str, tuple[str, ...]]:
    """Give a whole new content the BOM and line endings of the old one; say what was kept."""
    forms: list[str] = []
    if _is_crlf(before) and "\r" not in after and "\n" in after:
        after = after.replace("\n", "\r\n")
        forms.append("CRLF line endings")
    elif _is_mixed(before) and "\r" not in after and "\n" in after:
        mixed = _with_mixed_endings(before, after, _common_ending(before))
        forms += ["the line endings of each line"] if mixed != after else []
        after = mixed
    if before.startswith("\ufeff") and not after.startswith("\ufeff"):
        after = "\ufeff" + after
        forms.append("byte order mark")
    return after, tuple(forms)


def find_placeholder(before: str, after: str) -> str | None:
    """Return a line such as ``# ... rest unchanged`` that the new text has and the old had not."""
    known: set[str] | None = None
    for line in after.splitlines():
        if len(line) > _LONGEST_PLACEHOLDER or not _PLACEHOLDER.fullmatch(line.rstrip()):
            continue
        if known is None:
            known = {old.strip() for old in before.splitlines()}
        if line.strip() not in known:
            return line.strip()
    return None


def _apply(text: str, edit: Edit, longest: int | None) -> tuple[str, Applied]:
    _refuse_senseless(text, edit)
    for rung, find in _LADDER:
        plan = find(text, edit)
        if plan is None:
            continue
        if plan.places > 1 and not edit.replace_all:
            named = plan.spans[:_LINES_NAMED]
            lines = ", ".join(str(_line(text, span.start)) for span in named)
            raise EditMismatch(
                f"the text occurs {plan.places} times (lines {lines})",
                fix="Give more lines around it, or set replace_all",
            )
        if longest is not None and plan.growth > 0 and len(text) + plan.growth > longest:
            raise TooLarge(f"too large: the file would have more than {longest} characters")
        line = _line(text, plan.spans[0].start)
        known = rung in (EXACT, LINE_ENDINGS) and plan.places == 1 and _carries_context(edit)
        return plan.make(), Applied(line, rung, plan.places, *_spans(plan), with_context=known)
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


def _carries_context(edit: Edit) -> bool:
    """True if a line at either end stays as it is."""
    old, new = edit.old.splitlines(), edit.new.splitlines()
    if edit.replace_all or len(old) < 2 or not new:
        return False
    return any(old[at] == new[at] and old[at].strip() for at in (0, -1))


def _spans(plan: _EditPlan) -> tuple[tuple[TextSpan, ...], bool]:
    """The places of a plan, or one that holds them all; and whether they are told apart."""
    if plan.places == len(plan.spans):
        return plan.spans, True
    start = plan.spans[0].start
    return (TextSpan(start, plan.end, plan.end - start + plan.growth),), False


def _line(text: str, offset: int) -> int:
    return text.count("\n", 0, offset) + 1


def _find(text: str, old: str, new: str) -> _EditPlan | None:
    places = text.count(old)
    if not places:
        return None
    spans: list[TextSpan] = []
    start = text.find(old)
    while start >= 0 and len(spans) < _PLACES_TOLD:
        spans.append(TextSpan(start, start + len(old), len(new)))
        start = text.find(old, start + len(old))
    growth, end = places * (len(new) - len(old)), text.rfind(old) + len(old)
    return _EditPlan(tuple(spans), end, places, growth, lambda: text.replace(old, new))


def _find_exact(text: str, edit: Edit) -> _EditPlan | None:
    new = edit.new
    if _is_crlf(text) and "\r" not in edit.old and "\n" not in edit.old and "\r" not in new:
        new = new.replace("\n", "\r\n")
    return _find(text, edit.old, new)


def _find_line_endings(text: str, edit: Edit) -> _EditPlan | None:
    if "\r\n" in text:
        old, new = (
            part.replace("\r\n", "\n").replace("\n", "\r\n") for part in (edit.old, edit.new)
        )
    else:
        old, new = (part.replace("\r\n", "\n") for part in (edit.old, edit.new))
    return _find(text, old, new) if old != edit.old else None


def _find_trailing_space(text: str, edit: Edit) -> _EditPlan | None:
    return _find_lines(text, edit, str.rstrip, lambda theirs, ours: "")


def _find_indented(text: str, edit: Edit) -> _EditPlan | None:
    return _find_lines(text, edit, str.strip, _shift)


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


def _find_lines(
    text: str, edit: Edit, bare: Callable[[str], str], relate: _Relate
) -> _EditPlan | None:
    """Find whole lines that are those of the edit once ``bare``, all related in the same way."""
    lines = text.splitlines(keepends=True)
    old = [line.rstrip() for line in edit.old.splitlines()]
    starts = _offsets(lines)
    # A letter for each line makes it a search for a text in a text, which is never slow.
    run, word = _spelled([bare(line) for line in lines], [bare(line) for line in old])
    hits: list[_Hit] = []
    compared = 0
    fitted: dict[str | None, str | None] = {None: None}
    common = _common_ending(text) if _is_mixed(text) else ""
    index = run.find(word)
    while index >= 0:
        last = index + len(old)
        compared += len(old)
        if compared > _MOST_COMPARED:
            raise EditMismatch(
                "too many places are like the text", fix="Copy its lines exactly, spaces included"
            )
        shift = _relation([line.rstrip() for line in lines[index:last]], old, relate)
        if shift not in fitted:
            fitted[shift] = _fit(edit, shift or "", text)
        if (new := fitted[shift]) is None:
            index = run.find(word, index + 1)
            continue
        ending = len(lines[last - 1]) - len(lines[last - 1].rstrip("\r\n"))
        end = starts[last] - (0 if edit.old.endswith("\n") else ending)
        if common and "\r" not in edit.new:
            new = _with_mixed_endings(text[starts[index] : end], new, common)
        hits.append(_Hit(starts[index], end, new))
        index = run.find(word, last)
    return _planned(text, hits) if hits else None


def _spelled(lines: list[str], pattern: list[str]) -> tuple[str, str]:
    """Both as texts with a letter for each line; lines that are not wanted share one."""
    letters = {line: chr(number) for number, line in enumerate(dict.fromkeys(pattern), 1)}
    return (
        "".join([letters.get(line, "\0") for line in lines]),
        "".join([letters[line] for line in pattern]),
    )


def _planned(text: str, hits: list[_Hit]) -> _EditPlan:
    growth = sum(len(hit.new) - (hit.end - hit.start) for hit in hits)

    def make() -> str:
        parts, end = [], 0
        for hit in hits:
            parts += [text[end : hit.start], hit.new]
            end = hit.end
        return "".join([*parts, text[end:]])

    spans = tuple(TextSpan(hit.start, hit.end, len(hit.new)) for hit in hits[:_PLACES_TOLD])
    return _EditPlan(spans, hits[-1].end, len(hits), growth, make)


def _relation(theirs: list[str], ours: list[str], relate: _Relate) -> str | None:
    """How lines relate that are the same once bare, if all do in the same way."""
    common: str | None = None
    for their_line, our_line in zip(theirs, ours, strict=True):
        if not their_line:
            continue
        shift = relate(their_line, our_line)
        if shift is None or (common is not None and shift != common):
            return None
        common = shift
    return common


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


def _is_mixed(text: str) -> bool:
    """Tell whether lines end in more than one way."""
    return "\r" in text and not _is_crlf(text)


def _with_mixed_endings(before: str, after: str, common: str) -> str:
    """Give each line that stays its own ending back; new ones have the ``common`` ending."""
    old, new = _LINE.findall(before), [line.rstrip("\r\n") for line in _LINE.findall(after)]
    bare = [line.rstrip("\r\n") for line in old]
    start = end = 0
    while start < min(len(bare), len(new)) and bare[start] == new[start]:
        start += 1
    while end < min(len(bare), len(new)) - start and bare[-1 - end] == new[-1 - end]:
        end += 1
    stop, shift = len(new) - end, len(old) - len(new)
    staying = {number: old[number] for number in range(start)}
    staying |= {number: old[number + shift] for number in range(stop, len(new))}
    if (stop - start) * (stop + shift - start) <= _MOST_LINE_PAIRS:
        matcher = SequenceMatcher(None, bare[start : stop + shift], new[start:stop], autojunk=False)
        for here, there, size in matcher.get_matching_blocks():
            staying |= {start + there + i: old[start + here + i] for i in range(size)}
    if not staying:
        return after
    lines = [staying.get(number, line + common) for number, line in enumerate(new)]
    lines = [line if line[-1:] in ("\r", "\n") else line + common for line in lines]
    # A last line without an ending is one in the new text alone.
    text = "".join(lines)
    return text if after.endswith("\n") else text.rstrip("\r\n")


def _common_ending(text: str) -> str:
    endings = [line[len(line.rstrip("\r\n")) :] for line in _LINE.findall(text)]
    counted: dict[str, int] = {ending: endings.count(ending) for ending in set(endings) if ending}
    # Of two that are equally common the one that comes first.
    return max(counted, key=lambda ending: (counted[ending], -endings.index(ending)))


def _is_crlf(text: str) -> bool:
    return "\r\n" in text and text.count("\n") == text.count("\r\n")
