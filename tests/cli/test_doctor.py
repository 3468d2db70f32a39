from __future__ import annotations

import json
import os
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from evercontext.models.vendors.codex import Codex
from evercontext.process.sandbox import available
from tests.cli.command import evercontext, home
from tests.journeys.story import script
from tests.models.vendors.stage import Stage


def free_port() -> str:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return str(found.getsockname()[1])


@pytest.fixture
def quiet() -> dict[str, str]:
    """Ports that nobody uses, and a model that needs nothing."""
    ports = {name: free_port() for name in ("EC_PORT", "EC_ROUTER_PORT", "MCP_PORT")}
    return {**ports, "MCP_HOST": "127.0.0.1", "EC_OLLAMA_ENDPOINT": "http://127.0.0.1:9"}


def examined(*more: str, cwd: Path, env: dict[str, str]) -> tuple[int, dict[str, dict[str, Any]]]:
    ended = evercontext("doctor", "--json", *more, cwd=cwd, env=env)
    return ended.code, {check["name"]: check for check in json.loads(ended.out)}


def test_a_machine_that_is_ready(tmp_path: Path, quiet: dict[str, str]) -> None:
    model = script(tmp_path / "s.jsonl", {"text": "hi"})
    code, found = examined(cwd=tmp_path, env=quiet | {"EC_MODEL_NAME": model})
    assert code == 0
    names = ["python", "install", "git", "model", "keys", "sandbox", "home", "database", "root"]
    assert list(found)[:11] == [*names, "terminal", "disk"]
    assert len(set(found) - {"codex", "gemini"}) == 14
    assert "EC_MODEL_NAME" in found["model"]["text"]
    assert {found[name]["state"] for name in ("python", "git", "model", "home")} == {"ok"}
    assert all(check["fix"] or check["state"] == "ok" for check in found.values())
    assert not (home() / "memory.db").exists()


def test_what_is_needed_and_broken_exits_1(tmp_path: Path, quiet: dict[str, str]) -> None:
    code, found = examined(cwd=tmp_path, env=quiet)
    assert code == 1
    assert found["model"]["state"] == "bad"
    assert "evercontext setup" in found["model"]["fix"]


@pytest.mark.parametrize(
    ("version", "state", "words"),
    [
        ("codex-cli 0.166.0\n", "ok", "0.166.0 at "),
        (
            "codex-cli 0.20.0\n",
            "warn",
            "0.20.0 cannot be used: it is too old, 0.50.0 is the oldest",
        ),
    ],
)
def test_a_vendors_program_is_named_with_its_version(
    tmp_path: Path, quiet: dict[str, str], version: str, state: str, words: str
) -> None:
    """C1."""
    if not any(entry.works for entry in available()):
        pytest.skip("no sandbox works here")
    stage = Stage(tmp_path, Codex())
    stage.installs(version=version)
    path = {"PATH": f"{stage.bin}:{os.environ['PATH']}"}
    _, checks = examined(cwd=tmp_path, env=quiet | path)
    assert checks["codex"]["state"] == state
    assert words in checks["codex"]["text"]


@pytest.mark.parametrize(("layer", "shown"), [("landlock", True), ("bubblewrap", False)])
def test_it_is_said_where_commands_see_other_processes(
    tmp_path: Path, quiet: dict[str, str], layer: str, shown: bool
) -> None:
    if not any(entry.works for entry in available() if entry.layer == layer):
        pytest.skip(f"{layer} does not work here")
    _, checks = examined(cwd=tmp_path, env=quiet | {"EC_SANDBOX": layer})
    assert ("commands see which processes run" in checks["sandbox"]["text"]) is shown


def test_text_says_how_to_fix(tmp_path: Path, quiet: dict[str, str]) -> None:
    ended = evercontext("doctor", cwd=tmp_path, env=quiet)
    lines = ended.out.splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith("bad   model"))
    assert "evercontext setup" in lines[at + 1]


