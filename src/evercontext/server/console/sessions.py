"""List, search and show past sessions of this directory."""

from __future__ import annotations

import dataclasses
from typing import Any

from evercontext.app.conversations import find_session, past_sessions
from evercontext.memory.session_search import search
from evercontext.memory.sessions import Session
from evercontext.server.console.request import ConsoleRequest, ConsoleRoute

MOST = 200
MOST_MESSAGES = 400


async def list_sessions(request: ConsoleRequest) -> dict[str, Any]:
    """Answer ``GET sessions``: all of them, or the messages that hold the words of ``q``."""
    words = request.query.get("q", "").strip()[:400]
    if words:
        settings = request.app.settings
        hits = await search(request.app.store, settings.root, words, 60, user_id=settings.user)
        return {"hits": [dataclasses.asdict(hit) for hit in hits], "sessions": []}
    sessions = await past_sessions(request.app, request.number("limit", MOST, 1_000))
    return {"sessions": [shape(session) for session in sessions], "hits": []}


async def show_session(request: ConsoleRequest) -> dict[str, Any]:
    """Answer ``GET sessions/*``: the messages, a page at a time, the newest page last."""
    session = await find_session(request.app, request.parts[0])
    after, limit = request.number("after", 0, 10**12), request.number("limit", MOST_MESSAGES, 1_000)
    numbered = await request.app.memory.messages.numbered(session.id, after)
    page = numbered[:limit]
    messages = [
        {"id": id, **{k: v for k, v in dataclasses.asdict(message).items() if v}}
        for id, message in page
    ]
    more = page[-1][0] if len(numbered) > limit else None
    return {"session": shape(session), "messages": messages, "next": more}


def shape(session: Session) -> dict[str, Any]:
    """Return a session as a page shows it."""
    fields = dataclasses.asdict(session)
    metadata = fields.pop("metadata")
    return {
        **fields,
        "summary": str(metadata.get("summary") or "")[:4_000],
        "resume": f"evercontext chat -r {session.id}",
    }


ROUTES = (
    ConsoleRoute("GET", "sessions", list_sessions),
    ConsoleRoute("GET", "sessions/*", show_session),
)
