"""Check the names in a path by the same rules on every operating system.

A name that means one thing here and another on a colleague's machine is how a check is passed and
then walked around. So everything ambiguous is refused before the kernel hears of it.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from evercontext.errors import PathEscape, PathRefused

MAX_NAME_BYTES = 255
MAX_PATH_BYTES = 4096
MAX_LEVELS = 128

TEMPORARY = re.compile(r"\.ec-[0-9a-f]{16}\.tmp")
"""What a file under construction is called; such names are never shown and are swept when stale."""

_RESERVED = re.compile(
    r"(con|prn|aux|nul|conin\$|conout\$|(com|lpt)[0-9¹²³])(\..*)?", re.IGNORECASE
)
_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


@lru_cache(maxsize=4096)
def parse(path: str) -> tuple[str, ...]:
    """Return the components of a relative path; the root itself is the empty tuple.

    ``.`` and ``..`` are resolved by component. Raises PathEscape if the path leaves the root and
    PathRefused for a name that is refused everywhere.
    """
    if not path:
        raise PathRefused("path is empty", fix='Use "." for the root')
    _check_characters(path)
    if path.startswith("/") or re.match(r"[A-Za-z]:", path) or path.startswith("~"):
        raise PathEscape("path escapes root", fix="Give a path relative to the root")
    return _resolve(path)


def check_name(name: str) -> None:
    """Raise PathRefused if ``name`` cannot be one component of a path."""
    if len(name.encode("utf-8", "surrogatepass")) > MAX_NAME_BYTES:
        raise PathRefused("name too long")
    if ":" in name:
        raise PathRefused("colon in name")
    if not name.isascii() and (fold(name).strip(".") == "" or set("/\\:") & set(fold(name))):
        raise PathRefused("look-alike of a separator in name")
    if name != name.rstrip(". "):
        raise PathRefused("name ends with a dot or a space")
    if _RESERVED.fullmatch(name):
        raise PathRefused("reserved name")
    if TEMPORARY.fullmatch(name):
        raise PathRefused("reserved name")


def fold(name: str) -> str:
    """Return the spelling under which look-alike names are the same name."""
    if name.isascii():
        return name.lower()
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())


def printable_name(name: str) -> str:
    """Return a file system's name as one line of plain text, escaping what would not print."""
    text = name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return "".join(_escape(char) for char in text)


def _escape(char: str) -> str:
    if unicodedata.category(char) not in _INVISIBLE:
        return char
    return char.encode("unicode_escape").decode("ascii")


def _check_characters(path: str) -> None:
    if not (path.isascii() and path.isprintable()):
        _check_unicode(path)
    if "\\" in path:
        raise PathRefused("backslash in path", fix="Separate names with /")
    if len(path.encode()) > MAX_PATH_BYTES:
        raise PathRefused("path too long")


def _check_unicode(path: str) -> None:
    if any(unicodedata.category(char) in _INVISIBLE for char in path):
        raise PathRefused("control or invisible character in path")
    if not unicodedata.is_normalized("NFC", path):
        raise PathRefused("path not NFC", fix="Spell it in Unicode normal form C")


def _resolve(path: str) -> tuple[str, ...]:
    parts: list[str] = []
    for name in path.split("/"):
        if name in ("", "."):
            continue
        if name == "..":
            if not parts:
                raise PathEscape("path escapes root")
            parts.pop()
            continue
        check_name(name)
        parts.append(name)
    if len(parts) > MAX_LEVELS:
        raise PathRefused("path too deep")
    return tuple(parts)
