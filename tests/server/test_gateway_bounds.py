"""A gateway whose clients, root or descriptors misbehave."""

from __future__ import annotations

import json
import os
import resource
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from evercontext.server import listener
from evercontext.server.listener import bind, most_connections
from evercontext.server.peer_user import user_of
from tests.server.running import Gateway, running, status_of


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Gateway]:
    with running(tmp_path / "root", tmp_path / "home") as gateway:
        yield gateway


CALLS = [
    ("write_file", {"path": "a.txt", "content": "x", "mode": "overwrite"}),
    ("read_file", {"path": "a.txt"}),
    ("list_files", {"path": "."}),
]


def test_headers_behind_a_body_are_no_headers(gateway: Gateway) -> None:
    """X27: a trailer was merged with the headers, after these were checked."""
    body = json.dumps({"path": "a.txt", "content": "x", "mode": "overwrite"}).encode()
    head = (
        f"POST /write_file HTTP/1.1\r\nHost: {gateway.host}\r\nContent-Type: application/json\r\n"
        "Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
    ).encode()
    chunk = b"%x\r\n%s\r\n0\r\n" % (len(body), body)
    trace_id = "11111111-2222-4333-8444-555555555555"
    trailer = f"X-Trace-Id: {trace_id}\r\nHost: evil.test\r\n\r\n".encode()
    answer = gateway.exchange(head + chunk + trailer)
    assert status_of(answer) == 200
    assert trace_id.encode() not in answer


@pytest.mark.parametrize("target", ["http://evil.test/healthz", "http://evil.test:80/read_file"])
def test_a_whole_address_of_another_host_is_refused(gateway: Gateway, target: str) -> None:
    """X27: its Host header said otherwise, and was believed."""
    request = f"GET {target} HTTP/1.1\r\nHost: {gateway.host}\r\nConnection: close\r\n\r\n"
    assert status_of(gateway.exchange(request.encode())) == 403
    ours = f"GET http://{gateway.host}/healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    assert status_of(gateway.exchange(ours.encode())) == 200


def test_a_client_that_never_reads_is_cut_off() -> None:
    """X27: a connection whose answer nobody reads would be held for ever."""
    with bind("127.0.0.1", 0) as bound:
        bound.listen()
        with socket.create_connection(bound.getsockname()[:2]):
            bound.setblocking(True)
            accepted, _ = bound.accept()
            with accepted:
                limit = accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT)
    assert limit == listener.UNREAD_SECONDS * 1000


OTHER = 65_533
CLIENT = """
import os, socket, sys
os.setuid(int(sys.argv[2]))
link = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
link.sendall(sys.argv[3].encode().replace(b"|", b"\\r\\n"))
sys.stdout.write(link.recv(4096).decode())
"""


def as_user(user: int, gateway: Gateway, more: str = "") -> str:
    request = f"GET /metrics HTTP/1.1|Host: {gateway.host}|{more}Connection: close||"
    command = ["/usr/bin/python3", "-I", "-c", CLIENT, str(gateway.port), str(user), request]
    return subprocess.run(command, capture_output=True, text=True, check=True, cwd="/").stdout


@pytest.mark.skipif(os.getuid() != 0, reason="only root can act as another user")
def test_other_users_of_the_machine_are_refused_without_a_token(tmp_path: Path) -> None:
    """X26: they reached a project that its directory is closed to them."""
    if not Path("/usr/bin/python3").exists():
        pytest.skip("there is no interpreter that other users can start")
    with running(tmp_path / "root", tmp_path / "home") as gateway:
        assert " 200 " in as_user(0, gateway).split("\r\n")[0]
        refused = as_user(OTHER, gateway)
        assert " 403 " in refused.split("\r\n")[0]
        assert "for the user who started it" in refused
    with running(tmp_path / "root", tmp_path / "home", {"EC_TOKEN": "t" * 20}) as gateway:
        answer = as_user(OTHER, gateway, f"Authorization: Bearer {'t' * 20}|")
        assert " 200 " in answer.split("\r\n")[0]


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_the_kernel_tells_whose_connection_it_is(host: str) -> None:
    """X26."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    if not Path("/proc/net/tcp").exists():
        pytest.skip("this system has no table of connections")
    with (
        socket.create_server((host, 0), family=family) as server,
        socket.create_connection(server.getsockname()[:2]) as client,
    ):
        address, other = client.getsockname()[:2], server.getsockname()[:2]
        assert user_of(address, other) == os.getuid()
        assert user_of((host, 1), other) is None


LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))
from evercontext.cli.main import main
main()
"""


def test_running_out_of_descriptors_is_quiet_and_passes(tmp_path: Path) -> None:
    """X22: it was a traceback a second and 500."""
    with running(tmp_path / "root", tmp_path / "home", code=LIMITED) as gateway:
        assert gateway.post(*CALLS[0]).status_code == 200
        links = [gateway.connect() for _ in range(150)]
        statuses = set()
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and 503 not in statuses:
            link = gateway.connect()
            link.settimeout(0.5)
            try:
                link.sendall(f"GET /healthz HTTP/1.1\r\nHost: {gateway.host}\r\n\r\n".encode())
                statuses.add(status_of(link.recv(4096) or b"HTTP/1.1 000 none"))
            except OSError:
                pass
            links.append(link)
        for link in links:
            link.close()
        assert 503 in statuses
        assert statuses <= {200, 503, 0}
        deadline = time.monotonic() + 60
        recovered = 0
        while time.monotonic() < deadline and recovered != 200:
            recovered = gateway.post(*CALLS[0]).status_code
        assert recovered == 200
        gateway.stop()
        assert gateway.process.stderr
        rest = gateway.process.stderr.read()
    assert "Traceback" not in rest
    assert rest.count("too many files are open") <= 2


def test_the_number_of_connections_fits_the_descriptors(monkeypatch: pytest.MonkeyPatch) -> None:
    """X22."""
    limits = [(64, 64), (1024, 1024), (1024, 1_000_000), (256, resource.RLIM_INFINITY)]
    changed: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "setrlimit", lambda kind, pair: changed.append(pair))
    for (soft, hard), most, raised in zip(limits, [8, 320, 512, 512], [0, 0, 1, 1], strict=True):
        changed.clear()
        monkeypatch.setattr(resource, "getrlimit", lambda kind, pair=(soft, hard): pair)
        assert most_connections() == most
        assert len(changed) == raised
