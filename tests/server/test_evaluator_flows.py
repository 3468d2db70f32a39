"""The evaluator's sequences, played byte by byte by a client that has no library."""

from __future__ import annotations

import asyncio
import json
import os
import stat
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from evercontext import settings as sources
from evercontext.app import EverContext
from evercontext.domain.event import EvaluationState, Event
from evercontext.server.evaluation_server import open_evaluator
from tests.server.judged import GOOD
from tests.server.raw_websocket import RawClient

JAPANESE = GOOD.replace("Title", "題名")
CODEX = '''#!{python}
"""Behaves as the document says, and writes down when it was started."""
import json, os, re, signal, subprocess, sys, time

if sys.argv[1:] == ["--version"]:
    sys.exit()
prompt = sys.stdin.read()
how = re.search("BEHAVE: ([a-z-]+)", prompt)[1]
place = os.path.join({log!r}, how)
with open(place, "a") as file:
    file.write(json.dumps([time.monotonic(), os.getpid(), sys.argv[1:], os.listdir(".")]) + "\\n")
calls = sum(1 for _ in open(place))
good = json.dumps({{"rubric_scores": {{"completeness": 9, "accuracy": 8, "clarity": 7,
                                     "usability": 6}}, "suggestions": ["もっと"], "score": 1}})
if how == "stubborn":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if how in ("hang", "stubborn"):
    child = subprocess.Popen(["sleep", "300"])
    open(place + ".child", "w").write(str(child.pid))
    time.sleep(300)
if how == "crash":
    sys.exit("Traceback: line 401 of the plugin, boom")
if how == "login":
    sys.exit("error: 401 Unauthorized")
if how == "mended" and calls < 3:
    sys.exit(1) if calls == 1 else print("thinking… {{")
elif how == "words":
    print("I would say nine of ten.")
elif how == "high":
    print(good.replace("9", "99"))
elif how == "flood":
    print("x" * 200_000)
else:
    print("noise before {{}}\\n" + good)
'''


class Running:
    def __init__(self, app: EverContext, port: int, log: Path) -> None:
        self.app, self.port, self._log, self.heard = app, port, log, list[Event]()
        app.events.subscribe(self.heard.append)

    def starts(self, how: str) -> list[tuple[float, int]]:
        """When the program was started, and as which process."""
        rows = [json.loads(line) for line in (self._log / how).read_text().splitlines()]
        for row in rows:
            assert row[3] == [], "it works in an empty folder"
        return [(row[0], row[1]) for row in rows]

    def child(self, how: str) -> int:
        return int((self._log / f"{how}.child").read_text())

    def arguments(self, how: str) -> list[str]:
        given: list[str] = json.loads((self._log / how).read_text().splitlines()[0])[2]
        return given

    def states(self, trace_id: str | None = None) -> list[str]:
        heard = [event for event in self.heard if trace_id in (None, event.trace_id)]
        return [e.body.state for e in heard if isinstance(e.body, EvaluationState)]

    def trace_of(self, detail: str) -> str:
        return next(
            e.trace_id
            for e in self.heard
            if isinstance(e.body, EvaluationState) and detail in e.body.detail
        )


Start = Callable[..., Any]


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Start:
    log, program = tmp_path / "log", tmp_path / "bin" / "codex"
    for folder in (log, program.parent, tmp_path / "project"):
        folder.mkdir()
    program.write_text(CODEX.format(python=sys.executable, log=str(log)), encoding="utf-8")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")

    @asynccontextmanager
    async def running(**environment: str) -> AsyncIterator[Running]:
        given = {
            "EC_HOME": str(tmp_path / "home"),
            "MCP_PORT": "0",
            "MCP_HOST": "127.0.0.1",
            "USE_MOCK_EVALUATOR": "false",
            "EC_SANDBOX": "none",
            **environment,
        }
        flags = {"root": str(tmp_path / "project")}
        settings = sources.load(flags, environment=given, cwd=tmp_path)
        async with (
            EverContext.open(settings) as app,
            open_evaluator(settings, app.toolbox, app.events) as server,
        ):
            yield Running(app, server.sockets[0].getsockname()[1], log)

    return running


def evaluate(content: str = JAPANESE, **more: Any) -> dict[str, Any]:
    return {"name": "evaluate_document", "arguments": {"content": content, **more}}


async def flow(running: Running, how: str) -> dict[str, Any]:
    """One client's whole visit: initialize, one call, close."""
    client = await RawClient.open(running.port)
    await client.hello()
    answer = await client.ask("tools/call", evaluate(f"{JAPANESE}\nBEHAVE: {how}\n"), id=7)
    assert await client.close() == 1000
    return answer


