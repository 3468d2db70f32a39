from __future__ import annotations

import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from evercontext.access.console_links import Consoles
from evercontext.app import EverContext
from evercontext.errors import Unauthorized
from evercontext.server.console.authentication import (
    ACTIVE,
    COOKIE,
    LONGEST_IDLE,
    LONGEST_SESSION,
    BrowserSessions,
)
from tests.app.test_application import configured

HOST = "ec-0123456789abcdef.localhost:8765"
URL = f"http://{HOST}/console/"
Headers = list[tuple[bytes, bytes]]


@pytest.fixture
async def consoles(tmp_path: Path) -> AsyncIterator[Consoles]:
    async with EverContext.open(configured(tmp_path)) as app:
        yield Consoles(app.store)


async def enter(consoles: Consoles) -> tuple[BrowserSessions, Headers]:
    sessions = BrowserSessions(consoles, URL)
    cookie = await sessions.admit(await consoles.new_ticket(URL))
    assert cookie
    value = cookie.partition(";")[0]
    assert value.startswith(COOKIE)
    return sessions, [(b"host", HOST.encode()), (b"cookie", value.encode())]


async def test_a_server_that_is_started_again_knows_its_browsers(consoles: Consoles) -> None:
    """W5: nothing is lost when the server restarts."""
    sessions, headers = await enter(consoles)
    first = await sessions.require(headers)
    again = BrowserSessions(consoles, URL)
    known = await again.require(headers)
    assert known.csrf == first.csrf
    elsewhere = BrowserSessions(consoles, URL.replace("8765", "9000"))
    with pytest.raises(Unauthorized):
        await elsewhere.require([(b"host", HOST.replace("8765", "9000").encode()), headers[1]])
    with pytest.raises(Unauthorized):
        await again.require([headers[0], (b"cookie", f"{COOKIE}=guess".encode())])


async def test_a_session_that_is_left_alone_ends(
    consoles: Consoles, monkeypatch: pytest.MonkeyPatch
) -> None:
    sessions, headers = await enter(consoles)
    now = time.time()

    def at(seconds: float) -> None:
        monkeypatch.setattr(time, "time", lambda: now + seconds)

    at(LONGEST_IDLE - 60)
    # What a page asks for by itself keeps nothing alive; a key or a click does.
    await sessions.require(headers)
    await sessions.require([*headers, (ACTIVE, b"1")])
    at(2 * LONGEST_IDLE - 120)
    await sessions.require(headers)
    again = BrowserSessions(consoles, URL)
    await again.require(headers)
    at(2 * LONGEST_IDLE)
    for each in (sessions, again):
        with pytest.raises(Unauthorized, match="good once"):
            await each.require(headers)
    at(LONGEST_SESSION + 1)
    await consoles.sweep()
    assert await consoles.browser("x", URL) is None


async def test_a_chosen_port_has_one_name_and_another_has_another(consoles: Consoles) -> None:
    first = await consoles.name("here:127.0.0.1:8765")
    assert await consoles.name("here:127.0.0.1:8765") == first
    assert await consoles.name("here:127.0.0.1:9000") != first
