"""Arguments against a stranger's schema: what is plain is checked, and nothing takes for ever."""

from __future__ import annotations

from typing import Any

import pytest

from evercontext.catalog.arguments import ArgumentCheck
from evercontext.errors import InvalidArguments


def check(about: Any, value: Any) -> None:
    ArgumentCheck({"properties": {"x": about}})({"x": value})


@pytest.mark.parametrize(
    ("about", "good", "bad"),
    [
        ({"type": "string"}, "a", 1),
        ({"type": "integer"}, 5.0, 5.5),
        ({"type": "number"}, 1, True),
        ({"type": ["string", "null"]}, None, []),
        ({"type": "array"}, [1], {}),
        ({"enum": ["a", "b"]}, "a", "c"),
        ({"minimum": 1, "maximum": 3}, 2, 0),
        ({"maximum": 3}, 3, 4),
        ({"minLength": 2, "maxLength": 3}, "ab", "a"),
        ({"maxLength": 3}, "abc", "abcd"),
        ({"pattern": "^[a-z]+$"}, "abc", "ABC"),
    ],
)
def test_what_lies_open_is_checked(about: dict[str, Any], good: Any, bad: Any) -> None:
    check(about, good)
    with pytest.raises(InvalidArguments, match=r"^x: "):
        check(about, bad)


@pytest.mark.case(96)
def test_a_pattern_that_goes_back_for_ever_does_not(tmp_path: Any) -> None:
    with pytest.raises(InvalidArguments, match="must match"):
        check({"pattern": "^(a+)+$"}, "a" * 50_000 + "!")
    # Only backtracking could tell, or far too much memory: left to the server.
    for pattern in ("(?=a)b", "(x{1000}){1000}", "(", "x" * 10_000):
        check({"pattern": pattern}, "anything")


@pytest.mark.case(96)
def test_references_that_double_are_not_followed() -> None:
    definitions = {f"d{i}": {"anyOf": [{"$ref": f"#/$defs/d{i + 1}"}] * 2} for i in range(60)}
    schema = {"$defs": definitions, "properties": {"x": {"$ref": "#/$defs/d0"}}}
    ArgumentCheck(schema)({"x": 1})


def test_required_and_unknown_names() -> None:
    schema = {"properties": {"a": {}}, "required": ["a"]}
    with pytest.raises(InvalidArguments, match="'a' is required"):
        ArgumentCheck(schema)({})
    assert ArgumentCheck(schema)({"a": 1, "b": 2}) == {"a": 1, "b": 2}
    with pytest.raises(InvalidArguments, match="'b' is no argument"):
        ArgumentCheck({**schema, "additionalProperties": False})({"a": 1, "b": 2})


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"properties": []},
        {"required": "a"},
        {"properties": {"x": {"type": "any", "enum": 3, "minimum": "x", "pattern": 1}}},
    ],
)
def test_an_odd_schema_asks_for_nothing(schema: dict[str, Any]) -> None:
    assert ArgumentCheck(schema)({"x": 1}) == {"x": 1}


@pytest.mark.parametrize(
    ("pattern", "value", "fits"),
    [
        (r"^\S+\s\S+$", "山田\u3000太郎", True),
        (r"^\S+$", "山田\u3000太郎", False),
        (r"^[\w\s山田太郎]+$", "山田\u3000太郎", True),
        (r"^[^\s]+$", "a\u00a0b", False),
        (r"^a\\sb$", r"a\sb", True),
    ],
)
def test_a_space_is_what_json_schema_calls_one(pattern: str, value: str, fits: bool) -> None:
    """P16: RE2 takes only the spaces of ASCII for spaces."""
    schema = {"type": "object", "properties": {"name": {"type": "string", "pattern": pattern}}}
    check = ArgumentCheck(schema)
    if fits:
        assert check({"name": value}) == {"name": value}
    else:
        with pytest.raises(InvalidArguments, match="must match"):
            check({"name": value})
