"""The tables from which PostgreSQL answers questions about memories, where pgvector is there.

They are derived from the table of memories by triggers: a version that needs others drops them and
builds them again. A server without pgvector has none, and its memories are ranked in the process.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

import psycopg
import psycopg.sql

from evercontext.storage.postgres_values import translated

VERSION = "1"
"""What the comment on ``memory_documents`` says of tables that this program can read."""
_INSTALLING = 0x45434F53
"""The number of the lock under which one process builds the tables."""
_INDEXING = 0x45434F58
"""The number of the lock under which one process builds a vector index."""
_TRY_LOCK = "SELECT pg_try_advisory_lock($1) AS held"
_VALID = """
    SELECT i.indisvalid AS matches, pg_get_indexdef(i.indexrelid) AS definition
    FROM pg_index AS i WHERE i.indexrelid = to_regclass($1)
"""
_STATE = """
    SELECT obj_description(to_regclass('memory_documents'), 'pg_class') AS version,
        to_regtype('halfvec') IS NOT NULL OR EXISTS (
            SELECT 1 FROM pg_available_extensions WHERE name = 'vector') AS possible
"""
_REFUSED = (
    psycopg.errors.InsufficientPrivilege,
    psycopg.errors.FeatureNotSupported,
    psycopg.errors.UndefinedFile,
)
Link = psycopg.AsyncConnection[dict[str, Any]]


async def install(link: Link) -> bool:
    """Build the tables unless they are there; return whether questions can be asked of them."""
    with translated():
        if await is_installed(link):
            return True
        try:
            async with link.transaction():
                await link.execute("SELECT pg_advisory_xact_lock($1)", [_INSTALLING])
                # Another process may have built them while this one waited.
                if not await is_installed(link):
                    if not await _is_possible(link):
                        return False
                    await link.execute(_script())
                    await link.execute(f"COMMENT ON TABLE memory_documents IS '{VERSION}'")
        except _REFUSED:
            # Only the server's owner may add pgvector; ``doctor`` and ``db status`` say so.
            return False
    return True


async def describe(link: Link) -> str:
    """Say where the memories that bear on a question are chosen, and what would change it."""
    state = await _state(link)
    if state.get("version") == VERSION:
        return "in the database (pgvector)"
    if not state.get("possible"):
        return "in each process: this server has no pgvector"
    return "in each process: let the server's owner run CREATE EXTENSION vector, then db migrate"


async def index_vectors(link: Link, scope: int, encoder: str, dimensions: int) -> bool:
    """Build the vector index of one large scope, while others go on writing.

    Return ``False`` if another process builds one. A scope of fewer memories needs none: there all
    vectors are compared, which is exact, and writing does not pay for an index.
    """
    with translated():
        held = await (await link.execute(_TRY_LOCK, [_INDEXING])).fetchone()
        if not held or not held["held"]:
            return False
        try:
            name = f"memory_documents_near_{int(scope)}"
            valid = await (await link.execute(_VALID, [name])).fetchone()
            if valid and valid["matches"] and encoder in valid["definition"]:
                return True
            # One that was left half built, or is of other vectors, is of no use.
            await link.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}")
            quoted = psycopg.sql.quote(encoder)
            await link.execute(
                f"CREATE INDEX CONCURRENTLY {name} ON memory_documents"
                f" USING hnsw ((embedding::halfvec({int(dimensions)})) halfvec_cosine_ops)"
                f" WHERE scope = {int(scope)} AND encoder = {quoted}"
            )
        finally:
            await link.execute("SELECT pg_advisory_unlock($1)", [_INDEXING])
    return True


async def is_installed(link: Link) -> bool:
    """Return whether questions can be asked of the tables."""
    return bool((await _state(link)).get("version") == VERSION)


async def _is_possible(link: Link) -> bool:
    return bool((await _state(link)).get("possible"))


async def _state(link: Link) -> dict[str, Any]:
    row = await (await link.execute(_STATE)).fetchone()
    return row or {}


@cache
def _script() -> bytes:
    return files("evercontext.storage").joinpath("migrations/memory_search.sql").read_bytes()
