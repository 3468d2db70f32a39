from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evercontext.cli.jsonc import parse, set_member

DOCUMENTS = [
    "",
    "\n",
    "// only a comment\n",
    "{}",
    "{ }",
    "{\n}\n",
    '{"a": 1}',
    '{"a": 1,}',
    '{ // why\n  "a": 1 // because, }\n}\n',
    '{\n\t"a": 1,\n\t"servers": {\n\t\t"other": {"x": "}"}, /* "us": 0 */\n\t},\n}\n',
    '{\r\n  "servers": {},\r\n  "b": [1, {"servers": 2}]\r\n}\r\n',
    '{"servers": {"us": {"old": true}, "other": 1}}',
    '{"url": "http://x // y", "servers": {"us": [1, 2,], "o": "/* */"}}',
    '{"日本": "語", "servers": {"\\"": 1}}',
]


@pytest.mark.parametrize("text", DOCUMENTS)
def test_only_the_member_changes(text: str) -> None:
    before = parse(text)
    after = set_member(text, ("servers", "us"), {"new": ["a", 1]})
    expected = {**before, "servers": {**before.get("servers", {}), "us": {"new": ["a", 1]}}}
    assert parse(after) == expected
    for piece in ("// why", "// because, }", "// only a comment", '/* "us": 0 */', "http://x // y"):
        assert (piece in text) == (piece in after)


@pytest.mark.parametrize("text", DOCUMENTS)
def test_setting_twice_is_setting_once(text: str) -> None:
    once = set_member(text, ("servers", "us"), {"new": 1})
    assert set_member(once, ("servers", "us"), {"new": 1}) == once


def test_layout_of_others_is_kept_to_the_byte() -> None:
    text = '{\n    "keep" :   [1,2],   // spaced\n    "servers": {\n        "a": {}\n    }\n}\n'
    after = set_member(text, ("servers", "us"), 1)
    assert after == text.replace('"servers": {\n', '"servers": {\n        "us": 1,\n')


@pytest.mark.parametrize(
    "text", ["[]", "{", '{"servers": []}', '{"servers": 1}', '{"a" 1}', '{"a": }']
)
def test_what_cannot_be_extended_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        set_member(text, ("servers", "us"), 1)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(), _JSON, max_size=4), _JSON, st.sampled_from([None, 0, 2, "\t"]))
def test_any_json_object_can_be_extended(
    known: dict[str, object], value: object, indent: object
) -> None:
    known["servers"] = {"other": 1}
    text = json.dumps(known, indent=indent, ensure_ascii=False)  # type: ignore[arg-type]
    assert parse(text) == known
    after = set_member(text, ("servers", "us"), value)
    assert json.loads(after) == {**known, "servers": {"us": value, "other": 1}}
