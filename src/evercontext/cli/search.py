"""``evercontext search``: find code in the project."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import click

from evercontext.cli.indexes import opened_index
from evercontext.cli.interrupt import run_until_stopped
from evercontext.cli.options import json_option, root_option, settings_of
from evercontext.cli.terminal import Screen, one_line
from evercontext.errors import EverContextError, UsageError
from evercontext.settings import Settings

if TYPE_CHECKING:
    from evercontext.index.search import Answer, CodeIndex, Hit

_SHOWN_LINES = 12
_PATIENCE = 60.0
"""Seconds that a person waits for another process that indexes."""
_SIGNALS = 8


@click.command("search")
@click.argument("query", required=False)
@click.option("-k", "--top-k", type=click.IntRange(1, 100), default=5, show_default=True)
@click.option("--path-prefix", metavar="PREFIX", help="Only paths that begin with this.")
@click.option("--stdin", "many", is_flag=True, help="One query per line; one JSON line for each.")
@click.option("--explain", is_flag=True, help="Show what each signal added.")
@json_option
@root_option
def command(
    query: str | None,
    top_k: int,
    path_prefix: str | None,
    many: bool,
    explain: bool,
    as_json: bool,
    root: str | None,
    allow_wide_root: bool | None,
) -> int:
    """Find code by what it does, or by its name.

    The index is brought up to date first where that is quick; otherwise the answer says that it
    is stale.
    """
    if many == (query is not None):
        raise UsageError("give either a QUERY or --stdin")
    settings = settings_of(root, allow_wide_root=allow_wide_root)
    asked = _Asked(settings, top_k, path_prefix, explain)
    if many:
        return run_until_stopped(asked.many())
    return run_until_stopped(asked.one(query or "", as_json))


class _Asked:
    def __init__(
        self, settings: Settings, top_k: int, path_prefix: str | None, explain: bool
    ) -> None:
        self._settings = settings
        self._top_k = top_k
        self._prefix = path_prefix
        self._explain = explain

    async def one(self, query: str, as_json: bool) -> int:
        """Answer one question; 1 if nothing was found."""
        from evercontext.index.tools import as_data

        async with opened_index(self._settings) as index:
            answer = await self._answer(index, query)
            if answer.stale:
                # Asked by a person, who would rather wait than read "stale".
                print("indexing first …", file=sys.stderr, flush=True)
                await _catch_up(index)
                answer = await self._answer(index, query)
        if answer.note:
            print(f"warning: {one_line(answer.note)}", file=sys.stderr, flush=True)
        if as_json:
            print(json.dumps({"query": query, **as_data(answer)}, ensure_ascii=False, indent=2))
        else:
            self._show(answer)
        return 0 if answer.hits else 1

    async def many(self) -> int:
        """Answer one JSON line per line of the standard input."""
        from evercontext.index.tools import as_data

        async with opened_index(self._settings) as index:
            await _catch_up(index)
            for line in sys.stdin:
                query = line.rstrip("\n")
                try:
                    data = as_data(await self._answer(index, query))
                except EverContextError as problem:
                    data = {"chunks": [], "error": str(problem)}
                print(json.dumps({"query": query, **data}, ensure_ascii=False), flush=True)
        return 0

    async def _answer(self, index: CodeIndex, query: str) -> Answer:
        return await index.search(query, self._top_k, self._prefix, explain=self._explain)

    def _show(self, answer: Answer) -> None:
        screen = Screen(sys.stdout, no_color=self._settings.no_color)
        if not answer.hits:
            print("nothing found", file=sys.stderr)
        for hit in answer.hits:
            self._show_hit(screen, hit)

    def _show_hit(self, screen: Screen, hit: Hit) -> None:
        place = f"{hit.path}:{hit.start_line}-{hit.end_line}"
        name = f"  {hit.symbol}" if hit.symbol else ""
        screen.line(f"{place}{name}  {hit.score:.2f}  {', '.join(hit.reasons)}", "cyan")
        lines = hit.text.split("\n")
        for number, line in enumerate(lines[:_SHOWN_LINES], hit.start_line):
            screen.line(f"{number:6d}  {line}")
        if len(lines) > _SHOWN_LINES:
            screen.line(f"        … {len(lines) - _SHOWN_LINES} more lines")
        for signal, value in hit.signals[:_SIGNALS]:
            screen.line(f"        {value:+.3f}  {signal}")
        screen.line("")


async def _catch_up(index: CodeIndex) -> None:
    try:
        await index.update(patience=_PATIENCE)
    except EverContextError as problem:
        print(f"{problem.message}: this answer may be stale", file=sys.stderr, flush=True)
