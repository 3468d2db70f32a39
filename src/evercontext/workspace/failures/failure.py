"""Define one failure of a check, and the places it names."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import PurePosixPath
from typing import Any, Literal

from evercontext.files.generated_directories import GENERATED

Kind = Literal[
    "syntax", "import", "name", "attribute", "type", "assertion", "file", "lint", "format", "error"
]
LONGEST_MESSAGE = 2_000
MOST_FRAMES = 20

_KINDS: dict[str, Kind] = {
    "SyntaxError": "syntax",
    "IndentationError": "syntax",
    "TabError": "syntax",
    "ImportError": "import",
    "ModuleNotFoundError": "import",
    "NameError": "name",
    "UnboundLocalError": "name",
    "ReferenceError": "name",
    "AttributeError": "attribute",
    "TypeError": "type",
    "AssertionError": "assertion",
    "FileNotFoundError": "file",
}


@dataclass(frozen=True, slots=True)
class CodeLine:
    """A line of a file of the project."""

    file: str
    line: int


@dataclass(frozen=True, slots=True)
class Hint:
    """A compiler's own proposal: what a line should be, or a line to put before it."""

    line: int
    new: str
    old: str | None = None
    """``None``: the new line is put in, nothing is replaced."""


@dataclass(frozen=True, slots=True)
class Failure:
    """One thing that a check found wrong. Paths are relative to the root."""

    tool: str
    kind: Kind
    message: str
    file: str | None = None
    line: int | None = None
    column: int | None = None
    test: str | None = None
    code: str | None = None
    """The rule of a linter, the error number of a compiler, the class of an exception."""
    frames: tuple[CodeLine, ...] = ()
    """The way to it through the project's own files, innermost last."""
    hints: tuple[Hint, ...] = ()
    blocks: bool = False
    """True if it kept other checks from running at all."""

    @property
    def key(self) -> tuple[str, ...]:
        """What makes it the same failure as one of an earlier run: never the line, it moves."""
        if self.test:
            return (self.tool, self.test)
        return (self.tool, self.file or "", self.code or self.kind, _without_numbers(self.message))

    @property
    def where(self) -> str:
        """``file:line``, as far as it is known."""
        return f"{self.file}:{self.line}" if self.file and self.line else self.file or ""

    def to_json(self) -> dict[str, Any]:
        """Plain JSON without empty fields."""
        return {name: value for name, value in asdict(self).items() if value not in (None, (), "")}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Failure:
        """Read what ``to_json`` wrote."""
        frames = tuple(CodeLine(**frame) for frame in data.get("frames", ()))
        hints = tuple(Hint(**hint) for hint in data.get("hints", ()))
        return cls(**{**data, "frames": frames, "hints": hints})


def kind_of(exception: str) -> Kind:
    """The kind of failure that an exception of this class is."""
    return _KINDS.get(exception.rpartition(".")[2], "error")


def inside(path: str, root: str) -> str | None:
    """Return a path of the project relative to its root; ``None`` for any other path.

    What was installed into the project is not the project's own.
    """
    text = path.strip().removeprefix("file://")
    if text.startswith("/"):
        base = root.rstrip("/") + "/"
        if not text.startswith(base):
            return None
        text = text.removeprefix(base)
    parts = PurePosixPath(text).parts
    if not parts or ".." in parts or GENERATED & set(parts) or text.startswith("<"):
        return None
    return "/".join(parts)


def located(failure: Failure, frames: Iterable[tuple[str, int]], root: str) -> Failure:
    """Give a failure its frames; it lies where the innermost of the project's own is."""
    places = [CodeLine(file, line) for path, line in frames if (file := inside(path, root))]
    places = places[-MOST_FRAMES:]
    if not places:
        return failure
    last = places[-1]
    if failure.file:
        return replace(failure, frames=tuple(places))
    return replace(failure, file=last.file, line=last.line, frames=tuple(places))


def blocks(lines: Sequence[str], begins: Callable[[str], object]) -> Iterator[Sequence[str]]:
    """Cut lines into the blocks that begin with a line of some kind; what is before is left out."""
    starts = [number for number, line in enumerate(lines) if begins(line)]
    for number, start in enumerate(starts):
        yield lines[start : starts[number + 1] if number + 1 < len(starts) else len(lines)]


def cut(message: str) -> str:
    """A message that fits into a log."""
    text = message.strip()
    return text if len(text) <= LONGEST_MESSAGE else f"{text[:LONGEST_MESSAGE]} …"


def _without_numbers(message: str) -> str:
    return re.sub(r"0x[0-9a-f]+|\d+", "0", message.split("\n", 1)[0])[:300]
