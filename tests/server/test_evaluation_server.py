from __future__ import annotations

import asyncio
import json
import os
import stat
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.typing import Subprotocol

from evercontext import settings as sources
from evercontext.app import EverContext
from evercontext.domain.event import EvaluationState, Event
from evercontext.evaluation.evaluator import LARGEST
from evercontext.mcp.server.websocket import MOST_CALLS
from evercontext.server.evaluation_server import LARGEST_MESSAGE, open_evaluator
from tests.server.judged import GOOD

JUDGED = {"rubric_scores": {"completeness": 9, "accuracy": 9, "clarity": 9, "usability": 9}}


class Running:
    def __init__(self, app: EverContext, port: int) -> None:
        self.app, self.port, self.heard = app, port, list[Event]()
        app.events.subscribe(self.heard.append)

    def connect(self, **headers: str) -> connect:
        return connect(f"ws://127.0.0.1:{self.port}/mcp", additional_headers=headers, max_size=None)

    def states(self) -> list[str]:
        return [e.body.state for e in self.heard if isinstance(e.body, EvaluationState)]


Start = Callable[..., Any]


@pytest.fixture
def start(tmp_path: Path) -> Start:
    @asynccontextmanager
    async def running(
        limits: dict[str, float] | None = None, **environment: str
    ) -> AsyncIterator[Running]:
        root = tmp_path / "project"
        root.mkdir(exist_ok=True)
        given = {
            "EC_HOME": str(tmp_path / "home"),
            "MCP_PORT": "0",
            "MCP_HOST": "127.0.0.1",
            "USE_MOCK_EVALUATOR": "true",
            **environment,
        }
        settings = sources.load({"root": str(root)}, environment=given, cwd=tmp_path)
        async with EverContext.open(settings) as app:
            opened = open_evaluator(settings, app.toolbox, app.events, **(limits or {}))
            async with opened as server:
                yield Running(app, server.sockets[0].getsockname()[1])

    return running


async def ask(
    socket: ClientConnection, method: str, params: dict[str, Any] | None = None, id: Any = 1
) -> dict[str, Any]:
    await socket.send(
        json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params or {}})
    )
    while True:
        answer: dict[str, Any] = json.loads(await asyncio.wait_for(socket.recv(), 30))
        if answer.get("id") == id:
            return answer


async def hello(socket: ClientConnection) -> dict[str, Any]:
    return await ask(socket, "initialize", {"protocolVersion": "2025-06-18"}, "init")


def evaluate(content: str = GOOD, **more: Any) -> dict[str, Any]:
    return {"name": "evaluate_document", "arguments": {"content": content, **more}}


@pytest.mark.contract("L1", "L2", "L3", "L4", "L5", "L6", "L7", "L19", "L20", "L21", "L22")
async def test_the_whole_sequence_from_initialize_to_close(start: Start) -> None:
    async with start() as running, running.connect() as socket:
        first = await hello(socket)
        assert first["result"]["serverInfo"]["name"] == "evercontext-evaluator"
        assert first["result"]["protocolVersion"] == "2025-06-18"
        assert "tools" in first["result"]["capabilities"]
        await socket.send('{"jsonrpc": "2.0", "method": "notifications/initialized"}')
        listed = await ask(socket, "tools/list", id=2)
        names = [tool["name"] for tool in listed["result"]["tools"]]
        assert names == ["evaluate_document", "get_improvement_suggestions"]
        called = await ask(socket, "tools/call", evaluate(), id=3)
        told = json.loads(called["result"]["content"][0]["text"])
        assert told == called["result"]["structuredContent"]
        assert 0 <= told["score"] <= 10
        assert set(told["rubric_scores"]) == {"completeness", "accuracy", "clarity", "usability"}
        assert told["metadata"]["model_used"] == "local"
        await socket.close()
    states = running.states()
    wanted = ["connecting", "initialised", "running a tool", "evaluating", "computing the score"]
    assert [state for state in states if state in wanted] == wanted
    assert states[-1] == "waiting"


@pytest.mark.contract("L1")
async def test_the_subprotocol_of_the_official_clients_is_selected(start: Start) -> None:
    """P9: the official WebSocket client closes a connection on which ``mcp`` is not selected."""
    async with start() as running:
        address = f"ws://127.0.0.1:{running.port}/mcp"
        for offered, selected in (
            (["mcp"], "mcp"),
            (["chat", "mcp"], "mcp"),
            (["chat"], None),
            (None, None),
        ):
            protocols = [Subprotocol(name) for name in offered] if offered else None
            async with connect(address, subprotocols=protocols) as socket:
                assert socket.subprotocol == selected
                assert "result" in await hello(socket)


