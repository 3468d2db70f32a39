from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from evercontext.domain.tool import Arguments, Caller, Effect, Tool, ToolResult
from evercontext.errors import InvalidArguments
from evercontext.tools.argument_check import checked

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "description": "x", "minLength": 1},
        "mode": {"type": "string", "enum": ["create", "append"]},
        "count": {"type": "integer", "minimum": 1},
        "deep": {"type": "boolean"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "free": {"type": "string", "maxLength": 3},
    },
    "required": ["path"],
    "additionalProperties": False,
}
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 3),
    st.just(1.0),
    st.sampled_from(["", "create", "long"]),
    st.lists(st.sampled_from(["a", 1]), max_size=2),
)


async def _run(arguments: Arguments, caller: Caller) -> ToolResult:
    return ToolResult("")


def tool_of(schema: dict[str, Any]) -> Tool:
    return Tool("t", "", schema, Effect.READ, _run)


@given(st.dictionaries(st.sampled_from([*SCHEMA["properties"], "other"]), VALUES, max_size=4))
def test_check_agrees_with_the_validator(arguments: dict[str, Any]) -> None:
    valid = Draft202012Validator(SCHEMA).is_valid(arguments)
    try:
        assert checked(tool_of(SCHEMA), arguments) == arguments
        accepted = True
    except InvalidArguments:
        accepted = False
    assert accepted == valid


@pytest.mark.parametrize(
    "schema",
    [
        {**SCHEMA, "minProperties": 2},
        {**SCHEMA, "additionalProperties": {"type": "integer"}},
        {**SCHEMA, "not": {"required": ["path"]}},
        {**SCHEMA, "properties": {"path": {"type": "string", "pattern": "^b"}}},
        {**SCHEMA, "properties": {"path": {"$ref": "#/$defs/p"}}, "$defs": {"p": {"const": "b"}}},
    ],
)
def test_rules_beyond_the_plain_ones_are_not_overlooked(schema: dict[str, Any]) -> None:
    with pytest.raises(InvalidArguments):
        checked(tool_of(schema), {"path": "a"})
        checked(tool_of(schema), {"path": "a", "other": "text"})


def test_whole_number_written_as_a_fraction_reaches_the_tool_as_one() -> None:
    count = checked(tool_of(SCHEMA), {"path": "a", "count": 5.0})["count"]
    assert (count, type(count)) == (5, int)
