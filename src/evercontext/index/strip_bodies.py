"""Take out, before a text is parsed, what cannot hold a definition: most bodies of functions.

Parsing is the dearest step of an index, and most of what is parsed are statements that no query
asks for. A body counts as dull if its lines hold no word that begins a definition. It is replaced
by as many empty lines, so that everything around it stays on its line; what is found is the same.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass
from functools import lru_cache

_PATIENCE = 12
"""How often a text may be looked through; nesting that is made to be slow ends it."""
_INDENT = re.compile(r"[ \t]*")
_COMMENTED = frozenset("/*#")
_HEAD_LINES = 40
"""Lines that a signature may take."""

_CALL = r"\)[^(){};\n]*(?:\n[ \t]*)?\{[ \t]*\n"
"""The end of a signature or of a condition, and a brace."""
_BRACE = r"\{[ \t]*\n"
_TYPES = re.compile(r"(?:class|interface|record|enum|struct|union|opaque|trait|new)\b")
_CONSTANT = re.compile(r"[A-Z][A-Z0-9_]*\(")
"""One of an enumeration, which may have methods of its own."""
_BLANK = re.compile(r"[ \t\n]*")


@dataclass(frozen=True, slots=True)
class _Shape:
    """How bodies look in a language."""

    opener: str
    """What stands before a body, up to the end of its line."""
    closer: str
    """What stands behind it, as far indented as the line of the opener."""
    holds: str
    """What begins a definition. It need not be a whole word: without a look back, which costs
    more than the search, too much is kept now and then, and never too little."""
    pairs: tuple[tuple[str, str], ...] = ()
    """Come equally often in a body that ends where it seems to."""
    fences: tuple[str, ...] = ()
    """Come an even number of times in such a body."""
    only_calls: bool = False
    """True if what a type holds counts although no word begins it."""


def _shape(
    opener: str, closer: str, holds: str, fences: str = "", *, only_calls: bool = False
) -> _Shape:
    braces = (("{", "}"), ("/*", "*/")) if closer == "}" else ()
    return _Shape(opener, closer, holds, braces, tuple(fences.split()), only_calls)


def _any_of(words: str, behind: str = r"\b") -> str:
    """Return a pattern of words: one group for all would make the search three times as slow."""
    return "|".join(word + behind for word in words.split())


_SHAPES = {
    "c": _shape(
        r"(?:\)[^(){};\n]*(?:\n[ \t]*)?|=[ \t]*)\{[ \t]*\n",
        "}",
        _any_of("struct union enum", r"\b\s{0,9}\w*\s{0,9}\{") + r"|typedef\b|#[ \t]*define",
    ),
    "java": _shape(
        _CALL,
        "}",
        _any_of("class interface enum record", r"\s{1,9}\w") + r"|new\b[^;{}]{0,300}\)\s{0,80}\{",
        '"""',
        only_calls=True,
    ),
    "csharp": _shape(
        _CALL,
        "}",
        r"(?:class|interface|enum|record|struct|delegate|static|public|private|protected"
        r"|internal)\b|^[ \t]*(?:async[ \t]+)?[\w<>\[\],.?]+[ \t]+(?!(?:if|for|while|switch|catch"
        r"|using|lock|foreach|fixed)\b)\w+(?:<[^<>()\n]{0,99}>)?\([^()]{0,300}\)\s{0,80}(?:\{|=>)",
        '"""',
        only_calls=True,
    ),
    "php": _shape(
        _CALL,
        "}",
        _any_of("class interface trait enum const") + r"|function[ \t]+\w",
        only_calls=True,
    ),
    "go": _shape(_BRACE, "}", r"type[ \t]+\w", "`"),
    "zig": _shape(
        _BRACE,
        "}",
        r"fn[ \t]+\w|=[ \t]*(?:packed[ \t]+|extern[ \t]+)?(?:struct|enum|union|opaque)\b"
        r"|test[ \t]",
        only_calls=True,  # the grammar takes a type without fields for an error
    ),
    "rust": _shape(
        _BRACE,
        "}",
        _any_of("fn struct enum union trait type impl mod macro_rules const static"),
    ),
    "lua": _shape(
        r"\bfunction\b[^\n()]{0,200}\([^()]*\)[ \t]*\n", "end", r"function[ \t]+\w|=[ \t]*function"
    ),
    "elixir": _shape(
        r"^[ \t]*(?:def|defp|defmacro|defmacrop|test)\b[^\n]*\bdo[ \t]*\n",
        "end",
        r"def(?:p|macrop?|module|impl|protocol|guard|delegate|callback)?\b",
        '"""',
    ),
    "ruby": _shape(
        r"^[ \t]*def\b[^\n;]*\n",
        "end",
        _any_of(
            "def class module scope has_many belongs_to has_one define_method delegate"
            " alias_method class_attribute mattr_accessor cattr_accessor"
        )
        + r"|attr_|[A-Z]\w{0,40}[ \t]*=|<<[-~]?[\"'A-Z]",
    ),
}


