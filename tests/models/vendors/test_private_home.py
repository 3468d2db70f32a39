from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from evercontext.models.vendors.private_home import PrivateHome, private_home

OLD = {
    "tokens": {"account_id": "a", "refresh_token": "old"},
    "last_refresh": "2026-01-01T00:00:00Z",
}
NEW = {
    "tokens": {"account_id": "a", "refresh_token": "new"},
    "last_refresh": "2026-02-01T00:00:00Z",
}


class Bench:
    """A user's folder with a login in it."""

    def __init__(self, folder: Path) -> None:
        self.state, self.user = folder / "state", folder / "home" / ".codex"
        self.user.mkdir(parents=True)
        self.login = self.user / "auth.json"
        self.login.write_text(json.dumps(OLD))
        self.login.chmod(0o640)

    def run(self, content: str | None = None) -> PrivateHome:
        """One run in which the program writes ``content`` over its login."""
        with private_home(
            self.state, self.user, copied=("settings",), returned=("auth.json",)
        ) as home:
            assert json.loads((home.settings / "auth.json").read_text()) == self.now()
            (home.settings / "session.log").write_text("what was said")
            if content is not None:
                (home.settings / "auth.json").write_text(content)
        return home

    def now(self) -> object:
        return json.loads(self.login.read_text())


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_a_refreshed_login_comes_back_with_its_mode_and_nothing_else(bench: Bench) -> None:
    home = bench.run(json.dumps(NEW))
    assert bench.now() == NEW
    assert bench.login.stat().st_mode & 0o777 == 0o640
    assert [path.name for path in bench.user.iterdir()] == ["auth.json"]
    assert not home.root.exists()
    assert list(bench.state.iterdir()) == []


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        "null",
        '{"tokens": {}}',
        json.dumps({**NEW, "tokens": {"account_id": "somebody else", "refresh_token": "x"}}),
        json.dumps({**NEW, "OPENAI_API_KEY": "somebody else's"}),
        json.dumps({**NEW, "filler": "x" * 2_000_000}),
    ],
    ids=lambda text: text[:40],
)
def test_what_is_not_the_same_login_does_not_come_back(bench: Bench, content: str) -> None:
    bench.run(content)
    assert bench.now() == OLD


def test_a_link_does_not_come_back(bench: Bench, tmp_path: Path) -> None:
    other = tmp_path / "other.json"
    other.write_text(json.dumps(NEW))
    with private_home(bench.state, bench.user, copied=(), returned=("auth.json",)) as home:
        (home.settings / "auth.json").unlink()
        (home.settings / "auth.json").symlink_to(other)
    assert bench.now() == OLD


@pytest.mark.parametrize(("stamp", "winner"), [("2026-03-01", "theirs"), ("2026-01-15", "ours")])
def test_the_later_of_two_refreshes_wins(bench: Bench, stamp: str, winner: str) -> None:
    theirs = {**OLD, "last_refresh": stamp}
    with private_home(bench.state, bench.user, copied=(), returned=("auth.json",)) as home:
        bench.login.write_text(json.dumps(theirs))
        (home.settings / "auth.json").write_text(json.dumps(NEW))
    assert bench.now() == (theirs if winner == "theirs" else NEW)


def test_a_login_behind_a_link_is_replaced_where_it_is(bench: Bench, tmp_path: Path) -> None:
    real = tmp_path / "dotfiles.json"
    bench.login.rename(real)
    bench.login.symlink_to(real)
    bench.run(json.dumps(NEW))
    assert bench.login.is_symlink()
    assert json.loads(real.read_text()) == NEW


def test_no_login_is_invented(bench: Bench) -> None:
    bench.login.unlink()
    with private_home(bench.state, bench.user, copied=(), returned=("auth.json",)) as home:
        (home.settings / "auth.json").write_text(json.dumps(NEW))
    assert not bench.login.exists()


KILLED = """
import os, pathlib, signal, sys
from evercontext.models.vendors.private_home import private_home
state, user, content = sys.argv[1:]
with private_home(pathlib.Path(state), pathlib.Path(user), copied=(), returned=("auth.json",)) as h:
    (h.settings / "auth.json").write_text(content)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_killed_run_loses_no_token_and_leaves_no_login(bench: Bench) -> None:
    arguments = [str(bench.state), str(bench.user), json.dumps(NEW)]
    done = subprocess.run([sys.executable, "-c", KILLED, *arguments], check=False, timeout=60)
    assert done.returncode == -signal.SIGKILL
    assert bench.now() == OLD
    assert list(bench.state.glob("run-*")), "it was killed half-way"
    with private_home(bench.state, bench.user, copied=(), returned=("auth.json",)) as home:
        assert json.loads((home.settings / "auth.json").read_text()) == NEW
    assert bench.now() == NEW
    assert list(bench.state.iterdir()) == []


def test_a_run_beside_another_leaves_it_alone(bench: Bench) -> None:
    with private_home(bench.state, bench.user, copied=(), returned=("auth.json",)) as first:
        bench.run()
        assert (first.settings / "auth.json").exists()


def test_only_the_user_can_look_in(bench: Bench) -> None:
    before = os.umask(0)
    try:
        with private_home(bench.state, bench.user, copied=(), returned=("auth.json",)) as home:
            modes = [path.stat().st_mode & 0o077 for path in (bench.state, home.root)]
            modes.append((home.settings / "auth.json").stat().st_mode & 0o077)
    finally:
        os.umask(before)
    assert modes == [0, 0, 0]
