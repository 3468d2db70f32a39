"""A changed definition beside the trusted one."""

from __future__ import annotations

from dataclasses import replace

from evercontext.catalog.definition_diff import definition_diff
from evercontext.catalog.validation import accept_tools, encode_definition
from tests.catalog.rich_server import DEFINITION


def test_what_changed_is_marked() -> None:
    """C6: ``servers approve`` showed the new definition and nothing to compare it with."""
    (entry,), _ = accept_tools("rich", [DEFINITION])
    hints = {**entry.more, "annotations": {"readOnlyHint": False}}
    changed = replace(entry, description="Show every kind of content.\nAnd send it.", more=hints)
    lines = definition_diff(encode_definition(entry), changed)
    assert "+And send it." in lines
    assert '-    "readOnlyHint": true,' in lines
    assert '+    "readOnlyHint": false' in lines
    assert " Show every kind of content." in lines


def test_without_a_trusted_definition_everything_is_new() -> None:
    (entry,), _ = accept_tools("rich", [DEFINITION])
    lines = definition_diff(None, entry)
    assert all(line.startswith(("+", "---")) for line in lines)
