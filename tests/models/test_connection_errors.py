from __future__ import annotations

import pytest

from evercontext.models.connection_errors import proxy_for, unreachable

API = "https://api.openai.com/v1"


@pytest.mark.parametrize(
    ("environment", "way"),
    [
        ({}, None),
        ({"HTTPS_PROXY": "http://p:1"}, ("HTTPS_PROXY", "http://p:1")),
        ({"https_proxy": "p:1"}, ("https_proxy", "p:1")),
        ({"ALL_PROXY": "socks5://p:1"}, ("ALL_PROXY", "socks5://p:1")),
        ({"HTTP_PROXY": "http://p:1"}, None),
        ({"HTTPS_PROXY": "http://p:1", "NO_PROXY": "localhost, .openai.com"}, None),
        ({"HTTPS_PROXY": "http://p:1", "NO_PROXY": "*"}, None),
        ({"HTTPS_PROXY": "http://p:1", "NO_PROXY": "nopenai.com"}, ("HTTPS_PROXY", "http://p:1")),
    ],
)
def test_the_proxy_on_the_way(environment: dict[str, str], way: tuple[str, str] | None) -> None:
    assert proxy_for(API, environment) == way


def test_what_is_said() -> None:
    assert unreachable(API, {"ALL_PROXY": "http://me:pw@p:1"}) == (
        "api.openai.com cannot be reached through the proxy p:1 that ALL_PROXY names"
    )
    assert "HTTPS_PROXY would name one" in unreachable(API, {})
    assert unreachable("http://localhost:11434", {}) == "localhost:11434 cannot be reached"
