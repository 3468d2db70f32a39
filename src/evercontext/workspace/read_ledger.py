"""Track which caller has read which part of which file; an edit requires it.

A read counts as far as its text really reached the model: what the window cut or left out is not
seen. To replace a whole file all of it must be in the request that the model answers; to replace a
part it is enough to have seen that part.
"""

from __future__ import annotations

import heapq
import sys
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from evercontext.domain.sent_tool_output import Mark, Ranges, clipped, joined
from evercontext.domain.tool import Caller, Door
from evercontext.errors import Changed
from evercontext.files.file_tree import FileText, Written
from evercontext.process.worker_threads import think
from evercontext.workspace.search_and_replace import Applied

_READERS = 256
_FILES = 512
_LONGEST_KEPT = 65_536
_RANGES_NAMED = 5
_MOST_PIECES = 500


@dataclass(frozen=True, slots=True)
class _Piece:
    """Characters of a file, and how they came to be known."""

    start: int
    end: int
    mark: Mark | None
    """``None``: shown to somebody who sees results whole."""
    lead: int | None = None
    """Where the piece begins in the marked text; ``None``: it is known, whatever was sent of it."""

    def seen(self, now: bool) -> Ranges:
        """The characters that were sent: ever, or in the request that is answered now."""
        mark = self.mark
        if mark is None:
            return ((self.start, self.end),)
        if self.lead is None:
            return ((self.start, self.end),) if mark.present or not now else ()
        shift = self.start - self.lead
        shown = ((a + shift, b + shift) for a, b in (mark.now if now else mark.ever))
        return clipped(shown, self.start, self.end)

    def part(self, start: int, end: int, shift: int) -> _Piece | None:
        """What of it lies between two places, moved."""
        first, last = max(self.start, start), min(self.end, end)
        if first >= last:
            return None
        if not shift and (first, last) == (self.start, self.end):
            return self
        lead = None if self.lead is None else self.lead + first - self.start
        return _Piece(first + shift, last + shift, self.mark, lead)


@dataclass(slots=True)
class _Read:
    sha256: str
    content: str | None
    """Kept while it is small, to show what changed since."""
    pieces: list[_Piece] = field(default_factory=list)

    def seen(self, now: bool) -> Ranges:
        return joined(part for piece in self.pieces for part in piece.seen(now))


