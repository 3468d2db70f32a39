"""Opening the index of a project for a command."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from evercontext.cli.terminal import one_line
from evercontext.errors import ModelProblem
from evercontext.settings import Settings

if TYPE_CHECKING:
    from evercontext.domain.model import Embedder
    from evercontext.index.remote import RemoteIndex
    from evercontext.index.search import CodeIndex


async def index_folder(settings: Settings, *, tell: bool = False) -> Path:
    """Return the folder of the project's index; ``tell`` warns if it is not the usual one."""
    from evercontext.index.folder import index_folder as folder_of

    return await folder_of(settings.root, settings.home, tell=_warn if tell else None)


def _warn(text: str) -> None:
    print(f"warning: {one_line(text)}", file=sys.stderr)


def _embedder(settings: Settings) -> Embedder | None:
    """Return the chosen embedder; one that is not there is told, and done without."""
    from evercontext.app.embedding import choose_embedder

    try:
        return choose_embedder(settings)
    except ModelProblem as problem:
        _warn(f"{problem}; the packaged vectors are used")
        return None


@asynccontextmanager
async def opened_index(settings: Settings) -> AsyncIterator[CodeIndex]:
    """Open the index of the settings' root under the agent's policy."""
    from evercontext.app.embedding import uses_vectors
    from evercontext.app.equipment import redactor
    from evercontext.app.house import check_root
    from evercontext.events.log import EventLog
    from evercontext.files.policy import agent_policy
    from evercontext.index.renames import into_log
    from evercontext.index.search import CodeIndex

    check_root(settings)
    index = await CodeIndex.open(
        settings.root,
        folder=await index_folder(settings, tell=True),
        policy=agent_policy(settings.allow_ext, settings.max_bytes),
        redactor=redactor(settings),
        use_vectors=uses_vectors(settings),
        embedder=_embedder(settings),
    )
    events = EventLog(settings.traces, redactor(settings))
    index.indexer.on_renamed = into_log(events)
    try:
        yield index
    finally:
        await index.close()
        events.close()


@asynccontextmanager
async def remote_index(settings: Settings, url: str) -> AsyncIterator[RemoteIndex]:
    """The search server that ``EC_RAG_URL`` names."""
    from evercontext.index.remote import RemoteIndex

    remote = RemoteIndex(url, settings.token)
    try:
        yield remote
    finally:
        await remote.aclose()