@lru_cache(maxsize=64)
def _compiled(pattern: str) -> re.Pattern[str]:
    """Compile a pattern when its language is first met: nobody meets all of them."""
    return re.compile(pattern, re.M)


def strip_bodies(text: str, language: str) -> str:
    """Return the text without dull bodies; the text itself if there are none."""
    if language == "haskell":
        return _compiled(_EQUATION).sub(_shorten, text)
    if language == "scala":
        return _without_comments(text)
    shape, suite = _SHAPES.get(language), _SUITES.get(language)
    if shape is not None:
        text = _without_bodies(text, shape)
    return text if suite is None else _without_suites(text, suite)


def _without_bodies(text: str, shape: _Shape) -> str:
    pieces: list[str] = []
    done = at = 0
    unclosed: set[str] = set()
    held = [match.start() for match in _compiled(shape.holds).finditer(text)]
    opener = _compiled(shape.opener)
    closings = _Closings(text, shape.closer)
    work = _PATIENCE * len(text)
    while work > 0 and (match := opener.search(text, at)):
        at = first = match.end()
        line = text.rfind("\n", 0, first - 1) + 1
        indent = _INDENT.match(text, line)[0]  # type: ignore[index]
        if indent in unclosed or text[line + len(indent)] in _COMMENTED:
            continue
        end = text.find(f"\n{indent}{shape.closer}", first - 1)
        if end < 0:
            unclosed.add(indent)
        work -= max(end - first, 0)
        if end <= first or _is_between(held, first, end) or not _is_whole(text, first, end, shape):
            continue
        if closings.is_early(first, end, len(indent)):
            continue
        if shape.only_calls and _is_type(text, line, indent, first):
            continue
        pieces += (text[done:first], "\n" * text.count("\n", first, end))
        done = at = end
    return "".join((*pieces, text[done:])) if pieces else text


class _Closings:
    """The lines of a text that begin with what ends a body."""

    def __init__(self, text: str, closer: str) -> None:
        self._text, self._closer = text, closer
        matches = list(_compiled(rf"\n[ \t]*{closer}").finditer(text))
        self._starts = [match.start() for match in matches]
        self._widths = [match.end() - match.start() - 1 - len(closer) for match in matches]

    def is_early(self, first: int, end: int, indent: int) -> bool:
        """True if a body seems to end before its end: something closes left of what it holds."""
        held = _BLANK.match(self._text, first).end()  # type: ignore[union-attr]
        if self._text.startswith(self._closer, held):
            return True
        least = max(held - self._text.rfind("\n", 0, held) - 1, indent)
        inside = slice(bisect_left(self._starts, first), bisect_left(self._starts, end))
        return any(width < least for width in self._widths[inside])


def _is_type(text: str, line: int, indent: str, first: int) -> bool:
    if _CONSTANT.match(text, line + len(indent)):
        return True
    return _TYPES.search(text, _head(text, line, indent), first) is not None


def _is_between(places: list[int], first: int, end: int) -> bool:
    """True if one of the ordered places lies there."""
    next_one = bisect_left(places, first)
    return next_one < len(places) and places[next_one] < end


def _is_whole(text: str, first: int, end: int, shape: _Shape | _Suite) -> bool:
    """True if nothing begins there that ends elsewhere, and nothing ends that began before."""
    for opening, closing in shape.pairs:
        closed = text.find(closing, first, end)
        if closed >= 0 and text.find(opening, first, closed) < 0:
            return False
        if text.count(opening, first, end) != text.count(closing, first, end):
            return False
    return all(text.count(fence, first, end) % 2 == 0 for fence in shape.fences)


