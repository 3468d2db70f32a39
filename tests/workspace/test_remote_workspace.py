from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from evercontext import errors
from evercontext.domain.tool import Caller, Door
from evercontext.errors import (
    AlreadyExists,
    Changed,
    ConfigError,
    GatewayUnreachable,
    NotFound,
    NotUtf8,
    PathEscape,
    ProtectedPath,
    TooLarge,
    Unauthorized,
)
from evercontext.files.file_io import digest
from evercontext.files.file_tree import WriteMode
from evercontext.workspace.remote_workspace import RemoteWorkspace
from tests.server.running import Gateway, running

pytestmark = pytest.mark.contract("E33")
CALLER = Caller(str(uuid.uuid4()), Door.RUN)


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    place = tmp_path_factory.mktemp("remote")
    with running(place / "root", place / "home", {"EC_TOKEN": "the-right-token"}) as gateway:
        yield gateway


@pytest.fixture
async def remote(gateway: Gateway) -> AsyncIterator[RemoteWorkspace]:
    workspace = RemoteWorkspace(gateway.url, "the-right-token")
    yield workspace
    await workspace.aclose()


async def test_calls_go_over_http_under_the_same_trace(
    gateway: Gateway, remote: RemoteWorkspace
) -> None:
    caller = Caller(str(uuid.uuid4()), Door.RUN)
    made = await remote.write("sub/a.py", "print('あ')\n", WriteMode.CREATE, caller)
    assert (made.path, made.before, made.after, made.created) == (
        "sub/a.py",
        None,
        "print('あ')\n",
        True,
    )
    assert (gateway.root / "sub/a.py").read_text() == "print('あ')\n"
    file = await remote.read("./sub/a.py", caller)
    assert (file.path, file.content, file.sha256) == ("sub/a.py", made.after, made.sha256)
    listing = await remote.list("sub", caller, extensions=[".py"], max_items=5)
    assert [(entry.name, entry.is_dir) for entry in listing.entries] == [("a.py", False)]
    lines = [line for line in gateway.audit() if line["trace_id"] == caller.trace_id]
    assert [line["method"] for line in lines] == [
        "POST /write_file",
        "POST /read_file",
        "POST /list_files",
    ]


async def test_overwrite_and_append_tell_before_and_after(remote: RemoteWorkspace) -> None:
    await remote.write("b.txt", "one\n", WriteMode.OVERWRITE, CALLER)
    written = await remote.write("b.txt", "two\n", WriteMode.APPEND, CALLER)
    assert (written.before, written.after) == ("one\n", "one\ntwo\n")
    assert (await remote.read("b.txt", CALLER)).sha256 == written.sha256


async def test_preview_changes_nothing(gateway: Gateway, remote: RemoteWorkspace) -> None:
    seen = await remote.preview("new.txt", "x", WriteMode.CREATE, CALLER)
    assert (seen.before, seen.after) == (None, "x")
    assert not (gateway.root / "new.txt").exists()
    (gateway.root / "old.txt").write_text("old")
    with pytest.raises(AlreadyExists):
        await remote.preview("old.txt", "x", WriteMode.CREATE, CALLER)
    with pytest.raises(NotFound):
        await remote.preview("none.txt", None, WriteMode.OVERWRITE, CALLER)


@pytest.mark.case(46)
async def test_stale_hash_is_refused_and_both_versions_kept(
    gateway: Gateway, remote: RemoteWorkspace
) -> None:
    written = await remote.write("c.txt", "mine\n", WriteMode.OVERWRITE, CALLER)
    (gateway.root / "c.txt").write_text("the user's\n")
    with pytest.raises(Changed):
        await remote.write("c.txt", "newer\n", WriteMode.OVERWRITE, CALLER, if_match=written.sha256)
    assert (gateway.root / "c.txt").read_text() == "the user's\n"
    fresh = digest(b"the user's\n")
    await remote.write("c.txt", "newer\n", WriteMode.OVERWRITE, CALLER, if_match=fresh)


