"""Changes to text, line by line, so that several mendings of one file can be made at once."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Proposal:
    """One way to mend one failure, found without a model."""

    by: str
    reason: str
    files: Mapping[str, str] = field(default_factory=dict)
    """New contents by path."""
    tool: str = ""
    """Or the tool that does it: ``run.format``, or ``run.lint`` with a command."""
    arguments: Mapping[str, object] = field(default_factory=dict)
    touches: tuple[str, ...] = ()
    """What the tool would change, as far as that is known."""

    @property
    def identity(self) -> str:
        """What makes two proposals the same."""
        return repr((sorted(self.files.items()), self.tool, sorted(self.arguments.items())))


@dataclass(frozen=True, slots=True, order=True)
class Splice:
    """Lines ``start`` to ``end`` of the old text become ``new``."""

    start: int
    end: int
    new: tuple[str, ...]


def splices(old: str, new: str) -> list[Splice]:
    """Return how one text becomes another."""
    before, after = old.splitlines(keepends=True), new.splitlines(keepends=True)
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    return [
        Splice(i1, i2, tuple(after[j1:j2]))
        for tag, i1, i2, j1, j2 in matcher.get_opcodes()
        if tag != "equal"
    ]


def merge(old: str, versions: Iterable[str]) -> str:
    """Put several new versions of one text together; what gets in another's way is left out."""
    taken: list[Splice] = []
    for version in versions:
        wanted = [one for one in splices(old, version) if one not in taken]
        if not any(_collide(one, other) for one in wanted for other in taken):
            taken += wanted
    lines = old.splitlines(keepends=True)
    for one in sorted(taken, reverse=True):
        lines[one.start : one.end] = one.new
    return "".join(lines)


def _collide(one: Splice, other: Splice) -> bool:
    if one.start == one.end and other.start == other.end:
        return False  # two insertions at one place, such as two imports, stand side by side
    return one.start < other.end and other.start < one.end


def together(proposals: Iterable[Proposal], contents: Mapping[str, str]) -> dict[str, str]:
    """Return the new contents that several proposals make together."""
    versions: dict[str, list[str]] = {}
    for proposal in proposals:
        for path, content in proposal.files.items():
            versions.setdefault(path, []).append(content)
    return {path: merge(contents.get(path, ""), made) for path, made in versions.items()}