def gone(pid: int) -> bool:
    return not Path(f"/proc/{pid}").exists()


@pytest.mark.contract("L1", "L2", "L3", "L4", "L5", "L6", "L7", "L19", "L20", "L21", "L22")
async def test_the_sequence_of_the_design_byte_by_byte(start: Start) -> None:
    async with start(USE_MOCK_EVALUATOR="true") as running:
        client = await RawClient.open(running.port)
        hello = await client.hello()
        assert set(hello) == {"jsonrpc", "id", "result"}
        assert set(hello["result"]) == {"protocolVersion", "serverInfo", "capabilities"}
        listed = await client.ask("tools/list", id=2)
        tools = {tool["name"]: tool for tool in listed["result"]["tools"]}
        assert set(tools) == {"evaluate_document", "get_improvement_suggestions"}
        taken = tools["evaluate_document"]["inputSchema"]["properties"]
        assert set(taken) == {"content", "rubric", "target_score"}
        weights = {"completeness": 1, "accuracy": 1, "clarity": 1, "usability": 1}
        params = evaluate(rubric=weights, target_score=1)
        called = (await client.ask("tools/call", params, id=3))["result"]
        assert [part["type"] for part in called["content"]] == ["text"]
        told = json.loads(called["content"][0]["text"])
        assert set(told) == {"score", "rubric_scores", "pass", "suggestions", "metadata"}
        assert told["pass"] is True
        assert told["score"] == pytest.approx(sum(told["rubric_scores"].values()) / 4, abs=0.01)
        advice = {"name": "get_improvement_suggestions", "arguments": {"content": JAPANESE}}
        assert (await client.ask("tools/call", advice, id=4))["result"]["isError"] is False
        assert client.told == [], "the notification got no answer"
        assert await client.close() == 1000
    assert running.states()[:2] == ["connecting", "initialised"]
    assert running.states()[-1] == "waiting"


async def failed_three_times(running: Running, says: dict[str, str]) -> None:
    """Let every way to fail do so at once, because each waits one second and then two."""
    answers = await asyncio.gather(*(flow(running, how) for how in says))
    for (how, said), answer in zip(says.items(), answers, strict=True):
        error = answer["error"]
        assert error["code"] == -32603, how
        assert "failed 3 times" in error["message"], how
        assert said in error["message"], how
        moments = [moment for moment, _ in running.starts(how)]
        assert len(moments) == 3, how
        assert moments[1] - moments[0] >= 1.0, how
        assert moments[2] - moments[1] >= 2.0, how
        assert all(gone(pid) for _, pid in running.starts(how)), how


@pytest.mark.contract("L10", "L12", "L14", "L15", "L16", "L19")
@pytest.mark.case(111)
@pytest.mark.slow
async def test_every_way_to_fail_has_its_attempts_waits_and_code(start: Start) -> None:
    async with start(CODEX_MAX_BUFFER="100000", CODEX_ARGS="exec --full-auto") as running:
        says = {
            "crash": "boom",
            "words": "no JSON object",
            "high": "= 99,",
            "flood": "100000 bytes",
        }
        await failed_three_times(running, says)
        login = (await flow(running, "login"))["error"]
        assert login["code"] == -32603
        assert "codex login" in login["message"]
        assert len(running.starts("login")) == 1
        for how, times in (("mended", 3), ("fine", 1)):
            told = (await flow(running, how))["result"]["structuredContent"]
            assert (told["score"], told["pass"]) == (7.7, False), how
            assert len(running.starts(how)) == times
        assert running.arguments("fine") == ["exec", "--full-auto"]
        states = running.states(running.trace_of("boom"))
        attempt = ["CLI running", "error handling"]
        again = [*attempt, "retrying"]
        assert states == ["running a tool", "evaluating", *again, *again, *attempt, "failed"]


@pytest.mark.contract("L12", "L13")
@pytest.mark.case(112)
async def test_a_program_that_hangs_is_ended_with_its_children(start: Start) -> None:
    async with start(CODEX_TIMEOUT="3000") as running:
        late = "did not finish in 3 s"
        await failed_three_times(running, {"hang": late, "stubborn": late})
        assert gone(running.child("hang"))
        assert gone(running.child("stubborn"))


