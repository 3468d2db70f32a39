"""Store sessions: one conversation each, by project directory and user.

As with memories: one without a user belongs to the project, and all who share it see it.
"""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from evercontext.errors import StoreClash, StoreGone
from evercontext.events.redaction import Clean, cleaned, unchanged
from evercontext.memory.outbox import queue_of, unless_clashing
from evercontext.memory.outbox_delivery import apply_change, insert_session, metadata_of, session_in
from evercontext.process.process_identity import is_alive, owner_of
from evercontext.storage.store import Row, Store

_LONGEST_TITLE = 80
_COLUMNS = """
    SELECT s.*, count(m.id) AS messages, max(m.timestamp) AS last_at
    FROM sessions s LEFT JOIN messages m ON m.session_id = s.id
"""


def session_lock(id: str | None) -> str:
    """Return the lock under which a session's writers take turns, so that ids follow time."""
    return f"session {id}" if id else ""


VISIBLE = "s.project_path = ? AND coalesce(s.user_id, '') IN ('', ?)"
"""Which sessions ``s`` a user sees in a project; its values come from ``seen_by``."""


OF_A_USER = "coalesce(s.user_id, '') IN ('', ?)"
"""Which sessions ``s`` a user sees in all projects together; its value is their name, or none."""


def seen_by(project: Path, user_id: str | None) -> tuple[str, str]:
    """Return the values of ``VISIBLE``."""
    return real_path(project), user_id or ""


def condition_for(project: Path | None, user_id: str | None) -> tuple[str, tuple[str, ...]]:
    """Return the condition and its values for the sessions of a project, or of every project."""
    if project is None:
        return OF_A_USER, (user_id or "",)
    return VISIBLE, seen_by(project, user_id)


@dataclass(frozen=True, slots=True)
class Session:
    """One conversation."""

    id: str
    project_path: str
    model_used: str
    started_at: str
    ended_at: str | None = None
    user_id: str | None = None
    title: str | None = None
    messages: int = 0
    last_at: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    """``summary`` holds the session's summary, ``owner`` the process that has it open."""

    def is_visible(self, user_id: str | None) -> bool:
        """Whether a user of its project sees it."""
        return (self.user_id or "") in ("", user_id)


def new_session_id() -> str:
    """Timestamp first, so that ids sort by age; random last, so that none collide."""
    return f"{datetime.now(UTC):%Y%m%d-%H%M%S-%f}-{secrets.token_hex(3)}"


def now() -> str:
    """The moment as the tables keep it: UTC, sortable, as ``CURRENT_TIMESTAMP`` writes it."""
    return f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S}"


def real_path(project: Path) -> str:
    """The directory's one name, whatever links led to it."""
    return str(project.resolve())


