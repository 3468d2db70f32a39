from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import EVERCONTEXT, evercontext
from tests.journeys.story import call, script, write


@contextmanager
def serving(project: Path, *more: str) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """A server on a free port, and its address."""
    command = [EVERCONTEXT, "serve", "--port", "0", *more]
    others = {"EC_ROUTER_PORT": "0", "MCP_PORT": "0"}
    with subprocess.Popen(
        command, cwd=project, env={**os.environ, **others}, stderr=subprocess.PIPE
    ) as server:
        assert server.stderr
        try:
            url = ""
            for line in server.stderr:
                found = re.match(rb"REST +(http://\S+)", line)
                url = found[1].decode() if found else url
                if line.startswith(b"Ctrl-C"):
                    break
            assert url
            yield server, url
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait(10)


def post(url: str, body: Mapping[str, object]) -> dict[str, object]:
    request = urllib.request.Request(
        url, json.dumps(body).encode(), {"content-type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        found: dict[str, object] = json.loads(answer.read())
        return found


@pytest.mark.contract("E9", "E10", "E11")
def test_the_doors_open_and_close(tmp_path: Path) -> None:
    with serving(tmp_path) as (server, url):
        new = {"path": "app/main.py", "content": "x = 1\n", "mode": "create"}
        assert post(f"{url}/write_file", new)["status"] == "ok"
        assert post(f"{url}/read_file", {"path": "app/main.py"}) == {"content": "x = 1\n"}
    assert server.returncode == 143


@pytest.mark.contract("E33")
@pytest.mark.slow
def test_run_uses_the_gateway_it_is_told_of(tmp_path: Path) -> None:
    there, here = tmp_path / "there", tmp_path / "here"
    there.mkdir()
    here.mkdir()
    model = script(
        tmp_path / "s.jsonl",
        write("a.txt", "over the wire\n"),
        {"tool_calls": [call("read_file", path="a.txt")]},
        {"when": "over the wire", "text": "read back"},
    )
    with serving(there) as (_, url):
        ended = evercontext("run", "-t", "x", "-m", model, cwd=here, env={"EC_MCP_URL": url})
    assert (ended.code, ended.out) == (0, "read back\n"), ended.err
    assert (there / "a.txt").read_text() == "over the wire\n"
    assert list(here.iterdir()) == []
    assert f"files behind {url}\n" in ended.err
    assert str(here) not in ended.err
    assert "take it back, where the files are" in ended.err
    short = ended.err.partition("evercontext undo ")[2].split()[0]
    assert evercontext("undo", short, cwd=there).code == 0
    assert not (there / "a.txt").exists()


@pytest.mark.case(136)
def test_a_port_in_use_is_one_line(tmp_path: Path) -> None:
    with serving(tmp_path) as (_, url):
        port = url.rpartition(":")[2]
        ended = evercontext("serve", "--port", port, cwd=tmp_path, env={"MCP_PORT": "0"})
    assert ended.code == 1
    assert "EC_PORT" in ended.err
    assert ended.err.count("error: ") == 1


def test_another_address_needs_a_token(tmp_path: Path) -> None:
    ended = evercontext("serve", "--host", "0.0.0.0", "--port", "0", cwd=tmp_path)
    assert ended.code == 1
    assert "EC_TOKEN" in ended.err


@pytest.mark.case(140)
def test_a_wide_root_is_refused() -> None:
    assert evercontext("serve", "--root", "/", "--port", "0").code == 1
    assert evercontext("mcp", "--root", str(Path.home())).code == 1


def test_mcp_speaks_the_protocol_and_nothing_else_on_stdout(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("hello\n")
    hello = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    }
    asked: list[dict[str, Any]] = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {
            "jsonrpc": "2.0",
            "id": 2,
            "method": "tools/call",
            "params": {"name": "read_file", "arguments": {"path": "a.txt"}},
        },
    ]
    with subprocess.Popen(
        [EVERCONTEXT, "mcp"],
        cwd=tmp_path,
        env=os.environ,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as client:
        assert client.stdin
        assert client.stdout
        answers = {}
        for message in asked:
            client.stdin.write(json.dumps(message).encode() + b"\n")
            client.stdin.flush()
            if "id" in message:
                answer = json.loads(client.stdout.readline())
                answers[answer["id"]] = answer
        client.stdin.close()
        assert client.wait(10) == 0
    assert answers[1]["result"]["serverInfo"]["name"] == "evercontext"
    assert "hello" in json.dumps(answers[2]["result"])


def test_doctor_knows_our_own_gateway(tmp_path: Path) -> None:
    with serving(tmp_path) as (_, url):
        port = url.rpartition(":")[2]
        ended = evercontext("doctor", "--json", cwd=tmp_path, env={"EC_PORT": port})
    found = {check["name"]: check for check in json.loads(ended.out)}
    assert found[f"port {port}"]["text"] == "our gateway is running"


def test_piped_requests_are_answered_before_mcp_ends(tmp_path: Path) -> None:
    asked = "".join(
        json.dumps({"jsonrpc": "2.0", "id": number, "method": "ping"}) + "\n" for number in (1, 2)
    )
    ended = evercontext("mcp", cwd=tmp_path, stdin=asked)
    assert ended.code == 0
    assert {json.loads(line)["id"] for line in ended.out.splitlines()} == {1, 2}


@pytest.mark.case(136)
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_mcp_stops_at_a_signal_while_its_client_is_silent(
    number: int, code: int, tmp_path: Path
) -> None:
    with subprocess.Popen(
        [EVERCONTEXT, "mcp"],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as client:
        assert client.stdin
        assert client.stdout
        client.stdin.write(b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n')
        client.stdin.flush()
        assert json.loads(client.stdout.readline())["id"] == 1
        client.send_signal(number)
        assert client.wait(60) == code
