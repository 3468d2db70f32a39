"""Implement the store on PostgreSQL, for a team.

A transaction that must have the database to itself takes one lock that all processes know. Others
share that lock and take turns only with those of the same name, such as a session's. A single
statement waits for nothing but its rows. Readers never wait.
"""

from __future__ import annotations

import asyncio
import random
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from urllib.parse import urlsplit

import psycopg
import psycopg.conninfo
from psycopg.rows import dict_row

from evercontext.errors import StoreGone, StoreProblem
from evercontext.storage import postgres_identity
from evercontext.storage.fulltext_query import for_postgres
from evercontext.storage.login import Login, current_login
from evercontext.storage.migrate import Migration, postgres_migrations
from evercontext.storage.postgres_memory_search import index_vectors, install, is_installed
from evercontext.storage.postgres_migrate import check_version, migrate
from evercontext.storage.postgres_values import incoming, numbered, outgoing, translated
from evercontext.storage.store import DATABASE, READ_SECONDS, OpenReport, Parameters, Queries, Row
from evercontext.storage.write_lock import WriteLock

BUSY_SECONDS = 10.0
ATTEMPTS = 3
_READERS = 2
_PATIENCE: dict[str, Any] = {
    "connect_timeout": 5,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
}
"""What an address may say otherwise."""
_DATABASE_LOCK, _NAMED_LOCK = 0x45434F4E, 0x45434F57
"""The lock that one transaction has alone or many share, and the class of those with a name."""
_CONNECTIONS = 4
"""Transactions that a process may have open at once, each on a connection of its own."""
_SET_LOGIN = "SELECT set_config('evercontext.login', $1, $2)"
_Result = TypeVar("_Result")
Link = psycopg.AsyncConnection[Row]


class _Session(NamedTuple):
    """What a connection for reading was told last."""

    seconds: float
    secret: str


