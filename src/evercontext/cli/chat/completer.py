"""Completion of ``/commands`` and ``@files``."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from evercontext.files.generated_directories import GENERATED, VERSION_CONTROL

_MOST_FILES = 20_000
_MOST_SHOWN = 40
_FRESH = 5.0
_MENTION = re.compile(r"(?:^|\s)@([^\s@]*)$")
_SKIPPED = GENERATED | VERSION_CONTROL | {".evercontext"}


class ChatCompleter(Completer):
    """Offers commands at the beginning, files after an ``@``."""

    def __init__(
        self,
        root: Path,
        commands: Callable[[], Mapping[str, str]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._root, self._commands, self._clock = root, commands, clock
        self._files: list[str] = []
        self._read_at: float | None = None

    def get_completions(
        self, document: Document, complete_event: CompleteEvent
    ) -> Iterable[Completion]:
        """Answer the line editor."""
        before = document.text_before_cursor
        if re.fullmatch(r"/[\w:-]*", before):
            for name, help in self._commands().items():
                if name.startswith(before[1:]):
                    yield Completion(f"/{name}", -len(before), display_meta=help)
        elif mention := _MENTION.search(before):
            for path in self.files_like(mention[1]):
                yield Completion(path, -len(mention[1]))

    def files_like(self, typed: str) -> list[str]:
        """Files whose path holds these letters in this order; the closest first."""
        letters = typed.casefold()
        ranked = [(rank, path) for path in self._known() if (rank := _rank(letters, path))]
        return [path for _, path in sorted(ranked)[:_MOST_SHOWN]]

    def _known(self) -> list[str]:
        if self._read_at is None or self._clock() - self._read_at > _FRESH:
            self._files, self._read_at = list(_walk(self._root)), self._clock()
        return self._files


def _rank(letters: str, path: str) -> tuple[int, int] | None:
    folded = path.casefold()
    if letters in folded.rpartition("/")[2]:
        return 1, len(path)
    if letters in folded:
        return 2, len(path)
    rest = iter(folded)
    return (3, len(path)) if all(letter in rest for letter in letters) else None


def _walk(root: Path) -> Iterable[str]:
    count = 0
    for folder, directories, names in os.walk(root):
        directories[:] = sorted(name for name in directories if name not in _SKIPPED)
        for name in sorted(names):
            yield os.path.relpath(Path(folder, name), root)
            count += 1
            if count >= _MOST_FILES:
                return
