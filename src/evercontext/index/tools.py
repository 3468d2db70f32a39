"""Define the tools that search the project's code and update its index.

Each tool's ``data`` is what REST answers: ``search_code`` is ``POST /search``, ``ingest`` and
``prune`` are the routes of their names.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any

from evercontext.domain.event import Evidence, Indexed, Notice
from evercontext.domain.tool import Arguments, Caller, Effect, Tool, ToolResult
from evercontext.errors import InvalidArguments
from evercontext.events.log import EventLog
from evercontext.files.path_names import parse
from evercontext.index.answer_json import as_data, incomplete, unfitted
from evercontext.index.location import LONGEST_KEPT, MOST_RESULTS, TOP_K
from evercontext.index.token_budget import LEAST_BUDGET, MOST_BUDGET, CountTokens, fit

if TYPE_CHECKING:
    from evercontext.files.policy import FilePolicy
    from evercontext.index.code_search import Answer, CodeIndex
    from evercontext.index.indexer import IndexReport, Progress

OpenIndex = Callable[[Caller], Awaitable["CodeIndex"]]
_PATIENCE = 30.0
"""Seconds that an update waits for another process that indexes."""
_TELL_EVERY = 2.0
"""Seconds between two words about an update in the background."""
_LONGEST_TEXT = 4_000
"""Characters of one chunk that a model is shown."""

_PATHS: dict[str, Any] = {"type": "array", "items": {"type": "string"}, "maxItems": 100_000}


def _schema(properties: dict[str, Any], required: Sequence[str] = ()) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


_SEARCH = _schema(
    {
        "query": {
            "type": "string",
            "minLength": 1,
            "description": "What the code does, a name, or the whole text of an issue, a trace or "
            "a failing test: its first line says what is meant. English or Japanese",
        },
        "top_k": {"type": "integer", "minimum": 1, "maximum": MOST_RESULTS, "default": TOP_K},
        "filters": _schema({"path_prefix": {"type": "string", "maxLength": 4096}}),
        "budget": {
            "type": "integer",
            "minimum": LEAST_BUDGET,
            "maximum": MOST_BUDGET,
            "description": "Tokens that the results may take: signatures first, then whole pieces",
        },
    },
    ["query"],
)
_RENAMED = _schema({"from": {"type": "string"}, "to": {"type": "string"}}, ["from", "to"])
_INGEST = _schema(
    {
        "paths": _PATHS,
        "diff": _schema(
            {
                "added": _PATHS,
                "modified": _PATHS,
                "deleted": _PATHS,
                "renamed": {"type": "array", "items": _RENAMED, "maxItems": 100_000},
            }
        ),
    }
)


def index_tools(
    open_index: OpenIndex,
    events: EventLog | None = None,
    count_tokens: CountTokens | None = None,
) -> list[Tool]:
    """Return the tools over an index that is opened when it is first needed.

    Without ``count_tokens`` no search can be given a budget.
    """
    tools = _IndexTools(open_index, events, count_tokens)
    return [
        Tool(
            "search_code",
            "Find code in this project by what it does or by its name. Returns the best chunks "
            "with path, lines and text. Prefer it to reading files one by one.",
            _SEARCH,
            Effect.READ,
            tools.search,
            aliases=("searchCode",),
        ),
        Tool(
            "ingest",
            "Bring the code index up to date with the given paths, or with a diff.",
            _INGEST,
            Effect.WRITE,
            tools.ingest,
            shown_to="json",
            timeout=600.0,
        ),
        Tool(
            "prune",
            "Forget paths in the code index. A file that is still there comes back when the tree "
            "is next looked at; .evercontextignore keeps it out.",
            _schema({"paths": _PATHS}, ["paths"]),
            Effect.WRITE,
            tools.prune,
            shown_to="json",
            timeout=600.0,
        ),
    ]


class _IndexTools:
    def __init__(
        self, open_index: OpenIndex, events: EventLog | None, count_tokens: CountTokens | None
    ) -> None:
        self._open = open_index
        self._events = events
        self._count_tokens = count_tokens

    async def search(self, arguments: Arguments, caller: Caller) -> ToolResult:
        """Answer a question."""
        if not arguments["query"].strip():
            raise InvalidArguments("query: it is empty")
        from evercontext.index.partial_search import ask

        prefix = (arguments.get("filters") or {}).get("path_prefix")
        index = await self._open(caller)
        answer = await ask(
            index,
            arguments["query"],
            arguments.get("top_k", TOP_K),
            prefix,
            progress=self._progress(caller),
        )
        if (budget := arguments.get("budget")) is not None:
            if self._count_tokens is None:
                raise InvalidArguments("budget: tokens are not counted here")
            answer = await asyncio.to_thread(fit, answer, budget, self._count_tokens)
        if self._events:
            self._events.emit(
                Evidence(
                    query=arguments["query"][:LONGEST_KEPT],
                    paths=tuple(hit.path for hit in answer.hits),
                    scores=tuple(hit.score for hit in answer.hits),
                ),
                trace_id=caller.trace_id,
                parent=caller.parent,
            )
        return ToolResult(_as_text(answer), as_data(answer), hits=len(answer.hits))

    def _progress(self, caller: Caller) -> Progress | None:
        """Tell the caller's trace how an update in the background gets on."""
        events = self._events
        if events is None:
            return None
        reported = -math.inf

        def tell(done: int, total: int) -> None:
            nonlocal reported
            now = time.monotonic()
            if done < total and now - reported < _TELL_EVERY:
                return
            reported = now
            text = f"code index: {done:,} of {total:,} files"
            events.emit(
                Notice(level="info", text=text), trace_id=caller.trace_id, parent=caller.parent
            )

        return tell

    async def ingest(self, arguments: Arguments, caller: Caller) -> ToolResult:
        """Index paths, or what a diff names."""
        paths = arguments.get("paths")
        diff = arguments.get("diff")
        if (paths is None) == (diff is None):
            raise InvalidArguments("give either paths or diff")
        changes = list(paths) if paths is not None else _paths_of(diff)
        index = await self._open(caller)
        checked = _checked(changes, index.indexer.walker.policy)
        report = await index.update(checked, patience=_PATIENCE)
        return self._tool_result(report, caller)

    async def prune(self, arguments: Arguments, caller: Caller) -> ToolResult:
        """Forget paths."""
        index = await self._open(caller)
        paths = _checked(arguments["paths"], index.indexer.walker.policy)
        report = await index.prune(paths)
        return self._tool_result(report, caller)

    def _tool_result(self, report: IndexReport, caller: Caller) -> ToolResult:
        counts = counted(report)
        if self._events:
            body = Indexed(**counts, duration_ms=int(report.seconds * 1000))
            self._events.emit(body, trace_id=caller.trace_id, parent=caller.parent)
        lines = ", ".join(f"{n} {name}" for name, n in counts.items() if n) or "nothing to do"
        return ToolResult(f"index: {lines}", {"status": "ok", **counts, "skipped": report.skipped})


