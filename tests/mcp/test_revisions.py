"""The envelope of the stateless revision, and the headers that repeat it."""

from __future__ import annotations

from typing import Any

import pytest

from evercontext.mcp.messages import METHOD_NOT_FOUND, RpcError, RpcRequest
from evercontext.mcp.revisions import (
    CAPABILITIES_KEY,
    HEADER_MISMATCH,
    VERSION_KEY,
    check_envelope,
    check_mirrored,
    encode_header,
)

META = {VERSION_KEY: "2026-07-28", CAPABILITIES_KEY: {}}


def request(method: str, **params: Any) -> RpcRequest:
    return RpcRequest(method, {**params, "_meta": META}, 1, False)


def headers(method: str, name: bytes) -> dict[bytes, bytes]:
    version = {b"mcp-protocol-version": b"2026-07-28", b"mcp-method": method.encode()}
    return {**version, b"mcp-name": name}


@pytest.mark.parametrize("name", [b"two words", b"  two words \t", b"=?base64?dHdvIHdvcmRz?="])
def test_a_name_with_spaces(name: bytes) -> None:
    """P16: it was answered with 400."""
    check_envelope(request("prompts/get", name="two words"), headers("prompts/get", name))


@pytest.mark.parametrize("method", ["initialize", "ping", "logging/setLevel"])
def test_methods_that_were_removed(method: str) -> None:
    """P16: they were answered."""
    with pytest.raises(RpcError) as error:
        check_envelope(request(method), None)
    assert error.value.code == METHOD_NOT_FOUND


def test_arguments_that_are_repeated_in_headers() -> None:
    mirrored = {"mcp-param-City": "京都", "mcp-param-Dry": True}
    good = {b"mcp-param-city": encode_header("京都").encode(), b"mcp-param-dry": b"true"}
    check_mirrored(mirrored, good)
    check_mirrored(mirrored, None)
    for wrong in (
        {},
        {**good, b"mcp-param-dry": b"false"},
        {**good, b"mcp-param-city": b"=?base64?*?="},
    ):
        with pytest.raises(RpcError) as error:
            check_mirrored(mirrored, wrong)
        assert error.value.code == HEADER_MISMATCH
