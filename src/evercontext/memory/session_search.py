"""Search the messages of the sessions a user may see.

Words are taken as they are typed; there is no query language that a quote or a bracket could
break. Trigrams find three letters and more, shorter words are looked for one message at a time.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from evercontext.domain.tool import Arguments, Caller, Effect, Tool, ToolResult
from evercontext.memory.sessions import condition_for
from evercontext.storage.store import Store

MOST_WORDS = 16
_LONGEST_WORD = 200
_AROUND = 240
_LOOKED_BACK = 10

_SEARCH = """
    SELECT m.id, m.session_id, m.timestamp, m.role, m.content, s.title
    FROM messages m JOIN sessions s ON s.id = m.session_id
    WHERE {conditions}
    ORDER BY CASE m.role WHEN 'user' THEN 0 WHEN 'assistant' THEN 1 ELSE 2 END, m.id DESC LIMIT ?
"""
SECONDS = 5.0
"""How long one search may take."""
_ONE_SESSION = "m.session_id = ?"


@dataclass(frozen=True, slots=True)
class MessageHit:
    """One message that holds every word."""

    session_id: str
    title: str | None
    timestamp: str
    role: str
    excerpt: str
    message_id: int


async def search(
    store: Store,
    project: Path | None,
    query: str,
    limit: int = 20,
    *,
    user_id: str | None = None,
    session: str | None = None,
) -> list[MessageHit]:
    """Messages of the sessions a user sees, in a project or in all, that hold all the words.

    What people said comes first, then answers, then what tools returned; of each the newest.
    """
    words = [word[:_LONGEST_WORD] for word in query.replace("\0", " ").split()][:MOST_WORDS]
    # No message holds half a character: databases refuse it, so nothing can be found.
    if not words or any("\ud800" <= character <= "\udfff" for character in query):
        return []
    condition, values = await store.holding(words)
    visible, who = condition_for(project, user_id)
    conditions = [visible, condition]
    if session:
        conditions, values = [visible, _ONE_SESSION, condition], [session, *values]
    sql = _SEARCH.replace("{conditions}", " AND ".join(conditions))
    rows = await store.fetch_all(sql, (*who, *values, limit), seconds=SECONDS)
    return [
        MessageHit(
            r["session_id"],
            r["title"],
            r["timestamp"],
            r["role"],
            excerpt(r["content"] or "", words[0]),
            r["id"],
        )
        for r in rows
    ]


def excerpt(text: str, word: str) -> str:
    """The place where the word is, with a little around it, on one line."""
    at = max(0, text.casefold().find(word.casefold()))
    begin, end = max(0, at - _AROUND), at + len(word) + _AROUND
    cut = " ".join(text[begin:end].split())
    return f"{'…' if begin else ''}{cut}{'…' if end < len(text) else ''}"


def look_back_tool(store: Store, project: Path) -> Tool:
    """A tool that finds the originals of what a handover only summarises."""

    async def run(arguments: Arguments, caller: Caller) -> ToolResult:
        if not caller.session:
            return ToolResult("there is no session to look back in")
        query, who = arguments["query"], caller.principal.user
        hits = await search(
            store, project, query, _LOOKED_BACK, user_id=who, session=caller.session
        )
        lines = [f"[{hit.timestamp} {hit.role}] {hit.excerpt}" for hit in hits]
        text = "\n".join(lines) or "nothing of this session holds these words"
        return ToolResult(text, hits=len(lines))

    return Tool(
        name="look_back",
        description=(
            "Find earlier messages of this conversation by words they hold, those before a "
            "handover too: the exact error, path or decision that a summary left out."
        ),
        arguments={
            "type": "object",
            "properties": {"query": {"type": "string", "minLength": 1, "description": "Words."}},
            "required": ["query"],
            "additionalProperties": False,
        },
        effects=Effect.READ,
        run=run,
    )
