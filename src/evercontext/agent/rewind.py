"""Going back in a conversation, to before one of its turns."""

from __future__ import annotations

from dataclasses import dataclass

from evercontext.agent.conversation import Conversation

_ALL = 100_000


@dataclass(frozen=True, slots=True)
class Turn:
    """The turn that one message of the user began."""

    first: int
    """Row id of its first message."""
    trace_id: str
    text: str
    at: str


async def turns(talk: Conversation) -> list[Turn]:
    """The turns of the session, newest first."""
    rows, _ = await talk.messages.list(session_id=talk.session.id, limit=_ALL)
    first_rows: dict[str, Turn] = {}
    for row in reversed(rows):
        if row.role == "user" and row.trace_id and row.trace_id not in first_rows:
            first_rows[row.trace_id] = Turn(row.id, row.trace_id, row.content, row.timestamp)
    return list(reversed(first_rows.values()))


async def forget_from(talk: Conversation, turn: Turn) -> int:
    """Remove the messages from ``turn`` on; return how many there were."""
    with talk.hold(talk.session.id):
        return await _forget_from(talk, turn)


async def _forget_from(talk: Conversation, turn: Turn) -> int:
    gone = await talk.messages.forget_after(talk.session.id, turn.first - 1)
    session = await talk.sessions.get_by_id(talk.session.id)
    assert session is not None
    if (session.metadata.get("compacted") or {}).get("after", 0) >= turn.first:
        # The handover tells of what is taken back now.
        await talk.sessions.set_metadata(session.id, "compacted", None)
        session = await talk.sessions.get_by_id(session.id)
        assert session is not None
    talk.session = session
    await talk.load()
    return gone
