from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from evercontext.errors import GatewayUnreachable
from evercontext.files.policy import agent_policy
from evercontext.index.git_hook import SPOOL, TAKEN
from evercontext.index.location import prepare_folder
from evercontext.index.remote_ingest import SENT, announce
from evercontext.index.remote_search import RemoteIndex
from evercontext.index.walker import Walker
from evercontext.testing import git, tiny_repository
from tests.index.world import write
from tests.listening import Listener, listening

TRACE = "00000000-0000-4000-8000-000000000009"


@pytest.fixture
def server() -> Iterator[Listener]:
    with listening(lambda asked: {"status": "ok"}) as server:
        yield server


async def _announce(tree: Path, folder: Path, port: int) -> int:
    remote = RemoteIndex(f"http://127.0.0.1:{port}")
    try:
        return await announce(Walker(tree, agent_policy()), folder, remote, TRACE)
    finally:
        await remote.aclose()


@pytest.mark.contract("E6", "E17", "E39")
async def test_a_server_is_told_every_commit_once(tmp_path: Path, server: Listener) -> None:
    files = {"a.py": "def a():\n    return 'a'\n", "b.py": "x = 2\n", ".env": "TOKEN=x\n"}
    tree = tiny_repository(tmp_path / "tree", files)
    folder = prepare_folder(tree)
    assert await _announce(tree, folder, server.server_port) == 2
    git(tree, "mv", "a.py", "日本語.py")
    (tree / "b.py").unlink()
    write(tree, {"c d.py": "x = 3\n", "photo.png": "no text\n"})
    git(tree, "add", "--all")
    git(tree, "commit", "-qm", "second")
    assert await _announce(tree, folder, server.server_port) == 3
    assert await _announce(tree, folder, server.server_port) == 0
    first, second = ((one.path, one.body, one.headers["x-trace-id"]) for one in server.asked)
    everything = {"added": ["a.py", "b.py"], "modified": [], "deleted": [], "renamed": []}
    assert first == ("/ingest", {"diff": everything}, TRACE)
    assert second[1]["diff"] == {
        "added": ["c d.py"],
        "modified": [],
        "deleted": ["b.py"],
        "renamed": [{"from": "a.py", "to": "日本語.py"}],
    }


@pytest.mark.case(126)
async def test_a_server_that_is_away_is_told_later(tmp_path: Path, server: Listener) -> None:
    tree = tiny_repository(tmp_path / "tree", {"a.py": "x = 1\n"})
    folder = prepare_folder(tree)
    (folder / SPOOL).write_text("post-commit\n", "utf-8")
    with pytest.raises(GatewayUnreachable):
        await _announce(tree, folder, 9)
    assert (folder / TAKEN).exists()
    assert not (folder / SENT).exists()
    assert await _announce(tree, folder, server.server_port) == 1
    assert not (folder / TAKEN).exists()