class ReadLedger:
    """The contents that each session has seen, in one piece or in several."""

    def __init__(self) -> None:
        self._readers: OrderedDict[str, OrderedDict[str, _Read]] = OrderedDict()

    def note_read(
        self, caller: Caller, file: FileText, start: int, end: int, result: str, lead: int = 0
    ) -> None:
        """Remember the characters that a result holds, ``lead`` characters from its beginning."""
        mark = caller.view.mark(result) if caller.view else None
        read = self._files(caller).get(file.path)
        if read is None or read.sha256 != file.sha256:
            read = _Read(file.sha256, _if_small(file.content))
        read.pieces = _with(read.pieces, _Piece(start, end, mark, lead))
        self._keep(caller, file.path, read)

    def note_written(self, caller: Caller, path: str, sha256: str, content: str) -> None:
        """Remember that the caller gave this whole content: who wrote it knows it."""
        piece = _Piece(0, len(content), _written(caller))
        self._keep(caller, path, _Read(sha256, _if_small(content), [piece]))

    async def note_edited(
        self, caller: Caller, path: str, sha256: str, content: str, applied: Sequence[Applied]
    ) -> None:
        """Remember what came of edits: what was seen before is known, and the new texts."""
        before = self._files(caller).get(path)
        pieces = before.pieces if before else []
        most = min(_MOST_PIECES, len(pieces) + 2 * sum(len(done.spans) for done in applied))
        work = len(applied) * most
        pieces = await think(work, _carried_all, pieces, applied, _written(caller))
        self._keep(caller, path, _Read(sha256, _if_small(content), pieces))

    def note_appended(self, caller: Caller, written: Written) -> None:
        """Remember what was added to the end of a content, if that is the one that was read."""
        read = self._files(caller).get(written.path)
        before, after, sha256 = written.before, written.after, written.sha256
        if read is None or not before or not after or not sha256 or read.content != before:
            return
        added = _Piece(len(before), len(after), _written(caller))
        self._keep(caller, written.path, _Read(sha256, _if_small(after), _with(read.pieces, added)))

    def is_unread(self, caller: Caller, path: str) -> bool:
        """Whether the caller has read nothing of a file."""
        return path not in self._files(caller)

    def has_read(self, caller: Caller) -> bool:
        """Whether the caller has read anything at all."""
        return bool(self._files(caller))

    def content(self, caller: Caller, path: str) -> str | None:
        """Return the content that was read last, if it was small enough to be kept."""
        read = self._files(caller).get(path)
        return read.content if read else None

    def check_read(self, caller: Caller, file: FileText) -> None:
        """Raise Changed unless something of exactly this content was read."""
        read = self._files(caller).get(file.path)
        if read is None:
            raise Changed(f"{file.path} was not read yet", fix="Read it, then edit it")
        if read.sha256 != file.sha256:
            raise Changed(f"{file.path} has changed since it was read", fix="Read it again")

    def check_whole(self, caller: Caller, file: FileText, instead: str) -> None:
        """Raise Changed unless all of this content is before the caller; ``instead`` is the way."""
        self.check_read(caller, file)
        seen = self._files(caller)[file.path].seen(now=True)
        if file.content and seen != ((0, len(file.content)),):
            lines = _NumberedLines(file.content)
            missing = lines.spell(_gaps(seen, len(file.content)))
            raise Changed(
                f"{lines.describe(seen)} in {file.path} {_are(caller)}, and all of it would be"
                " replaced",
                fix=f"Replace only a part, with {instead}; or read lines {missing} first"
                " (start_line, end_line)",
            )

    def check_overwrite(self, caller: Caller, file: FileText, instead: str) -> None:
        """Raise Changed if the caller has read this content, and sees only a part of it now."""
        read = self._files(caller).get(file.path)
        if read is None or read.sha256 != file.sha256:
            return
        if any(piece.lead is not None for piece in read.pieces):
            self.check_whole(caller, file, instead)

    def seen(self, caller: Caller, file: FileText) -> Ranges:
        """Return the characters of this content that the caller was shown, now or before."""
        read = self._files(caller).get(file.path)
        return read.seen(now=False) if read and read.sha256 == file.sha256 else ()

    def _keep(self, caller: Caller, path: str, read: _Read) -> None:
        files = self._files(caller)
        files[path] = read
        files.move_to_end(path)
        while len(files) > _FILES:
            files.popitem(last=False)

    def _files(self, caller: Caller) -> OrderedDict[str, _Read]:
        reader = _reader(caller)
        files = self._readers.setdefault(reader, OrderedDict())
        self._readers.move_to_end(reader)
        while len(self._readers) > _READERS:
            self._readers.popitem(last=False)
        return files


def check_seen(file: FileText, seen: Ranges, applied: Sequence[Applied]) -> None:
    """Raise Changed unless the texts that edits replace were all seen.

    Who gives a text exactly, with the lines around it, has them from somewhere (F7).
    """
    for number, done in enumerate(applied, 1):
        for span in () if done.with_context else done.spans:
            if not any(a <= span.start and span.end <= b for a, b in seen):
                raise _unseen(file, number, done, seen if number == 1 else None)
        pieces = [_Piece(start, end, None) for start, end in seen]
        seen = joined((piece.start, piece.end) for piece in _carried(pieces, done, None))


class _NumberedLines:
    """Places in a text as lines, as an editor counts them."""

    def __init__(self, text: str) -> None:
        self._starts = [0]
        for line in text.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))
        self.total = len(self._starts) - 1

    def describe(self, seen: Ranges) -> str:
        lines = self.spell(self._complete(seen))
        return f"only lines {lines} of {self.total}" if lines else f"none of the {self.total} lines"

    def spell(self, ranges: Ranges) -> str:
        """The lines that the ranges touch."""
        lines = [(self._line(start), self._line(end - 1)) for start, end in ranges]
        named = [f"{a}-{b}" for a, b in lines[:_RANGES_NAMED]]
        return ", ".join([*named, *(["…"] if len(lines) > _RANGES_NAMED else [])])

    def _complete(self, ranges: Ranges) -> Ranges:
        """Without lines that are seen in part."""
        cut: list[tuple[int, int]] = []
        for start, end in ranges:
            first = self._line(start - 1) if start else 0
            last = bisect_right(self._starts, end) - 1
            if self._starts[first] < self._starts[last]:
                cut.append((self._starts[first], self._starts[last]))
        return tuple(cut)

    def _line(self, place: int) -> int:
        return bisect_right(self._starts, place, hi=self.total)


