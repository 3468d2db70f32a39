"""Implement the store on SQLite: one writer thread, several readers."""

from __future__ import annotations

import asyncio
import fcntl
import queue
import sqlite3
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from evercontext.errors import StoreBusy, StoreProblem, StoreReplaced
from evercontext.storage.database_files import DatabaseFiles
from evercontext.storage.fulltext_query import CATCH_UP, for_sqlite
from evercontext.storage.migrate import Migration, home_migrations, migrate, refuse_newer
from evercontext.storage.sqlite_connection import (
    BUSY_SECONDS,
    connect,
    create_private,
    stopped_after,
    translated,
    wipe_deleted,
)
from evercontext.storage.sqlite_recovery import find_damage, put_aside, salvage
from evercontext.storage.store import DATABASE, READ_SECONDS, OpenReport, Parameters, Queries, Row
from evercontext.storage.sync_transaction import Work, run_synchronously
from evercontext.storage.write_lock import WriteLock

_Result = TypeVar("_Result")

_READERS = 2


class SqliteStore:
    """A ``Store`` in one SQLite file, or in memory.

    The event loop never waits for the disk: writes run on one thread, one transaction at a time,
    reads on others with connections of their own (WAL). In memory there is only one connection,
    so a read there waits until an open transaction has ended.
    """

    def __init__(
        self,
        location: str,
        writer: sqlite3.Connection,
        report: OpenReport,
        busy_seconds: float,
        reopen: Callable[[], tuple[sqlite3.Connection, OpenReport]] | None = None,
    ) -> None:
        self._location = location
        self._writer: sqlite3.Connection | None = writer
        self._report = report
        self._busy_seconds = busy_seconds
        self._in_memory = location == ":memory:"
        self._write_lock = WriteLock(busy_seconds)
        self._write_thread = ThreadPoolExecutor(1, thread_name_prefix="store-write")
        self._read_threads = _read_threads()
        self._readers: queue.SimpleQueue[sqlite3.Connection] = queue.SimpleQueue()
        self._watcher: sqlite3.Connection | None = None
        self._reopen = reopen
        self._files = DatabaseFiles(Path(location)) if reopen else None
        self._openings = 0
        self._lost = False

    @classmethod
    async def open(
        cls,
        path: Path,
        *,
        migrations: Sequence[Migration] | None = None,
        durable: bool = True,
        busy_seconds: float = BUSY_SECONDS,
    ) -> SqliteStore:
        """Open or make the database file: check it, repair it, migrate it."""
        steps = home_migrations() if migrations is None else migrations

        def prepare() -> tuple[sqlite3.Connection, OpenReport]:
            with translated(), _alone(path, busy_seconds):
                return _prepare(path, steps, durable=durable, busy_seconds=busy_seconds)

        writer, report = await asyncio.to_thread(prepare)
        return cls(str(path), writer, report, busy_seconds, prepare)

    @classmethod
    async def in_memory(cls, *, migrations: Sequence[Migration] | None = None) -> SqliteStore:
        """Make a database that is gone when it is closed."""
        writer = connect(":memory:")
        steps = home_migrations() if migrations is None else migrations
        migrate(writer, steps)
        return cls(":memory:", writer, OpenReport(":memory:", len(steps)), BUSY_SECONDS)

    @property
    def report(self) -> OpenReport:
        """What happened while it was opened."""
        return self._report

    def version(self) -> int | None:
        """A number that is another one after any commit of any process; ``None``: not known."""
        if self._in_memory:
            return None
        self._open_writer()
        if self._files and (self._lost or not self._files.in_place()):
            return None
        try:
            if self._watcher is None:
                # Asked on the event loop, in memory that all connections share: it never waits.
                self._watcher = connect(self._location, read_only=True, busy_seconds=0)
                self._watcher.row_factory = None
            commits = int(self._watcher.execute("PRAGMA data_version").fetchone()[0])
            return self._openings << 32 | commits
        except sqlite3.Error:
            return None

    async def fetch_all(
        self, sql: str, parameters: Parameters = (), *, seconds: float = READ_SECONDS
    ) -> list[Row]:
        """Return every row as of the last commit."""
        return await self._read(lambda link: _fetch_all(link, sql, parameters, seconds))

    async def fetch_one(
        self, sql: str, parameters: Parameters = (), *, seconds: float = READ_SECONDS
    ) -> Row | None:
        """Return the first row as of the last commit, or ``None``."""
        return await self._read(lambda link: _fetch_one(link, sql, parameters, seconds))

    async def execute(self, sql: str, parameters: Parameters = ()) -> int:
        """Run one statement in a transaction of its own."""

        def job(link: sqlite3.Connection) -> int:
            with _all_or_nothing(link):
                return _execute(link, sql, parameters)

        async with self._write_lock.hold():
            return await self.write(job)

    async def execute_many(self, sql: str, rows: Sequence[Parameters]) -> None:
        """Run one statement for each row, all in one transaction."""

        def job(link: sqlite3.Connection) -> None:
            with _all_or_nothing(link):
                link.executemany(sql, rows)

        async with self._write_lock.hold():
            await self.write(job)

    async def holding(self, words: Sequence[str]) -> tuple[str, list[str]]:
        """Bring the text index up to date and ask it."""
        await self.execute(CATCH_UP)
        return for_sqlite(words)

    @asynccontextmanager
    async def transaction(self, lock: str = DATABASE) -> AsyncIterator[Queries]:
        """Open the one write transaction; other writers, in this process and others, wait."""
        async with self._write_lock.hold():
            transaction = _SqliteTransaction(self)
            try:
                await self.write(lambda link: link.execute("BEGIN IMMEDIATE"))
                yield transaction
                await transaction.commit()
            except BaseException:
                # Also when cancelled: the next writer must not find a transaction half open.
                await asyncio.shield(transaction.roll_back())
                raise

    async def transact(self, work: Work[_Result]) -> _Result:
        """Run a whole write transaction in one go: it may await nothing but its statements."""

        def job(link: sqlite3.Connection) -> _Result:
            with _all_or_nothing(link):
                return run_synchronously(link, work)

        async with self._write_lock.hold():
            return await self.write(job)

    async def look(self, work: Work[_Result]) -> _Result:
        """Run several reads in one go: they may await nothing but their statements."""
        return await self._read(lambda link: run_synchronously(link, work))

    async def wipe_deleted(self) -> None:
        """Leave no word of deleted rows in the file or its log."""
        async with self._write_lock.hold():
            await self.write(wipe_deleted)

    async def close(self) -> None:
        """Finish what is queued, then close every connection."""
        async with self._write_lock.hold_to_close():
            writer, self._writer = self._writer, None
            if writer is None:
                return
            await asyncio.to_thread(self._shut_down, writer)

    def _shut_down(self, writer: sqlite3.Connection) -> None:
        self._read_threads.shutdown()
        self._write_thread.shutdown()
        while not self._readers.empty():
            self._readers.get().close()
        if self._watcher is not None:
            self._watcher.close()
        writer.close()

    async def write(self, job: Callable[[sqlite3.Connection], _Result]) -> _Result:
        """Run ``job`` on the writer thread, after everything that was queued before it."""
        self._open_writer()

        def run() -> _Result:
            with translated():
                self._check_in_place()
                result = job(self._open_writer())
                # What was committed to a file without a name is not acknowledged.
                self._check_in_place()
                return result

        return await asyncio.get_running_loop().run_in_executor(self._write_thread, run)

    async def _read(self, job: Callable[[sqlite3.Connection], _Result]) -> _Result:
        self._write_lock.refuse_holder()
        self._open_writer()
        if self._in_memory:
            return await self._read_in_memory(job)

        if self._files and (self._lost or not self._files.in_place()):
            # Opened anew where nobody writes meanwhile.
            await self.write(lambda link: None)

        def run() -> _Result:
            with translated(), self._reader() as link:
                return job(link)

        return await asyncio.get_running_loop().run_in_executor(self._read_threads, run)

    async def _read_in_memory(self, job: Callable[[sqlite3.Connection], _Result]) -> _Result:
        def guarded(link: sqlite3.Connection) -> _Result:
            with _reading_only(link):
                return job(link)

        async with self._write_lock.hold():
            return await self.write(guarded)

    @contextmanager
    def _reader(self) -> Iterator[sqlite3.Connection]:
        readers = self._readers
        try:
            link = readers.get_nowait()
        except queue.Empty:
            link = connect(self._location, read_only=True, busy_seconds=self._busy_seconds)
        try:
            yield link
        finally:
            if readers is self._readers:
                readers.put(link)
            else:
                link.close()

    def _check_in_place(self) -> None:
        """Open the database anew where its file was removed or replaced, and say so once.

        Runs on the writer's thread. An open transaction is left to its end.
        """
        if self._reopen is None or self._files is None:
            return
        if not self._lost:
            writer = self._open_writer()
            if writer.in_transaction or self._files.in_place():
                return
            self._abandon(writer, bring_log_home=self._files.main_in_place())
        # If this fails, the next use tries again.
        self._writer, self._report = self._reopen()
        self._files = DatabaseFiles(Path(self._location))
        self._openings += 1
        self._lost = False
        raise StoreReplaced(
            "the database was removed or replaced while it was in use, and was opened anew",
            fix="Try again; what a removed file held is not there any more",
        )

    def _abandon(self, writer: sqlite3.Connection, *, bring_log_home: bool) -> None:
        """Close every connection first: SQLite shares what it knows of a file among them."""
        self._lost = True
        threads, self._read_threads = self._read_threads, _read_threads()
        stale, self._readers = self._readers, queue.SimpleQueue()
        watcher, self._watcher = self._watcher, None
        threads.shutdown()
        while not stale.empty():
            stale.get().close()
        if watcher:
            watcher.close()
        if bring_log_home:
            # Only the log beside the database is gone, and it is still open here.
            with suppress(sqlite3.Error):
                writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        writer.close()

    def _open_writer(self) -> sqlite3.Connection:
        if self._writer is None:
            raise StoreProblem("the database is closed")
        return self._writer


