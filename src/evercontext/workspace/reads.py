"""Who has read which file: an edit needs to know what it edits."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field

from evercontext.domain.tool import Caller, Door
from evercontext.errors import Changed

_READERS = 256
_FILES = 512
_LONGEST_KEPT = 65_536


@dataclass(slots=True)
class _Read:
    sha256: str
    lines: int
    content: str | None
    ranges: list[tuple[int, int]] = field(default_factory=list)

    def add(self, first: int, last: int) -> None:
        self.ranges = _merged([*self.ranges, (first, last)])

    @property
    def whole(self) -> bool:
        return self.lines == 0 or self.ranges == [(1, self.lines)]


class ReadLedger:
    """The contents that each session has seen whole, in one piece or in several."""

    def __init__(self) -> None:
        self._readers: OrderedDict[str, OrderedDict[str, _Read]] = OrderedDict()

    def note(
        self,
        caller: Caller,
        path: str,
        sha256: str,
        content: str,
        lines: int,
        shown: tuple[int, int] | None = None,
    ) -> None:
        """Remember that a content of so many lines was shown: all of them, or first to last."""
        files = self._files(caller)
        read = files.get(path)
        if read is None or read.sha256 != sha256:
            read = _Read(sha256, lines, content if len(content) <= _LONGEST_KEPT else None)
        read.add(*(shown or (1, lines)))
        files[path] = read
        files.move_to_end(path)
        while len(files) > _FILES:
            files.popitem(last=False)

    def seen(self, caller: Caller, path: str) -> str | None:
        """Return the content that was shown last, if it was small enough to be kept."""
        read = self._files(caller).get(path)
        return read.content if read else None

    def check(self, caller: Caller, path: str, sha256: str) -> None:
        """Raise Changed unless exactly this content was shown whole."""
        read = self._files(caller).get(path)
        if read is None:
            raise Changed(f"{path} was not read yet", fix="Read it, then edit it")
        if read.sha256 != sha256:
            raise Changed(f"{path} has changed since it was read", fix="Read it again")
        if not read.whole:
            seen = ", ".join(f"{first}-{last}" for first, last in read.ranges)
            raise Changed(
                f"only lines {seen} of {read.lines} in {path} were read",
                fix="Read the other lines with start_line, then edit",
            )

    def _files(self, caller: Caller) -> OrderedDict[str, _Read]:
        reader = _reader(caller)
        files = self._readers.setdefault(reader, OrderedDict())
        self._readers.move_to_end(reader)
        while len(self._readers) > _READERS:
            self._readers.popitem(last=False)
        return files


def count_lines(text: str) -> int:
    """Return the number of lines as an editor counts them."""
    return len(text.splitlines())


def _reader(caller: Caller) -> str:
    if caller.session:
        return f"session {caller.session}"
    if caller.door in (Door.REST, Door.MCP):
        # each request of an outside client may carry a trace of its own
        who = caller.principal
        return f"{caller.door} {who.user} {who.project} {who.token}"
    return f"trace {caller.trace_id}"


def _merged(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(merged[-1][1], last))
        else:
            merged.append((first, last))
    return merged
