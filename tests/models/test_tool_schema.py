from __future__ import annotations

from evercontext.models.tool_schema import for_model


def test_only_limits_that_no_answer_comes_near_are_left_out() -> None:
    """P8: maxItems 100000 silently voids the grammar of llama.cpp."""
    paths = {"type": "array", "items": {"type": "string", "maxLength": 4096}, "maxItems": 100_000}
    kind = {"anyOf": [{"type": "string", "maxLength": 64}, {"type": "string", "minLength": 5_000}]}
    schema = {
        "type": "object",
        "properties": {"maxItems": {"type": "integer"}, "paths": paths, "kind": kind},
        "required": ["paths"],
    }
    before = repr(schema)
    assert for_model(schema) == {
        "type": "object",
        "properties": {
            "maxItems": {"type": "integer"},
            "paths": {"type": "array", "items": {"type": "string"}},
            "kind": {"anyOf": [{"type": "string", "maxLength": 64}, {"type": "string"}]},
        },
        "required": ["paths"],
    }
    assert repr(schema) == before


def test_a_number_is_not_a_size() -> None:
    assert for_model({"type": "integer", "maximum": 5_000_000}) == {
        "type": "integer",
        "maximum": 5_000_000,
    }
