"""``evercontext setup`` by its flags: keys, Ollama, what is shown; S7."""

from __future__ import annotations

import json
import os
import stat
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import Ended, evercontext, home
from tests.journeys.story import call, script

KEY = "sk-proj-canary0123456789abcdef"
OTHER = "sk-ant-canary9876543210fedcba"
NOBODY = {"EC_OLLAMA_ENDPOINT": "http://127.0.0.1:9"}
PLAIN_KEYRING = {"PYTHON_KEYRING_BACKEND": "keyrings.alt.file.PlaintextKeyring"}


class Vendor(ThreadingHTTPServer):
    """OpenAI, Anthropic and Ollama on loopback, as far as setting up asks them."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.asked: list[tuple[str, str]] = []
        self.status = 200
        self.may_answer = threading.Event()
        self.may_answer.set()
        self.models = ["qwen3-coder:30b", "hermes3:8b"]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    @property
    def env(self) -> dict[str, str]:
        vendors = {"OPENAI_BASE_URL": f"{self.url}/v1", "ANTHROPIC_BASE_URL": self.url}
        return {**vendors, "EC_OLLAMA_ENDPOINT": self.url}


class _Handler(BaseHTTPRequestHandler):
    server: Vendor

    def do_GET(self) -> None:
        self.server.asked.append((self.path, self.headers.get("Authorization", "")))
        status, body = self.server.status, b'{"data": []}'
        if self.path == "/api/tags":
            status = 200
            listed = [{"name": name, "details": {}} for name in self.server.models]
            body = json.dumps({"models": listed}).encode()
        self.server.may_answer.wait()
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def vendor() -> Iterator[Vendor]:
    server = Vendor()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def setup(*arguments: str, stdin: str | None = None, **env: str) -> Ended:
    return evercontext("setup", *arguments, stdin=stdin, env=NOBODY | env)


def shown(**env: str) -> dict[str, Any]:
    state: dict[str, Any] = json.loads(setup("--show", "--json", **env).out)
    return state


def key_of(provider: str, **env: str) -> dict[str, Any]:
    return next(key for key in shown(**env)["keys"] if key["provider"] == provider)


@pytest.mark.slow
def test_a_key_is_checked_stored_and_used(vendor: Vendor) -> None:
    ended = setup("--provider", "openai", "--key-stdin", stdin=f" {KEY}\n", **vendor.env)
    assert ended.code == 0, ended.err
    assert ("/v1/models", f"Bearer {KEY}") in vendor.asked
    file = home() / "keys.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert KEY not in ended.out + ended.err
    assert key_of("openai") == {"provider": "openai", "key": "sk-…cdef", "origin": "keys.json"}
    assert shown()["model"].startswith("openai:")
    assert shown()["ready"] is True
    chosen = json.loads(evercontext("model", "list", "--json", env=NOBODY).out)["models"]
    assert next(m["note"] for m in chosen if m["ready"]) == "its key is stored: keys.json"
    told = evercontext("config", "show", "--origin", env=NOBODY).out
    assert "sk-…cdef" in told
    assert KEY not in told
    checks = {c["name"]: c for c in json.loads(evercontext("doctor", "--json", env=NOBODY).out)}
    assert "sk-…cdef (keys.json)" in checks["keys"]["text"]


def test_the_models_use_a_stored_key(vendor: Vendor, tmp_path: Path) -> None:
    setup("--provider", "anthropic", "--key-stdin", "--no-check", stdin=OTHER)
    ended = evercontext("model", "test", "claude-haiku-5-5", env=vendor.env)
    # The server of this test knows no POST: what matters is that nobody missed a key.
    assert "no key" not in ended.err
    assert "anthropic" in ended.err


def test_the_environment_wins_over_a_stored_key() -> None:
    setup("--provider", "openai", "--key-stdin", "--no-check", stdin=KEY)
    named = key_of("openai", OPENAI_API_KEY="sk-other-00000000000000001111")
    assert named["key"] == "sk-…1111"
    assert named["origin"] == "environment OPENAI_API_KEY"


def test_a_refused_key_is_not_stored(vendor: Vendor) -> None:
    vendor.status = 401
    ended = setup("--provider", "openai", "--key-stdin", stdin=KEY, **vendor.env)
    assert ended.code == 1
    assert "refused the key" in ended.err
    assert "Nothing was stored" in ended.err
    assert not (home() / "keys.json").exists()
    assert not (home() / "config.json").exists()


def test_behind_a_dead_proxy_the_host_and_the_variable_are_named() -> None:
    ended = setup("--provider", "openai", "--key-stdin", stdin=KEY)
    assert ended.code == 75
    assert ended.err.count("\n") == 1
    for part in ("api.openai.com", "HTTPS_PROXY", "127.0.0.1:9", "--no-check"):
        assert part in ended.err
    assert not (home() / "keys.json").exists()


@pytest.mark.parametrize("pasted", ["", "short", "two words here", "鍵をここに貼る", "x" * 600])
def test_what_is_no_key_changes_nothing(pasted: str) -> None:
    ended = setup("--provider", "openai", "--key-stdin", "--no-check", stdin=pasted)
    assert ended.code == 1
    assert ended.err.count("\n") == 1
    assert not home().exists() or list(home().iterdir()) == []


def test_a_key_from_a_windows_editor() -> None:
    """S7: a byte order mark before the key is no part of it."""
    flags = ("--provider", "openai", "--key-stdin", "--no-check")
    assert setup(*flags, stdin=f"\ufeff{KEY}\r\n").code == 0
    assert json.loads((home() / "keys.json").read_text())["openai"]["key"] == KEY


@pytest.mark.slow
def test_a_key_is_removed_with_the_model_that_needs_it() -> None:
    setup("--provider", "openai", "--key-stdin", "--no-check", stdin=KEY)
    setup("--provider", "anthropic", "--key-stdin", "--no-check", stdin=OTHER)
    assert setup("--remove-key", "anthropic").code == 0
    assert (home() / "keys.json").read_text().count(KEY) == 1
    assert OTHER not in (home() / "keys.json").read_text()
    assert shown()["model"].startswith("openai:"), "the other key is still there"
    assert "there is no stored key" in setup("--remove-key", "anthropic").out


@pytest.mark.slow
def test_the_keyring_has_the_key_where_there_is_one() -> None:
    ended = setup("--provider", "openai", "--key-stdin", "--no-check", stdin=KEY, **PLAIN_KEYRING)
    assert ended.code == 0, ended.err
    assert KEY not in (home() / "keys.json").read_text()
    assert key_of("openai", **PLAIN_KEYRING)["origin"] == "system keyring"
    # The same home without that keyring: said, and not a traceback.
    elsewhere = {"PYTHON_KEYRING_BACKEND": "keyring.backends.fail.Keyring"}
    entry = json.loads((home() / "keys.json").read_text())
    entry["openai"]["backend"] = "keyring.backends.fail.Keyring"
    (home() / "keys.json").write_text(json.dumps(entry))
    lost = evercontext("config", "show", env=elsewhere)
    assert lost.code == 0
    assert "system keyring gave no key" in lost.err
    entry["openai"]["backend"] = "keyrings.alt.file.PlaintextKeyring"
    (home() / "keys.json").write_text(json.dumps(entry))
    assert setup("--remove-key", "openai", **PLAIN_KEYRING).code == 0
    assert key_of("openai", **PLAIN_KEYRING)["key"] is None
    rings = [p for p in Path(os.environ["HOME"]).rglob("*") if p.is_file()]
    assert not any("c2stcHJvai1jYW5hcnk" in p.read_text("utf-8", "ignore") for p in rings)


def test_a_keyring_that_is_demanded_and_not_there() -> None:
    ended = setup(
        "--provider", "openai", "--key-stdin", "--no-check", "--store", "keyring", stdin=KEY
    )
    assert ended.code == 1
    assert "--store file" in ended.err
    assert not (home() / "keys.json").exists()


def test_ollama(vendor: Vendor) -> None:
    assert setup("--ollama", "hermes3:8b", **vendor.env).code == 0
    assert shown(**vendor.env)["model"] == "ollama:hermes3:8b"
    away = setup("--ollama", "nothing-like-it", **vendor.env)
    assert away.code == 1
    assert "qwen3-coder:30b" in away.err
    assert "ollama serve" in setup("--ollama", "hermes3:8b").err


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ((), 5),
        (("--json",), 5),
        (("--provider", "openai"), 64),
        (("--key-stdin",), 64),
        (("--ollama", "x", "--small-model"), 64),
        (("--show", "--remove-key", "openai"), 64),
        (("--provider", "elsewhere", "--key-stdin"), 64),
        (("--ollama", ""), 64),
        (("--provider", "openai", "--key-stdin", "--model", " "), 64),
    ],
)
def test_what_cannot_be_done_says_how(arguments: tuple[str, ...], code: int) -> None:
    ended = setup(*arguments)
    assert ended.code == code, ended.err
    assert "--" in ended.err or "elsewhere" in ended.err


@pytest.mark.parametrize(
    "arguments",
    [("run", "-t", "do it"), ("chat",), ("run", "-t", "a b", "--json"), ("plan", "-t", "a b")],
)
def test_without_a_model_one_line_names_the_setup(arguments: tuple[str, ...]) -> None:
    """S7: not interactive, one clear error."""
    ended = evercontext(*arguments, stdin="hello\n", env=NOBODY)
    assert ended.code == 1
    assert "Run: evercontext setup" in ended.err.splitlines()[-1]
    assert ended.err.count("error:") == 1
    if "--json" in arguments:
        assert json.loads(ended.out)["error"]["code"] == "model_unknown"


@pytest.mark.case(135)
def test_a_stored_key_is_kept_from_commands_and_logs(tmp_path: Path) -> None:
    # A key of no known shape: only who knows it can mask it.
    key = "gateway-canary-4f1d9a77e2b0"
    setup("--provider", "anthropic", "--key-stdin", "--no-check", stdin=key)
    project = tmp_path / "project"
    project.mkdir()
    looking = f"cat {home()}/keys.json; env"
    model = script(
        tmp_path / "s.jsonl",
        {"tool_calls": [call("run_command", command=looking)]},
        {"text": f"It is {key}."},
    )
    ended = evercontext("run", "-t", "look at it", "-m", model, cwd=project, env=NOBODY)
    assert ended.out.count("[redacted]") == 1, "the reply alone: the command saw nothing"
    assert key not in ended.out + ended.err
    files = [path for path in home().rglob("*") if path.is_file() and path.name != "keys.json"]
    assert files
    assert not any(key.encode() in path.read_bytes() for path in files)


def test_a_file_open_to_others_is_told() -> None:
    setup("--provider", "openai", "--key-stdin", "--no-check", stdin=KEY)
    (home() / "keys.json").chmod(0o644)
    assert "chmod 600" in evercontext("config", "show", env=NOBODY).err
    checks = {c["name"]: c for c in json.loads(evercontext("doctor", "--json", env=NOBODY).out)}
    assert checks["keys"]["state"] == "warn"
