"""Servers of one session: beside those of the store, and never stored."""

from __future__ import annotations

import pytest

from evercontext.catalog.server_table import ServerConfig, ServerTable
from evercontext.catalog.session_servers import SessionServerTable
from evercontext.errors import NotFound
from evercontext.storage.sqlite import SqliteStore


@pytest.mark.contract("T8")
async def test_servers_of_a_session_leave_nothing_behind() -> None:
    """P13: an editor's server hides a stored one of its name, with pins of its own."""
    store = await SqliteStore.in_memory()
    stored = ServerTable(store)
    for name in ("same", "other"):
        await stored.put(ServerConfig(name, ("stored",)))
        await stored.pin(name, {"tool": "digest of the store"})
    session = [ServerConfig("same", ("editor",)), ServerConfig("only", ("editor",))]
    table = SessionServerTable(store, session)
    argv = {config.id: config.argv[0] for config in await table.all()}
    assert argv == {"only": "editor", "other": "stored", "same": "editor"}
    assert (await table.get("same")).argv == ("editor",)
    assert await table.pins("same") == {}
    await table.pin("same", {"tool": "new"}, {"tool": "{}"})
    await table.add_definitions("same", {"more": "d"}, {"more": "{}"})
    assert await table.definitions("same") == {"tool": "{}", "more": "{}"}
    assert await stored.definitions("same") == {}
    await table.hold("same", {"tool": "newer"})
    assert await table.pins("same") == {"tool": ("new", "newer")}
    await table.hold("other", {"tool": "changed"})
    assert await stored.pins("other") == {"tool": ("digest of the store", "changed")}
    assert await stored.pins("same") == {"tool": ("digest of the store", None)}
    with pytest.raises(NotFound):
        await stored.get("only")
    await store.close()


async def test_definitions_of_a_session_leave_nothing_behind() -> None:
    """What a server of the session is trusted with is known while it starts again."""
    store = await SqliteStore.in_memory()
    stored, table = ServerTable(store), SessionServerTable(store, [ServerConfig("only", ("x",))])
    await stored.put(ServerConfig("other", ("stored",)))
    await table.pin("only", {"tool": "digest"}, {"tool": "{}"})
    await table.pin("only", {"tool": "later"}, {"tool": "[]"})
    await table.add_definitions("only", {"older": "digest"}, {"older": "{1}"})
    await table.pin("other", {"tool": "digest"}, {"tool": "{2}"})
    assert await table.definitions("only") == {"tool": "{}", "older": "{1}"}
    assert await stored.definitions("only") == {}
    assert await table.definitions("other") == await stored.definitions("other") == {"tool": "{2}"}
    await store.close()
