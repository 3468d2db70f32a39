"""Find definitions without a grammar, in languages whose grammars are too large, or err too often.

Comments and texts in quotes are blanked first; what is left is searched for the words that begin a
definition. Where it ends follows from brackets, and where there are none, from the line behind.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator

Outlined = tuple[str, str, int, int]
"""Name, kind, first and last line."""

_WORD = r"(?:[^\W\d]\w*|`[^`\n\ud800-\udfff]+`)"
_PATIENCE = 12
"""How often a text may be looked through for ends; one that is made to be slow is given up."""


def outline(text: str, language: str) -> Iterator[Outlined] | None:
    """Yield the definitions of a text; ``None`` if its language is not one of these."""
    find = _LANGUAGES.get(language)
    return None if find is None else find(text)


class _SourceLines:
    """Numbers of lines by their place in a text."""

    def __init__(self, text: str) -> None:
        self._starts = [0, *(match.end() for match in re.finditer("\n", text))]

        self._last = len(text.rstrip())

    def at(self, place: int) -> int:
        """Return the line of a place, no later than the last that holds anything."""
        return bisect_right(self._starts, min(place, self._last))


def _blank(match: re.Match[str]) -> str:
    """Return as many lines as were match, and nothing on them."""
    return " " + "\n" * match[0].count("\n")


class _Brackets:
    """The pairs of brackets in a text, and the bracket around each place."""

    def __init__(self, text: str, kinds: str = "(){}[]") -> None:
        self.closing: dict[int, int] = {}
        self._places: list[int] = []
        self._around: list[str] = []
        stack: list[tuple[int, str]] = []
        depths = dict.fromkeys(kinds, 0)
        for match in re.finditer(f"[{re.escape(kinds)}]", text):
            place, sign = match.start(), match[0]
            number = kinds.index(sign)
            if number % 2 == 0:
                stack.append((place, sign))
                depths[sign] += 1
            elif depths[partner := kinds[number - 1]]:
                # What was left open inside ends with what is around it.
                opened = ""
                while opened != partner:
                    start, opened = stack.pop()
                    depths[opened] -= 1
                    self.closing[start] = place
            self._places.append(place)
            self._around.append(stack[-1][1] if stack else "")
        self.opening = {end: start for start, end in self.closing.items()}
        self.closing.update({place: len(text) for place, _ in stack})

    def around(self, place: int) -> str:
        """Return the bracket that is open at a place; nothing outside of all."""
        before = bisect_right(self._places, place) - 1
        return self._around[before] if before >= 0 else ""


_PROTO_QUIET = re.compile(
    r"//[^\n]*|/\*.*?(?:\*/|\Z)|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'", re.S
)
_PROTO = re.compile(r"(?<![\w.])(message|service|rpc)\s+([^\W\d]\w*)\s*(?=[{(])")


_PROTO_CALL_END = re.compile(r"[{;]")
_LONGEST_CALL = 4_000


def _proto(text: str) -> Iterator[Outlined]:
    quiet = _PROTO_QUIET.sub(_blank, text)
    lines, brackets = _SourceLines(quiet), _Brackets(quiet, "(){}")
    for match in _PROTO.finditer(quiet):
        word, name = match.groups()
        end = match.end()
        if word == "rpc":
            stop = _PROTO_CALL_END.search(quiet, end, end + _LONGEST_CALL)
            end = stop.start() if stop else end
            kind = "function"
        elif quiet[end] == "{":
            kind = "type"
        else:
            continue
        yield name[:200], kind, lines.at(match.start()), lines.at(brackets.closing.get(end, end))


_KOTLIN_QUIET = re.compile(
    r"//[^\n]*|/\*|\"\"\"|\"|'(?:[^'\\\n]|\\.[0-9a-fA-F]{0,4})'|(?P<raw>`[^`\n]*`)"
)
_IN_TEXT = re.compile(r"\\.|\$\{|\"")
_IN_LONG_TEXT = re.compile(r"\$\{|\"{3,}")
_IN_COMMENT = re.compile(r"/\*|\*/")
_BRACE = re.compile(r"[{}\"]|'(?:[^'\\\n]|\\.[0-9a-fA-F]{0,4})'|//[^\n]*|/\*")


def _kotlin_comment(text: str, at: int) -> int:
    """Return the end of a comment; one can hold another."""
    depth = 1
    while depth and (match := _IN_COMMENT.search(text, at)):
        depth += 1 if match[0] == "/*" else -1
        at = match.end()
    return at if not depth else len(text)


def _kotlin_text(text: str, at: int, depth: int = 0) -> int:
    """Return the end of a text in quotes that begins at a place; what it computes is part of it."""
    long = text.startswith('"""', at)
    at += 3 if long else 1
    while match := (_IN_LONG_TEXT if long else _IN_TEXT).search(text, at):
        newline = -1 if long else text.find("\n", at, match.start())
        if newline >= 0:
            return newline
        at = match.end()
        if match[0] == "${" and depth < 20:
            at = _kotlin_code(text, at, depth + 1)
        elif match[0][0] == '"':
            return at
    newline = -1 if long else text.find("\n", at)
    return newline if newline >= 0 else len(text)