def _read_threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_READERS, thread_name_prefix="store-read")


class _SqliteTransaction:
    """The statements of one open transaction; reads see what it has written.

    A statement that fails ends it, as in every other database: nothing more is accepted.
    """

    def __init__(self, store: SqliteStore) -> None:
        self._store = store
        self._over: str | None = None

    async def fetch_all(
        self, sql: str, parameters: Parameters = (), *, seconds: float = READ_SECONDS
    ) -> list[Row]:
        """Return every row, uncommitted ones included."""
        return await self._run(lambda link: _fetch_all(link, sql, parameters, seconds))

    async def fetch_one(
        self, sql: str, parameters: Parameters = (), *, seconds: float = READ_SECONDS
    ) -> Row | None:
        """Return the first row, or ``None``; may be an ``INSERT … RETURNING``."""
        return await self._run(lambda link: _fetch_one(link, sql, parameters, seconds))

    async def execute(self, sql: str, parameters: Parameters = ()) -> int:
        """Run one statement."""
        return await self._run(lambda link: _execute(link, sql, parameters))

    async def execute_many(self, sql: str, rows: Sequence[Parameters]) -> None:
        """Run one statement for each row."""
        await self._run(lambda link: link.executemany(sql, rows))

    async def commit(self) -> None:
        """Make it all real."""
        await self._run(lambda link: link.execute("COMMIT"))
        self._over = "the transaction has ended"

    async def roll_back(self) -> None:
        """Forget it all."""
        self._over = self._over or "the transaction has ended"
        await self._store.write(_roll_back)

    async def _run(self, job: Callable[[sqlite3.Connection], _Result]) -> _Result:
        if self._over:
            raise StoreProblem(self._over)
        try:
            return await self._store.write(job)
        except BaseException:
            self._over = "a statement of this transaction failed: it is rolled back"
            raise


