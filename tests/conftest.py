"""What holds for every test: a home of its own, no network, no process left behind."""

from __future__ import annotations

import importlib.util
import ipaddress
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from evercontext.models.embedded import openmp
from evercontext.models.embedded.weights import MINILM, is_pulled, stored_at
from evercontext.settings import rows
from tests.loop_watch import LoopWatch

_KEPT = frozenset({"NO_COLOR"})
"""Settings that only change how things look."""
_NO_PROXY = "127.0.0.1,localhost,::1"
_DEAD_PROXY = "http://127.0.0.1:9"
_GRACE = 20.0
"""Seconds in which a child that was told to end may do so."""
_USERS_HOME = Path(os.environ.get("EC_HOME") or Path.home() / ".nebula")
"""Where the model lies that was pulled before the tests; nothing else there is looked at."""

# The tests start hundreds of interpreters that import the same modules. Without bytecode on disk
# each would compile them again, which takes three times as long as the import itself.
sys.dont_write_bytecode = False

# The same examples in every run, however slow the machine: a failure is news about a change.
# `--hypothesis-profile=default` looks for new ones.
settings.register_profile(
    "steady", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("steady")


class OutboundNetwork(Exception):
    """A test tried to reach another machine; not an ``OSError``, so that no retry hides it."""


def _is_local(host: object) -> bool:
    if host in (None, "", b"", "localhost", b"localhost"):
        return True
    text = host.decode("ascii", "replace") if isinstance(host, bytes) else str(host)
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified


def _guard(event: str, arguments: tuple[Any, ...]) -> None:
    if event in ("socket.connect", "socket.sendto"):
        address = arguments[1]
        # A path, bytes or a netlink pair stays on this machine.
        if isinstance(address, tuple) and len(address) in (2, 4):
            host = address[0]
            if isinstance(host, str | bytes) and not _is_local(host):
                raise OutboundNetwork(f"{event} to {address}: tests stay on loopback")
    elif event == "socket.getaddrinfo" and not _is_local(arguments[0]):
        raise OutboundNetwork(f"a look-up of {arguments[0]!r}: tests stay on loopback")


# An audit hook sees C code too and needs nothing patched; it stays for the whole process.
sys.addaudithook(_guard)


@pytest.fixture(autouse=True)
def _own_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give the test, and every program it starts, an empty home and no settings of ours."""
    home = tmp_path_factory.mktemp("home")
    for name in {str(row.metadata["env"]) for row in rows()} - _KEPT:
        monkeypatch.delenv(name, raising=False)
    for name in [name for name in os.environ if name.startswith(("EC_", "XDG_", "GIT_"))]:
        monkeypatch.delenv(name)
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        # Programs that a test starts have no audit hook: their HTTP ends at a closed port.
        monkeypatch.setenv(name, _DEAD_PROXY)
        monkeypatch.setenv(name.lower(), _DEAD_PROXY)
    monkeypatch.setenv("NO_PROXY", _NO_PROXY)
    monkeypatch.setenv("no_proxy", _NO_PROXY)
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    # Never the keyring of whoever runs the tests.
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.fail.Keyring")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("EC_HOME", str(home / ".nebula"))
    # Tests run beside each other and beside a server of the developer's.
    monkeypatch.setenv("MCP_PORT", "0")
    monkeypatch.setenv("EC_ROUTER_PORT", "0")
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    # The tests of a project in a test need none of our plugins: a run without takes a sixth.
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{role}_NAME", "Test")
        monkeypatch.setenv(f"GIT_{role}_EMAIL", "test@example.invalid")
    return home


@pytest.fixture
def minilm() -> Path:
    """The home in which the embedder's weights lie."""
    if not is_pulled(_USERS_HOME, MINILM):
        pytest.skip("no MiniLM here; bring it with: evercontext model pull minilm")
    return _USERS_HOME


@pytest.fixture
def smollm2(_own_home: Path) -> Path:
    """The embedded model as if it had been pulled into this test's home."""
    if importlib.util.find_spec("xllamacpp") is None:
        pytest.skip("the extra `embedded` is not installed")
    pulled = stored_at(_USERS_HOME)
    if not (is_pulled(_USERS_HOME) and openmp.is_at_hand(_USERS_HOME)):
        pytest.skip("no embedded model here; bring it with: evercontext model pull smollm2")
    link = stored_at(_own_home / ".nebula")
    link.parent.mkdir(parents=True)
    for path in (pulled, *pulled.parent.glob("libgomp*")):
        (link.parent / path.name).symlink_to(path)
    return link


def pytest_sessionfinish() -> None:
    """End the database server, where a test of this process needed one."""
    if (used := sys.modules.get("tests.postgres")) is not None:
        used.stop()


WATCH = LoopWatch()
WATCH.start()
_AGAIN = "TESTS_WATCH_AGAIN"
_LONGEST_AGAIN = 280.0
"""Seconds for a test that runs once more; the run as a whole has its limit, too."""
_ENVIRONMENT = {name: value for name, value in os.environ.items() if "PYTEST" not in name}


@pytest.fixture(autouse=True)
def _loop_is_free(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail a test in which a callback of ours held an event loop: others would have waited.

    A virtual machine that stands still for a moment looks the same, because that time counts as
    the callback's own. So the test runs once more, in a process of its own where everything
    happens for the first time again: what a callback does, it does there, too.
    """
    WATCH.taken()
    yield
    stalls = WATCH.taken()
    again = stalls and _AGAIN not in os.environ
    if again and passes_alone(request.node.nodeid, request.config.rootpath):
        return
    assert not stalls, f"held the event loop: {'; '.join(stalls)}"


def passes_alone(test: str, root: Path, seconds: float = _LONGEST_AGAIN) -> bool:
    """Run one test in a process of its own; one that is skipped or never ends has not passed."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", test]
    try:
        again = subprocess.run(
            command,
            cwd=root,
            env={**_ENVIRONMENT, _AGAIN: "1"},
            capture_output=True,
            check=False,
            timeout=seconds,
        )
    except subprocess.TimeoutExpired:
        return False
    return again.returncode == 0 and b" passed" in again.stdout


@pytest.fixture(autouse=True)
def _no_process_left() -> Iterator[None]:
    """Fail a test that leaves a child running; fixtures of a wider scope may keep theirs."""
    before = running_children()
    yield
    deadline = time.monotonic() + _GRACE
    while (left := running_children() - before) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not left, f"left running: {', '.join(sorted(_command(pid) for pid in left))}"


def running_children() -> set[int]:
    """Processes started by this one that still run; none known where there is no /proc."""
    found: set[int] = set()
    for listing in Path("/proc/self/task").glob("*/children"):
        try:
            found.update(int(pid) for pid in listing.read_text().split())
        except OSError:
            continue  # The thread ended meanwhile.
    return {pid for pid in found if _runs(pid)}


def _runs(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    # A zombie has ended; multiprocessing keeps its tracker until the interpreter goes.
    return status.rpartition(")")[2].split()[0] != "Z" and "resource_tracker" not in _command(pid)


def _command(pid: int) -> str:
    try:
        raw = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return str(pid)
    return f"{pid} {raw.replace(bytes(1), b' ').decode('utf-8', 'replace').strip()[:200]}"
