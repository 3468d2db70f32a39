from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from evercontext.domain.tool import Caller, Door, Mode
from evercontext.errors import ConfigError, PathRefused
from evercontext.events.log import EventLog
from evercontext.files.policy import agent_policy
from evercontext.index.code_search import CodeIndex
from evercontext.index.location import FOLDER
from evercontext.index.opener import IndexOpener
from evercontext.index.remote_search import RemoteIndex
from evercontext.index.tools import index_tools
from evercontext.tools.toolbox import Toolbox
from tests.index.world import SHOP, write

TRACE = "00000000-0000-4000-8000-000000000002"


async def test_plan_mode_writes_nothing_into_the_tree(tmp_path: Path) -> None:
    tree = write(tmp_path / "tree", SHOP)
    place = IndexOpener(tree, tmp_path / "home", agent_policy())
    try:
        index = await place(Caller(TRACE, Door.RUN, Mode.PLAN))
        assert (await index.search("cart")).hits
        assert not (tree / FOLDER).exists()
        assert await place(Caller(TRACE, Door.RUN, Mode.DRY_RUN)) is index
        assert await place(Caller(TRACE, Door.RUN)) is not index
        assert (tree / FOLDER).is_dir()
    finally:
        await place.close()


async def _place_of(tree: Path, tmp_path: Path) -> tuple[Path, list[str]]:
    """Search through a place and return where its index lies and what was told."""
    log = EventLog(tmp_path / "traces")
    place = IndexOpener(tree, tmp_path / "home", agent_policy(), events=log)
    try:
        for _ in range(2):
            index = await place(Caller(TRACE, Door.RUN))
            assert (await index.search("cart")).hits
        (folder,) = place._open
    finally:
        await place.close()
        log.close()
    texts = [file.read_text("utf-8") for file in (tmp_path / "traces").rglob("*.jsonl")]
    lines = [json.loads(line) for text in texts for line in text.splitlines()]
    return folder, [line["data"]["text"] for line in lines if line["type"] == "notice"]


def _git(tree: Path, *arguments: str) -> None:
    subprocess.run(("git", *arguments), cwd=tree, check=True, capture_output=True)


async def test_a_linked_folder_is_not_used(tmp_path: Path) -> None:
    tree = write(tmp_path / "tree", SHOP)
    (tmp_path / "elsewhere").mkdir()
    (tree / FOLDER).symlink_to(tmp_path / "elsewhere")
    folder, told = await _place_of(tree, tmp_path)
    assert tmp_path / "home" in folder.parents
    assert len(told) == 1
    assert not list((tmp_path / "elsewhere").iterdir())


@pytest.mark.parametrize(
    "name", [".gitignore", "index.db", "index.db-wal", "index.db-shm", "index.db.lock", "spool"]
)
async def test_a_link_in_the_folder_leads_nowhere(tmp_path: Path, name: str) -> None:
    tree = write(tmp_path / "tree", SHOP)
    victim = tmp_path / "victim"
    victim.mkdir()
    (tree / FOLDER).mkdir()
    (tree / FOLDER / name).symlink_to(victim / name)
    folder, told = await _place_of(tree, tmp_path)
    assert tmp_path / "home" in folder.parents
    assert not list(victim.iterdir())
    assert len(told) == 1
    assert name in told[0]


async def test_a_second_name_of_a_file_elsewhere_is_not_written(tmp_path: Path) -> None:
    tree = write(tmp_path / "tree", SHOP)
    (tmp_path / "victim").write_bytes(b"")
    (tree / FOLDER).mkdir()
    (tree / FOLDER / "index.db").hardlink_to(tmp_path / "victim")
    folder, told = await _place_of(tree, tmp_path)
    assert tmp_path / "home" in folder.parents
    assert (tmp_path / "victim").read_bytes() == b""
    assert len(told) == 1


