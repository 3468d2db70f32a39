"""The HTTP client: connections kept, answers bounded, nothing followed."""

from __future__ import annotations

import asyncio
import json
import shutil
import ssl
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from evercontext.catalog.server_table import ServerConfig
from evercontext.errors import ConfigError, ServerProblem
from evercontext.mcp.client import http1
from evercontext.mcp.client.http1 import Origin, proxy_for
from tests.catalog.world import run, servers
from tests.mcp.client.test_http import reply

Frame = Callable[[bytes], bytes]


def counted(body: bytes) -> bytes:
    return b"content-length: %d\r\n\r\n" % len(body) + body


def chunked(body: bytes) -> bytes:
    cut = len(body) // 2
    parts = b"".join(b"%x\r\n%s\r\n" % (len(p), p) for p in (body[:cut], body[cut:]))
    return b"transfer-encoding: chunked\r\n\r\n" + parts + b"0\r\n\r\n"


@asynccontextmanager
async def kept(
    frame: Frame, status: bytes = b"200 OK", tls: ssl.SSLContext | None = None
) -> AsyncIterator[tuple[str, list[int]]]:
    """A server that keeps its connections; and how many it was asked over each."""
    counts: list[int] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        counts.append(0)
        mine = len(counts) - 1
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                if head.startswith(b"GET"):
                    writer.write(b"HTTP/1.1 405 No\r\ncontent-length: 0\r\n\r\n")
                    continue
                size = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
                message = json.loads(await reader.readexactly(size))
                counts[mine] += 1
                body = json.dumps(reply(message)).encode() if "id" in message else b""
                kind = b"\r\ncontent-type: application/json\r\n"
                writer.write(b"HTTP/1.1 " + status + kind + frame(body))
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=tls)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp", counts


@pytest.mark.parametrize("frame", [counted, chunked])
async def test_one_connection_after_another_call(tmp_path: Path, frame: Frame) -> None:
    async with (
        kept(frame) as (url, counts),
        servers(tmp_path, ServerConfig("far", url=url)) as opened,
    ):
        for number in range(20):
            answer = await run(opened, "far:echo", text=str(number))
            assert json.loads(answer["content"][0]["text"]) == {"text": str(number)}
        assert max(counts) >= 20


async def test_calls_at_once_get_connections_of_their_own(tmp_path: Path) -> None:
    async with (
        kept(counted) as (url, counts),
        servers(tmp_path, ServerConfig("far", url=url)) as opened,
    ):
        texts = [str(i) for i in range(20)]
        answers = await asyncio.gather(*(run(opened, "far:echo", text=text) for text in texts))
        assert [json.loads(a["content"][0]["text"])["text"] for a in answers] == texts
        assert len(counts) > 2


@pytest.mark.parametrize(
    ("frame", "said"),
    [
        (lambda body: b"x-long: " + b"x" * 100_000 + b"\r\n\r\n", "too large a head"),
        (lambda body: b"content-encoding: gzip\r\n" + counted(body), "compressed"),
        (lambda body: b"content-length: x\r\n\r\n", "does not speak HTTP"),
    ],
)
async def test_odd_answers_have_a_name(tmp_path: Path, frame: Frame, said: str) -> None:
    async with (
        kept(frame) as (url, _),
        servers(tmp_path, ServerConfig("far", url=url)) as opened,
    ):
        with pytest.raises(ServerProblem, match=said):
            await run(opened, "far:echo")


async def test_no_redirect_is_followed(tmp_path: Path) -> None:
    async with (
        kept(lambda body: b"location: http://evil.invalid/\r\n" + counted(body), b"307 x") as (
            u,
            _,
        ),
        servers(tmp_path, ServerConfig("far", url=u)) as opened,
    ):
        with pytest.raises(ServerProblem, match="HTTP 307"):
            await run(opened, "far:echo")


@pytest.mark.parametrize("value", ["a\r\nx: y", "a\nb", "a\0"])
def test_a_header_cannot_carry_another(value: str) -> None:
    with pytest.raises(ConfigError, match="breaks the line"):
        Origin("far", "http://localhost/mcp", {"x": value})


@pytest.mark.parametrize(
    ("url", "environment", "proxy"),
    [
        ("https://a.example/x", {"HTTPS_PROXY": "http://p:1"}, "http://p:1"),
        ("https://a.example/x", {"https_proxy": "p:1"}, "http://p:1"),
        ("http://a.example/x", {"HTTPS_PROXY": "http://p:1"}, None),
        ("https://a.example/x", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "b, .example"}, None),
        ("https://a.example/x", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "*"}, None),
        ("https://a.example/x", {}, None),
    ],
)
def test_which_proxy(url: str, environment: dict[str, str], proxy: str | None) -> None:
    assert proxy_for(url, environment) == proxy


async def test_a_call_through_a_proxy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    files = ["-keyout", str(tmp_path / "key.pem"), "-out", str(tmp_path / "cert.pem")]
    if (
        not shutil.which("openssl")
        or subprocess.run([*made, *names, *files], check=False, capture_output=True).returncode
    ):
        pytest.skip("no openssl to make a certificate with")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "cert.pem"))
    http1._tls.cache_clear()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")
    asked: list[bytes] = []

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            writer.write(data)
        writer.close()

    async def tunnel(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        port = int(asked[-1].split(b" ")[1].rpartition(b":")[2])
        other, far = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"HTTP/1.1 200 Connected\r\n\r\n")
        await asyncio.gather(pump(reader, far), pump(other, writer), return_exceptions=True)

    try:
        async with (
            kept(counted, tls=context) as (url, counts),
            await asyncio.start_server(tunnel, "127.0.0.1", 0) as proxy,
        ):
            place = f"http://me:pass@127.0.0.1:{proxy.sockets[0].getsockname()[1]}"
            for name in ("https_proxy", "no_proxy", "NO_PROXY"):
                monkeypatch.delenv(name, raising=False)
            monkeypatch.setenv("HTTPS_PROXY", place)
            secure = url.replace("http://127.0.0.1", "https://localhost")
            async with servers(tmp_path, ServerConfig("far", url=secure)) as opened:
                for _ in range(3):
                    await run(opened, "far:echo", text="x")
    finally:
        http1._tls.cache_clear()
    assert asked[0].startswith(b"CONNECT localhost:")
    assert b"proxy-authorization: Basic bWU6cGFzcw==" in asked[0]
    assert max(counts) >= 3
