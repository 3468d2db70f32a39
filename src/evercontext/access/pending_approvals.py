"""Store approvals that wait: asked by one process, answered in any, first answer wins.

Each has a nonce that only those who were shown the question know, so that an answer to an older
question, or a second one, changes nothing.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from evercontext.process.process_identity import is_alive, owner_of
from evercontext.storage.store import Row, Store

BY_CONSOLE = "you, in the console"
BY_CONSOLE_FOR_RUN = "you, in the console, for this run"
"""Whoever answers so is not asked about that tool again by the same asker."""
LONGEST_ELSEWHERE = timedelta(hours=12)
PENDING, ALLOWED, DENIED, WITHDRAWN = "pending", "allowed", "denied", "withdrawn"


@dataclass(frozen=True, slots=True)
class PendingQuestion:
    """One question, and how it was answered."""

    id: str
    nonce: str
    trace_id: str
    project_path: str
    tool: str
    question: Mapping[str, Any]
    """Arguments, changes and the reason, without secrets."""
    asked_at: str
    state: str = PENDING
    answered_by: str | None = None
    feedback: str | None = None
    answered_at: str | None = None


def new_question_id() -> str:
    """An id that nobody else has."""
    return secrets.token_hex(8)


class Approvals:
    """The ``approvals`` table, as one user sees it: their own questions, and those of nobody."""

    def __init__(self, store: Store, user: str | None = None) -> None:
        self._store, self._user = store, user or ""

    async def ask(
        self,
        trace_id: str,
        project_path: str,
        tool: str,
        question: Mapping[str, Any],
        *,
        id: str | None = None,
    ) -> PendingQuestion:
        """Publish a question of this process; an ``id`` known before can always be withdrawn."""
        pending = PendingQuestion(
            id=id or new_question_id(),
            nonce=secrets.token_urlsafe(24),
            trace_id=trace_id,
            project_path=project_path,
            tool=tool,
            question=question,
            asked_at=_now(),
        )
        await self._store.execute(
            "INSERT INTO approvals (id, nonce, trace_id, project_path, tool, question, owner,"
            " asked_at, user_id) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                pending.id,
                pending.nonce,
                trace_id,
                project_path,
                tool,
                json.dumps(question, ensure_ascii=False),
                json.dumps(owner_of(os.getpid())),
                pending.asked_at,
                self._user,
            ),
        )
        return pending

    async def get(self, id: str) -> PendingQuestion | None:
        """One question."""
        row = await self._store.fetch_one(
            "SELECT * FROM approvals WHERE id = ? AND user_id IN ('', ?)", (id, self._user)
        )
        return _question(row) if row else None

    async def pending(self, project_path: str) -> list[PendingQuestion]:
        """What waits in a project, oldest first; the questions of dead processes are withdrawn."""
        rows = await self._store.fetch_all(
            "SELECT * FROM approvals WHERE project_path = ? AND state = ? AND user_id IN ('', ?)"
            " ORDER BY asked_at",
            (project_path, PENDING, self._user),
        )
        waiting = [row for row in rows if _waits(row)]
        for row in rows:
            if row not in waiting:
                await self.withdraw(row["id"])
        return [_question(row) for row in waiting]

    async def settled(self, project_path: str, limit: int = 50) -> list[PendingQuestion]:
        """What was answered or withdrawn in a project, newest first."""
        rows = await self._store.fetch_all(
            "SELECT * FROM approvals WHERE project_path = ? AND state <> ? AND user_id IN ('', ?)"
            " ORDER BY asked_at DESC LIMIT ?",
            (project_path, PENDING, self._user, limit),
        )
        return [_question(row) for row in rows]

    async def answer(
        self, id: str, nonce: str, *, allowed: bool, by: str, feedback: str | None = None
    ) -> bool:
        """Answer a question; ``False`` if it is not this one that waits, or does not wait."""
        pending = await self.get(id)
        if pending is None or not secrets.compare_digest(pending.nonce.encode(), nonce.encode()):
            return False
        changed = await self._store.execute(
            "UPDATE approvals SET state = ?, answered_by = ?, feedback = ?, answered_at = ?"
            " WHERE id = ? AND nonce = ? AND state = ?",
            (ALLOWED if allowed else DENIED, by, feedback, _now(), id, nonce, PENDING),
        )
        return changed > 0

    async def withdraw(self, id: str) -> None:
        """Take a question back that nobody needs to answer any more."""
        await self._store.execute(
            "UPDATE approvals SET state = ?, answered_at = ? WHERE id = ? AND state = ?",
            (WITHDRAWN, _now(), id, PENDING),
        )


def _now() -> str:
    # Lists are ordered by it, and more than one question may be asked within a millisecond.
    return datetime.now(UTC).isoformat(timespec="microseconds")


def _waits(row: Row) -> bool:
    """True if somebody may still want the answer; another machine's asker does for a while."""
    young = datetime.fromisoformat(row["asked_at"]) > datetime.now(UTC) - LONGEST_ELSEWHERE
    return is_alive(json.loads(row["owner"]), elsewhere=young)


def _question(row: Row) -> PendingQuestion:
    names = (
        "id",
        "nonce",
        "trace_id",
        "project_path",
        "tool",
        "asked_at",
        "state",
        "answered_by",
        "feedback",
        "answered_at",
    )
    return PendingQuestion(
        **{name: row[name] for name in names}, question=json.loads(row["question"])
    )
