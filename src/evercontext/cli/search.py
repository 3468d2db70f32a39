"""``evercontext search``: find code in the project."""

from __future__ import annotations

import json
import sys
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from evercontext.cli.index import opened_index, show_progress
from evercontext.cli.interrupt import run_until_stopped
from evercontext.cli.messages import translate, translate_composed
from evercontext.cli.options import json_option, root_option, settings_of
from evercontext.cli.terminal import Screen, labelled
from evercontext.errors import EverContextError, UsageError
from evercontext.settings import Settings

if TYPE_CHECKING:
    from evercontext.index.code_search import Answer, CodeIndex
    from evercontext.index.remote_search import RemoteIndex

_SearchFunction = Callable[[str], Awaitable["Answer | dict[str, Any]"]]

_SHOWN_LINES = 12
_PATIENCE = 60.0
"""Seconds that a person waits for the index: for this process, or another one that builds it."""
_SIGNALS = 8
_WEAKEST_SHOWN = 0.01


@click.command("search")
@click.argument("query", required=False)
@click.option("-k", "--top-k", type=click.IntRange(1, 100), default=5, show_default=True)
@click.option("--path-prefix", metavar="PREFIX", help="Only paths that begin with this.")
@click.option(
    "--stdin",
    "many",
    is_flag=True,
    help="One query per line, a JSON string where it has several; one JSON line for each.",
)
@click.option("--committed", is_flag=True, help="Search the last commit, not the files.")
@click.option(
    "--budget",
    type=click.IntRange(50, 100_000),
    metavar="TOKENS",
    help="Fit the results into so many tokens: signatures first, then whole pieces.",
)
@click.option("--explain", is_flag=True, help="Show what each signal added.")
@json_option
@root_option
def command(
    query: str | None,
    top_k: int,
    path_prefix: str | None,
    many: bool,
    committed: bool,
    budget: int | None,
    explain: bool,
    as_json: bool,
    root: str | None,
    allow_wide_root: bool | None,
) -> int:
    """Find code by what it does, by its name, or by an issue's text.

    With - as QUERY the whole standard input is one question: its first line or sentence says what
    is meant, what follows adds paths, frames and names.

    The index is brought up to date first, for up to a minute; an answer that comes before it is
    complete says so, and the next one goes on from there.
    """
    if many == (query is not None):
        raise UsageError("give either a QUERY or --stdin")
    settings = settings_of(root, allow_wide_root=allow_wide_root)
    if committed and settings.rag_url:
        raise UsageError("--committed is not offered by EC_RAG_URL", fix="Unset it")
    search = _Search(settings, top_k, path_prefix, explain, committed, budget)
    if many:
        return run_until_stopped(search.answer_stdin())
    return run_until_stopped(search.answer_question(_text_of(query or ""), as_json))


def _text_of(query: str) -> str:
    return sys.stdin.buffer.read().decode("utf-8", "replace") if query == "-" else query


def _question_of(line: str) -> str:
    """A line as it is; a question of several lines is one JSON string, or its ``query``."""
    if line[:1] not in ('"', "{"):
        return line
    try:
        read = json.loads(line)
    except ValueError:
        return line
    question = read.get("query") if isinstance(read, dict) else read
    return question if isinstance(question, str) else line


