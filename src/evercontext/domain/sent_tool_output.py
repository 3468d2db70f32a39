"""Track which parts of tool output a model was really sent.

A tool marks the text that it returns; whoever asks the model tells, with every request, how much of
it was sent. What a window cut away or left out was never seen, and nothing may rest on it.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import zip_longest

from evercontext.domain.message import Message

Ranges = tuple[tuple[int, int], ...]
"""Characters from (included) and to (excluded), in order, none touching the next."""


@dataclass(slots=True, eq=False)
class Mark:
    """A text that a call returned, or that the model wrote in it."""

    length: int = 0
    """Characters, from the beginning of the result; 0 for what the model wrote itself."""
    now: Ranges = ()
    """Characters of it in the request that the model answers now."""
    ever: Ranges = ()
    """Characters of it in any request."""
    present: bool = True
    """Whether the call is still in the conversation as it is sent."""


@dataclass(slots=True)
class Sent:
    """A message as it is, and the characters of its result that are sent of it."""

    message: Message
    shown: Ranges | None
    """``None``: it is left out, with its call."""


@dataclass(slots=True)
class View:
    """One conversation as its model sees it."""

    name: str = field(default_factory=lambda: str(uuid.uuid4()))
    share: Callable[[str], float] = lambda text: 0.0
    """How many times a result may be as long as this: above 1 it would not be sent in one piece."""
    _open: list[tuple[Mark, str]] = field(default_factory=list)
    """Of the call that runs now, with what its result must begin with."""
    _marks: dict[tuple[str | None, str], list[Mark]] = field(default_factory=dict)

    def mark(self, text: str = "") -> Mark:
        """Note the text that the running call returns; none if it writes what the model gave."""
        mark = Mark(len(text))
        self._open.append((mark, text))
        return mark

    def returned(self, message: Message, text: str) -> None:
        """The running call ended; this is its message, and the text of its result."""
        for mark, expected in self._open:
            mark.length = alike(expected, text)
            self._marks.setdefault(_key(message), []).append(mark)
        self._open = []

    def update(self, sent: Iterable[Sent]) -> None:
        """Take in what is sent of every message there is; marks of all others are forgotten."""
        shown: dict[tuple[str | None, str], Ranges | None] = {}
        for part in sent:
            if part.message.role == "tool" and (key := _key(part.message)) in self._marks:
                before = shown.get(key)
                shown[key] = part.shown if before is None else (*before, *(part.shown or ()))
        for key, marks in self._marks.items():
            for mark in marks:
                _see(mark, shown.get(key))
        self._open, self._marks = [], {key: self._marks[key] for key in shown}


def _see(mark: Mark, shown: Ranges | None) -> None:
    mark.present = shown is not None
    mark.now = clipped(joined(shown or ()), 0, mark.length)
    mark.ever = joined([*mark.ever, *mark.now])


def _key(message: Message) -> tuple[str | None, str]:
    # Some servers give the same id twice.
    return message.tool_call_id, message.content


def alike(first: str, second: str) -> int:
    """How many characters two texts have in common, from the beginning."""
    if second.startswith(first):
        return len(first)
    return next(i for i, pair in enumerate(zip_longest(first, second)) if pair[0] != pair[1])


def joined(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """The same characters in as few ranges as possible."""
    merged: list[tuple[int, int]] = []
    for start, end in sorted(ranges):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return tuple(merged)


def clipped(ranges: Iterable[tuple[int, int]], start: int, end: int) -> Ranges:
    """What of the ranges lies between two places."""
    cut = ((max(first, start), min(last, end)) for first, last in ranges)
    return tuple((first, last) for first, last in cut if first < last)
