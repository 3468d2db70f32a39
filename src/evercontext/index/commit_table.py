"""The rows of the last commit: what was staged for it, beside the rows of the work tree."""

from __future__ import annotations

from dataclasses import dataclass, field

from evercontext.storage.store import Queries

_COMMIT = "commit"
_PREPARING = "preparing"


@dataclass(frozen=True, slots=True)
class CommittedRow:
    """One path of a commit."""

    path: str
    blob: str
    """Git's name of what was staged."""
    content: str | None
    """The index's key of it; ``None``: not indexed."""


@dataclass(slots=True)
class CommitRows:
    """How one commit differs from the one before."""

    name: str
    whole: bool
    """True if the rows are the whole commit, and no earlier row stays."""
    staged: list[CommittedRow] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)


async def name_of_commit(t: Queries) -> str | None:
    """Return the commit whose rows these are."""
    row = await t.fetch_one("SELECT value FROM facts WHERE name = ?", (_COMMIT,))
    return str(row["value"]) if row else None


async def committed(t: Queries) -> dict[str, CommittedRow]:
    """Return the rows of the last commit."""
    found = await t.fetch_all("SELECT path, blob, content FROM committed ORDER BY path")
    return {row["path"]: CommittedRow(**row) for row in found}


async def write_commit(t: Queries, rows: CommitRows) -> list[str]:
    """Put a commit in place of the one before; return the contents that may be unused now."""
    changed = [*rows.gone, *(row.path for row in rows.staged)]
    if rows.whole:
        before = await t.fetch_all("SELECT content FROM committed WHERE content IS NOT NULL")
        await t.execute("DELETE FROM committed")
    else:
        before = []
        for path in changed:
            before += await t.fetch_all(
                "DELETE FROM committed WHERE path = ? RETURNING content", (path,)
            )
    await t.execute_many(
        "INSERT INTO committed VALUES (?, ?, ?)",
        [(row.path, row.blob, row.content) for row in rows.staged],
    )
    await _note(t, _COMMIT, rows.name)
    return [row["content"] for row in before if row["content"]]


async def forget_commit(t: Queries) -> None:
    """Know nothing of any commit."""
    await t.execute("DELETE FROM committed")
    await t.execute("DELETE FROM facts WHERE name = ?", (_COMMIT,))


async def begin_preparing(t: Queries) -> None:
    """Note that contents are being written before the rows that use them."""
    await _note(t, _PREPARING, "1")


async def is_preparing(t: Queries) -> bool:
    """Tell whether contents may lie here that no row uses: someone was killed in between."""
    row = await t.fetch_one("SELECT value FROM facts WHERE name = ?", (_PREPARING,))
    return row is not None


async def end_preparing(t: Queries) -> None:
    """Remove contents that no row uses."""
    await t.execute(
        "DELETE FROM contents WHERE NOT EXISTS (SELECT 1 FROM files WHERE content = contents.hash) "
        "AND NOT EXISTS (SELECT 1 FROM committed WHERE content = contents.hash)"
    )
    await t.execute("DELETE FROM facts WHERE name = ?", (_PREPARING,))


async def _note(t: Queries, name: str, value: str) -> None:
    await t.execute(
        "INSERT INTO facts VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        (name, value),
    )
