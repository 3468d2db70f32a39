from __future__ import annotations

from evercontext.memory.following import carry_over, follow_undo
from evercontext.memory.store import MemoryStore
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
