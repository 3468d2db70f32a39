"""Copy all that one database holds into another, of the same kind or the other.

Pages are copied in the order of their keys, each in one transaction with the place reached:
a copy that was cut off goes on from there. At the end both sides are counted and hashed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from evercontext.errors import StoreProblem, UsageError
from evercontext.storage.key_value import delete_value, get_value, put_value
from evercontext.storage.store import Queries, Row, Store

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
_RECOPIED = tuple(table for table in reversed(TABLES) if table.name != "kept")
"""What a target holds of nobody else; in an order in which rows can be deleted."""
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


@dataclass(slots=True)
class _CopyState:
    """How far a copy is; kept in the target, so that another run goes on."""

    reached: dict[str, Any] = field(default_factory=dict)
    """The key of the last row of each table that was copied."""
    written: dict[str, int] = field(default_factory=dict)
    """The rows of each table that the copy wrote."""
    left: dict[str, str] = field(default_factory=dict)
    """The hash of each table as a copy left it that is to be made anew."""

    def encoded(self) -> str:
        return json.dumps({**self.reached, "written": self.written, "left": self.left})

    @classmethod
    async def read(cls, target: Store) -> _CopyState | None:
        known = await get_value(target, _PROGRESS)
        if known is None:
            return None
        reached: dict[str, Any] = json.loads(known)
        reached.pop("again", None)
        left, written = reached.pop("left", {}), reached.pop("written", None)
        # A copy of an earlier version did not count.
        counted = {table.name: await _rows(target, table) for table in TABLES}
        return cls(reached, written if written is not None else counted, left)


async def copy_database(
    source: Store, target: Store, *, progress: Progress = lambda name, rows: None
) -> list[TableReport]:
    """Copy everything; raise ``StoreProblem`` if both sides are not the same in the end.

    What the copy did not write itself is never changed or deleted: it ends the copy instead.
    """
    state = await _begin(target)
    reports, different = [], []
    for table in TABLES:
        copied = await _copy_table(source, target, table, state, progress)
        await _count_on(target, table)
        ours, theirs = await _digest(source, table), await _digest(target, table)
        if ours != theirs:
            different.append(table.name)
        reports.append(TableReport(table.name, copied, *theirs))
    if different:
        left = {report.name: report.digest for report in reports}
        await put_value(target, _PROGRESS, _CopyState({}, state.written, left).encoded())
        raise StoreProblem(
            f"{', '.join(different)} changed while they were copied",
            fix="Stop what writes to both databases, then run the same command again",
        )
    await delete_value(target, _PROGRESS)
    return reports


async def _begin(target: Store) -> _CopyState:
    """Return what an earlier run has reached; a target with rows of its own is refused."""
    state = await _CopyState.read(target)
    if state is None:
        await _refuse_rows(target)
        state = _CopyState()
    elif state.left:
        # What had changed is copied anew, and with it whatever refers to it.
        await _refuse_changed(target, state)
        async with target.transaction() as writing:
            for table in _RECOPIED:
                await writing.execute(f"DELETE FROM {table.name}")  # noqa: S608 - a name of ours
            state = _CopyState()
            await put_value(writing, _PROGRESS, state.encoded())
        return state
    await put_value(target, _PROGRESS, state.encoded())
    return state


async def _refuse_changed(target: Store, state: _CopyState) -> None:
    """Raise if a table is not as the copy left it, or never held the copy's rows alone."""
    for table in _RECOPIED:
        rows, digest = await _digest(target, table)
        if rows != state.written.get(table.name, 0) or digest != state.left.get(table.name):
            raise _foreign(table)


def _foreign(table: CopiedTable) -> UsageError:
    return UsageError(
        f"the database to copy into holds rows of {table.name} that this copy did not write",
        fix="Name an empty one, or use memory export and memory import to merge",
    )


async def _rows(store: Store, table: CopiedTable) -> int:
    row = await store.fetch_one(f"SELECT count(*) AS n FROM {table.name}")  # noqa: S608 - a name of ours
    return int(row["n"]) if row else 0


async def _refuse_rows(target: Store) -> None:
    for table in _RECOPIED:
        if rows := await _rows(target, table):
            raise UsageError(
                f"the database to copy into holds {rows} rows of {table.name} already",
                fix="Name an empty one, or use memory export and memory import to merge",
            )


async def _copy_table(
    source: Store, target: Store, table: CopiedTable, state: _CopyState, progress: Progress
) -> int:
    copied = 0
    async for page in _pages(source, table, state.reached.get(table.name)):
        rows = [row for row in page if not _is_ours(table, row)]
        last = [page[-1][name] for name in table.key]
        async with target.transaction() as writing:
            if table in _RECOPIED:
                await _refuse_between(target, writing, table, state.reached.get(table.name), last)
            if rows:
                columns = list(rows[0])
                await writing.execute_many(
                    _insert(table, columns), [[row[name] for name in columns] for row in rows]
                )
            state.reached[table.name] = last
            state.written[table.name] = state.written.get(table.name, 0) + len(rows)
            await put_value(writing, _PROGRESS, state.encoded())
        copied += len(rows)
        progress(table.name, copied)
    return copied


async def _refuse_between(
    target: Store,
    writing: Queries,
    table: CopiedTable,
    after: Sequence[Any] | None,
    last: Sequence[Any],
) -> None:
    """Raise if the target has rows where a page is to go: somebody else wrote them."""
    order = ", ".join(_collated(target, table, name) for name in table.key)
    marks = ", ".join("?" * len(table.key))
    beyond = f" AND ({order}) > ({marks})" if after is not None else ""
    row = await writing.fetch_one(
        f"SELECT 1 AS n FROM {table.name} WHERE ({order}) <= ({marks}){beyond} LIMIT 1",  # noqa: S608 - names of ours
        [*last, *(after or ())],
    )
    if row:
        raise _foreign(table)


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
