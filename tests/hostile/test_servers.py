"""Outside servers that hang, lie, flood, die or change their mind: cases 85 to 100."""

from __future__ import annotations

import asyncio
import json
import os
import time
from pathlib import Path

import pytest

from evercontext.catalog.server_lifecycle import Patience, ServerEnvironment
from evercontext.catalog.server_table import ServerConfig, ServerTable
from evercontext.catalog.servers import Servers
from evercontext.errors import EverContextError, ServerGone, ServerProblem, ServerTimeout
from evercontext.events.redaction import Redactor
from evercontext.storage.sqlite import SqliteStore
from tests.catalog.world import EVERYBODY, odd, run, servers

QUICK = Patience(handshake=4.0, listing=4.0)

SLEEP = f"9{os.getpid()}"
"""Seconds that a child of a server sleeps: no other run of the tests has the same."""


async def listed(opened: Servers) -> set[str]:
    return {entry.key for entry in await opened.gather(EVERYBODY, patience=20)}


@pytest.mark.case(85)
@pytest.mark.parametrize("how", ["silent", "silent-list"])
async def test_a_silent_server_is_given_up_and_the_others_are_there(
    tmp_path: Path, how: str
) -> None:
    async with servers(tmp_path, odd("mute", how), odd("good"), patience=QUICK) as opened:
        assert await listed(opened) == {"good:echo", "good:fail", "good:environment"}
        _, mute = await opened.visible(EVERYBODY)
        assert mute.state == "failed"
        assert mute.problem
        with pytest.raises(ServerGone, match="next try in"):
            await mute.entries()


@pytest.mark.case(85)
async def test_a_slow_server_does_not_hold_the_list_back(tmp_path: Path) -> None:
    async with servers(tmp_path, odd("mute", "silent"), odd("good")) as opened:
        await run(opened, "good:echo", text="warm")
        entries = await opened.gather(EVERYBODY, patience=0.2)
        assert {entry.server for entry in entries} == {"good"}


@pytest.mark.case(85)
async def test_a_call_that_is_never_answered_ends(tmp_path: Path) -> None:
    slow = odd("mute", "silent-call", call_seconds=0.5)
    async with servers(tmp_path, slow) as opened:
        with pytest.raises(ServerTimeout, match=r"mute.*0\.5 s"):
            await run(opened, "mute:echo")


@pytest.mark.case(86)
async def test_a_server_that_dies_in_the_middle_of_an_answer(tmp_path: Path) -> None:
    async with servers(tmp_path, odd("mortal", "die")) as opened:
        with pytest.raises(ServerGone, match="connection closed"):
            await run(opened, "mortal:echo")
        (backend,) = await opened.visible(EVERYBODY)
        with pytest.raises(ServerGone, match="next try in"):
            await backend.entries()
        backend.next_try = time.monotonic()
        assert await backend.entries()


@pytest.mark.case(87)
async def test_an_answer_to_another_question_is_none(tmp_path: Path) -> None:
    wrong = odd("wrong", "wrong-id", call_seconds=0.5)
    async with servers(tmp_path, wrong, odd("twice", "twice")) as opened:
        with pytest.raises(ServerTimeout):
            await run(opened, "wrong:echo")
        assert (await run(opened, "twice:echo", text="1"))["content"][0]["text"] == "1"
        assert (await run(opened, "twice:echo", text="2"))["content"][0]["text"] == "2"
        for backend in await opened.visible(EVERYBODY):
            assert backend.connection is not None
            assert backend.connection.unusable.unexpected >= 1


@pytest.mark.case(88)
async def test_noise_on_stdout_is_dropped(tmp_path: Path) -> None:
    async with servers(tmp_path, odd("noisy", "noise")) as opened:
        answer = await run(opened, "noisy:echo", text="heard")
        (backend,) = await opened.visible(EVERYBODY)
        assert answer["content"][0]["text"] == "heard"
        assert backend.connection is not None
        assert backend.connection.unusable.malformed == 4


@pytest.mark.case(89)
async def test_one_line_of_100_mb_ends_the_server(tmp_path: Path) -> None:
    async with servers(tmp_path, odd("long", "long-line")) as opened:
        before = _resident()
        with pytest.raises(ServerProblem, match="4194304 bytes"):
            await run(opened, "long:echo")
        assert _resident() - before < 64 * 1024 * 1024


@pytest.mark.case(90)
async def test_100_000_tools_are_a_thousand_and_a_warning(tmp_path: Path) -> None:
    async with servers(tmp_path, odd("many", "many")) as opened:
        assert len(await listed(opened)) == 1000
        (backend,) = await opened.visible(EVERYBODY)
        assert any("more than 1000" in warning for warning in backend.warnings)


@pytest.mark.case(90)
@pytest.mark.parametrize("how", ["endless", "circle"])
async def test_a_list_without_end_ends(tmp_path: Path, how: str) -> None:
    async with servers(tmp_path, odd("loop", how)) as opened:
        assert "loop:echo" in await listed(opened)
        (backend,) = await opened.visible(EVERYBODY)
        assert any("does not end" in warning for warning in backend.warnings)