def _carried_all(
    pieces: list[_Piece], applied: Sequence[Applied], mark: Mark | None
) -> list[_Piece]:
    for done in applied:
        pieces = _carried(pieces, done, mark)
        if len(pieces) > _MOST_PIECES:
            pieces = _fewer(pieces)
    return _joined(pieces)


def _carried(pieces: Iterable[_Piece], done: Applied, mark: Mark | None) -> list[_Piece]:
    """The pieces after an edit; what it wrote is known.

    Where one span stands for very many places, the text between them was seen, and need not be
    before the model any more.
    """
    known = mark if done.placed or mark is None else Mark(present=False)
    between: list[tuple[int, int, int]] = []
    """From, to, and how far it moves."""
    written: list[_Piece] = []
    place = shift = 0
    for span in done.spans:
        between.append((place, span.start, shift))
        start = span.start + shift
        written.append(_Piece(start, start + span.size, known))
        shift += span.size - (span.end - span.start)
        place = span.end
    between.append((place, sys.maxsize, shift))
    ends = [end for _, end, _ in between]
    moved: list[_Piece] = []
    for piece in pieces:
        for start, end, shift in between[bisect_right(ends, piece.start) :]:
            if start >= piece.end:
                break
            if part := piece.part(start, end, shift):
                moved.append(part)
    return moved + written


def _with(pieces: list[_Piece], newest: _Piece) -> list[_Piece]:
    return [*_joined(pieces)[-_MOST_PIECES + 1 :], newest]


def _fewer(pieces: list[_Piece]) -> list[_Piece]:
    """As few as are kept: the smallest are forgotten, and must be read again."""
    pieces = _joined(pieces)
    if len(pieces) <= _MOST_PIECES:
        return pieces
    sizes = [piece.end - piece.start for piece in pieces]
    largest = heapq.nlargest(_MOST_PIECES, range(len(pieces)), key=sizes.__getitem__)
    return [pieces[number] for number in sorted(largest)]


def _joined(pieces: list[_Piece]) -> list[_Piece]:
    """The same, with one piece for neighbours that are known in the same way."""
    alike: dict[Mark | None, list[tuple[int, int]]] = {}
    shown: list[_Piece] = []
    for piece in pieces:
        if piece.mark is None or piece.lead is None:
            alike.setdefault(piece.mark, []).append((piece.start, piece.end))
        else:
            shown.append(piece)
    for mark, places in alike.items():
        shown += [_Piece(start, end, mark) for start, end in joined(places) if start < end]
    return shown


def _gaps(seen: Ranges, size: int) -> Ranges:
    edges = [0, *(place for part in seen for place in part), size]
    pairs = zip(edges[::2], edges[1::2], strict=True)
    return tuple((start, end) for start, end in pairs if start < end)


def _unseen(file: FileText, number: int, done: Applied, seen: Ranges | None) -> Changed:
    span = done.spans[0]
    first, last = done.line, done.line + file.content.count("\n", span.start, span.end - 1)
    about = f" ({_NumberedLines(file.content).describe(seen)} were)" if seen is not None else ""
    return Changed(
        f"edit {number} is at line {done.line} of {file.path}, which was not shown yet{about}",
        fix=f"Read lines {max(1, first - 5)}-{last + 5} (start_line, end_line), then edit",
    )


def _are(caller: Caller) -> str:
    return "are in your context now" if caller.view else "were read"


def _written(caller: Caller) -> Mark | None:
    return caller.view.mark() if caller.view else None


def _if_small(content: str) -> str | None:
    return content if len(content) <= _LONGEST_KEPT else None


def _reader(caller: Caller) -> str:
    if caller.view:
        return f"view {caller.view.name}"
    if caller.session:
        return f"session {caller.session}"
    if caller.door in (Door.REST, Door.MCP):
        # each request of an outside client may carry a trace of its own
        who = caller.principal
        return f"{caller.door} {who.user} {who.project} {who.token}"
    return f"trace {caller.trace_id}"
