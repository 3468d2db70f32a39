"""The answer of ``tool_discovery``: short, because a model reads all of it before it does anything.

Every result has its key, the first sentence of its description and its arguments in one line. The
best ones have their whole schema; of any other it is given when it is asked for by its key.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from evercontext.catalog.search_provider import Results
from evercontext.catalog.tool_entry import CatalogEntry

FLOOR, FLOOR_AFTER_TEN = 0.4, 0.6
"""Shares of the best result's relevance below which a result is left out."""
_SURE, _LIKELY = 5, 10
"""So many results for each query are shown whatever their relevance, and so many more easily."""
_WITH_SCHEMA, _AS_GOOD, _LARGEST_SCHEMA = 2, 0.9, 1_500
_LONGEST_DESCRIPTION, _LONGEST_ARGUMENTS, _LONGEST_REASON = 140, 160, 200
_SENTENCE = re.compile(r"(?<=[.!?])\s|(?<=[。！？])|\n")
_SHORT_TYPES = {"string": "", "integer": "int", "boolean": "bool"}


def relevant(results: Results, queries: int = 1) -> Results:
    """Return the results that are worth reading: the first ones, and those near the best."""
    best = max((result["relevance"] for result in results), default=0.0)
    return [
        result
        for rank, result in enumerate(results)
        if rank < _SURE * queries
        or result["relevance"] >= best * (FLOOR if rank < _LIKELY * queries else FLOOR_AFTER_TEN)
    ]


def shorten(results: Results, *, explained: bool = False) -> Results:
    """Return results as a model is shown them: the best with their schemas, the others without.

    ``explained``: somebody chose them and says why, which scores of words and meaning do not.
    """
    best = max((result["relevance"] for result in results), default=0.0)
    return [
        {
            **_short(result, rank < _WITH_SCHEMA and result["relevance"] >= best * _AS_GOOD),
            **(
                {"explanation": result.get("explanation", "")[:_LONGEST_REASON]}
                if explained
                else {}
            ),
        }
        for rank, result in enumerate(results)
    ]


def describe(entry: CatalogEntry) -> dict[str, Any]:
    """Return everything about one tool that was asked for by its key."""
    return {
        "toolKey": entry.key,
        "description": entry.description,
        "inputSchema": dict(entry.schema),
        **({"flagged": list(entry.flags)} if entry.flags else {}),
    }


def encode(answer: Mapping[str, Any]) -> str:
    """Return an answer as the JSON that is sent, without a space too many."""
    return json.dumps(answer, ensure_ascii=False, separators=(",", ":"), default=str)


def _short(result: Mapping[str, Any], with_schema: bool) -> dict[str, Any]:
    schema = result["inputSchema"]
    short: dict[str, Any] = {
        "toolKey": result["toolKey"],
        "description": first_sentence(result["description"]),
        "relevance": round(result["relevance"], 2),
    }
    if with_schema and len(encode(schema)) <= _LARGEST_SCHEMA:
        short["inputSchema"] = schema
    elif named := signature(schema):
        short["args"] = named
    return {**short, **({"flagged": result["flagged"]} if "flagged" in result else {})}


def first_sentence(description: str) -> str:
    """Return the beginning of a description: a sentence, or as much of it as is short."""
    text = _SENTENCE.split(description.strip(), maxsplit=1)[0]
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST_DESCRIPTION else f"{text[: _LONGEST_DESCRIPTION - 1]}…"


def signature(schema: Mapping[str, Any]) -> str:
    """Return arguments in one line: required ones first, ``?`` after the others."""
    properties, required = schema.get("properties"), schema.get("required")
    if not isinstance(properties, Mapping):
        return ""
    needed = [name for name in _names(required) if name in properties]
    others = [name for name in properties if name not in needed]
    named = [_argument(name, properties[name], "") for name in needed]
    named += [_argument(name, properties[name], "?") for name in others]
    text = ", ".join(named)
    return text if len(text) <= _LONGEST_ARGUMENTS else f"{text[: _LONGEST_ARGUMENTS - 1]}…"


def _names(required: Any) -> Sequence[str]:
    return (
        [name for name in required if isinstance(name, str)] if isinstance(required, list) else []
    )


def _argument(name: str, about: Any, mark: str) -> str:
    about = about if isinstance(about, Mapping) else {}
    choices, kind = about.get("enum"), about.get("type")
    if isinstance(choices, list) and 0 < len(choices) <= 6:
        kind = "|".join(map(str, choices))
    kind = _SHORT_TYPES.get(kind, kind) if isinstance(kind, str) else ""
    return f"{name}{mark}: {kind}" if kind else f"{name}{mark}"
