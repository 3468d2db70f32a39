"""Serve the files of the pages under a policy that blocks foreign scripts."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

from evercontext.domain.translation import sections

_MEDIA = {
    "css": b"text/css; charset=utf-8",
    "html": b"text/html; charset=utf-8",
    "js": b"text/javascript; charset=utf-8",
    "svg": b"image/svg+xml",
}
# With trusted types a script cannot even turn text into markup by mistake.
POLICY = (
    b"default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self';"
    b" object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none';"
    b" require-trusted-types-for 'script'; trusted-types 'none'"
)
GUARDS = [
    (b"content-security-policy", POLICY),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
]
NOSNIFF = (b"x-content-type-options", b"nosniff")
LANGUAGES = ("en", "ja")


@dataclass(frozen=True, slots=True)
class Asset:
    """One file."""

    content: bytes
    media: bytes
    tag: bytes


@cache
def assets() -> dict[str, Asset]:
    """Every file by its path below ``static``; what is not here cannot be asked for."""
    pages = dict(_walk(files("evercontext.server.console").joinpath("static"), ""))
    # The texts come from the catalogue that the terminal reads, too.
    texts = {
        "js/words.ja.js": ("JAPANESE", "console"),
        "js/settings.ja.js": ("SETTINGS", "settings"),
    }
    for path, (name, section) in texts.items():
        pages[path] = _asset(_as_module(name, sections("ja")[section]), _MEDIA["js"])
    return pages


def _as_module(name: str, texts: Mapping[str, str]) -> bytes:
    rows = (
        f"  {json.dumps(text, ensure_ascii=False)}: {json.dumps(shown, ensure_ascii=False)},\n"
        for text, shown in texts.items()
    )
    return f"export const {name} = {{\n{''.join(rows)}}};\n".encode()


def _asset(content: bytes, media: bytes) -> Asset:
    return Asset(content, media, b'"%s"' % hashlib.sha256(content).hexdigest()[:20].encode())


def _walk(folder: Traversable, before: str) -> list[tuple[str, Asset]]:
    assets: list[tuple[str, Asset]] = []
    for entry in folder.iterdir():
        media = _MEDIA.get(entry.name.rpartition(".")[2])
        if entry.is_dir():
            assets += _walk(entry, f"{before}{entry.name}/")
        elif media:
            assets.append((before + entry.name, _asset(entry.read_bytes(), media)))
    return assets


def language_of(accepted: str) -> str:
    """The language a browser would rather read: the first of ours in its list."""
    ranked = []
    for order, part in enumerate(accepted.split(",")[:20]):
        name, _, quality = part.strip().partition(";q=")
        try:
            weight = float(quality) if quality else 1.0
        except ValueError:
            weight = 0.0
        ranked.append((-weight, order, name.strip().lower()[:2]))
    return next((name for _, _, name in sorted(ranked) if name in LANGUAGES), LANGUAGES[0])


def page(name: str, language: str) -> bytes:
    """A page in a language; its words come from the scripts, or stand in it for both."""
    return assets()[name].content.replace(b'lang="en"', b'lang="%s"' % language.encode(), 1)
