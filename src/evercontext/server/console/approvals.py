"""List pending approvals, and take answers."""

from __future__ import annotations

import dataclasses
from typing import Any

from evercontext.access.pending_approvals import (
    BY_CONSOLE,
    BY_CONSOLE_FOR_RUN,
    Approvals,
    PendingQuestion,
)
from evercontext.errors import InvalidArguments, NotFound, StoreConflict
from evercontext.events.log_index import Ledger
from evercontext.server.console.request import ConsoleRequest, ConsoleRoute

LONGEST_FEEDBACK = 4_000


def _approvals(request: ConsoleRequest) -> Approvals:
    return Approvals(request.app.store, request.app.settings.user)


async def list_approvals(request: ConsoleRequest) -> dict[str, Any]:
    """Answer ``GET approvals``: what waits, oldest first, and what was answered."""
    approvals, places = _approvals(request), await request.work.projects()
    waiting = [question for place in places for question in await approvals.pending(place)]
    settled = [question for place in places for question in await approvals.settled(place, 30)]
    newest = sorted(settled, key=lambda question: question.asked_at, reverse=True)[:30]
    tasks = await _tasks(request, [question.trace_id for question in waiting])
    return {
        "pending": [
            {
                **dataclasses.asdict(question),
                "task": tasks.get(question.trace_id, ""),
                "project": places[question.project_path],
            }
            for question in sorted(waiting, key=lambda question: question.asked_at)
        ],
        "settled": [_settled(question) for question in newest],
    }


async def _tasks(request: ConsoleRequest, traces: list[str]) -> dict[str, str]:
    """Return what the runs that ask were told to do."""

    def read(ledger: Ledger) -> dict[str, str]:
        return {trace: ledger.runs[trace].text for trace in traces if trace in ledger.runs}

    return await request.feed.look(read) if traces else {}


def _settled(question: PendingQuestion) -> dict[str, Any]:
    shown = dataclasses.asdict(question)
    del shown["nonce"]
    shown["question"] = {
        "changes": [
            {name: change.get(name) for name in ("path", "kind", "added", "removed")}
            for change in question.question.get("changes", ())
        ],
        "arguments": {k: str(v)[:200] for k, v in question.question.get("arguments", {}).items()},
    }
    return shown


async def answer(request: ConsoleRequest) -> dict[str, Any]:
    """Answer ``POST approvals/*``: the first answer counts, a stale or second one is refused."""
    approvals, allowed = _approvals(request), request.switch("allowed")
    feedback = request.body.get("feedback") or None
    if feedback is not None and (not isinstance(feedback, str) or len(feedback) > LONGEST_FEEDBACK):
        raise InvalidArguments(f"feedback is a text of up to {LONGEST_FEEDBACK:,} characters")
    nonce = request.text("nonce", most=100)
    known = await approvals.get(request.parts[0])
    if known is None or known.project_path not in await request.work.projects():
        raise NotFound("there is no such question")
    if allowed and request.text("digest", most=100) != known.question.get("digest"):
        raise StoreConflict("this is not the call that was shown")
    waiting = {question.id for question in await approvals.pending(known.project_path)}
    for_run = allowed and request.body.get("for_run") is True and not known.question.get("reason")
    by = BY_CONSOLE_FOR_RUN if for_run else BY_CONSOLE
    reply = {"allowed": allowed, "by": by, "feedback": feedback}
    if known.id not in waiting or not await approvals.answer(known.id, nonce, **reply):  # type: ignore[arg-type]
        raise StoreConflict("this question does not wait for that answer any more")
    return {"state": "allowed" if allowed else "denied"}


ROUTES = (
    ConsoleRoute("GET", "approvals", list_approvals),
    ConsoleRoute("POST", "approvals/*", answer),
)
