from __future__ import annotations

from evercontext.server.mcp_session_limit import SessionLimit
from evercontext.server.request_guard import Message, Receive, Scope, Send


class Sessions:
    """Opens a session for a request without one, and ends one when it is deleted."""

    def __init__(self) -> None:
        self.open: list[bytes] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        session = dict(scope["headers"]).get(b"mcp-session-id")
        if scope["method"] == "DELETE" and session:
            self.open.remove(session)
        elif session is None:
            session = b"%d" % len(self.open)
            self.open.append(session)
        headers = [(b"mcp-session-id", session or b"")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})


async def nothing() -> Message:
    return {"type": "http.disconnect"}


async def forget(message: Message) -> None:
    pass


async def test_the_session_that_was_idle_longest_ends() -> None:
    """X16."""
    sessions = Sessions()
    limit = SessionLimit(sessions, 2)

    def request(*headers: tuple[bytes, bytes]) -> Scope:
        return {"type": "http", "method": "POST", "headers": [(b"host", b"x"), *headers]}

    await limit(request(), nothing, forget)
    await limit(request(), nothing, forget)
    await limit(request((b"mcp-session-id", b"0")), nothing, forget)
    await limit(request(), nothing, forget)
    assert sessions.open[0] == b"0"
    assert len(sessions.open) == 2
