"""Cut a file at its meaning: functions, classes, headings; fixed lengths where there are none."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from evercontext.index.definitions import Definition, Named, Span
from evercontext.index.languages import DATA, PROSE, grammar_of
from evercontext.index.outline import outline
from evercontext.index.strip_bodies import strip_bodies

if TYPE_CHECKING:
    from tree_sitter import Node

LONGEST = 60
"""Lines a chunk may have; longer definitions are cut again."""
WINDOW = 40
SHORTEST = 3

_CLASSES = frozenset({"type", "impl"})
_OFTEN_WRONG = frozenset({"c"})
"""What macros make of a text is often no sentence of the grammar, with or without its bodies."""
_ABOVE = re.compile(r"\s*(#|//|/\*|\*|--|;;|%|@|\{-|-\||\"\"\"|\[<|#\[|\[)")
_HEADING = re.compile(r"#{1,6}\s+\S|[=\-~^\"]{4,}\s*$")
_SECTION = re.compile(
    r"\[.+\]\s*$|[A-Za-z_\"'][^\s:]*\s*:(\s|$)|@|\.|<(section|div|template|script)"
)
_BEHIND_MACROS = frozenset({"c", "cpp", "csharp"})
_TYPE_LINE = re.compile(
    r"^([ \t]*)(?:\w{1,60}[ \t]+){0,2}?(?:template[ \t]*<[^;{}\n]{0,300}>[ \t]*)?"
    r"(?:[\w\[\]]{1,60}[ \t]+){0,6}?(?:class|struct|interface)[ \t]+"
    r"(?:[A-Z][A-Z_0-9]{2,60}[ \t]+)?(\w{1,100})[ \t]*(?:final)?"
    r"(?=(?:[ \t]*//[^\n]{0,300})?\s{0,100}(?::(?!:)|\{))",
    re.M | re.A,
)
_MOST_NAMED = 200
"""Definitions of one chunk that are kept."""


def find_definitions(text: str, language: str) -> list[Definition]:
    """Return the definitions of a source, in order of their start."""
    outlined = outline(text, language)
    if outlined is None:
        definitions = _parsed_definitions(text, language)
    else:
        definitions = (Definition(*line) for line in outlined)
    distinct: dict[tuple[int, int, str], Definition] = {}
    for definition in definitions:
        distinct.setdefault((definition.start, definition.end, definition.name), definition)
    if language in _BEHIND_MACROS:
        known = {definition.name for definition in distinct.values() if definition.kind == "type"}
        for definition in _types_by_line(text):
            if definition.name not in known:
                place = (definition.start, definition.end, definition.name)
                distinct.setdefault(place, definition)
    return sorted(distinct.values(), key=lambda d: (d.start, -d.end))


def _parsed_definitions(text: str, language: str) -> Iterator[Definition]:
    grammar = grammar_of(language)
    if grammar is None:
        return
    from tree_sitter import QueryCursor

    parser, query = grammar
    parsed = strip_bodies(text, language)
    data = parsed.encode("utf-8", "surrogatepass")
    tree = parser.parse(data)
    if parsed is not text and language not in _OFTEN_WRONG and tree.root_node.has_error:
        data = text.encode("utf-8", "surrogatepass")
        tree = parser.parse(data)
    for _, captures in QueryCursor(query).matches(tree.root_node):
        definition = _definition(captures, data)
        if definition is not None:
            yield definition


def _types_by_line(text: str) -> Iterable[Definition]:
    """Yield the types that a line begins: one behind a macro is none to the parser."""
    breaks: list[int] = []
    closed: dict[str, int] = {}
    for types in _TYPE_LINE.finditer(text):
        breaks = breaks or [place for place, letter in enumerate(text) if letter == "\n"]
        indent = types[1]
        # The next brace at this depth is looked for once, however many types stand before it.
        if closed.get(indent, 0) < types.end():
            end = text.find(f"\n{indent}}}", types.end())
            closed[indent] = end if end >= 0 else len(text)
        first = bisect_left(breaks, types.start()) + 1
        yield Definition(types[2], "type", first, bisect_left(breaks, closed[indent] + 1) + 1)


def _definition(captures: dict[str, list[Node]], data: bytes) -> Definition | None:
    full_name = captures["def"][0]
    for kind in ("type", "function", "other", "impl"):
        if kind in captures:
            node = captures[kind][0]
            name = data[node.start_byte : node.end_byte]
            if not name:
                return None  # the parser supposes a name where none is written
            end = full_name.end_point
            return Definition(
                name.decode("utf-8", "replace")[:200],
                kind,
                full_name.start_point[0] + 1,
                end[0] + (1 if end[1] else 0),
            )
    return None


def cut(lines: Sequence[str], language: str, definitions: Sequence[Definition]) -> list[Span]:
    """Return spans that cover every line that is not blank, in order, without overlap."""
    if language in PROSE:
        starts = _heading_starts(lines)
    elif language in DATA or not definitions:
        starts = _paragraph_starts(lines, language)
    else:
        starts = _definition_starts(lines, definitions)
    pieces = _merge_short(_pieces(starts, len(lines)), lines)
    names = _Names(definitions)
    return [
        Span(first, last, names.of(first, last))
        for piece in pieces
        for first, last in _windows(lines, *piece)
    ]


def _definition_starts(lines: Sequence[str], definitions: Sequence[Definition]) -> set[int]:
    starts = {1}
    whole_until = 0
    for definition in definitions:
        if definition.kind == "other" or definition.start <= whole_until:
            continue
        if definition.kind == "function" and definition.end - definition.start < LONGEST:
            whole_until = definition.end
        first = definition.start
        while first > 1 and _ABOVE.match(lines[first - 2]) and first - 1 not in starts:
            first -= 1
        starts.add(first)
        if definition.end - definition.start >= SHORTEST:
            starts.add(definition.end + 1)
    return starts


def _heading_starts(lines: Sequence[str]) -> set[int]:
    starts, fenced = {1}, False
    for number, line in enumerate(lines, 1):
        if line.startswith(("```", "~~~")):
            fenced = not fenced
        elif not fenced and _HEADING.match(line):
            starts.add(number if line.startswith("#") else max(1, number - 1))
    return starts


def _paragraph_starts(lines: Sequence[str], language: str) -> set[int]:
    starts, last = {1}, 1
    for number, line in enumerate(lines, 1):
        boundary = not lines[number - 2].strip() if number > 1 else False
        if language in DATA:
            boundary = boundary or bool(_SECTION.match(line))
        if boundary and number - last >= WINDOW // 2:
            starts.add(number)
            last = number
    return starts


def _pieces(starts: Iterable[int], total: int) -> list[tuple[int, int]]:
    ordered = sorted(start for start in starts if start <= total)
    return list(zip(ordered, [start - 1 for start in ordered[1:]] + [total], strict=True))


def _merge_short(pieces: list[tuple[int, int]], lines: Sequence[str]) -> list[tuple[int, int]]:
    """Join pieces of a line or two to the piece before, so that no chunk is a lone brace."""
    merged: list[tuple[int, int]] = []
    for first, last in pieces:
        room = bool(merged) and last - merged[-1][0] < WINDOW
        if room and (_is_short(merged[-1]) or _is_thin(lines[first - 1 : last])):
            merged[-1] = (merged[-1][0], last)
        else:
            merged.append((first, last))
    return merged


def _is_thin(lines: Sequence[str]) -> bool:
    """True if fewer lines than a chunk should have hold anything."""
    filled = 0
    for line in lines:
        filled += bool(line.strip())
        if filled == SHORTEST:
            return False
    return True


def _is_short(piece: tuple[int, int]) -> bool:
    return piece[1] - piece[0] + 1 < SHORTEST


def _windows(lines: Sequence[str], first: int, last: int) -> Iterable[tuple[int, int]]:
    """Yield the piece without blank edges, cut at a blank line where it is too long."""
    while last - first + 1 > LONGEST:
        stop = next(
            (n for n in range(first + WINDOW, first + WINDOW // 2, -1) if not lines[n - 1].strip()),
            first + WINDOW - 1,
        )
        yield from _trimmed(lines, first, stop)
        first = stop + 1
    yield from _trimmed(lines, first, last)


def _trimmed(lines: Sequence[str], first: int, last: int) -> Iterable[tuple[int, int]]:
    while first <= last and not lines[first - 1].strip():
        first += 1
    while last >= first and not lines[last - 1].strip():
        last -= 1
    if first <= last:
        yield first, last


class _Names:
    """Finds the definitions a span shows: those that start in it, else the one around it."""

    def __init__(self, definitions: Sequence[Definition]) -> None:
        self._definitions = definitions
        self._around: list[Definition] = []
        self._next = 0

    def of(self, first: int, last: int) -> tuple[Named, ...]:
        """Return the names for the next span; spans must come in order."""
        names: list[Named] = []
        while self._next < len(self._definitions) and self._definitions[self._next].start <= last:
            matches = self._definitions[self._next]
            self._next += 1
            self._around = [d for d in self._around if d.end >= matches.start]
            names.append(Named(self._qualified(matches), matches.kind))
            self._around.append(matches)
        self._around = [d for d in self._around if d.end >= first]
        if not names and self._around:
            inner = self._around.pop()
            names.append(Named(self._qualified(inner), inner.kind, begins=False))
            self._around.append(inner)
        return tuple(names[:_MOST_NAMED])

    def _qualified(self, definition: Definition) -> str:
        """Return the name of a method with its class; of other things, as it is written."""
        inside = definition.kind != "type" and definition.short_name == definition.name
        for outer in reversed(self._around) if inside else ():
            if outer.kind in _CLASSES and outer.end >= definition.end:
                return f"{outer.short_name}.{definition.name}"
        return definition.name
