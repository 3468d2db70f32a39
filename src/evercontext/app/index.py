"""Open the code index of a project, the same for every command and every server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

from evercontext.events.log import EventLog, open_log
from evercontext.events.redaction import redactor
from evercontext.index.opener import IndexOpener
from evercontext.settings import Settings
from evercontext.settings.build_file_policy import agent_rules
from evercontext.settings.directories import check_root

if TYPE_CHECKING:
    from evercontext.domain.model import Embedder
    from evercontext.domain.tool import Tool
    from evercontext.index.code_search import CodeIndex
    from evercontext.index.remote_search import RemoteIndex

PACKAGED, NO_VECTORS = "static", "none"
"""Values of ``EC_EMBEDDER`` that need no embedder beside the packaged vectors."""


def index_of(
    settings: Settings, events: EventLog, warn: Callable[[str], None] | None = None
) -> IndexOpener:
    """Return the code index of the settings' root; its first use opens it."""
    return IndexOpener(
        settings.root,
        settings.home,
        agent_rules(settings),
        redactor(settings),
        events,
        use_vectors=settings.embedder != NO_VECTORS,
        embedder=partial(_embedder, settings),
        warn=warn,
    )


def _embedder(settings: Settings) -> Embedder | None:
    if settings.embedder in (PACKAGED, NO_VECTORS):
        return None
    from evercontext.models.embedders.choose import choose_embedder

    return choose_embedder(settings)


@asynccontextmanager
async def open_index(settings: Settings, warn: Callable[[str], None]) -> AsyncIterator[CodeIndex]:
    """Open the code index of the settings' root for one command."""
    check_root(settings)
    events = open_log(settings)
    index = index_of(settings, events, warn)
    try:
        yield await index()
    finally:
        await index.close()
        events.close()


@asynccontextmanager
async def open_remote_index(settings: Settings, url: str) -> AsyncIterator[RemoteIndex]:
    """Connect to the search server that ``EC_RAG_URL`` names."""
    from evercontext.index.remote_search import RemoteIndex

    remote = RemoteIndex(url, settings.token)
    try:
        yield remote
    finally:
        await remote.aclose()


def count_tokens(text: str) -> int:
    """Return the tokens of a text by a public vocabulary, near enough for a budget of any model."""
    from evercontext.context.token_estimate import count

    return count(text)


def open_index_tools(settings: Settings, stack: AsyncExitStack, events: EventLog) -> list[Tool]:
    """Return the tools of the code index, here or behind ``EC_RAG_URL``."""
    from evercontext.index.structure.tools import structure_tools
    from evercontext.index.tools import index_tools

    index = index_of(settings, events)
    stack.push_async_callback(index.close)
    tools = index_tools(index, events, count_tokens)
    structure = structure_tools(index, count_tokens)
    if not settings.rag_url:
        return [*tools, *structure]
    from evercontext.index.remote_search import RemoteIndex

    remote = RemoteIndex(settings.rag_url, settings.token, events)
    stack.push_async_callback(remote.aclose)
    # The server has no such routes: structure is read from the files here.
    return [*remote.adopt(tools), *structure]
