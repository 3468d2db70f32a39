"""Copy all that one database holds into another, of the same kind or the other.

Pages are copied in the order of their keys, each in one transaction with the place reached:
a copy that was cut off goes on from there. At the end both sides are counted and hashed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from evercontext.errors import StoreProblem, UsageError
from evercontext.storage.key_value import delete_value, get_value, put_value
from evercontext.storage.store import Row, Store

PAGE = 500
_PROGRESS = "copy:progress"
_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class CopiedTable:
    """A table that is copied: the columns that order it, and what may differ afterwards."""

    name: str
    key: tuple[str, ...]
    renumbered: tuple[str, ...] = ()
    """Columns that each database fills by itself."""
    numbers: str | None = None
    """The column that a server goes on counting."""


TABLES = (
    CopiedTable("sessions", ("id",)),
    CopiedTable("messages", ("id",), numbers="id"),
    CopiedTable("memories", ("number",), renumbered=("change",), numbers="number"),
    CopiedTable("permission_rules", ("id",), numbers="id"),
    CopiedTable("projects", ("id",)),
    CopiedTable("servers", ("id",)),
    CopiedTable("tool_pins", ("server", "tool")),
    CopiedTable("tokens", ("name",)),
    CopiedTable("evaluations", ("id",)),
    CopiedTable("approvals", ("id",)),
    CopiedTable("kept", ("key",)),
)
"""In an order in which no row comes before one that it names. Traces lie in the event log."""
_OURS = ("copy:", "console:")
"""Keys that belong to one database or one process: they are not copied."""


@dataclass(frozen=True, slots=True)
class TableReport:
    """How many rows of a table were copied now, and what both sides hold."""

    name: str
    copied: int
    rows: int
    digest: str


Progress = Callable[[str, int], None]
"""Called with a table's name and the rows copied so far."""


async def copy_database(
    source: Store, target: Store, *, progress: Progress = lambda name, rows: None
) -> list[TableReport]:
    """Copy everything; raise ``StoreProblem`` if both sides are not the same in the end."""
    reached = await _begin(target)
    reports, different = [], []
    for table in TABLES:
        copied = await _copy_table(source, target, table, reached, progress)
        await _count_on(target, table)
        ours, theirs = await _digest(source, table), await _digest(target, table)
        if ours != theirs:
            different.append(table.name)
        reports.append(TableReport(table.name, copied, *theirs))
    if different:
        await put_value(target, _PROGRESS, json.dumps({"again": different}))
        raise StoreProblem(
            f"{', '.join(different)} changed while they were copied",
            fix="Stop what writes to the source, then run the same command again",
        )
    await delete_value(target, _PROGRESS)
    return reports


async def _begin(target: Store) -> dict[str, Any]:
    """Return what an earlier run has reached; a target with rows of its own is refused."""
    known = await get_value(target, _PROGRESS)
    reached: dict[str, Any] = json.loads(known) if known else {}
    again = reached.pop("again", ())
    if known is None:
        await _refuse_rows(target)
    elif again:
        # What had changed is copied anew, and with it whatever refers to it.
        for table in reversed(TABLES):
            if table.name != "kept":
                await target.execute(f"DELETE FROM {table.name}")  # noqa: S608 - a name of ours
        reached = {}
    await put_value(target, _PROGRESS, json.dumps(reached))
    return reached


async def _refuse_rows(target: Store) -> None:
    for table in TABLES:
        if table.name == "kept":
            continue
        row = await target.fetch_one(f"SELECT count(*) AS n FROM {table.name}")  # noqa: S608 - a name of ours
        if row and row["n"]:
            raise UsageError(
                f"the database to copy into holds {row['n']} rows of {table.name} already",
                fix="Name an empty one, or use memory export and memory import to merge",
            )


async def _copy_table(
    source: Store, target: Store, table: CopiedTable, reached: dict[str, Any], progress: Progress
) -> int:
    copied = 0
    async for page in _pages(source, table, reached.get(table.name)):
        rows = [row for row in page if not _is_ours(table, row)]
        async with target.transaction() as writing:
            if rows:
                columns = list(rows[0])
                await writing.execute_many(
                    _insert(table, columns), [[row[name] for name in columns] for row in rows]
                )
            reached[table.name] = [page[-1][name] for name in table.key]
            await put_value(writing, _PROGRESS, json.dumps(reached))
        copied += len(rows)
        progress(table.name, copied)
    return copied


async def _pages(
    store: Store, table: CopiedTable, after: Sequence[Any] | None = None
) -> AsyncIterator[list[Row]]:
    """Yield all rows of a table in the order of its key, from a place on."""
    order = ", ".join(_collated(store, table, name) for name in table.key)
    while True:
        where, values = "", list(after or ())
        if after is not None:
            marks = ", ".join("?" * len(table.key))
            where = f" WHERE ({order}) > ({marks})"
        page = await store.fetch_all(
            f"SELECT * FROM {table.name}{where} ORDER BY {order} LIMIT {PAGE}",  # noqa: S608 - names of ours
            values,
            seconds=_SECONDS,
        )
        if page:
            yield page
        if len(page) < PAGE:
            return
        after = [page[-1][name] for name in table.key]


def _collated(store: Store, table: CopiedTable, name: str) -> str:
    """Return a column as both databases order it: by its bytes, whatever the server's language."""
    text = store.report.shared and table.numbers != name
    return f'{name} COLLATE "C"' if text else name


def _insert(table: CopiedTable, columns: Sequence[str]) -> str:
    marks = ", ".join("?" * len(columns))
    others = [name for name in columns if name not in table.key]
    changes = ", ".join(f"{name} = excluded.{name}" for name in others)
    return (
        f"INSERT INTO {table.name} ({', '.join(columns)}) VALUES ({marks})"  # noqa: S608 - names of ours
        f" ON CONFLICT ({', '.join(table.key)}) DO UPDATE SET {changes}"
    )


def _is_ours(table: CopiedTable, row: Row) -> bool:
    return table.name == "kept" and str(row["key"]).startswith(_OURS)


async def _count_on(target: Store, table: CopiedTable) -> None:
    """Let a server give the numbers after the last one that was copied."""
    if table.numbers and target.report.shared:
        async with target.transaction() as writing:
            await writing.fetch_all(
                f"SELECT setval(pg_get_serial_sequence('{table.name}', '{table.numbers}'),"  # noqa: S608 - names of ours
                f" (SELECT max({table.numbers}) FROM {table.name}))"
            )


async def _digest(store: Store, table: CopiedTable) -> tuple[int, str]:
    """Return how many rows a table has, and one hash of all of them."""
    digest, count = hashlib.sha256(), 0
    async for page in _pages(store, table):
        for row in page:
            if not _is_ours(table, row):
                values = {k: v for k, v in row.items() if k not in table.renumbered}
                digest.update(json.dumps(values, sort_keys=True, default=_plain).encode())
                count += 1
    return count, digest.hexdigest()


def _plain(value: Any) -> str:
    return bytes(value).hex()
