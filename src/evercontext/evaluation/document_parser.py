"""Parse a text document into parts, each with the line it begins on."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field
from functools import cached_property

from evercontext.domain.japanese import japanese_characters
from evercontext.evaluation.restructured_text import is_restructured, to_markdown

# Documents come from anybody: every pattern is bounded, so that none takes more than a moment.
_HEADING = re.compile(r"^(#{1,6})[ \t]+(.*)$")
_UNDERLINE = re.compile(r"^(=+|-{3,}|~{3,})\s*$")
_FENCE = re.compile(r"^\s{0,3}(`{3,}|~{3,})\s*([\w+#.-]*)")
_INDENTED = re.compile(r"^(?: {4}|\t)\s*\S")
_ITEM = re.compile(r"^\s*(?:[-*+•]|\d{1,3}[.)])\s+\S")
_LINK = re.compile(r"!?\[([^\[\]]{0,500})\]\(([^()]{0,1000}(?:\([^()]{0,200}\)[^()]{0,200})?)\)")
_PIECE = 2000
_ROW = re.compile(r"^\s*\|")
_NUMBERS_AND_MARKS = re.compile(r"[\W\d_]+")
_SENTENCE_WORDS = 6
_SENTENCE = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])| ?\| ?")
WORD = re.compile(r"[A-Za-zÀ-ÿ][\w'-]*")


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading and its level."""

    line: int
    level: int
    text: str


@dataclass(frozen=True, slots=True)
class Fence:
    """A block of code; ``closed`` is False if the document ends inside it."""

    line: int
    language: str
    code: str
    closed: bool


