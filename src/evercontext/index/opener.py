"""Open the index of a tree when it is first needed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from evercontext.domain.event import Notice
from evercontext.errors import ModelProblem
from evercontext.events.log import EventLog
from evercontext.events.redaction import Redactor
from evercontext.files.policy import FilePolicy
from evercontext.index.location import home_folder, index_folder

if TYPE_CHECKING:
    from evercontext.domain.model import Embedder
    from evercontext.domain.tool import Caller
    from evercontext.index.code_search import CodeIndex


@dataclass(slots=True)
class IndexOpener:
    """The index of one root, for callers of every mode; opened on first use."""

    root: Path
    home: Path
    policy: FilePolicy
    redactor: Redactor | None = None
    events: EventLog | None = None
    use_vectors: bool = True
    embedder: Callable[[], Embedder | None] = lambda: None
    """Returns what ranks by meaning instead of the packaged vectors; raises what it lacks."""
    warn: Callable[[str], None] | None = None
    """Hears what has no trace to be told in."""
    _folders: dict[bool, Path] = field(default_factory=dict)
    _open: dict[Path, CodeIndex] = field(default_factory=dict)
    _busy: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def __call__(self, caller: Caller | None = None) -> CodeIndex:
        """Return the open index. Plan mode and dry runs use one that is not in the tree."""
        from evercontext.index.code_search import CodeIndex
        from evercontext.index.rename_report import into_log

        writing = caller is None or _may_write(caller)
        async with self._busy:
            folder = await self._folder(writing, caller)
            if folder not in self._open:
                await self._seed(folder)
                self._open[folder] = await CodeIndex.open(
                    self.root,
                    folder=folder,
                    policy=self.policy,
                    redactor=self.redactor,
                    use_vectors=self.use_vectors,
                    embedder=self._embedder(caller),
                )
                if self.events:
                    self._open[folder].indexer.on_renamed = into_log(self.events)
            return self._open[folder]

    def _embedder(self, caller: Caller | None) -> Embedder | None:
        try:
            return self.embedder()
        except ModelProblem as problem:
            self._tell(f"{problem}; the packaged vectors are used", caller)
            return None

    def _tell(self, text: str, caller: Caller | None) -> None:
        if caller is None:
            if self.warn:
                self.warn(text)
        elif self.events:
            body = Notice(level="warning", text=text)
            self.events.emit(body, trace_id=caller.trace_id, parent=caller.parent)

    async def _folder(self, writing: bool, caller: Caller | None) -> Path:
        """Return the folder, chosen once: what was told about it need not be told again."""
        if writing not in self._folders:
            tell = partial(self._tell, caller=caller)
            folder = await index_folder(self.root, self.home, writing=writing, tell=tell)
            self._folders[writing] = folder
        return self._folders[writing]

    async def _seed(self, folder: Path) -> None:
        """Take over what the other index of this tree knows: at home, or in the tree."""
        from evercontext.index.copy_index import seed

        real = await asyncio.to_thread(self.root.resolve)
        await seed(folder, real, home_folder(real, self.home))

    async def close(self) -> None:
        """Close whatever was opened."""
        while self._open:
            _, index = self._open.popitem()
            await index.close()


def _may_write(caller: Caller) -> bool:
    # A search from the command line has no caller, and so loads none of the tools' types.
    from evercontext.domain.tool import Mode

    return caller.mode is Mode.AGENT
