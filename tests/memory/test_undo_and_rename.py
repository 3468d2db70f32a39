from __future__ import annotations

from pathlib import Path

import pytest

from evercontext.domain.memory import MemoryType, SourceType
from evercontext.memory.memory_store import MemoryStore
from evercontext.memory.memory_table import Memory, stamp
from evercontext.memory.undo_and_rename import carry_over, follow_undo
from evercontext.storage.opener import open_store
from evercontext.storage.store import Store


async def contents(memories: MemoryStore, project: str, user: str | None = None) -> list[str]:
    return [one.content for one in await memories.list(project=project, user_id=user)]


async def test_memories_go_over_to_a_new_name_once(memories: MemoryStore, database: Store) -> None:
    """F4: what both names know is one memory; each user's stay theirs."""
    for project in ("/old", "git:new", "/other"):
        await memories.save_memory("Herons nest here", project=project)
    await memories.save_memory("Owls, too", project="/old", user_id="ana")
    names = {"/old": "git:new", "git:new": "git:new", "shop": "git:new", "": "git:new"}
    assert await carry_over(database, names) == 2
    assert await carry_over(database, names) == 0
    assert await contents(memories, "git:new", "ana") == ["Owls, too", "Herons nest here"]
    assert await contents(memories, "git:new") == ["Herons nest here"]
    assert await contents(memories, "/other") == ["Herons nest here"]
    assert await contents(memories, "/old", "ana") == []


def memory(id: str, content: str, project: str, source: SourceType = SourceType.TOOL) -> Memory:
    return Memory(id, content, MemoryType.LONGTERM, source, stamp(), project=project)


@pytest.mark.parametrize("source", [SourceType.TOOL, SourceType.MESSAGE])
async def test_an_id_that_the_new_name_has_too_loses_nothing(
    memories: MemoryStore, database: Store, source: SourceType
) -> None:
    """A unique index took all of it back, and every later name with it, without a word."""
    await memories.save_many(
        [
            memory("m1", "Herons nest here", "git:new", source),
            memory("m2", "Geese pass in March", "git:new", source),
        ]
    )
    await memories.save_many(
        [
            memory("m1", "Herons nest here", "/old", source),
            memory("m2", "Cranes dance in April", "/old", source),
            memory("m3", "Only b knows owls", "/old", source),
        ]
    )
    await memories.save_memory("Storks came", project="/old", id="m4")
    await memories.save_memory("Swifts", project="git:new", id="m4")
    await memories.save_memory("Storks left", project="/old", supersedes="m4", id="m5")
    await memories.save_memory("Swallows", project="git:new", id="m5")
    assert await carry_over(database, {"/old": "git:new"}) == 4
    assert sorted(await contents(memories, "git:new")) == [
        "Cranes dance in April",
        "Geese pass in March",
        "Herons nest here",
        "Only b knows owls",
        "Storks left",
        "Swallows",
        "Swifts",
    ]
    kept = {one.content: one.id for one in await memories.list(project="git:new")}
    assert len(set(kept.values())) == len(kept)
    [older] = await memories.list(project="git:new", state="superseded")
    assert (older.content, older.superseded_by) == ("Storks came", kept["Storks left"])
    assert await contents(memories, "/old") == []
    # A turn that is told again under its new id is known for the same.
    again = memory(kept["Cranes dance in April"], "Cranes dance in April", "git:new", source)
    assert await memories.save_many([again]) == 0


async def test_what_was_put_away_under_the_new_name_does_not_take_the_other_with_it(
    memories: MemoryStore, database: Store
) -> None:
    for project in ("/old", "git:new"):
        await memories.save_memory("Herons nest here", project=project, id="m1")
    await memories.archive("m1", project="git:new")
    assert await carry_over(database, {"/old": "git:new"}) == 1
    assert await contents(memories, "git:new") == ["Herons nest here"]


async def test_a_name_that_cannot_be_carried_over_is_named_and_the_others_are_carried(
    tmp_path: Path,
) -> None:
    store = await open_store(tmp_path / "memory.db", "")
    memories = MemoryStore(store)
    for project in ("/bad", "/good"):
        await memories.save_memory(f"From {project}", project=project)
    await store.execute(
        "CREATE TRIGGER stop BEFORE UPDATE ON memories WHEN OLD.project = '/bad'"
        " BEGIN SELECT RAISE(ABORT, 'not this one'); END"
    )
    problems: dict[str, str] = {}
    names = {"/bad": "git:bad", "/good": "git:good"}
    moved = await carry_over(store, names, lambda name, why: problems.update({name: str(why)}))
    assert (moved, list(problems)) == (1, ["/bad"])
    assert await contents(memories, "git:good") == ["From /good"]
    assert await contents(memories, "/bad") == ["From /bad"]
    await store.close()


async def test_memories_follow_the_work_they_tell_of(
    memories: MemoryStore, database: Store
) -> None:
    """V12: away with it, back with it, and never twice."""
    for trace in ("t1", "t2"):
        await memories.save_memory(f"Task {trace}", project="/p", origin={"trace_id": trace})
    await memories.save_memory("By hand", project="/p")
    assert await follow_undo(database, {"t1": True, "t2": False}, "/p") == 1
    assert await contents(memories, "/p") == ["By hand", "Task t2"]
    assert await follow_undo(database, {"t1": True, "t2": False}, "/p") == 0
    again = await memories.save_memory("Task t1", project="/p", origin={"trace_id": "t3"})
    assert await follow_undo(database, {"t1": False, "t2": False, "t3": False}, "/p") == 0
    await memories.archive(again.id, project="/p")
    assert await follow_undo(database, {"t1": False}, "/p") == 1
    assert await contents(memories, "/p") == ["By hand", "Task t2", "Task t1"]
