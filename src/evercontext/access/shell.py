"""A shell command line taken apart into the commands it would run.

Not a shell: it only has to see every command that could be one. What cannot be read for certain
is said to be unclear, and the caller asks a person.
"""

from __future__ import annotations

from dataclasses import dataclass, field

_SEPARATORS = ";&|\n"
_LOOPS = ("for", "while", "until", "do", "done", "case", "esac", "in")
_RESERVED = frozenset(("if", "then", "elif", "else", "fi", "{", "}", "!", *_LOOPS))
_DEEPEST = 8


@dataclass(frozen=True, slots=True)
class Part:
    """One simple command."""

    words: tuple[str, ...]
    unclear: bool = False
    """Holds expansions whose value is only known when it runs."""
    redirects: bool = False
    """Writes into a file by ``>``."""

    @property
    def text(self) -> str:
        """The command with one space between its words."""
        return " ".join(self.words)


@dataclass(slots=True)
class _Reading:
    parts: list[Part] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    word: str | None = None
    unclear: bool = False
    redirects: bool = False

    def end_word(self) -> None:
        if self.word is not None:
            self.words.append(self.word)
            self.word = None

    def end_part(self) -> None:
        self.end_word()
        words = list(self.words)
        while words and words[0] in _RESERVED:
            words.pop(0)
        if words:
            self.parts.append(Part(tuple(words), self.unclear, self.redirects))
        self.words, self.unclear, self.redirects = [], False, False

    def add(self, text: str) -> None:
        self.word = (self.word or "") + text


def parts_of(line: str, depth: int = 0) -> list[Part]:
    """Every simple command in a line, those inside substitutions too."""
    if depth > _DEEPEST:
        return [Part((line,), unclear=True)]
    reading, inner, at = _Reading(), list[str](), 0
    while at < len(line):
        at = _step(line, at, reading, inner)
    reading.end_part()
    return reading.parts + [part for script in inner for part in parts_of(script, depth + 1)]


def _step(line: str, at: int, reading: _Reading, inner: list[str]) -> int:
    """Take in what begins at ``at``; return where the next thing begins."""
    character = line[at]
    if character == "'":
        end = line.find("'", at + 1)
        reading.unclear = reading.unclear or end < 0
        end = len(line) if end < 0 else end
        reading.add(line[at + 1 : end])
        return end + 1
    if character == '"':
        return _double_quoted(line, at + 1, reading, inner)
    if character == "\\":
        if line[at + 1 : at + 2] != "\n":
            reading.add(line[at + 1 : at + 2])
        return at + 2
    if character in "$`":
        return _expansion(line, at, reading, inner)
    if character == "#" and reading.word is None:
        end = line.find("\n", at)
        return len(line) if end < 0 else end
    if character in "()" or character in _SEPARATORS:
        return _separator(line, at, reading)
    if character in "<>":
        return _redirection(line, at, reading, inner)
    if character.isspace():
        reading.end_word()
    else:
        reading.add(character)
    return at + 1


def _separator(line: str, at: int, reading: _Reading) -> int:
    reading.end_part()
    return at + 1


def _redirection(line: str, at: int, reading: _Reading, inner: list[str]) -> int:
    if line[at : at + 2] in ("<(", ">("):
        end = _closing(line, at + 2)
        inner.append(line[at + 2 : end])
        reading.unclear = True
        return end + 1
    if reading.word is not None and reading.word.isdigit():
        reading.word = None  # the number of a descriptor
    reading.end_word()
    duplicates = line[at + 1 : at + 2] == "&" and line[at + 2 : at + 3] in "0123456789-"
    if duplicates:
        return at + 3
    reading.redirects = reading.redirects or line[at] == ">"
    reading.unclear = reading.unclear or line[at : at + 2] == "<<"
    following = at + 1
    while line[following : following + 1] in (">", "<", "|", "&"):
        following += 1
    return following


def _double_quoted(line: str, at: int, reading: _Reading, inner: list[str]) -> int:
    reading.add("")
    while at < len(line) and line[at] != '"':
        if line[at] == "\\":
            reading.add(line[at + 1 : at + 2])
            at += 2
        elif line[at] in "$`":
            at = _expansion(line, at, reading, inner)
        else:
            reading.add(line[at])
            at += 1
    reading.unclear = reading.unclear or at >= len(line)
    return at + 1


def _expansion(line: str, at: int, reading: _Reading, inner: list[str]) -> int:
    if line[at] == "`":
        end = line.find("`", at + 1)
        end = len(line) if end < 0 else end
        inner.append(line[at + 1 : end])
    elif line[at + 1 : at + 2] == "(":
        end = _closing(line, at + 2)
        inner.append(line[at + 2 : end])
    elif line[at + 1 : at + 2] == "{":
        end = line.find("}", at)
        end = len(line) if end < 0 else end
    else:
        reading.add("$")
        reading.unclear = reading.unclear or line[at + 1 : at + 2].strip() not in ("", '"')
        return at + 1
    reading.add(line[at : end + 1])
    reading.unclear = True
    return end + 1


def _closing(line: str, at: int) -> int:
    """Where the bracket closes that was opened just before ``at``."""
    depth = 1
    while at < len(line):
        depth += {"(": 1, ")": -1}.get(line[at], 0)
        if not depth:
            return at
        at += 1
    return at
