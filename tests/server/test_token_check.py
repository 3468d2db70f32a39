from __future__ import annotations

import pytest

from evercontext.errors import ConfigError, ForeignHost, ForeignOrigin, Unauthorized
from evercontext.server.token_check import Addresses, Token, is_loopback, require_token_off_loopback


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "localhost", "::1", "[::1]"])
def test_loopback_needs_no_token(host: str) -> None:
    assert is_loopback(host)
    require_token_off_loopback(host, None)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "example.com", "127.0.0.1.evil"])
@pytest.mark.parametrize("token", [None, ""])
def test_other_addresses_are_refused_without_a_token(host: str, token: str | None) -> None:
    with pytest.raises(ConfigError, match="EC_TOKEN"):
        require_token_off_loopback(host, token)
    require_token_off_loopback(host, "secret")


def test_token_never_shows_itself() -> None:
    assert "secret" not in repr(Token.of("secret"))


def test_token_in_japanese_works() -> None:
    Token.of("合言葉").check([(b"authorization", "Bearer 合言葉".encode())])
    with pytest.raises(Unauthorized):
        Token.of("合言葉").check([(b"authorization", b"Bearer \xff")])


def test_server_for_everybody_is_called_by_its_configured_names() -> None:
    addresses = Addresses.of("0.0.0.0", 8765, ["box.local:8765"])
    addresses.check([(b"host", b"BOX.local:8765"), (b"origin", b"http://box.local:8765")])
    for host in (b"0.0.0.0:8765", b"box.local", b"other.local:8765"):
        with pytest.raises(ForeignHost):
            addresses.check([(b"host", host)])


def test_ipv6_and_port_80() -> None:
    Addresses.of("::1", 80).check([(b"host", b"[::1]")])
    Addresses.of("::1", 8765).check([(b"host", b"[::1]:8765")])


def test_two_origins_are_both_looked_at() -> None:
    headers = [
        (b"host", b"127.0.0.1:8765"),
        (b"origin", b"http://127.0.0.1:8765"),
        (b"origin", b"https://evil.example"),
    ]
    with pytest.raises(ForeignOrigin):
        Addresses.of("127.0.0.1", 8765).check(headers)