def test_a_damaged_database_is_found_and_left_alone(tmp_path: Path, quiet: dict[str, str]) -> None:
    home().mkdir()
    (home() / "memory.db").write_bytes(b"noise" * 1000)
    model = script(tmp_path / "s.jsonl", {"text": "hi"})
    env = quiet | {"EC_MODEL_NAME": model}
    code, found = examined(cwd=tmp_path, env=env)
    assert (code, found["database"]["state"]) == (1, "bad")
    assert (home() / "memory.db").read_bytes() == b"noise" * 1000
    # The fix that is named does what it says.
    assert "Run: evercontext memory list " in found["database"]["fix"]
    listed = evercontext("memory", "list", cwd=tmp_path, env=env)
    assert "was damaged" in listed.err
    [aside] = home().glob("memory.db.corrupt-*")
    assert aside.read_bytes() == b"noise" * 1000
    code, found = examined(cwd=tmp_path, env=env)
    assert (code, found["database"]["state"]) == (0, "ok")


@pytest.mark.parametrize(
    "command",
    [
        ("memory", "list"),
        ("sessions", "list"),
        ("servers", "list"),
        ("tools", "discover", "read a file"),
        ("context", "show", "-t", "look"),
    ],
    ids=" ".join,
)
def test_a_command_that_replaces_a_damaged_database_says_so(
    tmp_path: Path, quiet: dict[str, str], command: tuple[str, ...]
) -> None:
    """X11."""
    home().mkdir()
    (home() / "memory.db").write_bytes(b"noise" * 1000)
    model = script(tmp_path / "s.jsonl", {"text": "hi"})
    ended = evercontext(*command, cwd=tmp_path, env=quiet | {"EC_MODEL_NAME": model})
    assert "was damaged" in ended.err
    assert len(list(home().glob("memory.db.corrupt-*"))) == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_home_of_another_user_is_named(tmp_path: Path, quiet: dict[str, str]) -> None:
    home().mkdir()
    os.chown(home(), 54321, -1)
    _, found = examined(cwd=tmp_path, env=quiet)
    assert found["home"]["state"] == "warn"
    assert "belongs to another user (user id 54321)" in found["home"]["text"]
    assert f"chown -R 0 {home()}" in found["home"]["fix"]


def test_a_check_that_fails_itself_shows_where_if_debugged(
    tmp_path: Path, quiet: dict[str, str]
) -> None:
    """V8: the row advised EC_DEBUG=1, which changed nothing."""
    env = quiet | {"EC_HOST": "a" * 80}
    ended = evercontext("doctor", cwd=tmp_path, env=env)
    assert "run: EC_DEBUG=1 evercontext doctor" in ended.out
    assert "Traceback" not in ended.err
    ended = evercontext("doctor", "--json", cwd=tmp_path, env=env | {"EC_DEBUG": "1"})
    [row] = [check for check in json.loads(ended.out) if check["name"] == "ports"]
    assert row["fix"] == "The traceback on standard error shows where"
    assert "doctor.py" in ended.err
    assert "label too long" in ended.err


def test_a_port_is_free_or_taken(tmp_path: Path, quiet: dict[str, str]) -> None:
    class Other(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Other)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        taken = str(server.server_port)
        _, found = examined(cwd=tmp_path, env=quiet | {"EC_PORT": taken})
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    assert found[f"port {taken}"]["state"] == "warn"
    assert "EC_PORT" in found[f"port {taken}"]["fix"]
    assert found[f"port {quiet['MCP_PORT']}"]["state"] == "ok"


@pytest.mark.case(140)
def test_a_wide_root_is_warned_about(quiet: dict[str, str]) -> None:
    _, found = examined(cwd=Path.home(), env=quiet)
    assert found["root"]["state"] == "warn"


