"""Check arguments against a server's schema, as far as possible in bounded time.

A schema of a stranger may take for ever to apply: references that double at every step, patterns
that try every way. So only what lies open is checked here: required names, plain types, choices,
limits, and patterns in linear time. The server checks the rest, as it must anyway.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from evercontext.domain.tool import Arguments
from evercontext.errors import InvalidArguments

LONGEST_PATTERN = 1_000
LONGEST_TEXT = 100_000
"""Characters beyond which a text is not held against a pattern."""
_PATTERN_MEMORY = 1 << 20
_Test = Callable[[Any], str]
"""Returns what is wrong with a value, or nothing."""
_TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "boolean": (bool,),
    "integer": (int, float),
    "number": (int, float),
    "array": (list, tuple),
    "object": (dict,),
    "null": (type(None),),
}


class ArgumentCheck:
    """What one tool asks of its arguments, read once."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        required, properties = schema.get("required"), schema.get("properties")
        names = required if isinstance(required, list) else []
        self._required = [name for name in names if isinstance(name, str)]
        described = properties if isinstance(properties, Mapping) else {}
        self._tests = {name: _tests(about) for name, about in described.items()}
        self._closed = schema.get("additionalProperties") is False and not (
            schema.keys() & {"patternProperties", "$ref", "allOf", "anyOf", "oneOf"}
        )

    def __call__(self, arguments: Arguments) -> Arguments:
        """Return the arguments as they are; raise ``InvalidArguments`` at the first fault."""
        for name in self._required:
            if name not in arguments:
                raise InvalidArguments(f"{name[:80]!r} is required")
        for name, value in arguments.items():
            tests = self._tests.get(name)
            if tests is None:
                if self._closed:
                    raise InvalidArguments(f"{name[:80]!r} is no argument of this tool")
                continue
            for test in tests:
                if problem := test(value):
                    raise InvalidArguments(f"{name[:80]}: {problem}")
        return arguments


def _tests(about: Any) -> list[_Test]:
    if not isinstance(about, Mapping):
        return []
    tests: list[_Test] = []
    if (kinds := about.get("type")) is not None:
        tests += _type_test(kinds)
    if isinstance(choices := about.get("enum"), list) and len(choices) <= 1_000:
        tests.append(lambda value: "" if value in choices else f"must be one of {choices!s:.300}")
    tests += [test for word, make in _LIMITS.items() if (test := make(about.get(word)))]
    if isinstance(pattern := about.get("pattern"), str) and (test := _pattern_test(pattern)):
        tests.append(test)
    return tests


def _type_test(kinds: Any) -> list[_Test]:
    named = kinds if isinstance(kinds, list) else [kinds]
    if not all(isinstance(kind, str) and kind in _TYPES for kind in named):
        return []

    def test(value: Any) -> str:
        fits = any(_is_a(kind, value) for kind in named)
        return "" if fits else f"must be {' or '.join(named)}"

    return [test]


def _is_a(kind: str, value: Any) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    if kind == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _TYPES[kind])


def _number(limit: Any) -> bool:
    return isinstance(limit, int | float) and not isinstance(limit, bool)


def _at_least(limit: Any) -> _Test | None:
    if not _number(limit):
        return None
    return lambda v: f"must be at least {limit}" if _number(v) and v < limit else ""


def _at_most(limit: Any) -> _Test | None:
    if not _number(limit):
        return None
    return lambda v: f"must be at most {limit}" if _number(v) and v > limit else ""


def _long_enough(limit: Any) -> _Test | None:
    if not _number(limit):
        return None
    return lambda v: (
        f"must have {limit} characters" if isinstance(v, str) and len(v) < limit else ""
    )


def _short_enough(limit: Any) -> _Test | None:
    if not _number(limit):
        return None
    over = f"must have at most {limit} characters"
    return lambda v: over if isinstance(v, str) and len(v) > limit else ""


_OTHER_SPACES = (
    r"\x{b}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}\x{feff}"
)
"""What ECMAScript's ``\\s`` matches beyond RE2's."""
_LIMITS: Mapping[str, Callable[[Any], _Test | None]] = {
    "minimum": _at_least,
    "maximum": _at_most,
    "minLength": _long_enough,
    "maxLength": _short_enough,
}


def _with_all_spaces(pattern: str) -> str:
    """Return a pattern whose ``\\s`` means what it means in JSON Schema: U+3000 is a space, too.

    RE2 knows only the spaces of ASCII. ``\\S`` inside a class cannot be said and stays as it is.
    """
    parts: list[str] = []
    inside, at = False, 0
    while at < len(pattern):
        piece = pattern[at : at + 2] if pattern[at] == "\\" else pattern[at]
        at += len(piece)
        if piece == "\\s":
            piece = rf"\s{_OTHER_SPACES}" if inside else rf"[\s{_OTHER_SPACES}]"
        elif piece == "\\S" and not inside:
            piece = rf"[^\s{_OTHER_SPACES}]"
        elif piece in "[]":
            inside = piece == "["
        parts.append(piece)
    return "".join(parts)


def _pattern_test(pattern: str) -> _Test | None:
    """A test by RE2, which never goes back; what only backtracking could tell is left out."""
    import re2  # type: ignore[import-untyped]

    if len(pattern) > LONGEST_PATTERN:
        return None
    options = re2.Options()
    options.max_mem, options.log_errors = _PATTERN_MEMORY, False
    try:
        compiled = (
            re2.compile(_with_all_spaces(pattern), options=options)
            if len(pattern) <= LONGEST_PATTERN
            else None
        )
    except re2.error:
        compiled = None
    if compiled is None:
        return None
    mismatch = f"must match {pattern[:100]!r}"

    def test(value: Any) -> str:
        known = isinstance(value, str) and len(value) <= LONGEST_TEXT
        return mismatch if known and not compiled.search(value) else ""

    return test
