"""Messages read once, and their results kept as they were written."""

from __future__ import annotations

import json

import pytest

from evercontext.mcp.messages import RpcError, encode, encode_error, encode_result, read_message


@pytest.mark.parametrize(
    ("line", "raw"),
    [
        (b'{"jsonrpc":"2.0","id":1,"result":{"a": [1, 2.50] }}', '{"a": [1, 2.50] }'),
        (b' {"result" :\t"\\u3042" , "id":1,\r\n"jsonrpc":"2.0"} ', '"\\u3042"'),
        (b'{"jsonrpc":"2.0","method":"x","params":{"result":1}}', ""),
        ('{"jsonrpc":"2.0","id":1,"result":"やあ}"}'.encode(), '"やあ}"'),
        (b'{"jsonrpc":"2.0","id":1,"result":1,"result":2}', "2"),
        (b' {"result":{"a":1},"jsonrpc":"2.0","id":12} \n', '{"a":1}'),
        (b'{"result":[1],"jsonrpc":"2.0","id":"a"}', "[1]"),
        (b'{"jsonrpc":"2.0","id":-1,"result":{}}', "{}"),
        (b'{"jsonrpc":"2.0","id":1,"result":{},"_meta":{"x":1}}', "{}"),
        (b'{"result":1,"jsonrpc":"2.0","id":1,"result":[2]}', "[2]"),
        (b'{"jsonrpc":"2.0","id":12345678901234567890,"result":3}', "3"),
    ],
)
def test_the_result_is_kept_as_it_was_written(line: bytes, raw: str) -> None:
    read = read_message(line)
    assert read is not None
    message, found = read
    assert message == json.loads(line)
    assert found == raw
    if raw:
        assert json.loads(found) == message["result"]


@pytest.mark.case(88)
@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"{",
        b"[1]",
        b'"x"',
        b"{}",
        b'{"jsonrpc":"2.0",}',
        b'{"jsonrpc":"2.0" "a":1}',
        b'{"jsonrpc":"2.0"} {}',
        b'{"jsonrpc":"2.0","result":NaN}',
        b'{1:2,"jsonrpc":"2.0"}',
        b'{"jsonrpc":"2.0","result":"\xff"}',
        b'{"jsonrpc":"2.0","result":"\x01"}',
        b'{"jsonrpc":"2.0","id":01,"result":1}',
        b'{"jsonrpc":"2.0","id":1,"result":1,}',
        b'{"jsonrpc":"2.0","id":1,"result":1} {}',
        b'{"result":1,"jsonrpc":"1.0","id":1}',
        b'{"result":NaN,"jsonrpc":"2.0","id":1}',
        b'{"result":,"jsonrpc":"2.0","id":1}',
        b'{"jsonrpc":"2.0","result":' + b"[" * 200_000,
        b'{"jsonrpc":"1.0"}',
    ],
)
def test_what_is_no_message(line: bytes) -> None:
    assert read_message(line) is None


def test_what_is_written_can_be_read() -> None:
    line = encode({"id": 1, "method": "x", "params": {"text": "\ud800 やあ\n"}})
    assert b"\n" not in line
    read = read_message(line)
    assert read is not None
    assert read[0]["params"]["text"] == "\ud800 やあ\n"


def test_half_a_character_pair_is_written_as_its_escape_or_replaced() -> None:
    assert encode_result("\ud800", 1) == b'{"jsonrpc":"2.0","id":"\\ud800","result":1}'
    assert json.loads(encode_result("\ud800", 1, "replace"))["id"] == "?"
    assert json.loads(encode_error("\ud800", RpcError(-1, "no")))["id"] == "?"
