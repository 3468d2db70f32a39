"""Store the rows of the index: one per file, per content, and per committed path.

Everything in memory is a cache of these rows. A batch of changes is one transaction, and each
transaction has a generation number, so that a reader elsewhere fetches only what changed.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from evercontext.storage.migrate import load_migrations
from evercontext.storage.sqlite import SqliteStore
from evercontext.storage.store import Queries

FORMAT = "6"
"""What an analysis looks like; another number throws the old ones away."""
GONE = "gone"
_READ_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class FileRow:
    """What the index knows of one path."""

    path: str
    content: str | None
    """Hash of the content and its language; ``None``: not indexed, see ``reason``."""
    size: int
    modified: int
    reason: str | None = None


@dataclass(slots=True)
class Batch:
    """Changes that become visible together."""

    files: list[FileRow] = field(default_factory=list)
    contents: dict[str, bytes] = field(default_factory=dict)
    gone: list[str] = field(default_factory=list)
    commit: CommitRows | None = None

    def __len__(self) -> int:
        return len(self.files) + len(self.gone)


class ChunkTable:
    """Rows of files and contents."""

    def __init__(self, store: SqliteStore) -> None:
        self.store = store

    @classmethod
    async def open(cls, path: Path, maker: str, policy: str = "") -> ChunkTable:
        """Open the index file; ``maker`` names what makes the analyses, vectors included.

        An index by another maker is emptied: it can be rebuilt from the tree. One that was made
        under another file policy is looked through again.
        """
        migrations = load_migrations("evercontext.index", "migrations")
        table = cls(await SqliteStore.open(path, migrations=migrations, durable=False))
        await table.claim(maker)
        await table.obey(policy)
        return table

    async def obey(self, policy: str) -> None:
        """Doubt every row that was made under another file policy: it is read again."""
        row = await self.store.fetch_one("SELECT value FROM facts WHERE name = 'policy'")
        if row is not None and row["value"] == policy:
            return
        async with self.store.transaction() as t:
            # Of an index from before policies were noted, only what was left out is doubtful.
            await t.execute(
                "UPDATE files SET modified = 0 WHERE reason <> ? OR (reason IS NULL AND ?)",
                (GONE, row is not None),
            )
            await t.execute(
                "INSERT INTO facts VALUES ('policy', ?) "
                "ON CONFLICT (name) DO UPDATE SET value = excluded.value",
                (policy,),
            )

    async def claim(self, maker: str) -> None:
        """Make sure that every row was made by ``maker``."""
        expected = f"{FORMAT} {maker}"
        row = await self.store.fetch_one("SELECT value FROM facts WHERE name = 'maker'")
        if row is not None and row["value"] == expected:
            return
        await self.forget()
        await self.store.execute_many(
            "INSERT INTO facts VALUES (?, ?) "
            "ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            [("maker", expected), ("identity", uuid.uuid4().hex)],
        )

    async def forget(self) -> None:
        """Empty the index; readers elsewhere notice by the generation."""
        async with self.store.transaction() as t:
            generation = await self.next_generation(t)
            await t.execute("DELETE FROM contents")
            await forget_commit(t)
            await t.execute(
                "UPDATE files SET content = NULL, reason = ?, modified = 0, generation = ?",
                (GONE, generation),
            )

    async def close(self) -> None:
        """Give the database back."""
        await self.store.close()

    async def rows(self) -> dict[str, FileRow]:
        """Return every path that is in the tree as far as the index knows."""
        rows = await self.store.fetch_all(
            "SELECT path, content, size, modified, reason FROM files "
            "WHERE reason IS NULL OR reason <> ?",
            (GONE,),
        )
        return {row["path"]: FileRow(**row) for row in rows}

    async def rows_at(self, paths: Iterable[str]) -> dict[str, FileRow]:
        """Return what is known of some paths."""
        names = list(paths)
        return await self.store.look(lambda t: self._rows_at(t, names))

    async def _rows_at(self, t: Queries, paths: list[str]) -> dict[str, FileRow]:
        rows: dict[str, FileRow] = {}
        for part in _parts(paths):
            marks = ",".join("?" * len(part))
            sql = (
                "SELECT path, content, size, modified, reason FROM files "  # noqa: S608 - marks only
                f"WHERE path IN ({marks}) AND (reason IS NULL OR reason <> ?)"
            )
            for row in await t.fetch_all(sql, (*part, GONE)):
                rows[row["path"]] = FileRow(**row)
        return rows

    async def row(self, path: str) -> FileRow | None:
        """Return what is known of one path."""
        return (await self.rows_at([path])).get(path)

    async def at_and_below(self, path: str) -> tuple[FileRow | None, list[str]]:
        """Return what is known of a path, and the known paths below it."""
        low, high = path.rstrip("/") + "/", path.rstrip("/") + "0"

        async def look(t: Queries) -> tuple[FileRow | None, list[str]]:
            below = await t.fetch_all(
                "SELECT path FROM files WHERE path >= ? AND path < ? "
                "AND (reason IS NULL OR reason <> ?)",
                (low, high, GONE),
            )
            rows = await self._rows_at(t, [path])
            return rows.get(path), [row["path"] for row in below]

        return await self.store.look(look)

    async def before(
        self, paths: Sequence[str], contents: Iterable[str]
    ) -> tuple[dict[str, FileRow], set[str]]:
        """Return what is known of some paths, and which of the contents were analysed before."""

        async def look(t: Queries) -> tuple[dict[str, FileRow], set[str]]:
            return await self._rows_at(t, list(paths)), await self._known_contents(t, contents)

        return await self.store.look(look)

    async def known_contents(self, hashes: Iterable[str]) -> set[str]:
        """Return which of the contents were analysed before."""
        return await self._known_contents(self.store, hashes)

    async def _known_contents(self, t: Queries, hashes: Iterable[str]) -> set[str]:
        known: set[str] = set()
        for part in _parts(list(hashes)):
            marks = ",".join("?" * len(part))
            sql = f"SELECT hash FROM contents WHERE hash IN ({marks})"  # noqa: S608 - marks only
            known.update(row["hash"] for row in await t.fetch_all(sql, part))
        return known

    async def analyses(self, hashes: Iterable[str]) -> dict[str, bytes]:
        """Return the packed analyses of contents."""
        packed: dict[str, bytes] = {}
        for part in _parts(list(hashes)):
            marks = ",".join("?" * len(part))
            sql = f"SELECT hash, analysis FROM contents WHERE hash IN ({marks})"  # noqa: S608
            for row in await self.store.fetch_all(sql, part):
                packed[row["hash"]] = row["analysis"]
        return packed

    async def apply(self, batch: Batch) -> int:
        """Make a batch real, whole or not at all; return its generation."""
        return await self.store.transact(lambda t: self._apply(t, batch))

    async def _apply(self, t: Queries, batch: Batch) -> int:
        generation = await self.next_generation(t)
        await t.execute_many(
            "INSERT INTO contents VALUES (?, ?) ON CONFLICT (hash) DO NOTHING",
            list(batch.contents.items()),
        )
        replaced = await self._contents_of(t, [*batch.gone, *(f.path for f in batch.files)])
        await t.execute_many(
            "INSERT INTO files VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (path) DO UPDATE SET "
            "content = excluded.content, size = excluded.size, modified = excluded.modified, "
            "reason = excluded.reason, generation = excluded.generation",
            [(f.path, f.content, f.size, f.modified, f.reason, generation) for f in batch.files],
        )
        await t.execute_many(
            "UPDATE files SET content = NULL, reason = ?, generation = ? WHERE path = ?",
            [(GONE, generation, path) for path in batch.gone],
        )
        if batch.commit is not None:
            replaced += await write_commit(t, batch.commit)
        await t.execute_many(
            "DELETE FROM contents WHERE hash = ? "
            "AND NOT EXISTS (SELECT 1 FROM files WHERE content = contents.hash) "
            "AND NOT EXISTS (SELECT 1 FROM committed WHERE content = contents.hash)",
            [(content,) for content in replaced],
        )
        return generation

    async def prepare(self, contents: Mapping[str, bytes]) -> None:
        """Keep contents whose rows come later, all at once, or never."""
        async with self.store.transaction() as t:
            await begin_preparing(t)
            await t.execute_many(
                "INSERT INTO contents VALUES (?, ?) ON CONFLICT (hash) DO NOTHING",
                list(contents.items()),
            )

    async def sweep(self) -> None:
        """Remove what was prepared and is used by no row."""
        if await is_preparing(self.store):
            async with self.store.transaction() as t:
                await end_preparing(t)

    async def touch(self, rows: Sequence[FileRow]) -> None:
        """Note new times of files whose content is the same; readers need not know."""
        if rows:
            await self.store.execute_many(
                "UPDATE files SET size = ?, modified = ? WHERE path = ?",
                [(row.size, row.modified, row.path) for row in rows],
            )

    async def identity(self) -> str:
        """Return what no other table is called, and not this one after another maker took it."""
        row = await self.store.fetch_one("SELECT value FROM facts WHERE name = 'identity'")
        return str(row["value"]) if row else ""

    async def generation(self) -> int:
        """Return the number of the last batch."""
        row = await self.store.fetch_one("SELECT value FROM facts WHERE name = 'generation'")
        return int(row["value"]) if row else 0

    async def state(self) -> tuple[str, int]:
        """Return identity and generation: what is the same while nothing changed."""
        rows = await self.store.fetch_all(
            "SELECT name, value FROM facts WHERE name IN ('identity', 'generation')"
        )
        facts = {str(row["name"]): str(row["value"]) for row in rows}
        return facts.get("identity", ""), int(facts.get("generation", "0"))

    async def changes_since(self, generation: int) -> list[tuple[str, str | None]]:
        """Return (path, content or ``None``) of what changed after a generation."""
        rows = await self.store.fetch_all(
            "SELECT path, content FROM files WHERE generation > ? ORDER BY path", (generation,)
        )
        return [(row["path"], row["content"]) for row in rows]

    async def fingerprint(self) -> str:
        """Return a hash of everything searchable: equal indexes have equal ones."""
        digest = hashlib.sha256()
        for row in await self.store.fetch_all(
            "SELECT path, content, analysis FROM files JOIN contents ON hash = content "
            "ORDER BY path"
        ):
            digest.update(f"{row['path']}\0{row['content']}\0".encode("utf-8", "surrogateescape"))
            digest.update(hashlib.sha256(row["analysis"]).digest())
        orphans = await self.store.fetch_one(
            "SELECT count(*) AS n FROM contents WHERE hash NOT IN "
            "(SELECT content FROM files WHERE content IS NOT NULL) AND hash NOT IN "
            "(SELECT content FROM committed WHERE content IS NOT NULL)"
        )
        digest.update(str(orphans and orphans["n"]).encode())
        return digest.hexdigest()

    async def next_generation(self, t: Queries) -> int:
        """Begin a batch: what it writes bears this number."""
        row = await t.fetch_one(
            "INSERT INTO facts VALUES ('generation', '1') ON CONFLICT (name) DO UPDATE "
            "SET value = CAST(CAST(value AS INTEGER) + 1 AS TEXT) RETURNING value"
        )
        assert row is not None
        return int(row["value"])

    async def _contents_of(self, t: Queries, paths: list[str]) -> list[str]:
        rows: set[str] = set()
        for part in _parts(paths):
            marks = ",".join("?" * len(part))
            sql = f"SELECT content FROM files WHERE path IN ({marks})"  # noqa: S608 - marks only
            rows.update(r["content"] for r in await t.fetch_all(sql, part) if r["content"])
        return sorted(rows)


def _parts(items: list[str]) -> Iterable[list[str]]:
    for start in range(0, len(items), _READ_AT_ONCE):
        yield items[start : start + _READ_AT_ONCE]


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
    complete: bool
    """True if the rows are the whole commit, and no earlier row stays."""
    staged: list[CommittedRow] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)


async def name_of_commit(t: Queries) -> str | None:
    """Return the commit whose rows these are."""
    row = await t.fetch_one("SELECT value FROM facts WHERE name = ?", (_COMMIT,))
    return str(row["value"]) if row else None


async def committed(t: Queries) -> dict[str, CommittedRow]:
    """Return the rows of the last commit."""
    rows = await t.fetch_all("SELECT path, blob, content FROM committed ORDER BY path")
    return {row["path"]: CommittedRow(**row) for row in rows}


async def write_commit(t: Queries, rows: CommitRows) -> list[str]:
    """Put a commit in place of the one before; return the contents that may be unused now."""
    changed = [*rows.gone, *(row.path for row in rows.staged)]
    if rows.complete:
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