def _head(text: str, line: int, indent: str) -> int:
    """Return where a signature begins that ends on a line: at the line above as far indented."""
    for _ in range(_HEAD_LINES):
        if not line or text[line + len(indent)] not in "){ \t\n":
            break
        line = text.rfind("\n", 0, line - 1) + 1
        if not text.startswith(indent, line):
            break
    return line


@dataclass(frozen=True, slots=True)
class _Suite:
    """How bodies look that only their indentation tells apart."""

    opener: str
    """What stands before a body; its first group is the indentation."""
    holds: str
    filler: str
    """The shortest body."""
    pairs: tuple[tuple[str, str], ...]
    fences: tuple[str, ...]


_SUITES = {
    "python": _Suite(
        r"^([ \t]*)(?:async[ \t]+)?def\b[^\n()]*\([^()]*(?:\([^()]*\)[^()]*)*\)[^\n:]*:[ \t]*"
        r"(?:#[^\n]*)?\n",
        _any_of("def class", r"[ \t]+\w"),
        "pass",
        (("(", ")"), ("[", "]")),
        ('"""', "'''"),
    ),
}


@lru_cache(maxsize=256)
def _less_indented(than: int) -> re.Pattern[str]:
    return re.compile(rf"^[ \t]{{0,{than}}}[^ \t\n]", re.M)


def _without_suites(text: str, suite: _Suite) -> str:
    pieces: list[str] = []
    done = at = 0
    held = [match.start() for match in _compiled(suite.holds).finditer(text)]
    opener = _compiled(suite.opener)
    work = _PATIENCE * len(text)
    while work > 0 and (match := opener.search(text, at)):
        at = first = match.end()
        behind = _less_indented(len(match[1])).search(text, first)
        end = first + len(text[first : behind.start() if behind else len(text)].rstrip())
        work -= end - first
        if end == first or _is_between(held, first, end) or not _is_whole(text, first, end, suite):
            continue
        blank = "\n" * text.count("\n", first, end)
        pieces += (text[done:first], blank, match[1], " ", suite.filler)
        done = at = end
    return "".join((*pieces, text[done:])) if pieces else text


_EQUATION = (
    r"^(?!(?:module|import|data|type|newtype|class|instance|infix[lr]?|foreign|deriving|pattern"
    r"|default|where)\b)([a-z_][\w']*)(?:[ \t]+(?:[\w'~!@]+|\([^()\n]*\)|\[[^\[\]\n]*\]))*"
    r"(?:[ \t]*(=|\||::)(?=[ \t\n])[^\n]*|(?=\n[ \t]+[=|][ \t]))"
    r"(?:\n[ \t]+[^\n]+|\n(?=[\n \t]))*"
)
_REMARK = re.compile(r"\s*--+(?![!#$%&*+./<=>?@\\^|~:-])")


def _shorten(match: re.Match[str]) -> str:
    """Return the shortest equation or signature in place of one at the top of a Haskell text."""
    definition = match[0]
    if "{-" in definition or "-}" in definition:
        return definition
    end = len(definition.rstrip())
    # What is only remarked behind an equation is no part of it.
    while (line := definition.rfind("\n", 0, end)) >= 0 and _REMARK.match(definition, line):
        end = line
        while definition[end - 1].isspace():
            end -= 1
    lines = "\n" * definition.count("\n", 0, end) + " "
    tail = definition[end:]
    return f"{match[1]} :: {lines}T{tail}" if match[2] == "::" else f"{match[1]} = {lines}x{tail}"


_COMMENT = r"^[ \t]*/\*"


def _without_comments(text: str) -> str:
    """Return a Scala text without its comments of whole lines: half of what parsing it costs."""
    pieces: list[str] = []
    done = 0
    while (match := _compiled(_COMMENT).search(text, done)) is not None:
        end = text.find("*/", match.end())
        if end < 0:
            break
        pieces += (text[done : match.start()], "\n" * text.count("\n", match.start(), end))
        done = end + 2
    return "".join((*pieces, text[done:])) if pieces else text