def _fetch_all(
    link: sqlite3.Connection, sql: str, parameters: Parameters, seconds: float
) -> list[Row]:
    with stopped_after(link, seconds):
        return link.execute(sql, parameters).fetchall()


def _fetch_one(
    link: sqlite3.Connection, sql: str, parameters: Parameters, seconds: float
) -> Row | None:
    # The whole statement runs, so that an INSERT … RETURNING is not left half done.
    return next(iter(_fetch_all(link, sql, parameters, seconds)), None)


def _execute(link: sqlite3.Connection, sql: str, parameters: Parameters) -> int:
    return max(0, link.execute(sql, parameters).rowcount)


@contextmanager
def _all_or_nothing(link: sqlite3.Connection) -> Iterator[None]:
    """Commit what is done inside, or nothing of it."""
    link.execute("BEGIN IMMEDIATE")
    try:
        yield
        link.execute("COMMIT")
    except BaseException:
        _roll_back(link)
        raise


@contextmanager
def _reading_only(link: sqlite3.Connection) -> Iterator[None]:
    link.execute("PRAGMA query_only = ON")
    try:
        yield
    finally:
        link.execute("PRAGMA query_only = OFF")


def _roll_back(link: sqlite3.Connection) -> None:
    # SQLite has already rolled back after some errors, a full disk among them.
    if link.in_transaction:
        link.execute("ROLLBACK")


@contextmanager
def _alone(path: Path, busy_seconds: float) -> Iterator[None]:
    """Keep other processes from checking, moving or migrating the same file meanwhile."""
    create_private(lock := path.with_name(path.name + ".lock"))
    deadline = time.monotonic() + busy_seconds
    with lock.open("rb") as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise StoreBusy(f"another process is opening {path}") from None
                time.sleep(0.01)
        yield


def _prepare(
    path: Path, migrations: Sequence[Migration], *, durable: bool, busy_seconds: float
) -> tuple[sqlite3.Connection, OpenReport]:
    create_private(path)
    damage = find_damage(path)
    moved_to = put_aside(path) if damage else None
    create_private(path)
    writer = connect(str(path), durable=durable, busy_seconds=busy_seconds)
    try:
        refuse_newer(writer, migrations)
        journal = writer.execute("PRAGMA journal_mode = WAL").fetchone()["journal_mode"]
        migrated = migrate(writer, migrations, path)
        recovered = salvage(moved_to, writer) if moved_to else 0
    except BaseException:
        writer.close()
        raise
    warnings = []
    if moved_to:
        warnings.append(
            f"{path} was damaged ({damage}): it was moved to {moved_to} and a fresh database "
            f"was made; {recovered} rows could be saved"
        )
    if journal != "wal":
        warnings.append(f"{path} is on a disk without WAL: reads wait for writes")
    return writer, OpenReport(
        location=str(path),
        version=migrated.after,
        migrated_from=migrated.before if 0 < migrated.before < migrated.after else None,
        backup=str(migrated.backup) if migrated.backup else None,
        moved_to=str(moved_to) if moved_to else None,
        recovered_rows=recovered,
        warnings=tuple(warnings),
    )
