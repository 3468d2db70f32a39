from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from evercontext.access.pending_approvals import DENIED, WITHDRAWN, Approvals
from evercontext.storage.sqlite import SqliteStore

PROJECT = "/some/project"


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    opened = await SqliteStore.open(tmp_path / "memory.db")
    yield opened
    await opened.close()


async def test_the_first_answer_wins_and_a_second_changes_nothing(store: SqliteStore) -> None:
    approvals = Approvals(store)
    asked = await approvals.ask("t1", PROJECT, "write_file", {"arguments": {"path": "a"}})
    given = {"by": "you", "feedback": "use b"}
    answers = await asyncio.gather(
        *(approvals.answer(asked.id, asked.nonce, allowed=False, **given) for _ in range(8))
    )
    assert sorted(answers) == [False] * 7 + [True]
    assert not await approvals.answer(asked.id, asked.nonce, allowed=True, by="late")
    row = await approvals.get(asked.id)
    assert row is not None
    assert (row.state, row.feedback, row.answered_by) == (DENIED, "use b", "you")


async def test_another_users_question_is_neither_seen_nor_answered(store: SqliteStore) -> None:
    ann, bob = Approvals(store, "ann"), Approvals(store, "bob")
    asked = await ann.ask("t1", PROJECT, "write_file", {"arguments": {"path": "private"}})
    assert (await bob.get(asked.id), await bob.pending(PROJECT)) == (None, [])
    assert not await bob.answer(asked.id, asked.nonce, allowed=True, by="bob")
    assert [one.id for one in await ann.pending(PROJECT)] == [asked.id]
    assert await ann.answer(asked.id, asked.nonce, allowed=False, by="ann")
    assert ([one.id for one in await ann.settled(PROJECT)], await bob.settled(PROJECT)) == (
        [asked.id],
        [],
    )
    shared = await Approvals(store).ask("t2", PROJECT, "write_file", {})
    assert [one.id for one in await bob.pending(PROJECT)] == [shared.id]


async def test_an_answer_needs_the_nonce_of_that_very_question(store: SqliteStore) -> None:
    approvals = Approvals(store)
    old = await approvals.ask("t1", PROJECT, "write_file", {})
    new = await approvals.ask("t1", PROJECT, "write_file", {})
    assert not await approvals.answer(new.id, old.nonce, allowed=True, by="x")
    assert not await approvals.answer(new.id, "é", allowed=True, by="x")
    assert not await approvals.answer("no such", new.nonce, allowed=True, by="x")
    assert [one.id for one in await approvals.pending(PROJECT)] == [old.id, new.id]


async def test_questions_asked_at_once_keep_their_order(store: SqliteStore) -> None:
    approvals = Approvals(store)
    asked = [(await approvals.ask("t1", PROJECT, "write_file", {})).id for _ in range(40)]
    assert [one.id for one in await approvals.pending(PROJECT)] == asked
    for id in asked:
        await approvals.withdraw(id)
    assert [one.id for one in await approvals.settled(PROJECT)] == asked[::-1]


async def test_other_projects_and_dead_processes_are_not_asked_for(store: SqliteStore) -> None:
    approvals = Approvals(store)
    asked = await approvals.ask("t1", PROJECT, "write_file", {})
    assert await approvals.pending("/another") == []
    done = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"],
        capture_output=True,
        text=True,
        check=True,
    )
    gone = json.dumps({"pid": int(done.stdout), "born": "1"})
    await store.execute("UPDATE approvals SET owner = ? WHERE id = ?", (gone, asked.id))
    assert await approvals.pending(PROJECT) == []
    assert not await approvals.answer(asked.id, asked.nonce, allowed=True, by="x")
    assert [one.state for one in await approvals.settled(PROJECT)] == [WITHDRAWN]


async def test_a_question_of_another_machine_waits_for_a_while(store: SqliteStore) -> None:
    approvals = Approvals(store)
    asked = await approvals.ask("t1", PROJECT, "write_file", {})
    there = json.dumps({"pid": 1, "born": "1", "host": "another.example"})
    await store.execute("UPDATE approvals SET owner = ?", (there,))
    assert [one.id for one in await approvals.pending(PROJECT)] == [asked.id]
    await store.execute("UPDATE approvals SET asked_at = ?", ("2026-01-01T00:00:00.000+00:00",))
    assert await approvals.pending(PROJECT) == []