class PostgresStore:
    """A ``Store`` on a PostgreSQL server; ``url`` may hold a password and is never shown."""

    def __init__(
        self,
        url: str,
        report: OpenReport,
        busy_seconds: float,
        *,
        has_memory_search: bool = False,
        needs_login: bool = False,
        login: Login | None = None,
    ) -> None:
        self._url, self._report, self._busy_seconds = url, report, busy_seconds
        self._has_memory_search = has_memory_search
        self._needs_login, self._login = needs_login, login
        self._closed = False
        self._writers: list[Link] = []
        self._write_lock = WriteLock(busy_seconds, _CONNECTIONS)
        self._reading = asyncio.Semaphore(_READERS)
        self._readers: list[tuple[Link, _Session]] = []

    @classmethod
    async def open(
        cls,
        url: str,
        *,
        migrations: Sequence[Migration] | None = None,
        busy_seconds: float = BUSY_SECONDS,
        outbox: Path | None = None,
        attempts: int = ATTEMPTS,
        login: str | None = None,
    ) -> PostgresStore:
        """Connect and bring the schema up to date.

        ``login`` is the token of a user. A role that owns nothing sees what its login may, and
        leaves the schema to the owner.
        """
        steps = postgres_migrations() if migrations is None else migrations

        async def prepare() -> tuple[int, int, bool, bool, Login | None]:
            link = await connect(url)
            try:
                state = await postgres_identity.read_state(link)
                if state.restricted:
                    version = await check_version(link, len(steps))
                    user = await postgres_identity.user_of(link, login) if login else None
                    return version, version, await is_installed(link), True, user
                before, after = await migrate(link, steps, busy_seconds)
                # Migrations of a test have no memories.
                searches = migrations is None and await install(link)
                await postgres_identity.refresh(link)
                return before, after, searches, False, None
            finally:
                await link.close()

        before, after, searches, needs_login, who = await _again(prepare, attempts)
        report = OpenReport(
            location=place_of(url),
            version=after,
            migrated_from=before if 0 < before < after else None,
            shared=True,
            outbox=outbox,
        )
        return cls(
            url,
            report,
            busy_seconds,
            has_memory_search=searches,
            needs_login=needs_login,
            login=who,
        )

    @property
    def needs_login(self) -> bool:
        """Whether the database shows a role like this only what a user's login may see."""
        return self._needs_login

    @property
    def login(self) -> Login | None:
        """The login of the request at hand, or that of this process."""
        return (current_login() or self._login) if self._needs_login else None

    @property
    def key_owner(self) -> str:
        """Whose keys and rules these are; none where everybody shares them."""
        login = self.login
        return f"user:{login.user}:" if login else ""

    @property
    def has_memory_search(self) -> bool:
        """Whether the database chooses the candidates of questions about memories."""
        return self._has_memory_search

    @property
    def report(self) -> OpenReport:
        """What happened while it was opened."""
        return self._report

    async def fetch_all(
        self, sql: str, parameters: Parameters = (), *, seconds: float = READ_SECONDS
    ) -> list[Row]:
        """Return every row as of the last commit."""
        self._write_lock.refuse_holder()
        self._refuse_closed()
        return await _again(lambda: self._read(sql, parameters, seconds))

    async def fetch_one(
        self, sql: str, parameters: Parameters = (), *, seconds: float = READ_SECONDS
    ) -> Row | None:
        """Return the first row as of the last commit, or ``None``."""
        return next(iter(await self.fetch_all(sql, parameters, seconds=seconds)), None)

    async def execute(self, sql: str, parameters: Parameters = ()) -> int:
        """Run one statement in a transaction of its own."""
        async with self.transaction("") as inside:
            return await inside.execute(sql, parameters)

    async def execute_many(self, sql: str, rows: Sequence[Parameters]) -> None:
        """Run one statement for each row, all in one transaction."""
        async with self.transaction("") as inside:
            await inside.execute_many(sql, rows)

    async def holding(self, words: Sequence[str]) -> tuple[str, list[str]]:
        """Say that a message holds every word."""
        return for_postgres(words)

    @asynccontextmanager
    async def transaction(self, lock: str = DATABASE) -> AsyncIterator[Queries]:
        """Open a write transaction; other writers of the same lock, here and elsewhere, wait."""
        async with self._write_lock.hold():
            # Nothing was sent yet: a server that has just restarted is simply asked again.
            link = await _again(lambda: self._begun(lock))
            transaction = _PostgresTransaction(link, self.key_owner)
            try:
                yield transaction
                await transaction.end("COMMIT")
            except BaseException:
                await asyncio.shield(_roll_back(transaction))
                raise
            finally:
                await self._put_back(link)

    async def knock(self) -> None:
        """Ask once whether the server is there: ``StoreGone`` if it is not."""
        link = await connect(self._url)
        await link.close()

    async def prepare_users(self) -> None:
        """Make the tables of users and the rules, unless they are there; as the owner."""
        link = await _again(lambda: connect(self._url))
        try:
            await postgres_identity.install(link)
        finally:
            await link.close()

    async def grant_role(self, role: str) -> str | None:
        """Let requests run under a role; return the password of one that was made now."""
        link = await _again(lambda: connect(self._url))
        try:
            await postgres_identity.install(link)
            return await postgres_identity.grant(link, role)
        finally:
            await link.close()

    async def index_vectors(self, scope: int, encoder: str, dimensions: int) -> bool:
        """Build the vector index of a scope of very many memories, if nobody else does."""
        if self._needs_login:
            return False  # Only the owner can make one; without it vectors are compared one by one.
        link = await _again(lambda: connect(self._url))
        try:
            return await index_vectors(link, scope, encoder, dimensions)
        finally:
            await link.close()

    async def wipe_deleted(self) -> None:
        """Free the old versions of rows; what backups and archived logs hold is the server's."""
        link = await _again(lambda: connect(self._url))
        try:
            with translated():
                if self._needs_login:
                    return  # The owner's own vacuum does it.
                derived = ("memory_documents", "memory_postings") if self._has_memory_search else ()
                for table in ("memories", "messages", "sessions", *derived):
                    await link.execute(f"VACUUM {table}".encode())
        finally:
            await link.close()

    async def close(self) -> None:
        """Give every connection back."""
        async with self._write_lock.hold_to_close():
            self._closed = True
            links = [link for link, _ in self._readers] + self._writers
            self._readers, self._writers = [], []
            for link in links:
                await link.close()

    async def _begun(self, lock: str) -> Link:
        """Return a connection with a transaction open and its lock held."""
        self._refuse_closed()
        link = self._writers.pop() if self._writers else await connect(self._url)
        wait = int(self._busy_seconds * 1000)
        try:
            with translated():
                # One round trip; numbers of our own, so that there is nothing to quote.
                statements = f"BEGIN; SET LOCAL lock_timeout = {wait}; {_locking(lock)}"
                await link.execute(statements, prepare=False)
                if self._needs_login:
                    # A value of its own, never part of a statement, which others could see.
                    await link.execute(_SET_LOGIN, [self._secret(), True])
            return link
        except BaseException:
            await asyncio.shield(link.close())
            raise

    async def _put_back(self, link: Link) -> None:
        idle = link.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
        if idle and not self._closed:
            self._writers.append(link)
        else:
            # Cut off in the middle: the server forgets the transaction with the connection.
            await asyncio.shield(link.close())

    async def _read(self, sql: str, parameters: Parameters, seconds: float) -> list[Row]:
        async with self._reading:
            session = _Session(seconds, self._secret())
            link, had = self._readers.pop() if self._readers else (await self._reader(), None)
            try:
                with translated(seconds):
                    if had is None or had.seconds != seconds:
                        wait = f"{int(seconds * 1000)}"
                        await link.execute(
                            "SELECT set_config('statement_timeout', $1, false)", [wait]
                        )
                    if self._needs_login and (had is None or had.secret != session.secret):
                        await link.execute(_SET_LOGIN, [session.secret, False])
                    return await _fetch(link, sql, parameters)
            finally:
                idle = link.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
                if idle and not self._closed:
                    self._readers.append((link, session))
                else:
                    # Cut off in the middle, or by a closed store: not to be used again.
                    await asyncio.shield(link.close())

    def _secret(self) -> str:
        login = self.login
        return login.secret if login else ""

    async def _reader(self) -> Link:
        link = await connect(self._url)
        with translated():
            await link.execute("SET default_transaction_read_only = on")
            # Neighbours in a vector index that a question looks at; it wants hundreds of them.
            await link.execute("SELECT set_config('hnsw.ef_search', '800', false)")
        return link

    def _refuse_closed(self) -> None:
        if self._closed:
            raise StoreProblem("the database is closed")


