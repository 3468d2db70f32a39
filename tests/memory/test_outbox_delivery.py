"""Conversations while the server is away: what is said waits, and arrives once and in order."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from evercontext.domain.message import ToolCall, assistant, tool_result, user
from evercontext.errors import StoreGone
from evercontext.memory.memory_store import MemoryStore
from evercontext.memory.messages import MessageCreate, MessageRepository
from evercontext.memory.outbox import Queue
from evercontext.memory.outbox_delivery import LOCAL
from evercontext.memory.sessions import SessionRepository
from evercontext.storage.offline_store import OfflineStore
from evercontext.storage.opener import open_or_wait
from evercontext.storage.outbox_file import Outbox
from evercontext.storage.store import Store
from tests import postgres
from tests.memory.conftest import masked

pytestmark = pytest.mark.case(122)


@pytest.fixture
async def store(url: str, tmp_path: Path) -> AsyncIterator[Store]:
    store = await open_or_wait(tmp_path / "memory.db", url)
    yield store
    await store.close()


def outbox(store: Store) -> Path:
    assert store.report.outbox is not None
    return store.report.outbox


def said(url: str) -> list[str]:
    rows = postgres.run("SELECT content FROM messages ORDER BY id", urlsplit(url).path[1:])
    return [row[0] for row in rows]


@pytest.mark.contract("N36")
@pytest.mark.slow
async def test_turns_said_while_the_server_is_away_arrive_once_and_in_order(
    url: str, store: Store, tmp_path: Path
) -> None:
    sessions, messages = SessionRepository(store, masked), MessageRepository(store, masked)
    session = await sessions.create(tmp_path, "m")
    first = await messages.append(session.id, user("one"))
    call = ToolCall("c1", "read_file", {"path": "ひみつ.md"})
    with postgres.away():
        second = await messages.append(session.id, user("二つ目 hunter2"), trace_id="t")
        await messages.append(session.id, assistant("", (call,)))
        await messages.append(session.id, tool_result(call, "three"))
        await MemoryStore(store).save_memory("Between the turns", project="/p")
        await sessions.set_title(session.id, "A title")
        await sessions.end(session.id)
        assert first.id < LOCAL <= second.id
        assert b"hunter2" not in outbox(store).read_bytes()
        with pytest.raises(StoreGone):
            await messages.conversation(session.id)
    last = await messages.append(session.id, user("last"))
    assert first.id < last.id < LOCAL
    assert said(url) == ["one", "二つ目 [secret]", "", "three", "last"]
    talk = await messages.conversation(session.id)
    assert talk[2].tool_calls == (call,)
    assert talk[3].tool_call_id == "c1"
    found = await sessions.get_by_id(session.id)
    assert found is not None
    assert (found.title, bool(found.ended_at), found.messages) == ("A title", True, 5)
    assert await Queue(outbox(store)).count() == 0
    rows, _ = await messages.list(session_id=session.id)
    assert (rows[-2].trace_id, rows[-2].timestamp) == ("t", second.timestamp)


async def test_it_is_delivered_though_nobody_asks_for_anything(url: str, tmp_path: Path) -> None:
    with postgres.away():
        store = await open_or_wait(tmp_path / "memory.db", url)
        assert isinstance(store, OfflineStore)
        delivered: asyncio.Queue[int] = asyncio.Queue()

        async def back(is_back: bool) -> None:
            if is_back:
                delivered.put_nowait(await Queue(outbox(store)).deliver(store))

        store.on_change(back)
        session = await SessionRepository(store).create(tmp_path, "m")
        await MessageRepository(store).append(session.id, user("hello"))
    assert await delivered.get() == 2
    assert said(url) == ["hello"]
    await store.close()


async def test_a_crash_between_both_commits_stores_no_turn_twice(
    url: str, store: Store, tmp_path: Path
) -> None:
    sessions, messages = SessionRepository(store), MessageRepository(store)
    session = await sessions.create(tmp_path, "m")
    with postgres.away():
        for _ in range(2):
            await messages.append(session.id, user("yes"))
    # The file as a process leaves it that ends after the server's commit and before its own.
    shutil.copy(outbox(store), tmp_path / "before")
    assert await Queue(outbox(store)).deliver(store) == 2
    shutil.copy(tmp_path / "before", outbox(store))
    await Queue(outbox(store)).deliver(store)
    assert said(url) == ["yes", "yes"]


@pytest.mark.parametrize("later", [1, 6])
async def test_a_file_from_a_backup_loses_nothing_and_repeats_nothing(
    url: str, store: Store, tmp_path: Path, later: int
) -> None:
    sessions, messages = SessionRepository(store), MessageRepository(store)
    session = await sessions.create(tmp_path, "m")
    with postgres.away():
        await messages.append(session.id, user("first"))
        shutil.copy(outbox(store), tmp_path / "backup")
        for n in range(3):
            await messages.append(session.id, user(f"between {n}"))
    await Queue(outbox(store)).deliver(store)
    # As the backup has it: one turn waits, and what came after was never said.
    shutil.copy(tmp_path / "backup", outbox(store))
    with postgres.away():
        for n in range(later):
            await messages.append(session.id, user(f"later {n}"))
    await messages.append(session.id, user("last"))
    before = ["first", "between 0", "between 1", "between 2"]
    assert said(url) == [*before, *(f"later {n}" for n in range(later)), "last"]


class Cut:
    """A way to the server that takes a COMMIT there and loses the answer to it."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._folder = parse_qs(parts.query)["host"][0]
        self._base = f"postgresql://postgres@127.0.0.1:{{}}{parts.path}"
        self.loses = False
        self.closed = False

    @asynccontextmanager
    async def open(self) -> AsyncIterator[str]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        async with server:
            yield self._base.format(server.sockets[0].getsockname()[1])

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.closed:
            writer.close()
            return
        [socket] = [one for one in Path(self._folder).glob(".s.PGSQL.*") if one.is_socket()]
        back, forth = await asyncio.open_unix_connection(str(socket))
        answers = asyncio.create_task(self._pass(back, writer))
        try:
            while part := await reader.read(65_536):
                cut = self.loses and b"COMMIT" in part
                if cut:
                    self.closed = True
                    answers.cancel()
                forth.write(part)
                await forth.drain()
                if cut:
                    await back.read(65_536)
                    return
        finally:
            answers.cancel()
            for end in (forth, writer):
                end.close()

    async def _pass(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        while part := await source.read(65_536):
            target.write(part)
            await target.drain()
        target.close()


async def test_a_turn_whose_answer_was_lost_is_there_once(url: str, tmp_path: Path) -> None:
    way = Cut(url)
    async with way.open() as through:
        store = await open_or_wait(tmp_path / "memory.db", through)
        sessions, messages = SessionRepository(store), MessageRepository(store)
        session = await sessions.create(tmp_path, "m")
        way.loses = True
        kept = await messages.append(session.id, user("said once"))
        again = await messages.append(session.id, user("said next"))
        assert (kept.id >= LOCAL, again.id > kept.id) == (True, True)
        assert said(url) == ["said once"]
        way.loses = way.closed = False
        # What the queue called it can still be asked for by the place it has now.
        place = await messages.settled(session.id, kept.id)
        rows, _ = await messages.list(session_id=session.id)
        assert [row.content for row in rows] == ["said next", "said once"]
        assert place == rows[1].id
        await store.close()


async def test_places_in_a_talk_mean_the_same_before_and_after(
    url: str, store: Store, tmp_path: Path
) -> None:
    sessions, messages = SessionRepository(store), MessageRepository(store)
    session = await sessions.create(tmp_path, "m")
    other = await sessions.create(tmp_path, "m")
    await messages.append(session.id, user("old"))
    with postgres.away():
        handed = await messages.append(session.id, user("handed over"))
        await messages.append(other.id, user("elsewhere"))
        kept = await messages.append(session.id, user("stays"))
        for name, value in (
            ("compacted", {"text": "t", "after": kept.id - 1}),
            ("summary_made", {"by": "m", "through": handed.id}),
        ):
            await sessions.set_metadata(session.id, name, value)
    found = await sessions.get_by_id(session.id)
    assert found is not None
    rest = await messages.numbered(session.id, after=found.metadata["compacted"]["after"])
    assert [message.content for _, message in rest] == ["stays"]
    fresh = await messages.numbered(session.id, after=found.metadata["summary_made"]["through"])
    assert [message.content for _, message in fresh] == ["stays"]


async def test_what_was_said_in_a_session_deleted_since_goes_with_it(
    url: str, store: Store, tmp_path: Path
) -> None:
    sessions, messages = SessionRepository(store), MessageRepository(store)
    session = await sessions.create(tmp_path, "m")
    with postgres.away():
        await messages.append(session.id, user("late"))
        await MemoryStore(store).save_memory("After it", project="/p")
    postgres.run("DELETE FROM sessions", urlsplit(url).path[1:])
    await MemoryStore(store).deliver()
    assert said(url) == []
    [kept] = await MemoryStore(store).list(project="/p")
    assert kept.content == "After it"


async def test_one_that_the_server_never_takes_keeps_no_other_waiting(
    url: str, store: Store, tmp_path: Path
) -> None:
    messages = MessageRepository(store)
    with postgres.away():
        await messages.create(MessageCreate(None, "before", "user"))
        # One of a version that let every role pass.
        names = ("session_id", "tool_calls", "tool_results", "user_id", "trace_id")
        row = {"role": "judge", "content": "no such role", "timestamp": "2026-01-01 00:00:00"}
        waiting = {**dict.fromkeys(names), **row}
        await Queue(outbox(store)).put_talk("message", "", waiting, id="0" * 32)
        await messages.create(MessageCreate(None, "after", "user"))
    await messages.create(MessageCreate(None, "now", "user"))
    assert said(url) == ["before", "after", "now"]
    box = Outbox(outbox(store))
    assert (box.count(), box.count("refused")) == (0, 1)


TALK = """
import asyncio, sys
from pathlib import Path
from evercontext.domain.message import user
from evercontext.memory.messages import MessageRepository
from evercontext.memory.sessions import SessionRepository
from evercontext.storage.opener import open_or_wait

async def talk(home: str, url: str) -> None:
    store = await open_or_wait(Path(home) / "memory.db", url)
    session = await SessionRepository(store).create(Path(home), "m")
    messages, number = MessageRepository(store), 0
    while True:
        await messages.append(session.id, user(f"turn {number}"))
        print(number, flush=True)
        number += 1

asyncio.run(talk(*sys.argv[1:]))
"""


def talker(home: Path, url: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", TALK, str(home), url],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )


def killed_after(talking: subprocess.Popen[bytes], wanted: int) -> int:
    """Kill it as soon as it has said so much; return the last number that it acknowledged."""
    assert talking.stdout is not None
    with talking.stdout as lines:
        for line in lines:
            if int(line) == wanted:
                talking.send_signal(signal.SIGKILL)
                break
        rest = [int(line) for line in lines.read().split()]
    talking.wait()
    return max([wanted, *rest])


@pytest.mark.case(120)
async def test_what_four_processes_said_survives_their_being_killed_at_any_instant(
    url: str, tmp_path: Path
) -> None:
    with postgres.away():
        # All at once: each leaves its turns in the one file, among those of the others.
        talking = [talker(tmp_path, url) for _ in range(4)]
        last = list(map(killed_after, talking, (1, 3, 5, 8)))
    store = await open_or_wait(tmp_path / "memory.db", url)
    sessions, messages = SessionRepository(store), MessageRepository(store)
    talks = [
        [json.loads(m.content.split()[1]) for m in await messages.conversation(session.id)]
        for session in await sessions.of_project(tmp_path)
    ]
    await store.close()
    for talk in talks:
        assert talk == list(range(len(talk)))
    # The turn that was being written may be there, too.
    for length, number in zip(sorted(map(len, talks)), sorted(last), strict=True):
        assert number + 1 <= length <= number + 2


@pytest.mark.case(115)
async def test_sql_that_waits_is_only_text(url: str, store: Store, tmp_path: Path) -> None:
    evil = "'; DROP TABLE messages; --\"\0"
    sessions, messages = SessionRepository(store), MessageRepository(store)
    with postgres.away():
        session = await sessions.create(tmp_path, evil, user_id=evil)
        await sessions.set_title(session.id, evil)
        await sessions.set_metadata(session.id, evil, {evil: evil})
        call = ToolCall(evil, evil, {evil: evil})
        await messages.append(session.id, assistant(evil, (call,)), trace_id=evil)
        await MemoryStore(store).save_memory(evil, user_id=evil, project=evil, speaker=evil)
    found = await sessions.get_by_id(session.id)
    assert found is not None
    assert (found.title, found.model_used, found.user_id) == (evil, evil, evil)
    assert found.metadata[evil] == {evil: evil}
    assert await messages.conversation(session.id) == [assistant(evil, (call,))]
    [kept] = await MemoryStore(store).list(user_id=evil, project=evil)
    assert (kept.content, kept.speaker) == (evil, evil)


@pytest.mark.case(118)
async def test_a_damaged_file_costs_what_is_damaged_and_is_told(url: str, tmp_path: Path) -> None:
    with postgres.away():
        store = await open_or_wait(tmp_path / "memory.db", url)
        messages = MessageRepository(store)
        for n in range(40):
            await messages.create(MessageCreate(None, f"remarkable {n:02} " * 20, "user"))
        await store.close()
    box = outbox(store)
    content = box.read_bytes()
    at = content.index(b"remarkable 07")
    box.write_bytes(content[:at] + b"R" + content[at + 1 :])
    again = await open_or_wait(tmp_path / "memory.db", url)
    [told] = again.report.warnings
    assert "39 entries were saved" in told
    assert list(box.parent.glob("*.corrupt-*"))
    assert await Queue(box).deliver(again) == 39
    assert [text[11:13] for text in said(url)] == [f"{n:02}" for n in range(40) if n != 7]
    await again.close()
    third = await open_or_wait(tmp_path / "memory.db", url)
    assert third.report.warnings == ()
    await third.close()
