"""Parse server-sent events from pieces of any size."""

from __future__ import annotations

from evercontext.errors import ServerProblem


class EventStream:
    """Takes bytes, gives ``(event, data)``; an event is as long as a message may be."""

    def __init__(self, longest: int) -> None:
        self._longest = longest
        self._rest = bytearray()
        self._looked = 0
        self._event, self._data, self._size = b"", list[bytes](), 0

    def feed(self, part: bytes) -> list[tuple[str, bytes]]:
        """Return the events that this part completes."""
        self._rest += part
        events: list[tuple[str, bytes]] = []
        begin = 0
        # Looked at once only: a stream that comes byte by byte must cost no more than another.
        while (end := self._rest.find(b"\n", max(begin, self._looked))) >= 0:
            self._line(bytes(self._rest[begin:end]).removesuffix(b"\r"), events)
            begin = end + 1
        del self._rest[:begin]
        self._looked = len(self._rest)
        if self._size + len(self._rest) > self._longest:
            raise ServerProblem(f"more than {self._longest} bytes in one event")
        return events

    def _line(self, line: bytes, events: list[tuple[str, bytes]]) -> None:
        if not line:
            if self._data:
                name = self._event.decode("utf-8", "replace") or "message"
                events.append((name, b"\n".join(self._data)))
            self._event, self._data, self._size = b"", [], 0
            return
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            self._data.append(value)
            self._size += len(value)
        elif field == b"event":
            self._event = value[:64]
