"""Serve ``POST /catalog/search``: tool search for other routers, and for ours (T28).

A model picks and explains, where one is configured; otherwise, and whenever it fails, the local
search answers, and the answer says so. Nothing that is asked is kept.
"""

from __future__ import annotations

import json
from typing import Any

from evercontext.catalog.discovery_tools import DEFAULT_RESULTS, MOST_QUERIES, MOST_RESULTS
from evercontext.catalog.picker import Picker
from evercontext.catalog.search_provider import LocalSearch, Results
from evercontext.catalog.tool_entry import CatalogEntry, read_entry
from evercontext.errors import BadRequest, EverContextError, ServerProblem, Unauthorized
from evercontext.mcp.server.http import Refused
from evercontext.server.request_guard import BODY, Scope, Send, note_of
from evercontext.server.responses import encode, error_response, start
from evercontext.server.router.authentication import Authenticator, single_headers

PATH = "/catalog/search"
MOST_TOOLS = 10_000
LONGEST_QUERY = 4_000
_SHOWN = ("toolKey", "toolName", "serverName", "description", "relevance", "explanation")


class CatalogSearch:
    """Answers the route for clients with a token."""

    def __init__(self, authenticator: Authenticator, picker: Picker) -> None:
        self._authenticator, self._picker = authenticator, picker
        self._local = LocalSearch()

    async def __call__(self, scope: Scope, send: Send) -> None:
        """Serve one request whose body was read."""
        note = note_of(scope)
        try:
            headers = single_headers(scope["headers"])
            client = await self._authenticator.authenticate(headers, {})
            note.principal = client.token
            body = encode(await self._answer(_read(scope[BODY])))
        except Refused as refusal:
            error = Unauthorized(str(refusal))
            head, body = error_response(error, note.trace_id)
            head["status"] = refusal.status
        except EverContextError as error:
            head, body = error_response(error, note.trace_id)
        else:
            head = start(200, body)
        await send(head)
        await send({"type": "http.response.body", "body": body})

    async def _answer(self, query: _Query) -> dict[str, Any]:
        pick = await self._picker.get()
        if pick is None:
            notice = "no model is configured here: searched by words and meaning"
            return {"results": await self._search_locally(query), "notice": notice}
        try:
            results = await pick.search(*query)
        except ServerProblem as problem:
            notice = f"{problem}: searched by words and meaning"
            return {"results": await self._search_locally(query), "notice": notice}
        return {"results": _shown(results), "model": pick.name}

    async def _search_locally(self, query: _Query) -> Results:
        return _shown(await self._local.search(*query))


_Query = tuple[list[str], list[CatalogEntry], int, str | None]


def _read(body: bytes) -> _Query:
    try:
        fields = json.loads(body)
    except (ValueError, RecursionError):
        raise BadRequest("the body is no JSON") from None
    if not isinstance(fields, dict):
        raise BadRequest("the body must be one object")
    query, tools = fields.get("query"), fields.get("tools")
    queries = [query] if isinstance(query, str) else query
    if not isinstance(queries, list) or not queries or len(queries) > MOST_QUERIES:
        raise BadRequest(f"query: 1 to {MOST_QUERIES} texts are needed")
    if not all(isinstance(text, str) and len(text) <= LONGEST_QUERY for text in queries):
        raise BadRequest(f"query: each is a text of at most {LONGEST_QUERY} characters")
    if not isinstance(tools, list) or len(tools) > MOST_TOOLS:
        raise BadRequest(f"tools: a list of at most {MOST_TOOLS} is needed")
    context, limit = fields.get("context"), fields.get("maxResults", DEFAULT_RESULTS)
    if not isinstance(limit, int) or isinstance(limit, bool) or limit < 1:
        raise BadRequest("maxResults: a number from 1")
    if context is not None and not isinstance(context, str):
        raise BadRequest("context: must be a text")
    context = context[:LONGEST_QUERY] if context else None
    return queries, [read_entry(tool) for tool in tools], min(limit, MOST_RESULTS), context


def _shown(results: Results) -> Results:
    return [{name: hit[name] for name in _SHOWN if name in hit} for hit in results]
