"""Japanese-English pairs from message catalogues: gettext, JSON and JavaScript locales, CLDR."""

from __future__ import annotations

import gettext
import io
import json
import re
from collections.abc import Iterator

_JAPANESE = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff]")
_LOCALE = re.compile(r"(?<![A-Za-z])ja(?:[-_]?jp)?(?![A-Za-z])", re.I)
_MARK = re.compile(
    r"%\([\w.]+\)[sdrif]|%[sdrif%]|\{\{?[^{}]*\}?\}|<[^>]+>|\$\{?\w+\}?|&(?=\w)|\\n|`+|:\w+:`?|\*\*"
    r"|\(&?[A-Z]\)|\.\.\.$|…$|_\(|&amp;|&\w+;"
)


def clean(text: str) -> str:
    """Return a message without placeholders, tags and accelerators."""
    return re.sub(r"\s+", " ", _MARK.sub(" ", text)).strip(" :;。.、,|-–—")


def good_pair(english: str, japanese: str) -> tuple[str, str] | None:
    """Return the cleaned pair, or None if it is no translation."""
    english, japanese = clean(english), clean(japanese)
    if not _JAPANESE.search(japanese) or _JAPANESE.search(english):
        return None
    letters = sum(c.isascii() and c.isalpha() for c in english)
    if letters < 2 or letters < 0.5 * len(english) or len(english) > 400 or len(japanese) > 300:
        return None
    return english, japanese


def machine_object(content: bytes) -> Iterator[tuple[str, str]]:
    """Yield the messages of a compiled gettext catalogue."""
    try:
        catalogue = gettext.GNUTranslations(io.BytesIO(content))._catalog  # type: ignore[attr-defined]
    except (OSError, UnicodeDecodeError, ValueError, LookupError):
        return
    for key, value in catalogue.items():
        text = key[0] if isinstance(key, tuple) else key
        yield text.rpartition("\x04")[2], value


def portable_object(source: str) -> Iterator[tuple[str, str]]:
    """Yield the messages of a gettext source file; fuzzy ones are left out."""
    for block in re.split(r"\n\s*\n", source):
        if re.search(r"^#,.*fuzzy", block, re.M):
            continue
        parts: dict[str, str] = {}
        field = ""
        for line in block.splitlines():
            head = re.match(r'(msgid|msgstr(?:\[0\])?)\s+"(.*)"\s*$', line)
            if head:
                field = head[1][:6]
                parts[field] = head[2]
            elif line.startswith('"') and field:
                parts[field] += line.strip()[1:-1]
            elif line.startswith(("msgid_plural", "msgstr[", "msgctxt")):
                field = ""
        if parts.get("msgid") and parts.get("msgstr"):
            yield _unescape(parts["msgid"]), _unescape(parts["msgstr"])


def _unescape(text: str) -> str:
    return text.replace('\\"', '"').replace("\\n", "\n").replace("\\t", " ").replace("\\\\", "\\")


def _flat(value: object, path: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _flat(inner, f"{path}/{'@' if str(key).lower() in ('ja', 'en') else key}")
    elif isinstance(value, list) and all(isinstance(v, str) for v in value):
        yield path, ", ".join(value)
    elif isinstance(value, list):
        for i, inner in enumerate(value):
            yield from _flat(inner, f"{path}/{i}")
    elif isinstance(value, str):
        yield path, value


_LITERAL = re.compile(
    r"""(?:(['"]?)([\w.\-$ ]+)\1\s*:\s*)?"""
    r"""(?:"((?:[^"\\\n]|\\.)*)"|'((?:[^'\\\n]|\\.)*)'|`([^`]*)`)"""
)


def _script(source: str) -> dict[str, str]:
    """Return a JavaScript locale's strings by key and how often the key was seen before."""
    seen: dict[str, int] = {}
    found: dict[str, str] = {}
    for match in _LITERAL.finditer(source):
        key = match[2]
        if not key:
            continue  # an unnamed string has nothing to be matched by
        seen[key] = seen.get(key, 0) + 1
        text = match[3] or match[4] or match[5] or ""
        text = re.sub(r"\\u([0-9a-fA-F]{4})", lambda m: chr(int(m[1], 16)), text)
        found[f"{key}#{seen[key]}"] = text
    return found


def _table(path: str, content: bytes) -> dict[str, str]:
    text = content.decode("utf-8", "replace")
    if path.endswith(".json"):
        try:
            return dict(_flat(json.loads(text)))
        except (ValueError, RecursionError):
            return {}
    return _script(text)


def twin_key(path: str, language: str) -> str | None:
    """Return a key that a Japanese and an English file of one locale folder share, or None."""
    name = re.sub(r"[-.][0-9a-f]{6,}(?=\.)", "", path)
    pattern = (
        _LOCALE
        if language == "ja"
        else re.compile(r"(?<![A-Za-z])en(?:[-_]?(?:us|gb))?(?![A-Za-z])", re.I)
    )
    return pattern.sub("@", name) if pattern.search(name) else None


def twins(files: dict[str, bytes]) -> Iterator[tuple[str, str]]:
    """Yield pairs from files that exist in a Japanese and an English edition."""
    english = {key: p for p in sorted(files, reverse=True) if (key := twin_key(p, "en"))}
    for path, content in files.items():
        key = twin_key(path, "ja")
        if key is None:
            continue
        japanese = _table(path, content)
        if "diagnosticMessages" in path:
            yield from (
                (re.sub(r"_", " ", k.strip("/")).rstrip("0123456789 "), v)
                for k, v in japanese.items()
            )
        elif key in english:
            other = _table(english[key], files[english[key]])
            if path.endswith(".json") or 0.7 < len(other) / max(len(japanese), 1) < 1.4:
                yield from ((other[k], v) for k, v in japanese.items() if k in other)
