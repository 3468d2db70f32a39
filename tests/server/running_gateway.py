"""The gateway alone, as a process: what the tests talk to."""

from __future__ import annotations

import asyncio
import sys
from typing import Literal

from evercontext.domain.tool import Caller, Effect, ToolResult
from evercontext.events.log import EventLog
from evercontext.files.policy import FilePolicy
from evercontext.files.tree import Tree, WriteMode
from evercontext.server.serve import open_gateway, serve
from evercontext.settings import load
from evercontext.tools.decorate import tool
from evercontext.tools.toolbox import Toolbox


async def main() -> int:
    settings = load()
    tree = Tree.open(
        settings.root,
        FilePolicy(extensions=frozenset({".py", ".md", ".txt", ".json", ".yaml", ".yml"})),
        settings.home,
    )

    @tool(Effect.READ)
    async def list_files(
        path: str, extensions: list[str] | None = None, max_items: int | None = None
    ) -> ToolResult:
        """List."""
        found = await asyncio.to_thread(tree.list, path, extensions=extensions, max_items=max_items)
        return ToolResult(
            "",
            {
                "files": [
                    {"name": e.name, "is_dir": e.is_dir, "size": e.size} for e in found.entries
                ]
            },
        )

    @tool(Effect.READ)
    async def read_file(path: str) -> ToolResult:
        """Read."""
        return ToolResult("", {"content": (await asyncio.to_thread(tree.read, path)).content})

    @tool(Effect.READ | Effect.WRITE)
    async def write_file(
        path: str, content: str, mode: Literal["create", "overwrite", "append"], *, caller: Caller
    ) -> ToolResult:
        """Write."""
        await asyncio.to_thread(
            tree.write, path, content, WriteMode(mode), trace_id=caller.trace_id
        )
        return ToolResult("", {"status": "ok", "path": path})

    events = EventLog(settings.traces)
    toolbox = Toolbox([list_files, read_file, write_file], events)
    async with open_gateway(settings, toolbox, events) as listener:
        return await serve([listener], lambda: print(listener.url, flush=True))


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
