"""The colours of the terminal: for a dark one, for a light one, or none."""

from __future__ import annotations

from typing import Literal

Theme = Literal["dark", "light", "none"]
THEMES: tuple[Theme, ...] = ("dark", "light", "none")
_STYLES: dict[Theme, dict[str, str]] = {
    "dark": {
        "bold": "1",
        "dim": "2",
        "red": "31",
        "green": "32",
        "yellow": "33",
        "blue": "34",
        "magenta": "35",
        "cyan": "36",
    },
    # On white, a terminal's own yellow, green and cyan can hardly be read.
    "light": {
        "bold": "1",
        "dim": "38;5;242",
        "red": "38;5;124",
        "green": "38;5;22",
        "yellow": "38;5;130",
        "blue": "38;5;25",
        "magenta": "38;5;90",
        "cyan": "38;5;24",
    },
    "none": {},
}
_LIGHT_MARKDOWN = {
    "markdown.code": "bold #005f87",
    "markdown.code_block": "#005f87",
    "markdown.h1": "bold underline #5f00af",
    "markdown.h2": "underline #5f00af",
    "markdown.item.number": "#005f87",
    "markdown.item.bullet": "bold #af5f00",
    "markdown.block_quote": "#5f00af",
    "markdown.link": "#005faf",
    "markdown.link_url": "underline #005faf",
    "markdown.hr": "#808080",
}
_chosen: list[Theme] = ["dark"]


def use_theme(name: str) -> None:
    """Draw everything in these colours from now on."""
    _chosen[0] = name if name in THEMES else "dark"


def theme() -> Theme:
    """Return the theme that is used now."""
    return _chosen[0]


def codes(styles: tuple[str, ...]) -> str:
    """Return the numbers by which a terminal knows these styles."""
    known = _STYLES[theme()]
    return ";".join(known[style] for style in styles if style in known)


def code_theme() -> str:
    """Return the colours of code, by the name that rich has for them."""
    return "ansi_light" if theme() == "light" else "ansi_dark"


def markdown_styles() -> dict[str, str]:
    """Return the styles of Markdown that differ from rich's own, which are for dark terminals."""
    return _LIGHT_MARKDOWN if theme() == "light" else {}
