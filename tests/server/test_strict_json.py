from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evercontext.errors import InvalidArguments
from evercontext.server.strict_json import DEEPEST, parse_object

_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(st.text(), _JSON, max_size=5))
def test_every_object_is_read_as_it_is(value: dict[str, object]) -> None:
    assert parse_object(json.dumps(value).encode()) == value


@pytest.mark.case(39, 41, 43)
@given(st.binary(max_size=200))
def test_no_bytes_do_worse_than_a_refusal(body: bytes) -> None:
    refusal = ""
    try:
        assert isinstance(parse_object(body), dict)
    except InvalidArguments as error:
        refusal = str(error)
    assert "\n" not in refusal


@pytest.mark.case(41)
@pytest.mark.parametrize(
    "body", [b'{"a":1,"a":1}', b'{"x":{"a":1,"a":2}}', b'{"a":Infinity}', b'{"a":-1e400}']
)
def test_what_parsers_read_differently_is_refused(body: bytes) -> None:
    with pytest.raises(InvalidArguments):
        parse_object(body)


@pytest.mark.case(43)
def test_depth_is_limited_exactly() -> None:
    def nested(levels: int) -> bytes:
        return b'{"a":' + b"[" * (levels - 1) + b"]" * (levels - 1) + b"}"

    parse_object(nested(DEEPEST))
    with pytest.raises(InvalidArguments, match="deep"):
        parse_object(nested(DEEPEST + 1))
