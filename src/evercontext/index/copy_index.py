"""Begin an index with the one that lies elsewhere for the same tree, instead of from nothing.

Plan mode and dry runs write nothing into the tree: they use an index at home. That one takes over
what the tree's index knows, and the tree's begins with what the one at home knows.
"""

from __future__ import annotations

import asyncio
import sqlite3
import uuid
from contextlib import closing, suppress
from pathlib import Path

from evercontext.errors import EverContextError
from evercontext.files.small_files import small_text
from evercontext.index import corpus_snapshot
from evercontext.index.lease import IndexLease
from evercontext.index.location import FILE, FOLDER, why_strange
from evercontext.storage.sqlite_connection import translated

_STAMP = "index.copied"
"""Which state of the tree's index the one at home was copied from."""


async def seed(folder: Path, root: Path, home_folder: Path) -> None:
    """Copy the other index of a tree into this folder, where that is newer or the only one.

    An index that cannot be copied is built from the tree: nothing is lost but time.
    """
    tree_folder = root / FOLDER
    source = home_folder if folder == tree_folder else tree_folder
    if source == folder or not await asyncio.to_thread(_worth_copying, source, folder):
        return
    if source == tree_folder and await why_strange(source) is not None:
        return
    with suppress(EverContextError, OSError):
        async with IndexLease(folder).hold():
            await asyncio.to_thread(_copy, source, folder)


def _worth_copying(source: Path, folder: Path) -> bool:
    if not (source / FILE).is_file():
        return False
    if not (folder / FILE).exists():
        return True
    if source.name != FOLDER:
        return False
    from evercontext.storage.sqlite_copy import stamp_of

    # At home lies a copy; what the tree has is its own, and the newer one.
    return small_text(folder, _STAMP) != stamp_of(source / FILE)


def _copy(source: Path, folder: Path) -> None:
    from evercontext.storage.sqlite_copy import replicate, stamp_of

    stamp = stamp_of(source / FILE)
    corpus_snapshot.drop(folder)
    replicate(source / FILE, folder / FILE)
    with translated(), closing(sqlite3.connect(folder / FILE)) as copy, copy:
        # From here on both go their own ways: nobody may take one for the other.
        copy.execute("UPDATE facts SET value = ? WHERE name = 'identity'", (uuid.uuid4().hex,))
    if source.name == FOLDER:
        (folder / _STAMP).write_text(stamp, "ascii")