@pytest.mark.contract("L20")
async def test_the_largest_document_is_judged_in_whatever_form_it_is_written(start: Start) -> None:
    """C9: escaped, a Japanese document of 0.96 MB has twice as many bytes."""
    document = "# 手引き\n\n" + "これは長い文書です。" * 32_000
    assert 0.95e6 < len(document.encode()) < LARGEST
    async with start() as running, running.connect() as socket:
        await hello(socket)
        answer = await ask(socket, "tools/call", evaluate(document))
        assert answer["result"]["structuredContent"]["metadata"]["model_used"] == "local"
        more = await ask(socket, "tools/call", evaluate("\u0001" * (LARGEST + 1)), id=2)
        assert "too large" in more["error"]["message"]


@pytest.mark.contract("L7")
async def test_calls_before_initialize_are_refused(start: Start) -> None:
    async with start() as running, running.connect() as socket:
        for method in ("tools/list", "tools/call"):
            assert (await ask(socket, method))["error"]["code"] == -32002
        assert (await ask(socket, "ping"))["result"] == {}


@pytest.mark.contract("L2", "L22")
@pytest.mark.case(106)
@pytest.mark.parametrize(
    ("message", "code"),
    [
        ("{", -32700),
        ("\0", -32700),
        ("[1,2]", -32600),
        ('{"jsonrpc":"2.0","id":1}', -32600),
        ('{"jsonrpc":"2.0","id":{},"method":"ping"}', -32600),
        ('{"jsonrpc":"1.0","id":1,"method":"ping"}', -32600),
        ('{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}', -32602),
        ('{"jsonrpc":"2.0","id":1,"method":"no/such"}', -32601),
    ],
)
async def test_bad_messages_get_their_code(start: Start, message: str, code: int) -> None:
    async with start() as running, running.connect() as socket:
        await hello(socket)
        await socket.send(message)
        answer = json.loads(await asyncio.wait_for(socket.recv(), 30))
        assert answer["error"]["code"] == code


@pytest.mark.case(106)
async def test_notifications_get_no_answer(start: Start) -> None:
    async with start() as running, running.connect() as socket:
        await socket.send('{"jsonrpc": "2.0", "method": "whatever"}')
        await socket.send('{"jsonrpc": "2.0", "id": 9, "result": {}}')
        assert (await ask(socket, "ping", id=5))["id"] == 5


@pytest.mark.case(109)
@pytest.mark.parametrize(
    ("more", "field"),
    [
        ({"rubric": {"accuracy": -1}}, "rubric.accuracy"),
        ({"rubric": {"clarity": "x"}}, "clarity"),
        ({"rubric": {"clarity": 0}}, "rubric"),
        ({"target_score": 11}, "target_score"),
        ({"surprise": 1}, "surprise"),
    ],
)
async def test_bad_parameters_name_their_field(start: Start, more: Any, field: str) -> None:
    async with start() as running, running.connect() as socket:
        await hello(socket)
        answer = await ask(socket, "tools/call", evaluate(**more))
        assert answer["error"]["code"] == -32602
        assert field in answer["error"]["message"]


@pytest.mark.case(101)
@pytest.mark.parametrize(
    "headers",
    [{"Origin": "https://evil.example"}, {"Origin": "null"}, {"Host": "evil.example:23100"}],
)
async def test_foreign_pages_and_names_are_turned_away(
    start: Start, headers: dict[str, str]
) -> None:
    async with start() as running:
        if "Host" in headers:
            reader, writer = await asyncio.open_connection("127.0.0.1", running.port)
            writer.write(
                b"GET /mcp HTTP/1.1\r\nHost: evil.example\r\nUpgrade: websocket\r\n"
                b"Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
            )
            assert b" 403 " in await reader.readline()
            writer.close()
            return
        with pytest.raises(InvalidStatus) as refused:
            async with running.connect(**headers):
                pass
        assert refused.value.response.status_code == 403


@pytest.mark.case(101)
async def test_a_token_is_asked_for_where_one_is_set(start: Start) -> None:
    async with start(EC_TOKEN="sesame-sesame") as running:
        with pytest.raises(InvalidStatus) as refused:
            async with running.connect():
                pass
        assert refused.value.response.status_code == 401
        async with running.connect(Authorization="Bearer sesame-sesame") as socket:
            assert "result" in await hello(socket)


@pytest.mark.case(102)
async def test_a_frame_past_the_limit_closes_with_1009(start: Start) -> None:
    async with start() as running, running.connect() as socket:
        await socket.send("x" * (LARGEST_MESSAGE + 1))
        with pytest.raises(ConnectionClosed) as closed:
            await asyncio.wait_for(socket.recv(), 30)
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1009


@pytest.mark.case(103)
async def test_half_a_handshake_is_dropped(start: Start) -> None:
    async with start({"open_seconds": 0.5}) as running:
        reader, writer = await asyncio.open_connection("127.0.0.1", running.port)
        writer.write(b"GET /mcp HTTP/1.1\r\nHost: 127")
        assert await asyncio.wait_for(reader.read(), 30) == b""
        writer.close()


