from __future__ import annotations

from pathlib import Path

from evercontext.storage.key_value import delete_value, get_value, put_value, values_below
from evercontext.storage.sqlite import SqliteStore


async def test_values_are_set_replaced_listed_and_removed(tmp_path: Path) -> None:
    store = await SqliteStore.open(tmp_path / "home.db")
    try:
        assert await get_value(store, "plan:a") is None
        await put_value(store, "plan:a", "1")
        await put_value(store, "plan:a", "2")
        async with store.transaction() as writing:
            await put_value(writing, "plan:b", "3")
        await put_value(store, "planner", "not below the prefix")
        assert await get_value(store, "plan:a") == "2"
        rows = await values_below(store, "plan:")
        assert [(row["key"], row["value"]) for row in rows] == [("plan:b", "3"), ("plan:a", "2")]
        assert await delete_value(store, "plan:a") is True
        assert await delete_value(store, "plan:a") is False
    finally:
        await store.close()