@dataclass(frozen=True, slots=True)
class DocumentLink:
    """A link or image."""

    line: int
    text: str
    target: str
    image: bool


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Lines of prose that belong together; list items and rows of tables stand alone."""

    line: int
    text: str
    item: bool = False

    @property
    def sentences(self) -> list[str]:
        """Its sentences, English or Japanese; the cells of a row."""
        return [part.strip() for part in _SENTENCE.split(self.text) if part.strip()]


@dataclass
class Document:
    """A parsed document."""

    text: str
    headings: list[Heading] = field(default_factory=list)
    fences: list[Fence] = field(default_factory=list)
    paragraphs: list[Paragraph] = field(default_factory=list)

    @classmethod
    def parse(cls, text: str) -> Document:
        """Read Markdown, reStructuredText and plain text alike."""
        text = _composed(text.replace("\r\n", "\n"))
        document = cls(to_markdown(text) if is_restructured(text) else text)
        _Parser(document).run()
        return document

    @cached_property
    def links(self) -> list[DocumentLink]:
        """Links and images in prose."""
        return [
            DocumentLink(p.line, match[1], _target(match[2]), match[0].startswith("!"))
            for p in self.paragraphs
            for match in _LINK.finditer(p.text)
        ]

    @cached_property
    def words(self) -> int:
        """Words; two Japanese characters count as one."""
        return _words(" ".join(p.text for p in self.paragraphs))

    @cached_property
    def content(self) -> int:
        """Words, and what code, tables and diagrams say: each of their lines is worth its words.

        A line that comes again says nothing new.
        """
        lines = {line.strip() for fence in self.fences for line in fence.code.split("\n")}
        return self.words + sum(max(1, _words(line)) for line in lines if line)

    @cached_property
    def repeated(self) -> int:
        """Words of sentences that were there before, if only with other numbers in them."""
        seen: set[str] = set()
        again = 0
        for sentence in (sentence for p in self.paragraphs for sentence in p.sentences):
            words = _words(sentence)
            key = _NUMBERS_AND_MARKS.sub(" ", sentence.lower())
            # Short ones come again in any text: "See below.", "Yes.", the cells of a table.
            if words >= _SENTENCE_WORDS:
                again += words if key in seen else 0
                seen.add(key)
        return again

    @cached_property
    def japanese(self) -> bool:
        """True if Japanese is what it is written in."""
        return len(japanese_characters(self.text)) > 0.1 * max(1, len(self.text))


def _words(text: str) -> int:
    return len(WORD.findall(text)) + len(japanese_characters(text)) // 2


def _composed(text: str) -> str:
    """The text in NFC, piece by piece: a long run of combining marks takes the square of itself."""
    if text.isascii():
        return text
    pieces = (text[at : at + _PIECE] for at in range(0, len(text), _PIECE))
    return "".join(unicodedata.normalize("NFC", piece) for piece in pieces)


def _target(inside: str) -> str:
    """What a link leads to, without its title and angle brackets."""
    first = inside.split(maxsplit=1)[:1]
    return first[0].strip("<>") if first else ""


def _without_closing(title: str) -> str:
    """A heading may end with the marks that it began with; a language may end with one, too."""
    bare = title.rstrip("#")
    return bare.rstrip() if not bare or bare[-1] in " \t" else title


class _Parser:
    def __init__(self, document: Document) -> None:
        self._document = document
        self._lines = document.text.split("\n")
        self._prose: list[str] = []
        self._start = 0

    def run(self) -> None:
        number = 0
        while number < len(self._lines):
            number = self._step(number)
        self._flush()

    def _step(self, number: int) -> int:
        line = self._lines[number]
        if fence := _FENCE.match(line):
            return self._fence(number, fence[1], fence[2])
        if heading := _HEADING.match(line):
            self._flush()
            title = _without_closing(heading[2].strip())
            self._document.headings.append(Heading(number + 1, len(heading[1]), title))
        elif self._is_underlined(number):
            self._flush()
            level = 1 if self._lines[number + 1][0] == "=" else 2
            self._document.headings.append(Heading(number + 1, level, line.strip()))
            return number + 2
        elif not line.strip():
            self._flush()
        elif not self._prose and _INDENTED.match(line) and self._may_be_code():
            return self._indented(number)
        else:
            self._take(number, line)
        return number + 1

    def _is_underlined(self, number: int) -> bool:
        line = self._lines[number].strip()
        below = self._lines[number + 1] if number + 1 < len(self._lines) else ""
        plain = bool(line) and not self._prose and not _ITEM.match(line)
        return plain and bool(_UNDERLINE.match(below)) and len(line) < 120

    def _take(self, number: int, line: str) -> None:
        if _ITEM.match(line) or _ROW.match(line):
            self._flush()
        if not self._prose:
            self._start = number + 1
        self._prose.append(" ".join(line.split()))

    def _flush(self) -> None:
        if self._prose:
            text, first = " ".join(self._prose), self._prose[0]
            alone = bool(_ITEM.match(first) or _ROW.match(first))
            self._document.paragraphs.append(Paragraph(self._start, text, alone))
            self._prose = []

    def _may_be_code(self) -> bool:
        """Indented lines under an item of a list belong to it; elsewhere they are code."""
        paragraphs = self._document.paragraphs
        return not (paragraphs and paragraphs[-1].item)

    def _indented(self, number: int) -> int:
        end = last = number
        while end < len(self._lines) and (
            _INDENTED.match(self._lines[end]) or not self._lines[end]
        ):
            last = end + 1 if self._lines[end] else last
            end += 1
        code = "\n".join(line[4:] for line in self._lines[number:last])
        self._document.fences.append(Fence(number + 1, "text", code, True))
        return last

    def _fence(self, number: int, mark: str, language: str) -> int:
        self._flush()
        end = number + 1
        while end < len(self._lines) and not self._closes(self._lines[end], mark):
            end += 1
        code = "\n".join(self._lines[number + 1 : end])
        closed = end < len(self._lines)
        self._document.fences.append(Fence(number + 1, language.lower(), code, closed))
        return end + 1

    @staticmethod
    def _closes(line: str, mark: str) -> bool:
        bare = line.strip()
        return bare.startswith(mark) and not bare.strip(mark[0])
