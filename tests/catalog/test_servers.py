"""Servers as they should be: lazy, kept, reloaded, patient with progress."""

from __future__ import annotations

import asyncio
import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from evercontext.catalog.server_table import ServerConfig
from evercontext.catalog.servers import PATIENCE
from evercontext.catalog.validation import accept_tools, digest_of, earlier_digest_of
from tests.catalog.rich_server import DEFINITION
from tests.catalog.world import EVERYBODY, RICH_SERVER, odd, run, servers
from tests.conftest import running_children


async def test_nothing_is_started_before_it_is_needed(tmp_path: Path) -> None:
    async with servers(tmp_path, odd("one")) as opened:
        (backend,) = await opened.visible(EVERYBODY)
        assert backend.state == "stopped"
        await run(opened, "one:echo", text="x")
        assert backend.state == "running"
        assert "started good" in backend.log


async def test_one_connection_serves_many_calls_at_once(tmp_path: Path) -> None:
    async with servers(tmp_path, odd("one")) as opened:
        answers = await asyncio.gather(*(run(opened, "one:echo", text=str(i)) for i in range(50)))
        assert [a["content"][0]["text"] for a in answers] == [str(i) for i in range(50)]
        (backend,) = await opened.visible(EVERYBODY)
        assert list(backend.log).count("started good") == 1


async def test_progress_gives_a_call_its_time_again(tmp_path: Path) -> None:
    async with servers(tmp_path, odd("slow", "progress", call_seconds=3.0)) as opened:
        assert (await run(opened, "slow:echo", text="done"))["content"][0]["text"] == "done"


async def test_a_change_holds_at_once(tmp_path: Path) -> None:
    async with servers(tmp_path, odd("one")) as opened:
        await run(opened, "one:echo", text="x")
        (before,) = await opened.visible(EVERYBODY)
        await opened.table.put(replace(before.config, tool_permissions={"echo": False}))
        assert await opened.find("one:echo", EVERYBODY) is None
        assert before.state == "running"
        await opened.table.put(odd("one", "twice"))
        (after,) = await opened.visible(EVERYBODY)
        assert after is not before
        assert before.state == "stopped"
        await opened.table.remove("one")
        assert await opened.gather(EVERYBODY, PATIENCE) == []


@pytest.mark.contract("T2", "T37")
async def test_ten_servers_answer_while_two_are_dead(tmp_path: Path) -> None:
    good = [odd(f"good{i}") for i in range(10)]
    dead = [odd("mute", "silent"), ServerConfig("gone", ("no-such-program",))]
    before = running_children()
    async with servers(tmp_path, *good, *dead) as opened:
        answered: set[str] = set()
        while answered != {config.id for config in good}:
            answered = {entry.server for entry in await opened.gather(EVERYBODY, patience=0.5)}
        assert len(running_children() - before) >= 10
    assert running_children() == before


async def test_tools_are_known_while_their_server_starts(tmp_path: Path) -> None:
    """C3: accepted definitions are searched meanwhile; what a running server says now wins."""
    mark = tmp_path / "go"
    slow = ServerConfig("slow", (sys.executable, str(RICH_SERVER), str(mark)))
    async with servers(tmp_path, slow) as opened:
        mark.touch()
        listed = await opened.gather(EVERYBODY, PATIENCE * 10)
        assert "slow:show" in {entry.key for entry in listed}
    mark.unlink()
    async with servers(tmp_path, slow) as opened:
        offered = await opened.offered(EVERYBODY)
        assert sorted(offered.entries, key=repr) == sorted(listed, key=repr)
        assert offered.notice == "slow is still starting (its 7 tools as last seen are searched)"
        mark.touch()
        assert await opened.gather(EVERYBODY, PATIENCE * 10) == listed
        assert (await opened.offered(EVERYBODY)).notice == ""


async def test_who_is_missing_is_named_with_the_reason(tmp_path: Path) -> None:
    """C3."""
    async with servers(tmp_path, ServerConfig("gone", ("no-such-program",))) as opened:
        assert "gone is missing: " in (await opened.offered(EVERYBODY)).notice
        assert "no-such-program" in (await opened.offered(EVERYBODY)).notice


async def test_pins_from_before_definitions_were_stored(tmp_path: Path) -> None:
    """An upgrade holds nothing back; hints that change afterwards do."""
    rich = ServerConfig("rich", (sys.executable, str(RICH_SERVER)))
    entry = accept_tools("rich", [DEFINITION])[0][0]
    async with servers(tmp_path, rich) as opened:
        await opened.table.pin("rich", {"show": earlier_digest_of(entry)})
        await opened.gather(EVERYBODY, PATIENCE * 10)
        (backend,) = await opened.visible(EVERYBODY)
        assert not backend.held
        assert (await opened.table.pins("rich"))["show"] == (digest_of(entry), None)
        stored = json.loads((await opened.table.definitions("rich"))["show"])
        assert stored == DEFINITION
    assert digest_of(entry) != digest_of(replace(entry, more={**entry.more, "annotations": {}}))
