"""Show how a tool's definition changed: what was trusted beside what its server says now."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from typing import Any

from evercontext.catalog.tool_entry import CatalogEntry, definition_of


def definition_diff(trusted: str | None, entry: CatalogEntry) -> list[str]:
    """Return the lines of a diff from the trusted definition, as JSON; all new if there is none."""
    before = _lines(json.loads(trusted)) if trusted is not None else []
    after = _lines(definition_of(entry))
    # Three lines of context would hide what stands around a change: definitions are short.
    diff = difflib.unified_diff(before, after, "trusted", "now", lineterm="", n=len(before))
    return [line for line in diff if not line.startswith("@@")]


def _lines(definition: Mapping[str, Any]) -> list[str]:
    """Return a definition line by line, its description as the text that a model reads."""
    text = str(definition.get("description") or "")
    rest = {key: value for key, value in definition.items() if key != "description"}
    return [*text.splitlines(), *json.dumps(rest, indent=2, ensure_ascii=False).splitlines()]
