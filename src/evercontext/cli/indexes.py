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
    from evercontext.index.remote import RemoteIndex
    from evercontext.index.search import CodeIndex


async def index_folder(settings: Settings, *, tell: bool = False) -> Path:
    """Return the folder of the project's index; ``tell`` warns if it is not the usual one."""
    from evercontext.index.location import index_folder as folder_of

    return await folder_of(settings.root, settings.home, tell=_warn if tell else None)


def _warn(text: str) -> None:
    print(f"warning: {one_line(text)}", file=sys.stderr)


def show_bar(done: int, total: int) -> None:
    """Draw how far an update has come, over what was drawn before."""
    if not total:
        return
    width = 30 * done // max(total, 1)
    end = "\n" if done >= total else ""
    print(f"\r[{'#' * width:30s}] {done}/{total}", end=end, file=sys.stderr, flush=True)


def show_progress(done: int, total: int) -> None:
    """Show a person how far an update has come that they wait for."""
    if done == 0:
        print("indexing first …", file=sys.stderr, flush=True)
    if sys.stderr.isatty():
        show_bar(done, total)


@asynccontextmanager
async def opened_index(settings: Settings) -> AsyncIterator[CodeIndex]:
    """Open the index of the settings' root under the agent's policy."""
    from evercontext.app.equipment import index_place, redactor
    from evercontext.app.house import check_root
    from evercontext.events.log import EventLog

    check_root(settings)
    events = EventLog(settings.traces, redactor(settings))
    place = index_place(settings, events, _warn)
    try:
        yield await place()
    finally:
        await place.close()
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
