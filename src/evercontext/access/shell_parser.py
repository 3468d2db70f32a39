"""Split a shell command line into the commands it would run.

Not a shell: it only has to see every command that could be one. What cannot be read for certain
is said to be unclear, and the caller asks a person.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field

_SEPARATORS = ";&|\n()"
# Other kinds of space (U+3000, NBSP, a form feed) are letters of a word to a shell.
_BLANKS = " \t"
_LOOPS = ("for", "while", "until", "do", "done", "case", "esac", "in")
_RESERVED = frozenset(("if", "then", "elif", "else", "fi", "{", "}", "!", *_LOOPS))
_DEEPEST = 8
_DUPLICATION = re.compile(r"\d*[<>]& ?(?:\d+-?|-)")
_HARMLESS = frozenset(("/dev/null", "/dev/stdout", "/dev/stderr"))


@dataclass(frozen=True, slots=True)
class CommandPart:
    """One simple command."""

    words: tuple[str, ...]
    unclear: bool = False
    """Holds expansions whose value is only known when it runs."""
    redirections: tuple[str, ...] = ()
    """Such as ``> out.txt``, ``2>& 1``, ``< in.txt``; each with one space before its target."""
    source: str = field(default="", compare=False)
    """As it was written."""
    spelled: tuple[str, ...] = ()
    """The words, quoted where the shell would read them differently otherwise."""

    @property
    def redirects(self) -> bool:
        """True if it writes into a file by ``>``."""
        return any(
            ">" in redirection
            and not _DUPLICATION.fullmatch(redirection)
            and redirection.partition(" ")[2] not in _HARMLESS
            for redirection in self.redirections
        )

    @property
    def text(self) -> str:
        """The command in one spelling, with its redirections last; unclear ones as written."""
        return self.source if self.unclear else " ".join((*self.spelled, *self.redirections))

    @property
    def plain(self) -> str:
        """The words alone, with one space between them and without quotes."""
        return " ".join(self.words)


@dataclass(slots=True)
class _CommandReading:
    line: str
    parts: list[CommandPart] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    spelled: list[str] = field(default_factory=list)
    redirections: list[str] = field(default_factory=list)
    operator: str | None = None
    """A redirection that still waits for its target."""
    word: str | None = None
    quoted: bool = False
    unclear: bool = False
    start: int = 0

    def end_word(self) -> None:
        if self.word is None:
            return
        spelled = shlex.quote(self.word) if self.quoted else self.word
        if self.operator is not None:
            self.redirections.append(f"{self.operator} {spelled}")
            self.operator = None
        else:
            self.words.append(self.word)
            self.spelled.append(spelled)
        self.word, self.quoted = None, False

    def end_part(self, at: int) -> None:
        self.end_word()
        if self.operator is not None:
            self.redirections.append(self.operator)
            self.operator, self.unclear = None, True
        skipped = 0
        while skipped < len(self.spelled) and self.spelled[skipped] in _RESERVED:
            skipped += 1
        words, spelled = tuple(self.words[skipped:]), tuple(self.spelled[skipped:])
        if words or self.redirections:
            source = self.line[self.start : at].strip(_BLANKS)
            redirections = tuple(self.redirections)
            self.parts.append(CommandPart(words, self.unclear, redirections, source, spelled))
        self.words, self.spelled, self.redirections = [], [], []
        self.unclear, self.start = False, at + 1

    def add(self, text: str, *, quoted: bool = False) -> None:
        self.word = (self.word or "") + text
        self.quoted = self.quoted or quoted


def parts_of(line: str, depth: int = 0) -> list[CommandPart]:
    """Every simple command in a line, those inside substitutions too."""
    if depth > _DEEPEST:
        return [CommandPart((line,), unclear=True, source=line, spelled=(line,))]
    reading, inner, at = _CommandReading(line), list[str](), 0
    while at < len(line):
        at = _step(line, at, reading, inner)
    reading.end_part(len(line))
    return reading.parts + [part for script in inner for part in parts_of(script, depth + 1)]


def _step(line: str, at: int, reading: _CommandReading, inner: list[str]) -> int:
    """Take in what begins at ``at``; return where the next thing begins."""
    character = line[at]
    if character == "'":
        end = line.find("'", at + 1)
        reading.unclear = reading.unclear or end < 0
        end = len(line) if end < 0 else end
        reading.add(line[at + 1 : end], quoted=True)
        return end + 1
    if character == '"':
        return _double_quoted(line, at + 1, reading, inner)
    if character == "\\":
        if line[at + 1 : at + 2] != "\n":
            reading.add(line[at + 1 : at + 2], quoted=True)
        return at + 2
    if character in "$`":
        return _expansion(line, at, reading, inner)
    if character == "#" and reading.word is None:
        end = line.find("\n", at)
        return len(line) if end < 0 else end
    if character in _SEPARATORS:
        reading.end_part(at)
    elif character in "<>":
        return _redirection(line, at, reading, inner)
    elif character in _BLANKS:
        reading.end_word()
    else:
        reading.add(character)
    return at + 1


def _redirection(line: str, at: int, reading: _CommandReading, inner: list[str]) -> int:
    if line[at : at + 2] in ("<(", ">("):
        end = _closing(line, at + 2)
        inner.append(line[at + 2 : end])
        reading.unclear = True
        reading.add(line[at : end + 1])
        return end + 1
    descriptor = ""
    if reading.word is not None and not reading.quoted and _is_number(reading.word):
        descriptor, reading.word = reading.word, None
    reading.end_word()
    # A second operator without a target before it is nothing a shell takes.
    reading.unclear = reading.unclear or reading.operator is not None
    following = at + 1
    while line[following : following + 1] in (">", "<", "|", "&", "-") and following < at + 3:
        if line[following] == "-" and line[at:following] != "<<":
            break
        following += 1
    reading.operator = descriptor + line[at:following]
    reading.unclear = reading.unclear or line[at : at + 2] == "<<"
    return following


def _is_number(word: str) -> bool:
    return word.isascii() and word.isdigit()


def _double_quoted(line: str, at: int, reading: _CommandReading, inner: list[str]) -> int:
    reading.add("", quoted=True)
    while at < len(line) and line[at] != '"':
        if line[at] == "\\":
            following = line[at + 1 : at + 2]
            # Inside these quotes a backslash is one unless it stands before one of five.
            reading.add(
                "" if following == "\n" else following if following in '$`"\\' else f"\\{following}"
            )
            at += 2
        elif line[at] in "$`":
            at = _expansion(line, at, reading, inner)
        else:
            reading.add(line[at])
            at += 1
    reading.unclear = reading.unclear or at >= len(line)
    return at + 1


def _expansion(line: str, at: int, reading: _CommandReading, inner: list[str]) -> int:
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