@pytest.mark.contract("L10", "L15", "L16")
@pytest.mark.case(111)
async def test_a_missing_program_is_not_tried_again(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin" / "codex").unlink()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    async with start() as running:
        error = (await flow(running, "missing"))["error"]
        assert error["code"] == -32603
        assert "codex is not installed" in error["message"]
        assert "retrying" not in running.states()


@pytest.mark.contract("L7", "L13")
@pytest.mark.case(112)
async def test_a_client_that_goes_away_takes_its_program_with_it(
    start: Start, tmp_path: Path
) -> None:
    async with start() as running:
        client = await RawClient.open(running.port)
        await client.hello()
        client.send(
            {
                "jsonrpc": "2.0",
                "id": 1,
                "method": "tools/call",
                "params": evaluate("BEHAVE: stubborn"),
            }
        )
        mark = tmp_path / "log" / "stubborn.child"
        await until(lambda: mark.exists() and mark.read_text() != "")
        client.drop()
        ((_, pid),) = running.starts("stubborn")
        await until(lambda: gone(pid) and gone(running.child("stubborn")))
        await until(lambda: running.states()[-1] == "waiting")


@pytest.mark.contract("L5")
async def test_progress_comes_in_order_and_never_after_the_answer(start: Start) -> None:
    async with start() as running:
        client = await RawClient.open(running.port)
        await client.hello()
        params = {**evaluate("BEHAVE: fine"), "_meta": {"progressToken": 5}}
        await client.ask("tools/call", params, id=1)
        steps = [message["params"] for message in client.told]
        assert [step["message"] for step in steps] == [
            "running a tool",
            "evaluating",
            "CLI running",
            "parsing JSON",
            "computing the score",
            "needs improvement",
        ]
        assert [step["progress"] for step in steps] == [1, 2, 3, 4, 5, 6]
        client.told.clear()
        await client.ask("ping", id=2)
        assert client.told == []
        await client.close()


@pytest.mark.case(109)
@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ('"content": "x", "rubric": {"clarity": NaN}', "clarity"),
        ('"content": "x", "rubric": {"clarity": -Infinity}', "clarity"),
        ('"content": "x", "rubric": {"clarity": 1e999}', "clarity"),
        ('"content": "x", "rubric": {"clarity": true}', "clarity"),
        ('"content": "x", "rubric": {"clarity": 0, "accuracy": 0}', "rubric"),
        ('"content": "x", "rubric": []', "rubric"),
        ('"content": "x", "target_score": NaN', "target_score"),
        ('"content": "x", "target_score": -1', "target_score"),
        ('"content": 5', "content"),
        ('"rubric": {}', "content"),
    ],
)
async def test_senseless_numbers_are_refused_by_name(
    start: Start, arguments: str, named: str
) -> None:
    async with start(USE_MOCK_EVALUATOR="true") as running:
        client = await RawClient.open(running.port)
        await client.hello()
        call = '{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": '
        client.frame(1, f'{call}"evaluate_document", "arguments": {{{arguments}}}}}}}'.encode())
        error = (await client.answer(1))["error"]
        assert error["code"] == -32602
        assert named in error["message"]
        await client.close()


@pytest.mark.case(106, 108)
async def test_half_a_character_pair_comes_back_without_harm(start: Start) -> None:
    async with start(USE_MOCK_EVALUATOR="true") as running:
        client = await RawClient.open(running.port)
        await client.hello()
        content = JAPANESE.replace("\n", "\\n") + "\\ud800 {{accuracy_weight}}"
        client.frame(
            1,
            (
                '{"jsonrpc": "2.0", "id": "\\ud800", "method": "tools/call", "params": {"name": '
                f'"evaluate_document", "arguments": {{"content": "{content}"}}}}}}'
            ).encode(),
        )
        assert "score" in (await client.answer("?"))["result"]["structuredContent"]
        assert (await client.ask("ping", id=2))["result"] == {}
        await client.close()


@pytest.mark.case(106)
async def test_a_broken_request_is_answered_by_its_id_where_it_has_one(start: Start) -> None:
    async with start(USE_MOCK_EVALUATOR="true") as running:
        client = await RawClient.open(running.port)
        await client.hello()
        client.send({"jsonrpc": "2.0", "id": 3, "method": "ping", "params": [1]})
        assert (await client.answer(3))["error"]["code"] == -32602
        client.send({"jsonrpc": "2.0", "id": 4})
        assert (await client.answer(4))["error"]["code"] == -32600
        await client.close()


async def test_what_was_judged_over_the_wire_is_in_the_history(start: Start) -> None:
    async with start() as running:
        await flow(running, "fine")
        (record,) = await running.app.evaluations.recent()
        assert (record.door, record.judge, record.score) == ("tool", "codex", 7.7)
        assert record.title == "題名"
        assert record.suggestions == ("もっと",)


async def until(condition: Callable[[], bool], seconds: float = 30.0) -> None:
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit
        await asyncio.sleep(0.02)