def counted(report: IndexReport) -> dict[str, int]:
    """Return the numbers of a report."""
    names = ("added", "changed", "deleted", "renamed", "embedded")
    return {name: getattr(report, name) for name in names}


def _checked(paths: Sequence[str], policy: FilePolicy) -> list[str]:
    """Return the paths in their plain spelling; one that may not be entered refuses them all."""
    parsed = [parse(path) for path in paths]
    for parts in parsed:
        policy.check_directory(parts)
    return ["/".join(parts) for parts in parsed]


def _paths_of(diff: Any) -> list[str]:
    moved = [path for pair in diff.get("renamed", ()) for path in (pair["from"], pair["to"])]
    return [p for kind in ("added", "modified", "deleted") for p in diff.get(kind, ())] + moved


def _as_text(answer: Answer) -> str:
    if not answer.hits and not answer.left_out:
        return "Nothing found." + incomplete(answer)
    parts = [
        f"{hit.path}:{hit.start_line}-{hit.end_line}"
        f"{f' ({hit.symbol})' if hit.symbol else ''}\n{hit.text[:_LONGEST_TEXT]}"
        for hit in answer.hits
    ]
    notes = [note for note in (unfitted(answer), incomplete(answer).strip()) if note]
    return "\n\n".join([*parts, *(f"({note})" for note in notes)])
