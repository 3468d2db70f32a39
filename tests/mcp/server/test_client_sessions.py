"""What is remembered of clients: bounded, and only what they said."""

from __future__ import annotations

import json
from typing import Any

from evercontext.mcp.messages import RpcResponse
from evercontext.mcp.server.client_sessions import MOST_SESSIONS, ClientSessions, ClientState


async def test_a_client_is_asked_only_what_it_offers() -> None:
    state = ClientState(capabilities={"elicitation": {}})

    def answered(message: bytes) -> None:
        request = json.loads(message)
        state.receive(RpcResponse("another", {"result": "ignored"}))
        state.receive(RpcResponse(request["id"], {"result": {"action": "accept"}}))

    answer = await state.ask("elicitation/create", {}, answered)
    assert answer == {"result": {"action": "accept"}}
    refused = await state.ask("sampling/createMessage", {}, answered)
    assert refused["error"]["code"] == -32601
    assert state.open_questions == {}


def test_logs_below_the_level_are_not_sent() -> None:
    state = ClientState(log_level="warning")
    taken: dict[str, Any] = {
        level: state.takes("notifications/message", {"level": level})
        for level in ("info", "warning", "error", "odd")
    }
    assert taken == {"info": False, "warning": True, "error": True, "odd": True}
    assert state.takes("notifications/resources/updated", {})


def test_sessions_are_bounded_and_an_ended_one_stays_ended() -> None:
    sessions = ClientSessions()
    first = sessions.get("0")
    assert sessions.get("0") is first
    for number in range(MOST_SESSIONS + 5):
        sessions.get(str(number))
    assert len(list(sessions)) == MOST_SESSIONS
    sessions.end("7")
    assert sessions.has_ended("7")
    assert not sessions.has_ended("8")
