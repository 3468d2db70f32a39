"""List, search and show past sessions of this directory."""

from __future__ import annotations

import dataclasses
from typing import Any

from evercontext.app.conversations import find_session, past_sessions
from evercontext.errors import UsageError
from evercontext.events.log_index import Ledger
from evercontext.memory.session_search import search
from evercontext.memory.sessions import Session
from evercontext.server.console.request import ConsoleRequest, ConsoleRoute

MOST = 200
MOST_MESSAGES = 400
MOST_OF_A_TURN = 2_000


async def list_sessions(request: ConsoleRequest) -> dict[str, Any]:
    """Answer ``GET sessions``: all of them, or the messages that hold the words of ``q``."""
    words = request.query.get("q", "").strip()[:400]
    if words:
        settings = request.app.settings
        hits = await search(request.app.store, settings.root, words, 60, user_id=settings.user)
        return {"hits": [dataclasses.asdict(hit) for hit in hits], "sessions": []}
    everywhere = request.query.get("project") == "all"
    limit = request.number("limit", MOST, 1_000)
    sessions = await past_sessions(request.app, limit, everywhere=everywhere)
    return {"sessions": [shape(session) for session in sessions], "hits": []}


async def show_session(request: ConsoleRequest) -> dict[str, Any]:
    """Answer ``GET sessions/*``: the messages, a page at a time, and the turn that is under way."""
    session = await _find(request)
    after, limit = request.number("after", 0, 10**12), request.number("limit", MOST_MESSAGES, 1_000)
    live = await _live(request, session.id)
    repository = request.app.memory.messages
    numbered = await repository.numbered(session.id, after)
    if live:
        # Its events tell that turn, as it happens.
        rows, _ = await repository.list(session_id=session.id, limit=MOST_OF_A_TURN)
        its_own = {row.id for row in rows if row.trace_id == live["trace_id"]}
        numbered = [(id, message) for id, message in numbered if id not in its_own]
    page = numbered[:limit]
    messages = [
        {"id": id, **{k: v for k, v in dataclasses.asdict(message).items() if v and k != "images"}}
        for id, message in page
    ]
    more = page[-1][0] if len(numbered) > limit else None
    return {"session": shape(session), "messages": messages, "next": more, "live": live}


async def _find(request: ConsoleRequest) -> Session:
    """Return a session of this project, or of another registered one by its whole id."""
    app, name = request.app, request.parts[0]
    try:
        return await find_session(app, name)
    except UsageError:
        session = await app.memory.sessions.get_by_id(name)
        places = await request.work.projects()
        visible = session is not None and session.is_visible(app.settings.user)
        if session is None or not visible or session.project_path not in places:
            raise
        return session


async def _live(request: ConsoleRequest, session_id: str) -> dict[str, Any] | None:
    """Return the turn that is being answered in a session, here or in another process."""
    here = request.work.in_session(session_id)
    if here:
        return {"trace_id": here.trace_id, "here": True}

    def read(ledger: Ledger) -> str | None:
        running = (run for run in ledger.tasks() if run.session == session_id)
        return next((r.trace_id for r in running if ledger.status_of(r) == "running"), None)

    trace_id = await request.feed.look(read)
    return {"trace_id": trace_id, "here": False} if trace_id else None


def shape(session: Session) -> dict[str, Any]:
    """Return a session as a page shows it."""
    fields = dataclasses.asdict(session)
    metadata = fields.pop("metadata")
    return {
        **fields,
        "summary": str(metadata.get("summary") or "")[:4_000],
        "forked_from": metadata.get("forked_from"),
        "resume": f"evercontext chat -r {session.id}",
    }


ROUTES = (
    ConsoleRoute("GET", "sessions", list_sessions),
    ConsoleRoute("GET", "sessions/*", show_session),
)
