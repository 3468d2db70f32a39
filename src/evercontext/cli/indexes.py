"""Opening the index of a project for a command."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from evercontext.settings import Settings

if TYPE_CHECKING:
    from evercontext.index.search import CodeIndex


def index_folder(settings: Settings) -> Path:
    """Return the folder of the project's index."""
    from evercontext.index.folder import index_folder as folder_of

    return folder_of(settings.root, settings.home)


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
        folder=index_folder(settings),
        policy=agent_policy(settings.allow_ext, settings.max_bytes),
        redactor=redactor(settings),
    )
    try:
        yield index
    finally:
        await index.close()
