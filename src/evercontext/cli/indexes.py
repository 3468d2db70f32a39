"""Opening the index of a project for a command."""

from __future__ import annotations

import sys
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from evercontext.cli.terminal import one_line
from evercontext.settings import Settings

if TYPE_CHECKING:
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


def opened_index(settings: Settings) -> AbstractAsyncContextManager[CodeIndex]:
    """Open the code index of the settings' root, and print its warnings."""
    from evercontext.app.index import open_index

    return open_index(settings, _warn)
