"""Browse memories, explain their recall, correct and forget them."""

from __future__ import annotations

from typing import Any

from evercontext.domain.memory import MemoryType, RetrievalOptions, SourceType
from evercontext.errors import InvalidArguments, NotFound
from evercontext.memory.memory_table import Memory
from evercontext.server.console.request import ConsoleRequest, ConsoleRoute

PAGE = 50
STATES = ("active", "archived", "superseded")
LONGEST = 20_000


async def list_memories(request: ConsoleRequest) -> dict[str, Any]:
    """Answer ``GET memories``: newest first, or the best for ``q`` with why each is recalled."""
    memory, words = request.app.memory, request.query.get("q", "").strip()[:2_000]
    if words:
        options = RetrievalOptions(20, _user(request), memory.project, min_similarity=0.0)
        matches = await memory.retrieval.retrieve(words, options)
        memories = {
            match.id: await memory.memories.get(match.id, **_whose(request)) for match in matches
        }
        rows = [
            {**shape(full), "similarity": match.similarity, "reasons": dict(match.reasons)}
            for match in matches
            if (full := memories[match.id])
        ]
        return {"memories": rows, "next": None}
    state = request.query.get("state", "active")
    if state not in STATES:
        raise InvalidArguments(f"state is one of {', '.join(STATES)}")
    before = request.query.get("before") or None
    page = await memory.memories.list(
        user_id=_user(request), project=memory.project, state=state, limit=PAGE + 1, before=before
    )
    more = page[PAGE - 1].id if len(page) > PAGE else None
    return {"memories": [shape(entry) for entry in page[:PAGE]], "next": more}


def _user(request: ConsoleRequest) -> str | None:
    return request.app.settings.user


def _whose(request: ConsoleRequest) -> dict[str, str | None]:
    return {"user_id": _user(request), "project": request.app.memory.project}


def shape(memory: Memory) -> dict[str, Any]:
    """A memory as a page shows it."""
    return memory.to_json()


async def add_memory(request: ConsoleRequest) -> dict[str, Any]:
    """Answer ``POST memories``: remember something."""
    return shape(await _save(request, None))


async def edit_memory(request: ConsoleRequest) -> dict[str, Any]:
    """Answer ``POST memories/*``: the new words take the place of the old, which are kept."""
    memory = request.app.memory
    old = await memory.memories.get(request.parts[0], **_whose(request))
    if old is None or old.state != "active":
        raise NotFound("there is no such memory", fix="See `evercontext memory list`")
    return shape(await _save(request, old))


async def _save(request: ConsoleRequest, old: Memory | None) -> Memory:
    memory = request.app.memory
    content = request.text("content", most=LONGEST)
    if old and content == old.content:
        return old
    return await memory.memories.save_memory(
        content,
        old.memory_type if old else MemoryType.LONGTERM,
        SourceType.CORRECTION if old else SourceType.DECISION,
        # What was everybody's stays everybody's, whoever corrects it.
        user_id=old.user_id if old else _user(request),
        project=memory.project,
        supersedes=old.id if old else None,
        origin={"door": "console"},
    )


async def forget_memory(request: ConsoleRequest) -> dict[str, Any]:
    """Answer ``POST memories/*/forget``: wipe its words for good."""
    if not await request.app.memory.memories.forget(request.parts[0], **_whose(request)):
        raise NotFound("there is no such memory", fix="See `evercontext memory list`")
    return {"forgotten": request.parts[0]}


ROUTES = (
    ConsoleRoute("GET", "memories", list_memories),
    ConsoleRoute("POST", "memories", add_memory),
    ConsoleRoute("POST", "memories/*", edit_memory),
    ConsoleRoute("POST", "memories/*/forget", forget_memory),
)
