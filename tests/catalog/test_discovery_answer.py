"""The answer of discovery: short, and enough to go on."""

from __future__ import annotations

from typing import Any

from evercontext.catalog.discovery_answer import first_sentence, relevant, shorten, signature


def hit(key: str, relevance: float, **schema: Any) -> dict[str, Any]:
    about = {"toolKey": key, "description": "Do it. And more.", "relevance": relevance}
    return {**about, "inputSchema": {"type": "object", **schema}}


def test_what_is_far_from_the_best_is_left_out() -> None:
    """C5: unrelated tools were included."""
    first = [hit("best", 1.0), *(hit(f"a:{i}", 0.1) for i in range(4))]
    likely = [hit("b", 0.5), hit("x", 0.3), hit("c", 0.4), hit("d", 0.4), hit("e", 0.4)]
    results = [*first, *likely, hit("far", 0.5), hit("near", 0.61), hit("no", 0.1)]
    kept = [one["toolKey"] for one in relevant(results)]
    assert kept == ["best", "a:0", "a:1", "a:2", "a:3", "b", "c", "d", "e", "near"]
    assert len(relevant(results, queries=3)) == len(results)
    assert relevant([]) == []


def test_the_best_have_their_schema_the_others_their_arguments() -> None:
    properties = {"path": {"type": "string"}, "limit": {"type": "integer"}}
    schema = {"properties": properties, "required": ["path"]}
    best, second, third = shorten(
        [hit("a:x", 0.9, **schema), hit("a:y", 0.5, **schema), hit("a:z", 0.5)]
    )
    assert best["inputSchema"]["properties"] == properties
    assert second == {
        "toolKey": "a:y",
        "description": "Do it.",
        "relevance": 0.5,
        "args": "path, limit?: int",
    }
    assert set(third) == {"toolKey", "description", "relevance"}


def test_arguments_in_one_line() -> None:
    schema = {
        "properties": {
            "unit": {"enum": ["C", "F"]},
            "days": {"type": "array"},
            "any": {},
            "odd": 3,
        },
        "required": ["days", "gone", 7],
    }
    assert signature(schema) == "days: array, unit?: C|F, any?, odd?"
    assert signature({}) == ""
    long = {"properties": {f"argument{i}": {"type": "string"} for i in range(100)}}
    assert len(signature(long)) == 160


def test_the_first_sentence_in_any_language() -> None:
    assert first_sentence("Read a file.\n\nArgs: path") == "Read a file."
    assert first_sentence("ファイルを読む。上書きはしない。") == "ファイルを読む。"
    assert len(first_sentence("x" * 500)) == 140
