"""Hold the words that models of this process are in the middle of saying, for open pages."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

from evercontext.domain.event import Event, Final, ModelReply, TextPiece

LONGEST = 400_000


@dataclass(frozen=True, slots=True)
class LiveText:
    """What was said so far in one turn."""

    turn: int
    """Grows with every reply of the trace, so that a reader sees where another one begins."""
    text: str = ""
    thinking: bool = False


class LiveTexts:
    """The unfinished reply of each trace; what is finished stands in the event log."""

    def __init__(self, clean: Callable[[str], str], wake: Callable[[], None]) -> None:
        self._clean, self._wake = clean, wake
        self._texts: dict[str, LiveText] = {}
        self._lock = threading.Lock()

    def take(self, event: Event) -> None:
        """Take in an event; only pieces of text, and what ends them, matter here."""
        trace_id, body = event.trace_id, event.body
        with self._lock:
            now = self._texts.get(trace_id) or LiveText(0)
            if isinstance(body, TextPiece):
                text = now.text if body.thought else (now.text + body.text)[:LONGEST]
                self._texts[trace_id] = LiveText(now.turn, text, body.thought)
            elif isinstance(body, ModelReply):
                self._texts[trace_id] = LiveText(now.turn + 1)
            elif isinstance(body, Final):
                self._texts.pop(trace_id, None)
            else:
                return
        self._wake()

    def drop(self, trace_id: str) -> None:
        """Forget a trace that ended."""
        with self._lock:
            self._texts.pop(trace_id, None)

    def of(self, trace_id: str) -> LiveText | None:
        """Return what is being said in a trace, without secrets."""
        with self._lock:
            now = self._texts.get(trace_id)
        # Cleaned as a whole: a secret may come in two pieces.
        return now and LiveText(now.turn, self._clean(now.text), now.thinking)