@pytest.mark.case(104)
async def test_a_peer_that_never_answers_a_ping_is_dropped(start: Start) -> None:
    async with start({"ping_seconds": 0.3}) as running:
        reader, writer = await asyncio.open_connection("127.0.0.1", running.port)
        writer.write(
            f"GET /mcp HTTP/1.1\r\nHost: 127.0.0.1:{running.port}\r\n"
            "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n".encode()
        )
        assert b"101" in await reader.readline()
        await asyncio.wait_for(reader.read(), 30)
        writer.close()


def codex(folder: Path, body: str) -> str:
    program = folder / "codex"
    program.write_text(
        f"#!{sys.executable}\nimport os, sys, time\n"
        f"if sys.argv[1:] == ['--version']: sys.exit()\nsys.stdin.read()\n{body}\n"
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return f"{folder}{os.pathsep}{os.environ['PATH']}"


@pytest.mark.contract("L10", "L15", "L16")
async def test_a_missing_program_is_an_internal_error_at_once(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    async with start(USE_MOCK_EVALUATOR="false") as running, running.connect() as socket:
        await hello(socket)
        answer = await ask(socket, "tools/call", evaluate())
        assert answer["error"]["code"] == -32603
        assert "not installed" in answer["error"]["message"]


@pytest.mark.contract("L5", "L10")
async def test_codex_answers_and_progress_is_told(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", codex(tmp_path, f"print({json.dumps(json.dumps(JUDGED))})"))
    async with start(USE_MOCK_EVALUATOR="false") as running, running.connect() as socket:
        await hello(socket)
        params = {**evaluate(), "_meta": {"progressToken": "p"}}
        await socket.send(
            json.dumps({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params})
        )
        seen = []
        while True:
            message = json.loads(await asyncio.wait_for(socket.recv(), 30))
            if message.get("id") == 7:
                break
            seen.append(message["params"]["message"])
        assert message["result"]["structuredContent"]["score"] == 9.0
        assert "CLI running" in seen


@pytest.mark.contract("L13")
@pytest.mark.case(112)
async def test_cancelling_a_call_kills_its_program(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = tmp_path / "pid"
    body = f"open({str(mark)!r}, 'w').write(str(os.getpid()))\ntime.sleep(300)"
    monkeypatch.setenv("PATH", codex(tmp_path, body))
    async with (
        start(USE_MOCK_EVALUATOR="false", EC_SANDBOX="none") as running,
        running.connect() as socket,
    ):
        await hello(socket)
        request = {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": evaluate()}
        await socket.send(json.dumps(request))
        while not mark.exists() or not mark.read_text():
            await asyncio.sleep(0.05)
        cancelled = {"requestId": 3}
        await socket.send(
            json.dumps({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled})
        )
        pid = int(mark.read_text())
        for _ in range(1_200):
            if not Path(f"/proc/{pid}").exists():
                break
            await asyncio.sleep(0.05)
        assert not Path(f"/proc/{pid}").exists()
        assert (await ask(socket, "ping", id=4))["result"] == {}


async def test_more_calls_than_the_limit_are_told_to_wait(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", codex(tmp_path, "time.sleep(300)"))
    async with start(USE_MOCK_EVALUATOR="false") as running, running.connect() as socket:
        await hello(socket)
        for n in range(MOST_CALLS + 1):
            request = {"jsonrpc": "2.0", "id": n, "method": "tools/call", "params": evaluate()}
            await socket.send(json.dumps(request))
        answer = json.loads(await asyncio.wait_for(socket.recv(), 60))
        assert answer["error"]["code"] == -32000
        assert answer["id"] == MOST_CALLS


async def test_many_connections_leave_nothing_behind(start: Start) -> None:
    async with start() as running:

        async def client() -> float:
            async with running.connect() as socket:
                await hello(socket)
                scores = [
                    (await ask(socket, "tools/call", evaluate(), id=n))["result"] for n in range(4)
                ]
                return float(scores[-1]["structuredContent"]["score"])

        await client()  # the event log opens its segment with the first event
        before = len(os.listdir("/proc/self/fd"))
        scores = await asyncio.gather(*(client() for _ in range(20)))
        assert len(set(scores)) == 1
        for _ in range(600):
            if len(os.listdir("/proc/self/fd")) <= before:
                break
            await asyncio.sleep(0.05)
        assert len(os.listdir("/proc/self/fd")) <= before


@pytest.mark.parametrize("number", [[1], {"a": 1}, None, 1.5, True])
async def test_an_odd_request_id_is_survived(start: Start, number: Any) -> None:
    """X23: a list as requestId closed the connection."""
    async with start() as running, running.connect() as socket:
        await hello(socket)
        params = {"requestId": number}
        cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}
        await socket.send(json.dumps(cancel))
        await socket.send(json.dumps({"jsonrpc": "2.0", "id": number, "method": "ping"}))
        assert (await ask(socket, "ping", id=7))["result"] == {}
