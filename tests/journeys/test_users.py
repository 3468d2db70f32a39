"""Users of a shared database: who they are is decided by a login, and by the database itself."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.access.shared_database import REQUESTS, as_address, empty_database
from tests.cli.command import Ended, evercontext
from tests.server.running import Gateway, running

REMOTE = "https://forge.example/team/app.git"


class Team:
    """A database, and people at their own machines."""

    def __init__(self, folder: Path) -> None:
        owner, root = empty_database()
        self.folder = folder
        self.owner = {"EC_DATABASE_URL": owner}
        self.requests = {"EC_DATABASE_URL": as_address(root, REQUESTS)}
        self.project = self.clone("project")
        self.tokens: dict[str, str] = {}

    def clone(self, name: str) -> Path:
        path = self.folder / name
        path.mkdir()
        for words in (["init", "-q"], ["remote", "add", "origin", REMOTE]):
            subprocess.run(["git", *words], cwd=path, check=True)
        return path

    def admin(self, *words: str) -> Ended:
        return evercontext(*words, cwd=self.project, env=self.owner)

    def add(self, name: str) -> None:
        ended = self.admin("users", "add", name, "--json")
        assert ended.code == 0, ended.err
        self.tokens[name] = json.loads(ended.out)["token"]

    def of(self, name: str) -> dict[str, str]:
        home = self.folder / f"home-{name}"
        home.mkdir(exist_ok=True)
        return {**self.requests, "EC_LOGIN": self.tokens[name], "EC_HOME": str(home)}

    def as_(self, name: str, *words: str, cwd: Path | None = None, **more: str) -> Ended:
        return evercontext(*words, cwd=cwd or self.project, env={**self.of(name), **more})


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Team:
    made = Team(tmp_path_factory.mktemp("team"))
    with pytest.MonkeyPatch.context() as patch:
        home = made.folder / "home-admin"
        home.mkdir()
        patch.setenv("EC_HOME", str(home))
        for name in ("ann", "bob", "carl"):
            made.add(name)
        for words in (
            ("db", "grant", REQUESTS),
            ("users", "grant", "ann", "--role", "admin"),
            ("groups", "add", "readers", "carl"),
            ("users", "grant", "readers", "--group", "--role", "reader"),
        ):
            ended = made.admin(*words)
            assert ended.code == 0, ended.err
    return made


@pytest.mark.slow
def test_a_forged_remote_and_a_name_in_the_environment_give_nothing(team: Team) -> None:
    shared = team.as_("ann", "memory", "add", "Releases are on Mondays", "--user", "")
    assert shared.code == 0, shared.err
    assert "Mondays" in team.as_("carl", "memory", "search", "when are releases").out
    # Bob has cloned the same address, which says nothing about whether he may.
    forged = team.clone("forged")
    seen = team.as_("bob", "memory", "search", "when are releases", cwd=forged, EC_USER="ann")
    assert "Mondays" not in seen.out
    planted = team.as_("bob", "memory", "add", "Releases are never", "--user", "", cwd=forged)
    assert (planted.code != 0, "may not do that" in planted.err) == (True, True), planted.err
    nobody = evercontext("memory", "list", cwd=forged, env={**team.requests, "EC_USER": "ann"})
    assert (nobody.code != 0, "EC_LOGIN" in nobody.err) == (True, True), nobody.err


def _bearer(token: str) -> str:
    return f"Bearer {token}"


def _mcp(gateway: Gateway, token: str | None, name: str, arguments: dict[str, Any]) -> Any:
    body = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": name, "arguments": arguments},
    }
    headers = {"accept": "application/json, text/event-stream"}
    if token:
        headers["authorization"] = _bearer(token)
    return gateway.client.post("/mcp", json=body, headers=headers)


@pytest.mark.slow
@pytest.mark.contract("E25")
def test_a_server_lets_in_logins_alone_and_says_who_it_was(team: Team, tmp_path: Path) -> None:
    root = team.clone("served")
    (root / "a.py").write_text("x = 1\n")
    env = {**team.requests, "EC_USER": "ann"}
    with running(root, tmp_path / "home", env) as gateway:
        read = {"path": "a.py"}
        assert gateway.post("read_file", read).status_code == 401
        assert gateway.post("read_file", read, authorization="Bearer nonsense").status_code == 401
        assert gateway.get("/healthz").status_code == 200
        ann, carl, bob = (_bearer(team.tokens[name]) for name in ("ann", "carl", "bob"))
        posing = gateway.post("read_file", read, authorization=carl, x_evercontext_user="ann")
        assert posing.status_code == 401
        assert gateway.post("read_file", read, authorization=ann).status_code == 200
        assert gateway.post("read_file", read, authorization=carl).status_code == 200
        assert gateway.post("read_file", read, authorization=bob).status_code == 403
        write = {"path": "b.py", "content": "y = 2\n", "mode": "overwrite"}
        assert gateway.post("write_file", write, authorization=carl).status_code == 403
        assert gateway.post("write_file", write, authorization=ann).status_code == 200
        users = [(line["principal"], line["status"]) for line in gateway.audit()]
        assert ("ann", 200) in users
        assert ("carl", 403) in users
        # No session: each call stands alone, under its own login.
        assert _mcp(gateway, None, "recall", {"query": "x"}).status_code == 401
        kept = _mcp(gateway, team.tokens["ann"], "remember", {"content": "Ann's cat is Momo"})
        assert kept.status_code == 200
        assert "mcp-session-id" not in kept.headers
        for name, sees in (("ann", True), ("carl", False), ("ann", True)):
            answer = _mcp(gateway, team.tokens[name], "recall", {"query": "whose cat is Momo"})
            assert ("Momo" in answer.text and "cat is" in answer.text) is sees, answer.text
        assert team.admin("users", "logout", "carl").code == 0
        assert gateway.post("read_file", read, authorization=carl).status_code == 401
        calls = [line for line in gateway.audit() if line["method"] == "remember"]
        assert [line["principal"] for line in calls] == ["ann"]
        assert gateway.stop() == 143


def test_one_persons_file_has_no_users(tmp_path: Path) -> None:
    ended = evercontext("users", "add", "ann", cwd=tmp_path)
    assert (ended.code != 0, "EC_DATABASE_URL" in ended.err) == (True, True), ended