class _Search:
    def __init__(
        self,
        settings: Settings,
        top_k: int,
        path_prefix: str | None,
        explain: bool,
        committed: bool,
        budget: int | None = None,
    ) -> None:
        self._settings = settings
        self._top_k = top_k
        self._prefix = path_prefix
        self._explain = explain
        self._committed = committed
        self._budget = budget

    async def answer_question(self, query: str, as_json: bool) -> int:
        """Answer one question; 1 if nothing was found."""
        async with self._opened(patient=False) as search:
            data = self._data_of(await search(query))
        if data.get("note"):
            print(labelled("warning", str(data["note"])), file=sys.stderr, flush=True)
        if as_json:
            print(json.dumps({"query": query, **data}, ensure_ascii=False, indent=2))
        else:
            self._show(data)
        return 0 if data["chunks"] or data.get("left_out") else 1

    async def answer_stdin(self) -> int:
        """Answer one JSON line per line of the standard input."""
        from evercontext.process.stdin import read_lines

        async with self._opened(patient=True) as search:
            async for line in read_lines():
                query = _question_of(line.decode("utf-8", "replace").rstrip("\r\n"))
                try:
                    data = self._data_of(await search(query))
                except EverContextError as problem:
                    data = {"chunks": [], "error": str(problem)}
                print(json.dumps({"query": query, **data}, ensure_ascii=False), flush=True)
        return 0

    @asynccontextmanager
    async def _opened(self, *, patient: bool) -> AsyncIterator[_SearchFunction]:
        """Open the index here, or the server that ``EC_RAG_URL`` names; yield its search."""
        if self._settings.rag_url:
            from evercontext.app.index import open_remote_index

            async with open_remote_index(self._settings, self._settings.rag_url) as remote:
                yield partial(self._search_remotely, remote)
            return
        from evercontext.index.partial_search import ask

        wishes: dict[str, Any] = {
            "top_k": self._top_k,
            "path_prefix": self._prefix,
            "explain": self._explain,
        }
        async with opened_index(self._settings) as index:
            if self._committed:
                yield partial(index.search_commit, **wishes)
                return
            if patient:
                await _catch_up(index)
            # Asked by a person, who would rather wait than read "stale".
            yield partial(ask, index, **wishes, patience=_PATIENCE, progress=show_progress)

    async def _search_remotely(self, remote: RemoteIndex, query: str) -> dict[str, Any]:
        arguments: dict[str, Any] = {"query": query, "top_k": self._top_k}
        if self._prefix:
            arguments["filters"] = {"path_prefix": self._prefix}
        if self._budget:
            arguments["budget"] = self._budget
        return {"chunks": [], **await remote.ask("search_code", arguments, str(uuid.uuid4()))}

    def _data_of(self, answer: Answer | dict[str, Any]) -> dict[str, Any]:
        """Return an answer as JSON shows it; a server's is so already."""
        if isinstance(answer, dict):
            return answer
        from evercontext.index.answer_json import as_data, incomplete

        if self._budget:
            from evercontext.app.index import count_tokens
            from evercontext.index.token_budget import fit

            answer = fit(answer, self._budget, count_tokens)
        data = as_data(answer)
        if (lacks := incomplete(answer).strip()) and not self._committed:
            data["note"] = " ".join(filter(None, [data.get("note"), lacks]))
        return data

    def _show(self, data: dict[str, Any]) -> None:
        screen = Screen(sys.stdout, no_color=self._settings.no_color)
        left_out = data.get("left_out", 0)
        if not data["chunks"] and not left_out:
            print(translate("nothing found"), file=sys.stderr)
        for chunk in data["chunks"]:
            self._show_chunk(screen, chunk)
        if left_out:
            text = "{count} more did not fit into {tokens} tokens"
            print(translate(text, count=left_out, tokens=f"{self._budget:,}"), file=sys.stderr)

    def _show_chunk(self, screen: Screen, chunk: dict[str, Any]) -> None:
        span = str(chunk.get("span", "")).replace("L", "")
        first = int(span.partition("-")[0]) if span.partition("-")[0].isdecimal() else 1
        name = f"  {chunk['symbol']}" if chunk.get("symbol") else ""
        why = ", ".join(chunk.get("reasons", ()))
        place = f"{chunk.get('path')}:{span}{name}"
        screen.line(f"{place}  {shown_score(float(chunk.get('score', 0)))}  {why}", "cyan")
        lines = str(chunk.get("text", "")).split("\n")
        for number, line in enumerate(lines[:_SHOWN_LINES], first):
            screen.line(f"     ~  {line}" if chunk.get("shortened") else f"{number:6d}  {line}")
        if len(lines) > _SHOWN_LINES:
            more = translate("{count} more lines", count=len(lines) - _SHOWN_LINES)
            screen.line(f"        … {more}")
        for signal, value in list(chunk.get("signals", {}).items())[:_SIGNALS]:
            screen.line(f"        {value:+.3f}  {signal}")
        screen.line("")


def shown_score(score: float) -> str:
    """A score for people: one that is found is never nothing, however weak it is."""
    return f"{score:.2f}" if score >= _WEAKEST_SHOWN else f"<{_WEAKEST_SHOWN:.2f}"


async def _catch_up(index: CodeIndex) -> None:
    try:
        await index.update(patience=_PATIENCE)
    except EverContextError as problem:
        reason = translate_composed(problem.message)
        text = translate("{reason}: this answer may be stale", reason=reason)
        print(text, file=sys.stderr, flush=True)
