"""The walls around the tests hold: otherwise a green suite would mean little."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from evercontext.settings import load
from tests.conftest import OutboundNetwork, running_children


@pytest.mark.parametrize("address", [("192.0.2.1", 80), ("8.8.8.8", 53), ("2001:db8::1", 443)])
def test_other_machines_cannot_be_reached(address: tuple[str, int]) -> None:
    family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as sock:
        with pytest.raises(OutboundNetwork):
            sock.connect(address)
        with pytest.raises(OutboundNetwork):
            sock.sendto(b"x", address)


def test_names_are_not_looked_up() -> None:
    with pytest.raises(OutboundNetwork):
        socket.getaddrinfo("example.com", 80)


def test_loopback_is_open() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname(), timeout=5) as client,
    ):
        accepted, _ = server.accept()
        accepted.close()
        assert client.recv(1) == b""


def test_http_of_programs_that_a_test_starts_ends_here() -> None:
    ask = "import urllib.request as u; u.urlopen('http://example.com/', timeout=20)"
    done = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "refused" in done.stderr


def test_a_test_has_a_home_of_its_own(tmp_path_factory: pytest.TempPathFactory) -> None:
    settings = load()
    assert tmp_path_factory.getbasetemp() in settings.home.parents
    assert settings.home.is_relative_to(Path.home())
    assert settings.openai_api_key is None
    assert {name for name in os.environ if name.startswith("EC_")} == {"EC_HOME", "EC_ROUTER_PORT"}


def test_a_running_child_is_seen() -> None:
    with subprocess.Popen(["sleep", "60"]) as child:
        assert child.pid in running_children()
        child.kill()
        child.wait()
        assert child.pid not in running_children()
