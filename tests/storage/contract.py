"""What every ``Store`` must do. A test module subclasses this and provides ``store``."""

from __future__ import annotations

import asyncio

import pytest

from evercontext.errors import StoreConflict, StoreProblem, StoreTimeout
from evercontext.storage.store import Store

KEEP = "INSERT INTO kept (key, value) VALUES (?, ?)"
HELD = "SELECT value FROM kept WHERE key = ?"
COUNT = "SELECT count(*) AS n FROM kept"
HOSTILE = [
    "'; DROP TABLE kept; --",
    '"); DELETE FROM kept; --',
    "Robert'); DROP TABLE sessions;--",
    "%s ? :name $1 @x",
    "日本語、が゛、🙂",
    "",
    "a\x00b",
    "x" * 100_000,
]
ENDLESS = (
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000000000) "
    "SELECT count(*) AS n FROM n"
)


class StoreContract:
    """One suite for all databases."""

    async def test_row_written_is_row_read(self, store: Store) -> None:
        assert await store.execute(KEEP, ("k", "v")) == 1
        assert await store.fetch_one(HELD, ("k",)) == {"value": "v"}
        assert await store.fetch_one(HELD, ("other",)) is None

    @pytest.mark.case(115)
    @pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
    async def test_sql_in_a_value_is_only_text(self, store: Store, text: str) -> None:
        await store.execute(KEEP, (f"key {text[:50]}", text))
        assert await store.fetch_all("SELECT key, value FROM kept") == [
            {"key": f"key {text[:50]}", "value": text}
        ]

    async def test_execute_tells_how_many_rows_changed(self, store: Store) -> None:
        await store.execute_many(KEEP, [(str(n), "x") for n in range(5)])
        assert await store.execute("UPDATE kept SET value = ? WHERE key < ?", ("y", "3")) == 3
        assert await store.execute("DELETE FROM kept WHERE key = ?", ("none",)) == 0

    async def test_execute_many_is_all_or_nothing(self, store: Store) -> None:
        with pytest.raises(StoreConflict):
            await store.execute_many(KEEP, [("a", "1"), ("b", "2"), ("a", "3")])
        assert await store.fetch_all("SELECT key FROM kept") == []

    async def test_transaction_commits_at_its_end(self, store: Store) -> None:
        async with store.transaction() as inside:
            await inside.execute(KEEP, ("a", "1"))
            await inside.execute(KEEP, ("b", "2"))
            assert await inside.fetch_one(COUNT) == {"n": 2}
        assert await store.fetch_one(COUNT) == {"n": 2}

    async def test_transaction_rolls_back_on_any_exception(self, store: Store) -> None:
        with pytest.raises(KeyError):
            async with store.transaction() as inside:
                await inside.execute(KEEP, ("a", "1"))
                raise KeyError("boom")
        assert await store.fetch_one(COUNT) == {"n": 0}
        await store.execute(KEEP, ("a", "2"))

    async def test_failed_statement_ends_the_transaction(self, store: Store) -> None:
        with pytest.raises(StoreProblem, match="rolled back"):
            async with store.transaction() as inside:
                await inside.execute(KEEP, ("a", "1"))
                with pytest.raises(StoreConflict):
                    await inside.execute(KEEP, ("a", "2"))
                await inside.execute(KEEP, ("b", "3"))
        assert await store.fetch_one(COUNT) == {"n": 0}

    async def test_transaction_is_of_no_use_after_its_end(self, store: Store) -> None:
        async with store.transaction() as inside:
            pass
        with pytest.raises(StoreProblem, match="ended"):
            await inside.execute(KEEP, ("a", "1"))

    async def test_cancelled_transaction_leaves_nothing_and_blocks_nobody(
        self, store: Store
    ) -> None:
        begun = asyncio.Event()

        async def stuck() -> None:
            async with store.transaction() as inside:
                await inside.execute(KEEP, ("a", "1"))
                begun.set()
                await asyncio.Event().wait()

        task = asyncio.create_task(stuck())
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await store.execute(KEEP, ("b", "2"))
        assert await store.fetch_all("SELECT key FROM kept") == [{"key": "b"}]

    async def test_uncommitted_rows_are_invisible_outside(self, store: Store) -> None:
        async with store.transaction() as inside:
            await inside.execute(KEEP, ("a", "1"))
            outside = asyncio.create_task(store.fetch_one(COUNT))
            await asyncio.sleep(0)
            await inside.execute("DELETE FROM kept")
        assert await outside == {"n": 0}

    async def test_insert_returning_gives_the_new_row(self, store: Store) -> None:
        async with store.transaction() as inside:
            await inside.execute(
                "INSERT INTO sessions (id, project_path, model_used) VALUES (?, ?, ?)",
                ("s", "/p", "m"),
            )
            first, second = [
                await inside.fetch_one(
                    "INSERT INTO messages (session_id, role, content) VALUES (?, ?, ?) "
                    "RETURNING id",
                    ("s", "user", text),
                )
                for text in ("one", "two")
            ]
        assert first is not None
        assert second is not None
        assert second["id"] > first["id"]

    async def test_fetch_outside_a_transaction_cannot_write(self, store: Store) -> None:
        with pytest.raises(StoreProblem):
            await store.fetch_one(KEEP + " RETURNING key", ("a", "1"))
        assert await store.fetch_one(COUNT) == {"n": 0}

    async def test_task_with_an_open_transaction_is_not_left_waiting(self, store: Store) -> None:
        async with store.transaction() as inside:
            with pytest.raises(StoreProblem, match="use it"):
                await store.execute(KEEP, ("a", "1"))
            with pytest.raises(StoreProblem, match="use it"):
                await store.fetch_all("SELECT 1")
            await inside.execute(KEEP, ("b", "2"))
        assert await store.fetch_all("SELECT key FROM kept") == [{"key": "b"}]

    async def test_references_and_checks_are_enforced(self, store: Store) -> None:
        message = "INSERT INTO messages (session_id, role, content) VALUES (?, ?, ?)"
        with pytest.raises(StoreConflict):
            await store.execute(message, ("no such session", "user", "x"))
        with pytest.raises(StoreConflict):
            await store.execute(message, (None, "wizard", "x"))

    @pytest.mark.case(117)
    async def test_runaway_query_is_stopped(self, store: Store) -> None:
        with pytest.raises(StoreTimeout):
            await store.fetch_all(ENDLESS, seconds=0.2)
        assert await store.fetch_one(COUNT) == {"n": 0}

    async def test_wrong_sql_is_a_store_problem(self, store: Store) -> None:
        with pytest.raises(StoreProblem):
            await store.fetch_all("SELEC 1")
        with pytest.raises(StoreProblem):
            await store.execute("INSERT INTO no_such_table VALUES (1)")

    @pytest.mark.parametrize("value", ["\ud800", 2**80, object()])
    async def test_value_no_database_holds_is_refused(self, store: Store, value: object) -> None:
        with pytest.raises(StoreProblem):
            await store.execute(KEEP, ("k", value))
        assert await store.fetch_one(COUNT) == {"n": 0}

    async def test_hundred_tasks_write_at_once(self, store: Store) -> None:
        await asyncio.gather(*(store.execute(KEEP, (str(n), "x")) for n in range(100)))
        assert await store.fetch_one(COUNT) == {"n": 100}

    async def test_closed_store_says_so(self, store: Store) -> None:
        await store.close()
        await store.close()
        with pytest.raises(StoreProblem, match="closed"):
            await store.fetch_all("SELECT 1")
        with pytest.raises(StoreProblem, match="closed"):
            await store.execute(KEEP, ("a", "1"))
