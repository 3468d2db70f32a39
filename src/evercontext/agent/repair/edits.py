"""Apply line edits, so that several fixes of one file can be made at once."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Proposal:
    """One fix of one failure, found without a model."""

    by: str
    reason: str
    files: Mapping[str, str] = field(default_factory=dict)
    """New contents by path."""
    tool: str = ""
    """Or the tool that does it: ``run.format``, or ``run.lint`` with a command."""
    arguments: Mapping[str, object] = field(default_factory=dict)
    touches: tuple[str, ...] = ()
    """The files that the tool would change, as far as they are known."""

    @property
    def identity(self) -> str:
        """The key by which two proposals are the same."""
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
    """Merge several new versions of one text; conflicting edits are left out."""
    taken: list[Splice] = []
    for version in versions:
        fresh = [splice for splice in splices(old, version) if splice not in taken]
        if not any(_collide(splice, other) for splice in fresh for other in taken):
            taken += fresh
    lines = old.splitlines(keepends=True)
    for splice in sorted(taken, reverse=True):
        lines[splice.start : splice.end] = splice.new
    return "".join(lines)


def _collide(first: Splice, other: Splice) -> bool:
    if first.start == first.end and other.start == other.end:
        return False  # two insertions at one place, such as two imports, stand side by side
    return first.start < other.end and other.start < first.end


def together(proposals: Iterable[Proposal], contents: Mapping[str, str]) -> dict[str, str]:
    """Return the new contents that several proposals make together."""
    versions: dict[str, list[str]] = {}
    for proposal in proposals:
        for path, content in proposal.files.items():
            versions.setdefault(path, []).append(content)
    return {path: merge(contents.get(path, ""), texts) for path, texts in versions.items()}