def _kotlin_code(text: str, at: int, depth: int) -> int:
    """Return the end of what a text computes, behind its brace."""
    braces = 1
    while braces and (match := _BRACE.search(text, at)):
        at = match.end()
        if match[0] == "/*":
            at = _kotlin_comment(text, at)
        elif match[0] == '"':
            at = _kotlin_text(text, match.start(), depth)
        elif match[0] in "{}":
            braces += 1 if match[0] == "{" else -1
    return at


def _kotlin_quiet(text: str) -> str:
    parts: list[str] = []
    done = at = 0
    while match := _KOTLIN_QUIET.search(text, at):
        at = match.end()
        if match["raw"]:
            continue
        if match[0] == "/*":
            at = _kotlin_comment(text, at)
        elif match[0][0] == '"':
            at = _kotlin_text(text, match.start())
        sign = '""' if match[0][0] in "\"'" else " "
        parts += (text[done : match.start()], sign, "\n" * text.count("\n", match.start(), at))
        done = at
    return "".join((*parts, text[done:]))


_ANGLES = r"<(?:->|[^<>{};-])*>"
for _ in range(3):
    _ANGLES = rf"<(?:->|[^<>{{}};-]|{_ANGLES})*>"
_ROUND = r"\((?:[^()\n]|\((?:[^()\n]|\([^()\n]*\))*\))*\)"
_KOTLIN = re.compile(
    r"(?<![\w.:@$])(?:"
    rf"(?:(?:fun[ \t]+)?interface|class|object|typealias)[ \t]+(?P<type>{_WORD})"
    rf"|(?P<function>fun)\b\s*(?:{_ANGLES}\s*)?(?=[^\s(]|{_ROUND}\??\.)"
    rf"|(?P<other>va[lr])[ \t]+(?:{_ANGLES}\s*)?)"
)
_NAMED = re.compile(
    rf"(?:@\w+\s+)*(?:{_ROUND}\??\s*\.\s*)?"
    rf"(?:{_WORD}(?:{_ANGLES})?\??\.)*({_WORD})"
)
_TYPE_PARAMETERS = re.compile(rf"\s*{_ANGLES}")
_MODIFIERS = re.compile(
    r"public|private|protected|internal|expect|actual|final|open|abstract|sealed|const|external"
    r"|override|lateinit|tailrec|suspend|inner|enum|annotation|data|value|inline|infix|operator"
    r"|companion"
)
_NO_NAMES = frozenset({"val", "var", "fun", "class", "interface", "object"})
_LAST_WORD = re.compile(r"((?<!\w)@(?:\w+:)?)?([\w.]+)\Z")
_BLANK = re.compile(r"\s*")
_STOP = re.compile(r"[(\[{}\])\n;=]")
_GOES_ON = re.compile(r"\?\.|\?:|\.(?!\.)|&&|\|\||(?:as|else)\b")
_HEADER_GOES_ON = re.compile(r"[{:,]|=(?!=)|(?:where|by)\b|(?:\w+\s+)?constructor\b")
_ACCESSOR = re.compile(
    r"(?:(?:private|protected|internal|public|inline|@\w+)\s+)*[gs]et\b\s*(?:\(|$)", re.M
)
_OPERATORS = frozenset(",:=+-*/%&|.(")