@pytest.mark.slow
@pytest.mark.case(122)
def test_what_waits_for_a_database_that_is_not_set_any_more_is_told(
    tmp_path: Path, quiet: dict[str, str]
) -> None:
    away = {"EC_DATABASE_URL": "postgresql://me@127.0.0.1:9/none"}
    assert evercontext("memory", "add", "Waits", cwd=tmp_path, env=away).code == 75
    _, found = examined(cwd=tmp_path, env=quiet)
    assert found["database"]["state"] == "warn"
    assert "waiting for another database: 1" in found["database"]["text"]
    assert "EC_DATABASE_URL" in found["database"]["fix"]
    _, found = examined(cwd=tmp_path, env=quiet | away)
    assert "not yet stored: 1" in found["database"]["text"]
    assert "another database" not in found["database"]["text"]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("openai:gpt-5", "OPENAI_API_KEY"),
        ("gtp-5", "openai:gpt-5"),
        ("ollama:gtp-5", "no Ollama runs at http://127.0.0.1:9"),
    ],
)
def test_a_model_that_cannot_be_used_is_not_ok(
    tmp_path: Path, quiet: dict[str, str], name: str, words: str
) -> None:
    """V8: without its key, or only taken for one of Ollama's."""
    code, found = examined(cwd=tmp_path, env=quiet | {"EC_MODEL_NAME": name})
    assert code == 1
    assert found["model"]["state"] == "bad"
    assert words in found["model"]["text"] + found["model"]["fix"]


@pytest.mark.parametrize(
    ("name", "behind", "state", "words"),
    [
        ("openai:gtp-5", "", "bad", "near it: openai:gpt-5"),
        ("openai:gpt-5", "anthropic:cluade-sonnet-4-5", "bad", "near it: anthropic:claude-sonnet"),
        ("openai:gpt-5", "openai:gpt-5.99-mini", "warn", "openai:gpt-5.99-mini: it is in no list"),
        ("openai:gpt-5", "openai:gpt-4.1", "ok", "openai:gpt-5"),
    ],
)
def test_a_name_behind_its_provider_is_looked_at_too(
    tmp_path: Path, quiet: dict[str, str], name: str, behind: str, state: str, words: str
) -> None:
    """V8, V9: whatever stood behind ``openai:`` was ok, and so was any fallback."""
    set_up = {"EC_MODEL_NAME": name, "EC_FALLBACK_MODELS": behind, "OPENAI_API_KEY": "sk-x"}
    _, rows = examined(cwd=tmp_path, env=quiet | set_up)
    assert rows["model"]["state"] == state
    assert words in rows["model"]["text"]


@pytest.mark.parametrize(
    ("file", "row"),
    [
        ("home/config.json", "settings"),
        ("home/keys.json", "settings"),
        ("home/traces", "traces"),
        ("home/memory.db", "database"),
        ("evercontext.toml", "settings"),
    ],
)
def test_a_broken_file_is_a_row_of_the_whole_table(
    tmp_path: Path, quiet: dict[str, str], file: str, row: str
) -> None:
    """V8: it printed one error, and nothing of the rest."""
    folder = tmp_path if "/" not in file else home()
    folder.mkdir(exist_ok=True)
    path = folder / file.rpartition("/")[2]
    path.write_text("{ this is = no [ file")
    model = script(tmp_path / "s.jsonl", {"text": "hi"})
    code, found = examined(cwd=tmp_path, env=quiet | {"EC_MODEL_NAME": model})
    assert found[row]["state"] in ("bad", "warn")
    assert code == (1 if found[row]["state"] == "bad" else 0)
    assert str(path) in found[row]["text"]
    assert found[row]["fix"]
    assert {"python", "git", "model", "keys", "home", "database", "root", "disk"} <= set(found)
    assert path.read_text() == "{ this is = no [ file"


def test_a_wrong_value_is_a_row_too(tmp_path: Path, quiet: dict[str, str]) -> None:
    """V8: a setting that cannot be read stops no other row."""
    code, found = examined(cwd=tmp_path, env=quiet | {"EC_MODEL_TIMEOUT": "soon"})
    assert code == 1
    assert "model_timeout" in found["settings"]["text"]
    assert found["disk"]["state"] == "ok"