class SessionRepository:
    """The ``sessions`` table; while a server is away, what changes in it waits."""

    def __init__(self, store: Store, clean: Clean = unchanged) -> None:
        self._store, self._clean = store, clean
        self._queue = queue_of(store)

    async def create(
        self, project: Path, model_used: str, *, user_id: str | None = None
    ) -> Session:
        """Begin a session in a project."""
        session = Session(
            id=new_session_id(),
            project_path=real_path(project),
            model_used=model_used,
            started_at=now(),
            user_id=user_id,
            metadata={"owner": owner_of(os.getpid())},
        )
        names = ("id", "project_path", "model_used", "started_at", "user_id", "metadata")
        row = {name: getattr(session, name) for name in names}
        sent = False
        try:
            await self._delivered()
            async with self._store.transaction(session_lock(session.id)) as writing:
                sent = True
                await insert_session(writing, row)
        except StoreGone:
            if self._queue is None:
                raise
            place = session.project_path
            await self._queue.put_talk("session", session.id, row, project=place, sent=sent)
        return session

    async def get_by_id(self, id: object) -> Session | None:
        """Return a session by its whole id (a UUID object will do)."""
        try:
            await self._delivered()
            row = await self._store.fetch_one(
                f"{_COLUMNS} WHERE s.id = ? GROUP BY s.id", (str(id),)
            )
        except StoreGone:
            row = session_in(await self._queue.talk(str(id))) if self._queue else None
            if row is None:
                raise
        return _session(row) if row else None

    async def of_project(
        self, project: Path | None, limit: int = 20, *, user_id: str | None = None
    ) -> list[Session]:
        """What a user sees of a directory's sessions, or of all of them, newest first."""
        await self._delivered()
        condition, who = condition_for(project, user_id)
        rows = await self._store.fetch_all(
            f"{_COLUMNS} WHERE {condition} GROUP BY s.id"
            " ORDER BY s.started_at DESC, s.id DESC LIMIT ?",
            (*who, limit),
        )
        return [_session(row) for row in rows]

    async def waiting_in(self, project: Path, *, user_id: str | None = None) -> list[Session]:
        """Those of them that were begun while the server was away, newest first."""
        if self._queue is None:
            return []
        begun = await self._queue.sessions(real_path(project))
        rows = [session_in(await self._queue.talk(entry["session"])) for entry in begun]
        waiting = [_session(row) for row in rows if row]
        return [session for session in waiting if session.is_visible(user_id)]

    async def end(self, id: str) -> None:
        """Record when it ended."""
        await self._change(id, {"ended_at": now()})

    async def restore(self, id: str, model_used: str | None = None) -> None:
        """Open it again: it has no end any more."""
        change: dict[str, Any] = {"reopened": 1, "metadata": {"owner": owner_of(os.getpid())}}
        await self._change(id, change | ({"model_used": model_used} if model_used else {}))

    async def set_model(self, id: str, model_used: str) -> None:
        """Record that another model goes on."""
        await self._change(id, {"model_used": model_used})

    async def set_title(self, id: str, text: str) -> None:
        """Name it by the first line of a text."""
        # Cut last: half a secret would not be known for one.
        title = self._clean(text).strip().partition("\n")[0][:_LONGEST_TITLE]
        await self._change(id, {"title": title})

    async def set_summary(self, id: str, summary: str) -> None:
        """Keep what the session was about, for those that come after."""
        await self.set_metadata(id, "summary", summary)

    async def set_metadata(self, id: str, key: str, value: Any) -> None:
        """Keep one fact with the session."""
        await self.set_facts(id, {key: value})

    async def set_facts(self, id: str, facts: dict[str, Any]) -> None:
        """Keep several facts with the session, all or none."""
        await self._change(id, {"metadata": cleaned(facts, self._clean)})

    async def _change(self, id: str, change: dict[str, Any]) -> None:
        try:
            await self._delivered()
            await unless_clashing(lambda: self._apply(id, change))
        except (StoreGone, StoreClash):
            if self._queue is None:
                raise
            # Done twice, it is the same: an answer that was lost does no harm.
            await self._queue.put_talk("change", id, change)

    async def _apply(self, id: str, change: dict[str, Any]) -> None:
        async with self._store.transaction(session_lock(id)) as writing:
            await apply_change(writing, id, change)

    async def _delivered(self) -> None:
        """Let the server know all that happened before; ``StoreGone`` if it cannot."""
        if self._queue:
            await self._queue.clear(self._store)

    async def adopt(self, id: str, source: Session) -> Session:
        """Take over another session's title and say where this one came from."""
        if source.title:
            await self.set_title(id, source.title)
        await self.set_metadata(id, "forked_from", source.id)
        adopted = await self.get_by_id(id)
        assert adopted is not None
        return adopted

    async def delete(self, id: str) -> bool:
        """Remove a session with its messages; ``False`` if there was none."""
        if self._queue and await self._queue.drop(id):
            return True
        await self._delivered()
        async with self._store.transaction() as writing:
            await writing.execute(
                "DELETE FROM message_words WHERE rowid IN"
                " (SELECT id FROM messages WHERE session_id = ?)",
                (id,),
            )
            await writing.execute("DELETE FROM messages WHERE session_id = ?", (id,))
            gone = await writing.execute("DELETE FROM sessions WHERE id = ?", (id,)) > 0
        await self._store.wipe_deleted()
        return gone

    async def repair(self) -> list[str]:
        """End the sessions whose process died; they ended with their last message."""
        rows = await self._store.fetch_all(f"{_COLUMNS} WHERE s.ended_at IS NULL GROUP BY s.id")
        shared = self._store.report.shared
        dead = [row for row in rows if not _may_live(row, shared)]
        for row in dead:
            await self._store.execute(
                "UPDATE sessions SET ended_at = ? WHERE id = ? AND ended_at IS NULL",
                (row["last_at"] or row["started_at"], row["id"]),
            )
        return [row["id"] for row in dead]


def _may_live(row: Row, shared: bool) -> bool:
    """Whether its process may still run; of another machine's that is believed for a day."""
    yesterday = datetime.now(UTC) - timedelta(days=1)
    young = str(row["last_at"] or row["started_at"]) > f"{yesterday:%Y-%m-%d %H:%M:%S}"
    return is_alive(metadata_of(row).get("owner"), elsewhere=shared and young)


def _session(row: Row) -> Session:
    fields = (
        "id",
        "project_path",
        "model_used",
        "started_at",
        "ended_at",
        "user_id",
        "title",
        "messages",
        "last_at",
    )
    return Session(**{name: row[name] for name in fields}, metadata=metadata_of(row))
