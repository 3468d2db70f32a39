"""Compose new contents from what was read, before anything is written."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, replace

from evercontext.domain.sent_tool_output import Ranges
from evercontext.domain.tool import Arguments
from evercontext.errors import Changed, EditMismatch, TooLarge
from evercontext.files.file_tree import FileText
from evercontext.workspace.edit_conflict import show_three_ways
from evercontext.workspace.read_ledger import check_seen
from evercontext.workspace.search_and_replace import (
    Applied,
    Edit,
    apply_edits,
    find_placeholder,
    keep_form,
)

_ORDINARY = frozenset("\t\n\r\f\ufeff")


@dataclass(frozen=True, slots=True)
class Draft:
    """A new content, made from what was read and not written yet."""

    file: FileText
    content: str
    notes: tuple[str, ...]
    applied: tuple[Applied, ...] | None
    """Where edits were made; ``None``: the whole content is new."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """How far an edit may go: characters of its result, and whether anybody still waits."""

    longest: int | None
    check: Callable[[], None]


Compose = Callable[[Arguments, FileText, Bounds], Draft]


def conflict_of(
    error: Changed,
    file: FileText,
    base: str | None,
    arguments: Arguments,
    compose: Compose,
    bounds: Bounds,
) -> Changed:
    """Add both sides to the refusal, if what was read is still known: nobody's lines get lost."""
    if base is None or base == file.content:
        return error
    try:
        proposed = compose(arguments, replace(file, content=base), bounds).content
    except (EditMismatch, TooLarge):
        return error
    return Changed(
        error.message, fix=f"{error.fix}.\n{show_three_ways(base, file.content, proposed)}"
    )


def draft_of(
    arguments: Arguments, file: FileText, seen: Ranges, compose: Compose, bounds: Bounds
) -> Draft:
    """Compose a new content; ``Changed`` if an edit replaces what was never shown."""
    draft = compose(arguments, file, bounds)
    check_seen(file, seen, draft.applied or ())
    return draft


def draft_unread(
    error: Changed, arguments: Arguments, file: FileText, compose: Compose, bounds: Bounds
) -> Draft:
    """Compose a new content of a file that was not read, from edits that hold what is around them.

    ``error`` if one does not: a text that fits by chance is no proof of having read it.
    """
    try:
        draft = compose(arguments, file, bounds)
    except EditMismatch:
        raise error from None
    if not draft.applied or not all(done.with_context for done in draft.applied):
        raise error
    return draft


def compose_edits(arguments: Arguments, file: FileText, bounds: Bounds) -> Draft:
    """Make the edits, all or none."""
    edits = [
        Edit(edit["old"], edit["new"], edit.get("replace_all", False))
        for edit in arguments["edits"]
    ]
    content, applied = apply_edits(file.content, edits, longest=bounds.longest, check=bounds.check)
    notes = tuple(_tell(number, done) for number, done in enumerate(applied, 1))
    return Draft(file, content, (*notes, *report_controls(content)), applied)


def compose_whole(arguments: Arguments, file: FileText, bounds: Bounds) -> Draft:
    """Take the whole new content, in the old one's form."""
    content: str = arguments["new_content"]
    placeholder = find_placeholder(file.content, content)
    if placeholder:
        raise EditMismatch(
            f"the new content holds a placeholder: {placeholder[:80]!r}",
            fix="Give the complete content, every line of it",
        )
    content, forms = keep_form(file.content, content)
    notes = (*(f"kept its {form}" for form in forms), *report_controls(content))
    return Draft(file, content, notes, None)


def _tell(number: int, done: Applied) -> str:
    places = f" ({done.places} places)" if done.places > 1 else ""
    how = "" if done.rung == "exact" else f", matched apart from {done.rung}"
    return f"edit {number} at line {done.line}{places}{how}"


def report_controls(content: str) -> tuple[str, ...]:
    """Control characters are kept, and said: they may be meant, or the trace of a broken escape."""
    if content.isascii() and content.isprintable():
        return ()
    odd = {c for c in set(content) - _ORDINARY if unicodedata.category(c) == "Cc"}
    if not odd:
        return ()
    return ("contains control characters " + " ".join(sorted(f"U+{ord(c):04X}" for c in odd)),)
