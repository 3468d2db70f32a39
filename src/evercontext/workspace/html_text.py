"""Turn HTML into the text that a reader would see."""

from __future__ import annotations

import re
from html.parser import HTMLParser

_HIDDEN = frozenset(("script", "style", "noscript", "template", "svg", "head", "iframe", "nav"))
_BLOCKS = frozenset(
    (
        *("address", "article", "aside", "blockquote", "br", "dd", "div", "dl", "dt", "fieldset"),
        *("figcaption", "figure", "footer", "form", "header", "hr", "li", "main", "ol", "p", "pre"),
        *("h1", "h2", "h3", "h4", "h5", "h6", "section", "table", "tr", "ul"),
    )
)
_HEADINGS = {f"h{level}": "#" * level for level in range(1, 7)}
_BLANK_LINES = re.compile(r"\n(?:[ \t]*\n)+")
_SPACES = re.compile(r"[ \t\r\f\v\u00a0]+")


class _Reader(HTMLParser):
    """Collects visible text; headings, list items and code keep their shape."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.title = ""
        self._pieces: list[str] = []
        self._hidden: list[str] = []
        self._preformatted = 0
        self._in_title = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Begin an element."""
        self._in_title = self._in_title or tag == "title"
        if self._hidden or tag in _HIDDEN:
            if tag in _HIDDEN:
                self._hidden.append(tag)
            return
        self._preformatted += tag == "pre"
        if tag in _BLOCKS:
            self._pieces.append("\n")
        if tag in _HEADINGS:
            self._pieces.append(f"\n{_HEADINGS[tag]} ")
        elif tag == "li":
            self._pieces.append("- ")
        elif tag in ("td", "th"):
            self._pieces.append(" | ")

    def handle_endtag(self, tag: str) -> None:
        """End an element; one that was never begun changes nothing."""
        if tag == "title":
            self._in_title = False
        if tag in self._hidden:
            while self._hidden and self._hidden.pop() != tag:
                pass
            return
        if self._hidden:
            return
        self._preformatted -= tag == "pre" and self._preformatted > 0
        if tag in _BLOCKS:
            self._pieces.append("\n")

    def handle_data(self, data: str) -> None:
        """Take text."""
        if self._in_title:
            self.title += data
        elif not self._hidden:
            self._pieces.append(data if self._preformatted else _SPACES.sub(" ", _joined(data)))

    def text(self) -> str:
        """Return all of it, with at most one blank line in a row."""
        lines = "".join(self._pieces).split("\n")
        return _BLANK_LINES.sub("\n\n", "\n".join(line.rstrip() for line in lines)).strip()


def _joined(data: str) -> str:
    return data.replace("\n", " ")


def html_to_text(page: str) -> str:
    """Return the visible text of a page, its title first."""
    reader = _Reader()
    reader.feed(page)
    reader.close()
    title = " ".join(reader.title.split())
    return "\n\n".join(part for part in (title, reader.text()) if part)
