"""Parse failures of ruff, mypy, formatters and others with ``file:line:column: message``."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from evercontext.workspace.failures.failure import Failure, Kind, cut, inside

_CODE = r"[A-Z]{1,4}\d{2,4}|invalid-syntax|unformatted|[a-z]+(?:-[a-z]+)+"
_CONCISE = re.compile(
    rf"^(\S[^:]{{0,500}}):(\d+):(\d+): ({_CODE}):? (?:\[\*\] )?(.+)$", re.MULTILINE
)
_FULL = re.compile(
    rf"^({_CODE}):? (?:\[\*\] )?(.+)\n\s*--> (\S[^:\n]{{0,500}}):(\d+):(\d+)$", re.MULTILINE
)
_MYPY = re.compile(
    r"^(\S[^:\n]{0,500}):(\d+):(?:(\d+):)?(?:\d+:\d+:)? error: "
    r"(.+?(?:\n(?! {4}|\S+:\d+:)[^\n]+?)?)(?:\s+\[([a-z-]+)\])?$",
    re.MULTILINE,
)
_REFORMAT = re.compile(
    r"^(?:Would reformat:? |would reformat |\[warn\] (?=\S+\.\w+$)|Diff in )"
    r"(\S[^:\n]{0,500}?)(?::\d+:?|(?: at line \d+:?))?$",
    re.MULTILINE,
)
_BARE_PATH = re.compile(r"^\S{1,500}\.go$", re.MULTILINE)
_GENERIC = re.compile(r"^(\S[^:\n]{0,300}\.\w{1,5}):(\d+)(?::(\d+))?:? (.+)$", re.MULTILINE)
_RUFF_KINDS: dict[str, Kind] = {
    "F821": "name",
    "invalid-syntax": "syntax",
    "E999": "syntax",
    "unformatted": "format",
}
_MYPY_KINDS: dict[str, Kind] = {
    "name-defined": "name",
    "import-not-found": "import",
    "attr-defined": "attribute",
    "syntax": "syntax",
    "arg-type": "type",
    "call-arg": "type",
}


def read_ruff(text: str, root: str) -> list[Failure]:
    """Return what ruff found, in its full, concise or JSON output."""
    if (rows := _json_rows(text)) is not None:
        return [_ruff_row(row, root) for row in rows]
    rows_of_text = [(m[1], m[2], m[3], m[4], m[5]) for m in _CONCISE.finditer(text)] or [
        (m[3], m[4], m[5], m[1], m[2]) for m in _FULL.finditer(text)
    ]
    return [
        _ruff(path, int(line), int(column), code, message, root)
        for path, line, column, code, message in rows_of_text
    ]


def _ruff(path: str, line: int, column: int, code: str, message: str, root: str) -> Failure:
    kind: Kind = _RUFF_KINDS.get(code, "lint")
    if kind == "format":  # one file is unformatted once, however many places it has
        return Failure("format", kind, "is not formatted", inside(path, root), code="format")
    return Failure("ruff", kind, cut(message), inside(path, root), line, column, code=code)


def _ruff_row(row: dict[str, Any], root: str) -> Failure:
    at = row.get("location") or {}
    code = str(row.get("code") or "invalid-syntax")
    message = str(row.get("message") or "")
    return _ruff(str(row["filename"]), at.get("row", 1), at.get("column", 1), code, message, root)


def _json_rows(text: str) -> list[dict[str, Any]] | None:
    start = text.find("[\n  {")
    if start < 0 or '"filename"' not in text:
        return None
    try:
        rows, _ = json.JSONDecoder().raw_decode(text[start:])
    except ValueError:
        return None
    return [row for row in rows if isinstance(row, dict) and "filename" in row]


def read_mypy(text: str, root: str) -> list[Failure]:
    """Return what mypy found; its notes belong to the error before them."""
    return [
        Failure(
            "mypy",
            _MYPY_KINDS.get(m[5] or "", "type"),
            cut(" ".join(m[4].split())),
            inside(m[1], root),
            int(m[2]),
            int(m[3]) if m[3] else None,
            code=m[5],
        )
        for m in _MYPY.finditer(text)
    ]


def read_formatters(text: str, root: str) -> list[Failure]:
    """Return the files that a formatter would change: ruff, black, prettier, rustfmt, gofmt."""
    return [
        Failure("format", "format", "is not formatted", file, code="format")
        for path in dict.fromkeys(_unformatted(text))
        if (file := inside(path, root))
    ]


def _unformatted(text: str) -> Iterator[str]:
    yield from (m[1].strip() for m in _REFORMAT.finditer(text))
    lines = text.split()
    if lines and all(_BARE_PATH.fullmatch(line) for line in lines):  # gofmt -l says nothing else
        yield from lines


def read_generic(text: str, root: str) -> list[Failure]:
    """Return ``file:line: message`` lines of a tool that is not known by name."""
    return [
        Failure("check", "error", cut(m[4]), file, int(m[2]), int(m[3]) if m[3] else None)
        for m in _GENERIC.finditer(text)
        if (file := inside(m[1], root))
    ]
