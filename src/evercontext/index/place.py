"""The index of a tree, opened when it is first needed."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from evercontext.domain.event import Notice
from evercontext.domain.tool import Caller, Mode
from evercontext.events.log import EventLog
from evercontext.events.redact import Redactor
from evercontext.files.policy import FilePolicy
from evercontext.index.folder import index_folder

if TYPE_CHECKING:
    from evercontext.index.search import CodeIndex


@dataclass(slots=True)
class IndexPlace:
    """The index of one root, for callers of every mode; opened on first use."""

    root: Path
    home: Path
    policy: FilePolicy
    redactor: Redactor | None = None
    events: EventLog | None = None
    _folders: dict[bool, Path] = field(default_factory=dict)
    _open: dict[Path, CodeIndex] = field(default_factory=dict)
    _busy: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def __call__(self, caller: Caller | None = None) -> CodeIndex:
        """Return the open index. Plan mode and dry runs use one that is not in the tree."""
        from evercontext.index.search import CodeIndex

        writing = caller is None or caller.mode is Mode.AGENT
        async with self._busy:
            folder = await self._folder(writing, caller)
            if folder not in self._open:
                self._open[folder] = await CodeIndex.open(
                    self.root, folder=folder, policy=self.policy, redactor=self.redactor
                )
            return self._open[folder]

    async def _folder(self, writing: bool, caller: Caller | None) -> Path:
        """Return the folder, chosen once: what was told about it need not be told again."""

        def tell(text: str) -> None:
            if self.events and caller:
                body = Notice(level="warning", text=text)
                self.events.emit(body, trace_id=caller.trace_id, parent=caller.parent)

        if writing not in self._folders:
            found = await index_folder(self.root, self.home, writing=writing, tell=tell)
            self._folders[writing] = found
        return self._folders[writing]

    async def close(self) -> None:
        """Close whatever was opened."""
        while self._open:
            _, index = self._open.popitem()
            await index.close()
