from __future__ import annotations

import io
import json
from typing import Any

import pytest

from evercontext.domain.memory import MemoryType, SourceType
from evercontext.errors import UsageError
from evercontext.memory.jsonl_import import LONGEST_LINE, read_memories
from evercontext.memory.memory_store import MemoryStore
from evercontext.memory.memory_table import Memory


def read(*lines: bytes) -> list[Memory]:
    return list(read_memories(io.BytesIO(b"\n".join(lines)), "/p", "ann"))


def line(**given: Any) -> bytes:
    return json.dumps({"id": "a", "content": "The heron nests", **given}).encode()


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (b"not json", "Expecting value"),
        (b"\xff\xfe{}", "can't decode"),
        (b"[1, 2]", "no object"),
        (b'{"content": {"a": 1}}', "no object"),
        (b"[" * 200_000, "recursion"),
        (line(content="x" * 100_001), "100,000 characters"),
        (line(importance="high"), "importance"),
        (line(expires_at="soon"), "expires_at"),
        (line(memory_type="nope"), "MemoryType"),
        (line(seen="often"), "invalid literal"),
        (b'{"content": "' + b"x" * LONGEST_LINE + b'"}', "4,000,000 bytes"),
    ],
)
def test_a_line_that_is_no_memory_is_named(bad: bytes, said: str) -> None:
    with pytest.raises(UsageError, match=f"line 2 is no memory.*{said}"):
        read(line(), bad, line())


def test_a_line_without_end_is_not_read_to_its_end() -> None:
    class Endless(io.RawIOBase):
        given = 0

        def readable(self) -> bool:
            return True

        def readinto(self, buffer: Any) -> int:
            Endless.given += len(buffer)
            buffer[:] = b"x" * len(buffer)
            return len(buffer)

    with pytest.raises(UsageError, match="line 1"):
        list(read_memories(io.BufferedReader(Endless()), "/p", None))
    assert Endless.given < 2 * LONGEST_LINE


def test_numbers_and_moments_come_in_as_they_are_kept() -> None:
    [memory] = read(
        line(
            created_at="1970-01-01T00:00:00+09:00",
            importance=99,
            expires_at="2030-01-01T00Z",
            source_type="tool",
            session=7,
            speaker=5,
            seen=3,
        )
    )
    assert memory.created_at == "1969-12-31T15:00:00.000+00:00"
    assert memory.expires_at == "2030-01-01T00:00:00.000+00:00"
    assert (memory.importance, memory.seen) == (1.0, 3)
    assert (memory.session_id, memory.speaker) == ("7", "5")
    assert memory.untrusted
    assert (memory.user_id, memory.project) == ("ann", "/p")
    assert memory.memory_type is MemoryType.LONGTERM
    assert memory.source_type is SourceType.TOOL


@pytest.mark.usefixtures("tokyo")
@pytest.mark.parametrize(
    ("told", "kept"),
    [
        ("2023-05-08T01:30:00", "2023-05-07T16:30:00.000+00:00"),
        ("2023-05-08", "2023-05-07T15:00:00.000+00:00"),
        ("1:30 am on 8 May, 2023", "2023-05-07T16:30:00.000+00:00"),
        ("2023-05-08T01:30:00Z", "2023-05-08T01:30:00.000+00:00"),
        ("2023-05-08T01:30:00-05:00", "2023-05-08T06:30:00.000+00:00"),
        ("0001-01-01", "0001-01-01T00:00:00.000+00:00"),
    ],
)
def test_a_time_without_a_zone_is_one_of_this_machine(told: str, kept: str) -> None:
    [memory] = read(line(created_at=told, expires_at=told))
    assert (memory.created_at, memory.expires_at) == (kept, kept)


async def test_known_ids_are_left_as_they_are(memories: MemoryStore) -> None:
    first = read(line(), line(content="other words"), line(id="b"))
    assert await memories.take_in(first) == 2
    assert await memories.take_in(read(line(content="changed"), line(id="c"))) == 1
    kept = await memories.list(user_id="ann", project="/p")
    assert {one.id: one.content for one in kept}["a"] == "The heron nests"
    assert await memories.take_in([]) == 0


async def test_the_beginning_of_an_id_is_enough_where_it_is_the_only_one(
    memories: MemoryStore,
) -> None:
    given = [line(id="heron-1"), line(id="heron-12"), line(id="stork-1")]
    await memories.take_in(read(*given))
    whose = {"user_id": "ann", "project": "/p"}
    assert await memories.whole_id("stork", **whose) == "stork-1"
    assert await memories.whole_id("heron-1", **whose) == "heron-1"
    assert await memories.whole_id("swift", **whose) is None
    assert await memories.whole_id("stork", user_id="ben", project="/p") is None
    with pytest.raises(UsageError, match="2 memories begin with heron"):
        await memories.whole_id("heron", **whose)


def test_times_as_people_have_them_are_read_and_others_are_named() -> None:
    """25.4: a time that could not be read was stored as now, and nobody was told."""
    read_: list[Memory] = []
    lines = [
        line(id="a", created_at="2023/05/08 13:56"),
        line(id="b", created_at="soon"),
        line(id="c", created_at=1683554160),
        line(id="d", created_at=True),
        line(id="e", created_at="2023年5月8日"),
    ]
    with pytest.raises(UsageError, match=r"line 2 \('soon'\), 4 \(True\); all other lines"):
        for memory in read_memories(io.BytesIO(b"\n".join(lines)), "/p", "ann"):
            read_.append(memory)
    assert [(m.id, m.created_at[:4]) for m in read_] == [
        ("a", "2023"),
        ("c", "2023"),
        ("e", "2023"),
    ]
