from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from evercontext.access.console_links import Consoles
from evercontext.storage.sqlite import SqliteStore

HERE, THERE = "http://ec-1.localhost:1/console/", "http://ec-2.localhost:1/console/"


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    opened = await SqliteStore.open(tmp_path / "memory.db")
    yield opened
    await opened.close()


async def test_a_ticket_is_good_once(store: SqliteStore) -> None:
    consoles = Consoles(store)
    ticket = await consoles.new_ticket(HERE)
    rows = await store.fetch_all("SELECT key FROM kept")
    assert all(ticket not in row["key"] for row in rows)
    used = await asyncio.gather(*(consoles.redeem(ticket, HERE) for _ in range(5)))
    assert sorted(used) == [False] * 4 + [True]
    assert not await consoles.redeem("guess", HERE)
    assert not await consoles.redeem("\ud800", HERE)


async def test_a_ticket_is_good_at_one_console_only(store: SqliteStore) -> None:
    """X7: consoles may share a database; one does not take or use up the other's links."""
    consoles = Consoles(store)
    ticket = await consoles.new_ticket(HERE)
    assert not await consoles.redeem(ticket, THERE)
    assert await consoles.redeem(ticket, HERE)
    await store.execute("UPDATE kept SET value = '9999999999'")
    assert not await consoles.redeem(ticket, HERE)


async def test_an_old_ticket_is_dead_and_swept_away(store: SqliteStore) -> None:
    consoles = Consoles(store)
    old, swept = await consoles.new_ticket(HERE), await consoles.new_ticket(HERE)
    await store.execute("UPDATE kept SET value = '1'")
    assert not await consoles.redeem(old, HERE)
    await consoles.sweep()
    assert await store.fetch_all("SELECT key FROM kept") == []
    assert not await consoles.redeem(swept, HERE)


async def test_only_a_console_of_the_project_that_lives_is_known(store: SqliteStore) -> None:
    consoles, url = Consoles(store), "http://127.0.0.1:1/console/"
    assert await consoles.url("/p") is None
    await consoles.announce(url, "/p")
    assert await consoles.url("/p") == url
    assert await consoles.url("/another") is None
    assert await consoles.url("/p", "ann") is None
    await consoles.announce(url, "/p", "ann")
    assert (await consoles.url("/p", "ann"), await consoles.url("/p")) == (url, None)
    await consoles.announce(url, "/p")
    await store.execute('UPDATE kept SET value = replace(value, \'"born": "\', \'"born": "9\')')
    assert await consoles.url("/p") is None
    await consoles.sweep()
    assert await store.fetch_all("SELECT key FROM kept") == []
    await consoles.announce(url, "/p")
    await consoles.retire()
    assert await consoles.url("/p") is None