class _PostgresTransaction:
    """The statements of one open transaction; one that fails ends it."""

    def __init__(self, link: Link, key_owner: str = "") -> None:
        self._link, self.key_owner = link, key_owner
        self._over: str | None = None
        self._seconds: float | None = None

    async def fetch_all(
        self, sql: str, parameters: Parameters = (), *, seconds: float = READ_SECONDS
    ) -> list[Row]:
        """Return every row, uncommitted ones included."""
        return await self._run(self._timed(sql, parameters, seconds))

    async def fetch_one(
        self, sql: str, parameters: Parameters = (), *, seconds: float = READ_SECONDS
    ) -> Row | None:
        """Return the first row, or ``None``; may be an ``INSERT … RETURNING``."""
        return next(iter(await self.fetch_all(sql, parameters, seconds=seconds)), None)

    async def execute(self, sql: str, parameters: Parameters = ()) -> int:
        """Run one statement."""

        async def run() -> int:
            done = await self._link.execute(numbered(sql), outgoing(parameters))
            return max(0, done.rowcount)

        return await self._run(run())

    async def execute_many(self, sql: str, rows: Sequence[Parameters]) -> None:
        """Run one statement for each row."""

        async def run() -> None:
            async with self._link.cursor() as cursor:
                await cursor.executemany(numbered(sql), [outgoing(row) for row in rows])

        if rows:
            await self._run(run())

    async def end(self, word: str) -> None:
        """Make it all real, or forget it all."""
        if word == "COMMIT":
            await self._run(self._link.execute(word))
        elif not self._link.closed:
            with translated():
                await self._link.execute(word)
        self._over = self._over or "the transaction has ended"

    async def _timed(self, sql: str, parameters: Parameters, seconds: float) -> list[Row]:
        if seconds != self._seconds:
            wait = f"{int(seconds * 1000)}"
            await self._link.execute("SELECT set_config('statement_timeout', $1, true)", [wait])
            self._seconds = seconds
        with translated(seconds):
            return await _fetch(self._link, sql, parameters)

    async def _run(self, job: Awaitable[_Result]) -> _Result:
        if self._over:
            if asyncio.iscoroutine(job):
                job.close()
            raise StoreProblem(self._over)
        try:
            with translated():
                return await job
        except BaseException:
            self._over = "a statement of this transaction failed: it is rolled back"
            raise


async def _roll_back(transaction: _PostgresTransaction) -> None:
    # A server that has gone has forgotten it.
    with suppress(StoreProblem):
        await transaction.end("ROLLBACK")


def _locking(lock: str) -> str:
    """Return the statement that takes what a transaction must have to itself."""
    if lock == DATABASE:
        return f"SELECT pg_advisory_xact_lock({_DATABASE_LOCK})"
    shared = f"SELECT pg_advisory_xact_lock_shared({_DATABASE_LOCK})"
    if not lock:
        return shared
    key = zlib.crc32(lock.encode("utf-8", "surrogatepass")) - 2**31
    return f"{shared}, pg_advisory_xact_lock({_NAMED_LOCK}, {key})"


async def connect(url: str) -> Link:
    """Open one connection; transactions are ours to begin and end."""
    with translated():
        address = psycopg.conninfo.conninfo_to_dict(url)
        return await psycopg.AsyncConnection.connect(
            url,
            autocommit=True,
            # A network that swallows everything would be waited for until the system gives up.
            **{name: value for name, value in _PATIENCE.items() if name not in address},
            application_name="evercontext",
            row_factory=dict_row,
            cursor_factory=psycopg.AsyncRawCursor,
        )


async def _fetch(link: Link, sql: str, parameters: Parameters) -> list[Row]:
    cursor = await link.execute(numbered(sql), outgoing(parameters))
    return incoming(await cursor.fetchall()) if cursor.description else []


async def _again(job: Callable[[], Awaitable[_Result]], attempts: int = ATTEMPTS) -> _Result:
    """Try three times while the server is away; only for what can be done twice without harm."""
    for attempt in range(1, attempts + 1):
        try:
            return await job()
        except StoreGone:
            if attempt == attempts:
                raise
            await asyncio.sleep(attempt * random.uniform(0.1, 0.4))  # noqa: S311 - a pause
    raise AssertionError("unreachable")


def place_of(url: str) -> str:
    """The address without its password, for people."""
    parts: Any = urlsplit(url)
    host = parts.hostname or "socket"
    return f"postgresql://{host}{':' + str(parts.port) if parts.port else ''}{parts.path}"