def _kotlin(text: str) -> Iterator[Outlined]:
    quiet = _kotlin_quiet(text)
    lines, brackets = _SourceLines(quiet), _Brackets(quiet)
    work = _PATIENCE * len(quiet)
    for match in _KOTLIN.finditer(quiet):
        kind = match.lastgroup or ""
        if kind == "type":
            name, behind = match[kind], match.end()
            if name in _NO_NAMES:
                continue
        elif named := _NAMED.match(quiet, match.end()):
            name, behind = named[1], named.end()
        else:
            continue
        # A variable between round brackets is a parameter, or what a condition asks.
        if kind != "type" and brackets.around(match.start()) in ("(", "["):
            continue
        start = _kotlin_start(quiet, match.start(), brackets)
        if start is not None and work > 0:
            end = _kotlin_end(quiet, match.start(), behind, kind, brackets)
            work -= end - start
            yield name[:200], kind, lines.at(start), lines.at(end)


def _kotlin_start(quiet: str, at: int, brackets: _Brackets) -> int | None:
    """Return where a definition's modifiers begin; ``None`` for a companion, which has no name."""
    while True:
        end = at
        while end and quiet[end - 1].isspace():
            end -= 1
        called = end > 0 and quiet[end - 1] == ")"
        if called:
            end = brackets.opening.get(end - 1, 0)
        word = _LAST_WORD.search(quiet, max(0, end - 120), end)
        if word is None:
            return at
        if not word[1]:
            if called or "\n" in quiet[end:at] or not _MODIFIERS.fullmatch(word[2]):
                return at
            if word[2] == "companion":
                return None
        elif word[1] == "@file:":
            return at
        at = word.start()


def _kotlin_end(quiet: str, first: int, at: int, kind: str, brackets: _Brackets) -> int:
    """Return where a definition ends of which the name was read."""
    line = quiet.rfind("\n", 0, first) + 1
    indent = len(quiet[line:first]) - len(quiet[line:first].lstrip())
    header = kind != "other"
    if parameters := _TYPE_PARAMETERS.match(quiet, at):
        at = parameters.end()
    while match := _STOP.search(quiet, at):
        sign, place = match[0], match.start()
        if sign == "{" and header:
            return brackets.closing[place]
        if sign in "([{":
            at = brackets.closing[place] + 1
        elif sign == "=":
            header = False
            at = place + 1
        elif sign == "\n":
            last = at + len(quiet[at:place].rstrip())
            after = _BLANK.match(quiet, place).end()  # type: ignore[union-attr]
            if (
                after == len(quiet)
                or quiet[after] in "})]"
                or not (
                    quiet[last - 1] in _OPERATORS
                    or quiet.startswith("->", last - 2)
                    or (_HEADER_GOES_ON if header else _GOES_ON).match(quiet, after)
                    or (not header and after - quiet.rfind("\n", 0, after) - 1 > indent)
                    or (kind == "other" and _ACCESSOR.match(quiet, after))
                )
            ):
                return last - 1
            at = after
        else:
            at = place
            break
    else:
        at = len(quiet)
    while at > first and quiet[at - 1].isspace():
        at -= 1
    return at - 1


