from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from evercontext.access.consoles import Consoles
from evercontext.storage.sqlite import SqliteStore


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    opened = await SqliteStore.open(tmp_path / "memory.db")
    yield opened
    await opened.close()


async def test_a_ticket_is_good_once(store: SqliteStore) -> None:
    consoles = Consoles(store)
    ticket = await consoles.new_ticket()
    rows = await store.fetch_all("SELECT key FROM kept")
    assert all(ticket not in row["key"] for row in rows)
    used = await asyncio.gather(*(consoles.redeem(ticket) for _ in range(5)))
    assert sorted(used) == [False] * 4 + [True]
    assert not await consoles.redeem("guess")
    assert not await consoles.redeem("\ud800")


async def test_an_old_ticket_is_dead_and_swept_away(store: SqliteStore) -> None:
    consoles = Consoles(store)
    old, swept = await consoles.new_ticket(), await consoles.new_ticket()
    await store.execute("UPDATE kept SET value = '1'")
    assert not await consoles.redeem(old)
    await consoles.sweep()
    assert await store.fetch_all("SELECT key FROM kept") == []
    assert not await consoles.redeem(swept)


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
