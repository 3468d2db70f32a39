"""Describe a call for its approval: complete, and the same everywhere.

Terminal, web console and editors show what ``consent_of`` returns; nothing is cut or left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from evercontext.domain.tool import Tool
from evercontext.domain.visible_text import exact
from evercontext.tools.approval_gate import ApprovalQuestion
from evercontext.tools.diff import describe

OURS = "evercontext"
_IN_THE_DIFF = frozenset(("content", "new_content", "old", "new", "edits"))
"""Arguments of our own editing tools, of which the diff shows everything that comes of them."""
_COMMANDS = frozenset(("command", "cmd", "script", "args", "argv"))
_SUBJECTS = ("path", "directory", "command", "query", "url")
_LONGEST_SUBJECT = 72
_OPENED = {
    "network": "with network: it can send what it reads in the project anywhere",
    "outside": "outside the sandbox: it can read and change whatever you can",
}
"""What a command that asks for more could do with it."""


@dataclass(frozen=True, slots=True)
class ShownChange:
    """What would happen to one file; the diff is whole."""

    path: str
    kind: str
    added: int
    removed: int
    diff: str


@dataclass(frozen=True, slots=True)
class ShownLine:
    """One line of a consent, and how it is meant: ``title``, ``warning``, ``name``, ``diff`` …"""

    text: str
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Consent:
    """A call as it is shown; every text is whole and has nothing hidden in it."""

    tool: str
    origin: str
    description: str
    effects: tuple[str, ...]
    arguments: Mapping[str, str]
    changes: tuple[ShownChange, ...]
    reason: str | None
    digest: str
    """What is allowed is the call with this digest and no other."""

    def lines(self) -> Iterator[ShownLine]:
        """All of it as lines of text."""
        subject, rest = self._subject()
        title = f"{self.tool} {subject}" if subject else self.tool
        yield ShownLine(f"{title} needs your approval", "title")
        if self.origin != OURS:
            may = ", ".join(self.effects) or "read"
            yield ShownLine(f"a tool of {self.origin}; it may: {may}", "warning")
        if opened := _OPENED.get(self.arguments.get("access", "")) if self.origin == OURS else None:
            yield ShownLine(opened, "warning")
        if self.reason:
            yield ShownLine(f"every time, because {self.reason}", "warning")
        width = max((len(name) for name, text in rest.items() if "\n" not in text), default=0)
        for name, text in rest.items():
            first, *more = text.split("\n")
            if more:
                yield ShownLine(f"  {name}", "name")
                yield from (ShownLine(f"    {line}") for line in (first, *more))
            else:
                yield ShownLine(f"  {name.ljust(width)}  {text}")
        for change in self.changes:
            counts = f"+{change.added} -{change.removed}"
            same = not change.diff and change.kind == "changed"
            what = "unchanged" if same else f"would be {change.kind} {counts}"
            yield ShownLine(f"  {change.path} {what}", "name")
            yield from (ShownLine(f"  {line}", "diff") for line in _body(change.diff))

    def _subject(self) -> tuple[str, dict[str, str]]:
        """What one of our own tools is about, for the title, and the other arguments."""
        rest = dict(self.arguments)
        if self.origin == OURS:
            for name in _SUBJECTS:
                text = rest.get(name, "\n")
                if "\n" not in text and len(text) <= _LONGEST_SUBJECT:
                    return text, {key: value for key, value in rest.items() if key != name}
        return "", rest

    def to_json(self) -> dict[str, Any]:
        """All of it for a page."""
        return {
            "description": self.description,
            "origin": self.origin,
            "effects": list(self.effects),
            "arguments": dict(self.arguments),
            "changes": [
                {
                    "path": change.path,
                    "kind": change.kind,
                    "added": change.added,
                    "removed": change.removed,
                    "diff": change.diff,
                }
                for change in self.changes
            ],
            "reason": self.reason,
            "digest": self.digest,
        }


def consent_of(question: ApprovalQuestion, reason: str | None = None) -> Consent:
    """Build what is shown of a call; ``reason``: why it is asked for every time."""
    tool = question.tool
    return Consent(
        tool=_line(tool.name),
        origin=_line(tool.origin),
        description=exact(tool.description),
        effects=tuple(effect.name.lower() for effect in tool.effects if effect.name),
        arguments=_arguments(question),
        changes=tuple(_changes(question)),
        reason=_line(reason) if reason else None,
        digest=question.digest,
    )


def _arguments(question: ApprovalQuestion) -> dict[str, str]:
    covered = _IN_THE_DIFF if question.changes and _is_our_edit(question.tool) else frozenset[str]()
    return {
        _line(str(name)): exact(_text(value), command=name in _COMMANDS)
        for name, value in question.arguments.items()
        if name not in covered
    }


def _is_our_edit(tool: Tool) -> bool:
    return tool.origin == OURS and tool.preview is not None


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, indent=2, default=str)


def _line(text: str) -> str:
    return exact(text).replace("\n", "\\n").replace("\t", "\\t")


def _changes(question: ApprovalQuestion) -> Iterator[ShownChange]:
    for change in question.changes:
        diff = describe(change, applied=False, longest=None)
        lines = diff.diff.split("\n")
        # Files whose every line ends in CR LF are told apart by nothing else than that.
        marked = [line for line in lines[2:] if line[:1] in ("+", "-", " ")]
        everywhere = bool(marked) and all(line.endswith("\r") for line in marked)
        shown = (exact(line.removesuffix("\r") if everywhere else line) for line in lines)
        path = _line(diff.path)
        yield ShownChange(path, diff.kind, diff.added, diff.removed, "\n".join(shown))


def _body(diff: str) -> list[str]:
    """The lines of a diff without the two that name the file."""
    return diff.removesuffix("\n").split("\n")[2:] if diff else []