async def test_search_delete_and_move_go_the_same_way(
    gateway: Gateway, remote: RemoteWorkspace
) -> None:
    await remote.write("find/me.txt", "needle", WriteMode.CREATE, CALLER)
    assert (await remote.search("find", "needle", CALLER)).paths == ("find/me.txt",)
    gone, made = await remote.move("find/me.txt", "find/you.txt", CALLER)
    assert (gone.before, made.after) == ("needle", "needle")
    removed = await remote.delete("find/you.txt", CALLER)
    assert (removed.before, removed.after) == ("needle", None)
    assert not list((gateway.root / "find").iterdir())


async def test_errors_are_the_ones_raised_here(gateway: Gateway, remote: RemoteWorkspace) -> None:
    (gateway.root / "bytes.txt").write_bytes(b"\xff")
    for path, kind in (
        ("none.txt", NotFound),
        ("../x.txt", PathEscape),
        (".git/x.txt", ProtectedPath),
        ("bytes.txt", NotUtf8),
    ):
        with pytest.raises(kind):
            await remote.read(path, CALLER)
    with pytest.raises(AlreadyExists):
        await remote.write("bytes.txt", "x", WriteMode.CREATE, CALLER)
    with pytest.raises(TooLarge):
        await remote.write("big.txt", "x" * 600_000, WriteMode.CREATE, CALLER)


async def test_wrong_token_and_closed_port_say_what_to_do(gateway: Gateway) -> None:
    stranger = RemoteWorkspace(gateway.url, "wrong")
    with pytest.raises(Unauthorized, match="EC_TOKEN"):
        await stranger.read("a.txt", CALLER)
    await stranger.aclose()
    nobody = RemoteWorkspace("http://127.0.0.1:9")
    with pytest.raises(GatewayUnreachable, match="evercontext serve"):
        await nobody.read("a.txt", CALLER)
    await nobody.aclose()


@pytest.mark.parametrize("url", ["", "127.0.0.1:8765", "ftp://x", "http://"])
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="EC_MCP_URL"):
        RemoteWorkspace(url)


def reply(status: int, body: object) -> bytes:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return b"HTTP/1.1 %d X\r\ncontent-length: %d\r\n\r\n" % (status, len(data)) + data


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (reply(404, {"detail": "no such file"}), errors.NotFound),
        (reply(413, {"detail": "too large"}), errors.TooLarge),
        (reply(500, b"oops"), errors.IoFailed),
        (reply(409, {"error": {"code": "invented"}}), errors.AlreadyExists),
        (reply(200, b"<html>"), errors.GatewayUnreachable),
        (reply(200, []), errors.GatewayUnreachable),
        (reply(200, {"content": 1}), errors.GatewayUnreachable),
        (reply(200, {}), errors.GatewayUnreachable),
        (reply(200, b"[" * 100_000), errors.GatewayUnreachable),
        (b"", errors.GatewayUnreachable),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{", errors.GatewayUnreachable),
        (
            b"HTTP/1.1 302 X\r\nlocation: http://127.0.0.1:9/\r\ncontent-length: 0\r\n\r\n",
            errors.IoFailed,
        ),
        (b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 17_000_000, errors.TooLarge),
    ],
)
async def test_other_servers_are_understood_or_named(
    answer: bytes, kind: type[errors.EverContextError]
) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        with suppress(ConnectionError):
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    remote = RemoteWorkspace(f"http://127.0.0.1:{port}")
    async with server:
        with pytest.raises(kind):
            await remote.read("a.txt", CALLER)
    await remote.aclose()


async def test_odd_names_of_a_listing_survive(tmp_path: Path) -> None:
    with running(tmp_path / "root", tmp_path / "home") as gateway:
        (gateway.root / "日本語.txt").write_text("x")
        remote = RemoteWorkspace(gateway.url)
        names = [entry.name for entry in (await remote.list(".", CALLER)).entries]
        await remote.aclose()
    assert names == ["日本語.txt"]