async def test_an_index_that_the_repository_brought_is_not_used(tmp_path: Path) -> None:
    tree = write(tmp_path / "tree", SHOP)
    _git(tree, "init", "-q")
    own, nothing = await _place_of(tree, tmp_path)
    assert (own, nothing) == (tree / FOLDER, [])
    _git(tree, "add", "--force", f"{FOLDER}/index.db")
    before = (own / "index.db").read_bytes()
    folder, told = await _place_of(tree, tmp_path)
    assert tmp_path / "home" in folder.parents
    assert (own / "index.db").read_bytes() == before
    assert len(told) == 1
    with pytest.raises(PathRefused):
        await CodeIndex.open(tree, use_vectors=False)


class _Server(BaseHTTPRequestHandler):
    answer = b"{}"
    status = 200
    seen: list[tuple[str, str | None, bytes]]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.seen.append((self.path, self.headers.get("x-trace-id"), body))
        self.send_response(self.status)
        self.end_headers()
        self.wfile.write(self.answer)

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def _serving(answer: bytes, status: int = 200) -> Iterator[tuple[str, type[_Server]]]:
    kind = type("Served", (_Server,), {"answer": answer, "status": status, "seen": []})
    server = ThreadingHTTPServer(("127.0.0.1", 0), kind)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", kind
    finally:
        server.shutdown()
        server.server_close()


async def _search(url: str, tmp_path: Path) -> tuple[object, str | None]:
    log = EventLog(tmp_path / "traces")
    remote = RemoteIndex(url, events=log)
    place = IndexOpener(tmp_path, tmp_path, agent_policy())
    toolbox = Toolbox(remote.adopt(index_tools(place, log)), log)
    result = await toolbox.call("search_code", {"query": "cart"}, Caller(TRACE, Door.RUN))
    await remote.aclose()
    log.close()
    return result.data, result.error.code if result.error else None


@pytest.mark.contract("E33")
async def test_calls_go_to_the_configured_server_with_their_trace(tmp_path: Path) -> None:
    chunk = b'{"chunks": [{"path": "a.py", "span": "L1-L2", "text": "x", "score": 0.5}]}'
    with _serving(chunk) as (url, server):
        data, error = await _search(url, tmp_path)
    assert error is None
    assert isinstance(data, dict)
    assert data["chunks"][0]["path"] == "a.py"
    assert server.seen == [("/search", TRACE, b'{"query":"cart"}')]


@pytest.mark.parametrize("chunks", [[], [{"path": "a.py", "span": "L1-L2", "text": "x"}]])
async def test_how_complete_the_index_there_is_reaches_the_model(
    tmp_path: Path, chunks: list[dict[str, str]]
) -> None:
    """F1: an answer that came too early says so, wherever the index lies."""
    told = {"chunks": chunks, "stale": True, "coverage": {"indexed": 7, "files": 90}}
    log = EventLog(tmp_path / "traces")
    with _serving(json.dumps(told).encode()) as (url, _):
        remote = RemoteIndex(url, events=log)
        place = IndexOpener(tmp_path, tmp_path, agent_policy())
        toolbox = Toolbox(remote.adopt(index_tools(place, log)), log)
        result = await toolbox.call("search_code", {"query": "cart"}, Caller(TRACE, Door.RUN))
        await remote.aclose()
    log.close()
    assert result.hits == len(chunks)
    assert "7 of 90 files" in result.text
    assert result.text.startswith("a.py" if chunks else "Nothing found.")


@pytest.mark.parametrize(
    ("answer", "status", "code"),
    [
        (b'{"error": {"code": "not_found", "message": "no"}}', 404, "not_found"),
        (b"<html>", 502, "gateway_unreachable"),
        (b"[]", 200, "gateway_unreachable"),
    ],
)
async def test_a_failing_server_is_named(
    tmp_path: Path, answer: bytes, status: int, code: str
) -> None:
    with _serving(answer, status) as (url, _):
        _, error = await _search(url, tmp_path)
    assert error == code


async def test_no_server_is_named_too(tmp_path: Path) -> None:
    _, error = await _search("http://127.0.0.1:9", tmp_path)
    assert error == "gateway_unreachable"
    with pytest.raises(ConfigError):
        RemoteIndex("not an address")