@pytest.mark.case(92)
async def test_names_that_deceive_are_refused(tmp_path: Path) -> None:
    async with servers(tmp_path, odd("one", "names"), odd("two")) as opened:
        found = await listed(opened)
        (one, _) = await opened.visible(EVERYBODY)
        assert {key for key in found if key.startswith("one:")} == {"one:echo"}
        assert "two:echo" in found
        assert len(one.warnings) == 7
        assert all("\x1b" not in warning for warning in one.warnings)


@pytest.mark.case(94)
async def test_a_changed_definition_is_held_until_approved(tmp_path: Path) -> None:
    mark = tmp_path / "changed"
    config = odd("rug", "rug", str(mark))
    async with servers(tmp_path, config) as opened:
        assert "rug:echo" in await listed(opened)
    mark.touch()
    async with servers(tmp_path, config) as opened:
        assert await listed(opened) == {"rug:fail", "rug:environment"}
        assert await opened.find("rug:echo", EVERYBODY) is None
        (backend,) = await opened.visible(EVERYBODY)
        shown = dict(backend.held)
        # Meanwhile another process hears of another definition, which nobody was shown.
        await opened.table.hold("rug", {"echo": "0" * 64})
        await opened.table.approve("rug", shown)
        assert "rug:echo" in await listed(opened)
        assert (await opened.table.pins("rug"))["echo"] == (shown["echo"], None)


@pytest.mark.case(96)
async def test_schemas_that_cannot_be_held_are_refused(tmp_path: Path) -> None:
    async with servers(tmp_path, odd("odd", "schemas")) as opened:
        assert await listed(opened) == {"odd:echo", "odd:fail", "odd:environment"}
        (backend,) = await opened.visible(EVERYBODY)
        assert len(backend.warnings) == 3


@pytest.mark.case(100)
async def test_a_server_sees_no_secret_it_was_not_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "not-for-you")
    monkeypatch.setenv("GIVEN_TOKEN", "for-you")
    config = odd("child", env={"SERVICE_TOKEN": "${GIVEN_TOKEN}"})
    async with servers(tmp_path, config) as opened:
        answer = await run(opened, "child:environment")
        seen = json.loads(answer["content"][0]["text"])
        assert seen["SERVICE_TOKEN"] == "for-you"
        assert "not-for-you" not in seen.values()
        assert "GIVEN_TOKEN" not in seen


async def test_a_server_that_asks_for_a_model_is_refused_and_goes_on(tmp_path: Path) -> None:
    async with servers(tmp_path, odd("asks", "asks")) as opened:
        assert (await run(opened, "asks:echo", text="x"))["content"][0]["text"] == "x"


async def test_what_a_server_started_ends_with_it(tmp_path: Path) -> None:
    async with servers(tmp_path, odd("parent", "children", SLEEP)) as opened:
        await listed(opened)
        assert _sleepers()
    for _ in range(600):
        if not _sleepers():
            break
        await asyncio.sleep(0.1)
    assert not _sleepers()


async def test_a_program_that_is_not_there(tmp_path: Path) -> None:
    async with servers(tmp_path, ServerConfig("none", ("no-such-program",)), odd("good")) as opened:
        assert await listed(opened) == {"good:echo", "good:fail", "good:environment"}
        with pytest.raises(EverContextError, match=r"no-such-program|next try"):
            await opened.find("none:echo", EVERYBODY)


def _resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def _sleepers() -> list[str]:
    found = []
    for line in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if line.read_bytes() == f"sleep\0{SLEEP}\0".encode():
                found.append(line.parent.name)
        except OSError:
            continue
    return found


@pytest.mark.case(98)
async def test_an_address_of_a_server_is_opened_by_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opener = tmp_path / "opener"
    opener.write_text(f'#!/bin/sh\necho "$1" >> {tmp_path}/opened\n')
    opener.chmod(0o755)
    monkeypatch.setenv("BROWSER", str(opener))
    async with servers(tmp_path, odd("sly", "opens")) as opened:
        await run(opened, "sly:echo", text="x")
        (backend,) = await opened.visible(EVERYBODY)
        assert backend.connection is not None
        assert backend.connection.unusable.refused == 3
        await run(opened, "sly:echo", text="x")
        refusals = [line for line in backend.log if line.startswith("refused:")]
        assert refusals == ["refused: elicitation/create is not offered here"] * 3
    assert not (tmp_path / "opened").exists()


@pytest.mark.case(135)
async def test_credentials_of_servers_are_in_no_log(tmp_path: Path) -> None:
    secret, header = "k3y-of-the-server-77", "Bearer t0ken-of-the-server-88"
    learnt: list[str] = []
    around = ServerEnvironment({}, tmp_path, on_secrets=learnt.extend)
    config = odd("one", env={"API_KEY": secret, "COLOUR": "a plain colour"})
    store = await SqliteStore.open(tmp_path / "house.db")
    table = ServerTable(store)
    await table.put(config)
    await table.put(ServerConfig("far", url="http://127.0.0.1:9/", headers={"X-Auth": header}))
    opened = Servers(table, around)
    try:
        await opened.gather(EVERYBODY, patience=20)
    finally:
        await opened.close()
        await store.close()
    assert {secret, header, "t0ken-of-the-server-88"} <= set(learnt)
    assert "a plain colour" not in learnt
    redactor = Redactor()
    redactor.learn(learnt)
    line = redactor.line({"text": f"it said {secret} and t0ken-of-the-server-88"})
    assert line == '{"text":"it said [redacted] and [redacted]"}'
