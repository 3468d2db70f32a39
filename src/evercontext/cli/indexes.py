"""Opening the index of a project for a command."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from evercontext.cli.terminal import one_line
from evercontext.settings import Settings

if TYPE_CHECKING:
    from evercontext.index.search import CodeIndex


async def index_folder(settings: Settings, *, tell: bool = False) -> Path:
    """Return the folder of the project's index; ``tell`` warns if it is not the usual one."""
    from evercontext.index.folder import index_folder as folder_of

    return await folder_of(settings.root, settings.home, tell=_warn if tell else None)


def _warn(text: str) -> None:
    print(f"warning: {one_line(text)}", file=sys.stderr)


@asynccontextmanager
async def opened_index(settings: Settings) -> AsyncIterator[CodeIndex]:
    """Open the index of the settings' root under the agent's policy."""
    from evercontext.app.equipment import redactor
    from evercontext.app.house import check_root
    from evercontext.files.policy import agent_policy
    from evercontext.index.search import CodeIndex

    check_root(settings)
    index = await CodeIndex.open(
        settings.root,
        folder=await index_folder(settings, tell=True),
        policy=agent_policy(settings.allow_ext, settings.max_bytes),
        redactor=redactor(settings),
    )
    try:
        yield index
    finally:
        await index.close()
