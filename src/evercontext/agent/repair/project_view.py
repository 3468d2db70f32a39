"""Give fixers a view of the project: its files, their text, and where a name is defined."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from evercontext.domain.tool import Caller
from evercontext.errors import EverContextError
from evercontext.settings import process_environment
from evercontext.tools.toolbox import Toolbox
from evercontext.workspace.project_commands import ProjectCommands
from evercontext.workspace.workspace import Workspace

MOST_FILES = 20_000
MOST_MENTIONS = 60


@dataclass(slots=True)
class ProjectView:
    """The tree as it is now; read again for every move."""

    workspace: Workspace
    toolbox: Toolbox
    caller: Caller
    root: str
    """Resolved."""
    _texts: dict[str, str | None] = field(default_factory=dict)
    _files: tuple[str, ...] | None = None
    _definitions_by_name: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def forget(self) -> None:
        """The tree has changed."""
        self._texts.clear()
        self._definitions_by_name.clear()
        self._files = None

    def program(self, name: str) -> str | None:
        """Return a program of the project's own environment, or of PATH."""
        return ProjectCommands(Path(self.root), process_environment()).program(name)

    async def read(self, path: str) -> str | None:
        """Return the text of a file of the project; ``None`` if there is none to be had."""
        if path not in self._texts:
            try:
                self._texts[path] = (await self.workspace.read(path, self.caller)).content
            except EverContextError:
                self._texts[path] = None
        return self._texts[path]

    async def files(self) -> tuple[str, ...]:
        """Return every file that was not generated or installed."""
        if self._files is None:
            listing = await self.workspace.list(
                ".", self.caller, recursive=True, max_items=MOST_FILES
            )
            self._files = tuple(entry.name for entry in listing.entries if not entry.is_dir)
        return self._files

    async def mentions(self, word: str, *suffixes: str) -> tuple[str, ...]:
        """Return files with this word in them: hits of the code index first, then others."""
        if word not in self._definitions_by_name:
            self._definitions_by_name[word] = tuple(dict.fromkeys(await self._look_for(word)))
        paths = self._definitions_by_name[word]
        return tuple(p for p in paths if not suffixes or PurePosixPath(p).suffix in suffixes)

    async def _look_for(self, word: str) -> list[str]:
        result = await self.toolbox.call("search_code", {"query": word, "top_k": 10}, self.caller)
        chunks = result.data.get("chunks", ()) if isinstance(result.data, dict) else ()
        named = [str(chunk["path"]) for chunk in chunks]
        try:
            others = (await self.workspace.search(".", word, self.caller)).paths
        except EverContextError:
            others = ()
        word_pattern = re.compile(rf"(?<!\w){re.escape(word)}(?!\w)")
        paths = [*dict.fromkeys([*named, *others])][: MOST_MENTIONS * 2]
        matching = [path for path in paths if word_pattern.search(await self.read(path) or "")]
        return matching[:MOST_MENTIONS]