# A backslash before a quote is an escape in some dialects; it is none where the text ends there.
_SQL_QUIET = re.compile(
    r"--[^\n]*|/\*.*?(?:\*/|\Z)|'(?:[^'\\]|\\'(?=[\w'])|\\|'')*'|(\$[A-Za-z_]*\$).*?(?:\1|\Z)",
    re.S,
)
_SQL_DATA = re.compile(r"^COPY\b[^;]{0,500}\bFROM\s+stdin\b[^;]{0,200};", re.M | re.I)
_SQL_NAME = (
    r"(?:\"[^\"\n\ud800-\udfff]+\"|`[^`\n\ud800-\udfff]+`|\[[^\]\n\ud800-\udfff]+\]"
    r"|[^\W\d][\w$]*)"
)
_SQL = re.compile(
    r"\bCREATE\s+(?:OR\s+(?:REPLACE|ALTER)\s+)?"
    r"(?:(?:GLOBAL|LOCAL|TEMP|TEMPORARY|UNLOGGED|EXTERNAL|FOREIGN|RECURSIVE|VIRTUAL|AGGREGATE"
    r"|(?:ALGORITHM|DEFINER)\s*=\s*\S+|SQL\s+SECURITY\s+\w+)\s+)*"
    r"(?:(?P<type>TABLE|VIEW)|FUNCTION)\s+(?:IF\s+NOT\s+EXISTS\s+)?"
    rf"(?:{_SQL_NAME}\s*\.\s*)*(?P<name>{_SQL_NAME})",
    re.I,
)
_SQL_END = re.compile(r";|^\\g", re.M)
_SQL_NEXT = re.compile(r"^[ \t]*(?:CREATE|GO)\b", re.M | re.I)
_SQL_QUOTED = re.compile(r"\bAS\s*''", re.I)
_SQL_BEGIN = re.compile(r"^([ \t]*)(?:\S.*\s)?BEGIN\b", re.M | re.I)


def _sql(text: str) -> Iterator[Outlined]:
    quiet = _SQL_QUIET.sub(_sql_blank, _without_data(text))
    lines = _SourceLines(quiet)
    work = _PATIENCE * len(quiet)
    for match in _SQL.finditer(quiet):
        at = match.end()
        following = _SQL_NEXT.search(quiet, at)
        limit = following.start() if following else len(quiet)
        work -= limit - at
        if work < 0:
            return
        stop = _SQL_END.search(quiet, at, limit)
        end = stop.start() if stop else limit
        if not match["type"] and not _SQL_QUOTED.search(quiet, at, end):
            end = _sql_body(quiet, at, limit) or end
        end = at + len(quiet[at:end].rstrip())
        kind = "type" if match["type"] else "function"
        yield match["name"][:200], kind, lines.at(match.start()), lines.at(end - 1)


def _without_data(text: str) -> str:
    """Return the text without the rows that a dump has between its statements."""
    parts: list[str] = []
    done = 0
    while match := _SQL_DATA.search(text, done):
        end = text.find("\n\\.", match.end())
        if end < 0:
            break
        parts += (text[done : match.end()], "\n" * text.count("\n", match.end(), end))
        done = end
    return "".join((*parts, text[done:]))


def _sql_blank(match: re.Match[str]) -> str:
    return ("''" if match[0][0] in "'$" else " ") + "\n" * match[0].count("\n")


def _sql_body(quiet: str, at: int, limit: int) -> int | None:
    """Return where the statements of a function end that are not in quotes."""
    begins = _SQL_BEGIN.search(quiet, at, limit)
    if begins is None:
        return None
    ends = re.compile(rf"^[ \t]{{0,{len(begins[1])}}}END\b", re.M | re.I)
    closed = ends.search(quiet, begins.end(), limit)
    return closed.end() if closed else None


_LANGUAGES: dict[str, Callable[[str], Iterator[Outlined]]] = {
    "kotlin": _kotlin,
    "proto": _proto,
    "sql": _sql,
}
