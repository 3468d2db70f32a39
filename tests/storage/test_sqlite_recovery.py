from __future__ import annotations

import random
from pathlib import Path

import pytest

from evercontext.storage.row_checksum import CHECKED, checksum
from evercontext.storage.sqlite import SqliteStore

SESSIONS, MESSAGES = 20, 20


@pytest.fixture
async def path(tmp_path: Path) -> Path:
    path = tmp_path / "memory.db"
    store = await SqliteStore.open(path, durable=False)
    async with store.transaction() as inside:
        for n in range(SESSIONS):
            await inside.execute(
                "INSERT INTO sessions (id, project_path, model_used) VALUES (?, ?, ?)",
                (f"s{n}", "/p", "m"),
            )
            for m in range(MESSAGES):
                values = (f"s{n}", "user", f"message {n} {m} " * 20, None, None)
                await inside.execute(
                    "INSERT INTO messages "
                    "(session_id, role, content, tool_calls, tool_results, checksum) "
                    "VALUES (?, ?, ?, ?, ?, ?)",
                    (*values, checksum(values)),
                )
    await store.close()
    return path


def test_checksum_covers_columns_in_this_order() -> None:
    assert CHECKED["messages"] == ("session_id", "role", "content", "tool_calls", "tool_results")
    assert checksum(["ab", "c"]) != checksum(["a", "bc"])
    assert checksum([None]) != checksum([""])


def _truncate(data: bytearray) -> bytearray:
    return data[: len(data) // 2]


def _zero_header(data: bytearray) -> bytearray:
    data[:100] = bytes(100)
    return data


def _noise_page(data: bytearray) -> bytearray:
    data[8192:12288] = random.Random(7).randbytes(4096)
    return data


def _flip_inside_a_text(data: bytearray) -> bytearray:
    place = data.index(b"message 10 10 ") + 40
    for n in range(64):
        data[place + n] ^= 0x01
    return data


DAMAGES = [_truncate, _zero_header, _noise_page, _flip_inside_a_text]


@pytest.mark.case(118)
@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__.strip("_"))
async def test_damage_is_found_put_aside_and_told(path: Path, damage) -> None:  # type: ignore[no-untyped-def]
    damaged = bytes(damage(bytearray(path.read_bytes())))
    path.write_bytes(damaged)
    store = await SqliteStore.open(path)
    assert store.report.moved_to is not None
    assert ".corrupt-" in store.report.moved_to
    assert Path(store.report.moved_to).read_bytes() == damaged
    assert "was damaged" in store.report.warnings[0]
    await store.execute("INSERT INTO kept VALUES (?, ?)", ("works", "again"))
    await store.close()
    again = await SqliteStore.open(path)
    assert again.report.warnings == ()
    await again.close()


@pytest.mark.case(118)
async def test_one_damaged_row_costs_one_row(path: Path) -> None:
    path.write_bytes(_flip_inside_a_text(bytearray(path.read_bytes())))
    store = await SqliteStore.open(path)
    count = await store.fetch_one("SELECT count(*) AS n FROM messages")
    assert count == {"n": SESSIONS * MESSAGES - 1}
    assert await store.fetch_one("SELECT count(*) AS n FROM sessions") == {"n": SESSIONS}
    assert store.report.recovered_rows == SESSIONS + SESSIONS * MESSAGES - 1
    await store.close()


@pytest.mark.case(118)
async def test_rows_on_both_sides_of_a_broken_page_are_saved(path: Path) -> None:
    data = bytearray(path.read_bytes())
    middle = data.index(b"message 10 10 ") // 4096 * 4096
    data[middle : middle + 4096] = random.Random(7).randbytes(4096)
    path.write_bytes(data)
    store = await SqliteStore.open(path)
    rows = await store.fetch_all("SELECT content FROM messages ORDER BY id")
    await store.close()
    assert rows[0]["content"].startswith("message 0 0 ")
    assert rows[-1]["content"].startswith("message 19 19 ")
    assert SESSIONS * MESSAGES - 40 < len(rows) < SESSIONS * MESSAGES


@pytest.mark.case(118)
@pytest.mark.parametrize("seed", range(30))
async def test_flipped_bytes_never_stay_unnoticed_in_a_message(path: Path, seed: int) -> None:
    source = random.Random(seed)
    data = bytearray(path.read_bytes())
    start = source.randrange(100, len(data) - 64)
    data[start : start + 64] = bytes(
        byte ^ source.randrange(1, 256) for byte in data[start : start + 64]
    )
    path.write_bytes(data)
    store = await SqliteStore.open(path)
    rows = await store.fetch_all("SELECT session_id, content FROM messages")
    await store.close()
    told = bool(store.report.warnings)
    whole = {(f"s{n}", f"message {n} {m} " * 20) for n in range(SESSIONS) for m in range(MESSAGES)}
    assert {(row["session_id"], row["content"]) for row in rows} <= whole
    assert told or len(rows) == len(whole)


async def test_empty_file_is_a_fresh_database(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    path.touch()
    store = await SqliteStore.open(path)
    assert store.report.warnings == ()
    await store.close()


def _pages_of(data: bytes, text: bytes) -> list[int]:
    """The pages, counted from 0, that hold a text."""
    return [n for n in range(len(data) // 4096) if text in data[n * 4096 : (n + 1) * 4096]]


async def _rows_of(path: Path, table: str) -> int:
    store = await SqliteStore.open(path)
    assert store.report.moved_to
    row = await store.fetch_one(f"SELECT count(*) AS n FROM {table}")
    await store.close()
    assert row
    return int(row["n"])


async def test_a_file_without_its_last_page_loses_what_was_on_it(tmp_path: Path) -> None:
    """X11: 0 of 300 rows were saved where 299 can be."""
    path = tmp_path / "memory.db"
    store = await SqliteStore.open(path, durable=False)
    await store.execute_many(
        "INSERT INTO kept VALUES (?, ?)", [(f"key {n}", "v" * 1000) for n in range(300)]
    )
    await store.close()
    data = path.read_bytes()
    path.write_bytes(data[:-4096])
    assert await _rows_of(path, "kept") >= 296


async def test_rows_between_two_broken_pages_are_saved(path: Path) -> None:
    """X11: a scan from either end stops at a broken page; a row is read by its number."""
    data = bytearray(path.read_bytes())
    early, late = (_pages_of(bytes(data), text)[-1] for text in (b"message 3 3 ", b"message 16 3 "))
    for page in (early, late):
        data[page * 4096 : (page + 1) * 4096] = bytes(4096)
    path.write_bytes(data)
    saved = await _rows_of(path, "messages")
    assert SESSIONS * MESSAGES - 40 <= saved < SESSIONS * MESSAGES
    assert list(path.parent.glob(".salvage-*")) == []
